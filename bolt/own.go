package bolt

import (
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/tuple"
)

// Counter returns a counter of the task's own, named name, for people who look at
// the run's metrics, where it is called egret_own_ and its name. help is a sentence
// that says what it counts.
//
// A name is made of a-z, 0-9 and single underscores between them, has at most 100
// bytes, and means the same in all of a topology; that of a counter ends in _total.
// Names are not made of data: a task may have 256 metrics. The same name in the same
// task gives the same counter, which goes on through the task's incarnations.
// Anything else is a misuse.
//
// Counting costs a few nanoseconds and no lock, because there is one writer: only
// the bolt's own methods may count. A goroutine that the bolt has started must not,
// nor a function that [Async] calls; let it bring its number back, or use an atomic
// of yours and hand on the difference in Tick. Anybody may read.
func (t *Task) Counter(name, help string) *metrics.Counter {
	return made(t.own().Counter(name, help))
}

// Gauge is like [Task.Counter], for a level that goes up and down. Its name does not
// end in _total. What is shown of a component is the sum over its tasks.
func (t *Task) Gauge(name, help string) *metrics.Gauge {
	return made(t.own().Gauge(name, help))
}

// Histogram is like [Task.Counter], for how values are spread. The name of one in
// [metrics.Seconds] ends in _seconds and it is given durations by Record; in
// [metrics.Bytes] it ends in _bytes, in [metrics.None] in neither, and both are given
// numbers by Observe. It takes 8 KB.
func (t *Task) Histogram(name, help string, unit metrics.Unit) *metrics.Histogram {
	return made(t.own().Histogram(name, help, unit))
}

func (t *Task) own() *metrics.Own {
	if t.Own == nil {
		t.Own = &metrics.Own{Names: new(metrics.Names)}
	}
	return t.Own
}

func made[T any](m *T, err error) *T {
	if err != nil {
		tuple.Misuse(err.Error())
	}
	return m
}
