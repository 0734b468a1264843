// Package metrics counts what tasks do.
//
//	task (the one writer) --Add--> Counter <--Load-- anybody, at any time
//
// Every number has one writer, so counting needs no locked instruction per
// tuple; writers add up locally and publish once a parcel or turn. A number
// belongs to a task and goes on through the task's incarnations.
package metrics

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A Counter is a number with one writer and any number of readers.
type Counter struct{ n atomic.Int64 }

// Add adds d. Only the owner calls it.
func (c *Counter) Add(d int64) {
	if d != 0 {
		c.n.Store(c.n.Load() + d)
	}
}

// Set makes c a gauge. Only the owner calls it.
func (c *Counter) Set(v int64) {
	if c.n.Load() != v {
		c.n.Store(v)
	}
}

// Load returns the number as it was a moment ago.
func (c *Counter) Load() int64 { return c.n.Load() }

const (
	fine    = 4 // bits of a value below its highest: 16 buckets an octave, 6 % wide
	buckets = (64 - fine) << fine
)

// A Histogram counts durations in buckets about 6 % wide, from 0 to 290 years.
// It has one writer.
type Histogram struct {
	counts [buckets]atomic.Int64
}

func bucket(v uint64) int {
	if v < 1<<fine {
		return int(v)
	}
	e := bits.Len64(v) - 1 - fine
	return (e+1)<<fine + int(v>>e) - 1<<fine
}

// upper returns the largest value of a bucket.
func upper(i int) uint64 {
	if i < 1<<fine {
		return uint64(i)
	}
	e := i>>fine - 1
	return (uint64(i&(1<<fine-1))+1<<fine+1)<<e - 1
}

// Record counts d n times; less than zero counts as zero.
func (h *Histogram) Record(d time.Duration, n int64) {
	c := &h.counts[bucket(uint64(max(d, 0)))]
	c.Store(c.Load() + n)
}

// A Latency is a reading of histograms: some quantiles and how many values they
// come of. Each quantile is at most 6 % above the true one.
type Latency struct {
	Count   int64         `json:"count"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	P999    time.Duration `json:"p999_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// Read sums up histograms.
func Read(hs ...*Histogram) Latency {
	var sum [buckets]int64
	var l Latency
	for _, h := range hs {
		for i := range h.counts {
			n := h.counts[i].Load()
			sum[i] += n
			l.Count += n
		}
	}
	at := func(q float64) time.Duration {
		left := int64(float64(l.Count) * q)
		for i, n := range sum {
			if left -= n; left < 0 {
				return time.Duration(upper(i))
			}
		}
		return l.Longest
	}
	for i, n := range sum {
		if n > 0 {
			l.Longest = time.Duration(upper(i))
		}
	}
	l.P50, l.P99, l.P999 = at(0.50), at(0.99), at(0.999)
	return l
}

// A Stream counts what went out on one stream of a task.
type Stream struct {
	Emitted     Counter // tuples that the component emitted
	Transferred Counter // tuples that were sent to tasks: one for each task that gets a copy
}

// An Input counts what came in by one input of a task.
type Input struct {
	Executed Counter // tuples that Execute returned from, or panicked on
	Acked    Counter // of those, without an error
	Failed   Counter // of those, with an error, a misuse or a panic
}

// A Task is all that is counted of one task. The counts of messages are those of
// a spout, and of what a bolt emits in Tick and Finish.
//
// Two laws hold whenever the task is at rest, and are checked at the end of a run:
//
//	Messages = Acked + Dead + HandedBack + Abandoned + Open()
//	Attempts = Acked + Failed + Lost + TimedOut + Trying
type Task struct {
	Name    string // "count/2"
	Streams []Stream
	Inputs  []Input

	Messages Counter // emitted for the first time
	Acked    Counter // everything that came of them is done
	Dead     Counter // given up: rejected, or failed more than MaxReplays times
	// HandedBack are a queue's messages that it was told the failure of, whatever the
	// reason. What a call of Next brings when its incarnation has ended is failed as
	// well, and counted nowhere.
	HandedBack Counter
	// Abandoned were open when their incarnation ended. A spout's successor reads
	// them again, as new messages; what a bolt said in Tick or Finish is gone.
	Abandoned Counter

	Attempts Counter // emissions of messages, replays included
	Failed   Counter // attempts that ended in a failure
	Lost     Counter // attempts given back because a task or the incarnation died
	TimedOut Counter // attempts without progress for the message timeout
	Trying   Counter // gauge: attempts without a verdict

	MaxPending Counter // gauge: messages that may be open

	ReplayedFailed  Counter // replays, by what ended the attempt before
	ReplayedLost    Counter
	ReplayedTimeout Counter

	Untracked Counter // messages emitted under at-most-once, of which nothing else is known
	Queued    Counter // gauge: tuples received and not executed
	Held      Counter // gauge: tuples retained
	Room      Counter // gauge: tuples that may be sent before a receiver must give more room
	Throttled Counter // nanoseconds in which a receiver without room held this task up
	Restarts  Counter // incarnations after the first
	Refused   Counter // parcels, reports and limits of or for dead incarnations

	Execute  Histogram // a parcel's time divided by its tuples; of a tuple above 100 us its own time
	Complete Histogram // from emission of a tree to its last ack, for each of its messages
}

// NewTask returns the counters of a task.
func NewTask(name string, streams, inputs int) *Task {
	return &Task{Name: name, Streams: make([]Stream, streams), Inputs: make([]Input, inputs)}
}

// Open returns the messages of which it is not known what becomes of them.
func (t *Task) Open() int64 {
	return t.Messages.Load() - t.Acked.Load() - t.Dead.Load() - t.HandedBack.Load() - t.Abandoned.Load()
}

// Abandon accounts for the end of an incarnation: what it had open will be read
// again by the next, as new messages. Its owner, the task, must have ended.
func (t *Task) Abandon() {
	t.Abandoned.Add(t.Open())
	t.Lost.Add(t.Trying.Load())
	t.Trying.Set(0)
	t.Queued.Set(0)
	t.Held.Set(0)
	t.Room.Set(0)
}
