package task

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A viewer is who looks, and what it was shown.
type viewer struct {
	tap            *Tap
	words          []string
	looked, wanted int
	failed         error
	enough         bool
}

func newViewer(where func(tuple.Tuple) (bool, error)) *viewer {
	v := &viewer{}
	v.tap = &Tap{
		Component: "split", Stream: "default",
		Seen: func(task string, t tuple.Tuple) bool {
			v.words = append(v.words, strings.Clone(t.String("word")))
			return !v.enough
		},
		Looked: func(looked, wanted, _ int, failed error) {
			v.looked, v.wanted = v.looked+looked, v.wanted+wanted
			if failed != nil {
				v.failed = failed
			}
		},
	}
	if where != nil {
		v.tap.Where = func() func(tuple.Tuple) (bool, error) { return where }
	}
	return v
}

// emit emits n words, and sends them.
func emit(t *boltTask, l *loop, n int) {
	t.enter(l)
	for i := range n {
		t.collector.Emit(texts[i%len(texts)])
	}
	t.out.flush(0)
}

var texts = [8]string{"whale", "the", "of", "sea", "ship", "captain", "ahab", "white"}

// With each grouping, each tuple is seen once, however many tasks get it.
func TestTapSeesEachTupleOnce(t *testing.T) {
	for name, group := range map[string]func(*topology.Component) topology.Subscription{
		"fields": byWord, "shuffle": (*topology.Component).Shuffle, "partial": partialByWord, "custom": customByWord,
		"all": (*topology.Component).All, "global": (*topology.Component).Global, "none": (*topology.Component).None,
		"local": (*topology.Component).LocalOrShuffle,
	} {
		t.Run(name, func(t *testing.T) {
			task, l, _ := startBolt(t, topology.AtMostOnce, nil, group)
			v := newViewer(nil)
			task.Receive(l, Taps{v.tap})
			emit(task, l, 800)
			require.Equal(t, 800, v.looked)
			require.Equal(t, 800, v.wanted)
			count := map[string]int{}
			for _, w := range v.words {
				count[w]++
			}
			require.Len(t, count, len(texts))
			for _, w := range texts {
				require.Equal(t, 100, count[w], w)
			}
		})
	}
}

// When nobody looks any more, nothing is left of the taps that there were.
func TestNoTapIsLeft(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtLeastOnce, nil, byWord)
	require.Nil(t, task.out.lookers)
	one, two := newViewer(nil), newViewer(nil)
	other := &Tap{Component: "other", Stream: "default"}
	wrong := &Tap{Component: "split", Stream: "wrong"}
	task.Receive(l, Taps{one.tap, two.tap, other, wrong})
	require.Len(t, task.out.lookers, 2, "other and wrong are none of its business")
	emit(task, l, 10)
	task.Receive(l, Taps{two.tap})
	emit(task, l, 10)
	task.Receive(l, Taps{})
	require.Nil(t, task.out.lookers)
	emit(task, l, 10)
	require.Len(t, one.words, 10)
	require.Len(t, two.words, 20)
}

// What is looked at has a bound, and a filter that is slow is asked less often.
func TestTapBudget(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtMostOnce, nil, byWord)
	step := func(after time.Duration) {
		l.now += after
		emit(task, l, 300)
	}
	v := newViewer(nil)
	v.tap.Seen = func(string, tuple.Tuple) bool {
		l.now -= time.Microsecond // as if it took no time
		return true
	}
	task.Receive(l, Taps{v.tap})
	for range 20 {
		step(0)
	}
	require.Equal(t, tapMost, v.looked)
	before := v.looked
	step(tapEvery)
	require.Equal(t, before+300, v.looked)

	// One whose tuples take 50 ms each looks at one in five seconds.
	slow := newViewer(nil)
	slow.tap.Where = func() func(tuple.Tuple) (bool, error) {
		return func(tuple.Tuple) (bool, error) { l.now += 50 * time.Millisecond; return false, nil }
	}
	task.Receive(l, Taps{slow.tap})
	began := l.now
	for l.now-began < time.Minute {
		step(10 * time.Millisecond)
	}
	require.InDelta(t, 12, slow.looked, 2)

	// And goes on where it was when another one joins.
	before = slow.looked
	task.Receive(l, Taps{v.tap, slow.tap})
	for range 5 {
		step(time.Millisecond)
	}
	require.LessOrEqual(t, slow.looked, before+1)
}

// Looking is bounded for all taps of a task together, and over their lives: who opens one
// again, or several, gets no more time.
func TestTapBudgetIsOfTheTask(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtMostOnce, nil, byWord)
	began, asked := l.now, 0
	slow := func() *Tap {
		v := newViewer(nil)
		v.tap.Where = func() func(tuple.Tuple) (bool, error) {
			return func(tuple.Tuple) (bool, error) { asked++; l.now += 50 * time.Millisecond; return false, nil }
		}
		return v.tap
	}
	for l.now-began < time.Minute {
		task.Receive(l, Taps{slow(), slow(), slow()})
		l.now += 5 * time.Millisecond
		emit(task, l, 300)
		task.Receive(l, Taps{})
		l.now += 5 * time.Millisecond
		emit(task, l, 300)
	}
	require.InDelta(t, 12, asked, 2, "tuples of 50 ms each in a minute")
}

// All taps have their turn, though one alone would take all the time that there is.
func TestTapsHaveTurns(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtMostOnce, nil, byWord)
	asked := [3]int{}
	var taps Taps
	for i := range asked {
		v := newViewer(nil)
		v.tap.Where = func() func(tuple.Tuple) (bool, error) {
			return func(tuple.Tuple) (bool, error) { asked[i]++; l.now += 20 * time.Millisecond; return false, nil }
		}
		taps = append(taps, v.tap)
	}
	task.Receive(l, taps)
	for began := l.now; l.now-began < 5*time.Minute; l.now += 7 * time.Millisecond {
		emit(task, l, 8)
	}
	for i := range asked {
		require.InDelta(t, 50, asked[i], 30, "%v", asked)
	}
}

// Looking is seen from outside as a call, and one in user code as that of user code. Who was
// given up meanwhile sends nothing more.
func TestLookIsACall(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtMostOnce, nil, byWord)
	var kinds []callKind
	take := false
	v := newViewer(func(tuple.Tuple) (bool, error) {
		s, since := task.call.Look()
		kinds = append(kinds, callKind(s.Kind()))
		require.Less(t, l.now-since, time.Second)
		if take {
			task.call.Take(s)
		}
		return true, nil
	})
	task.Receive(l, Taps{v.tap})
	l.now += time.Minute
	emit(task, l, 1)
	s, _ := task.call.Look()
	require.Zero(t, s, "it has come back")
	task.call.Begin(uint8(inExecute), l.now, 0, 1)
	emit(task, l, 1)
	s, _ = task.call.Look()
	require.Equal(t, inExecute, callKind(s.Kind()), "still")
	task.call.End()
	require.Equal(t, []callKind{inLook, inExecute}, kinds)

	sent := l.parcel
	take = true
	emit(task, l, 1)
	require.Equal(t, sent, l.parcel)
	require.True(t, task.dead)
	emit(task, l, 1)
	require.Equal(t, sent, l.parcel)
	require.Len(t, kinds, 3, "nor is that looked at")
}

// A tap that does not come back is told of, and no reason to begin the task anew.
func TestStuckTap(t *testing.T) {
	_, _, plan := startBolt(t, topology.AtLeastOnce, nil, byWord)
	var told []*Stuck
	set := &Settings{MaxReplays: 3, MessageTimeout: time.Minute, StuckAfter: time.Second, Replace: true, Event: func(e Event) {
		if e, is := e.(*Stuck); is {
			told = append(told, e)
		}
	}}
	k := &kids{sent: map[*kid][]any{}}
	s := NewSupervisor(plan, set, metricsOf(plan), func(error) {})
	s.Start(k)
	c := &s.children[1]
	ref, began := c.ref, len(k.all)
	c.call.Begin(uint8(inLook), k.now, 0, 0)
	for range 20 {
		k.now = s.looked + s.lookAfter
		s.Receive(k, look{s.round})
	}
	s.Receive(k, actor.Stack{Ref: ref, Text: "regexp"})
	require.Len(t, told, 1)
	require.Equal(t, "a tap", told[0].During)
	require.False(t, told[0].Replaced)
	require.Equal(t, ref, c.ref)
	require.Len(t, k.all, began)
}

func TestTapWhere(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtMostOnce, nil, (*topology.Component).Global)
	bad := errors.New("bad")
	v := newViewer(func(x tuple.Tuple) (bool, error) {
		if x.String("word") == "sea" {
			return true, bad
		}
		return x.String("word") == "whale", nil
	})
	task.Receive(l, Taps{v.tap})
	emit(task, l, 80)
	require.Equal(t, slices.Repeat([]string{"whale"}, 10), v.words)
	require.Equal(t, 80, v.looked)
	require.Equal(t, 10, v.wanted)
	require.Equal(t, bad, v.failed)

	// Who has enough for now hears of the others that they are wanted, and without a
	// filter of none.
	v.enough = true
	emit(task, l, 80)
	require.Equal(t, 160, v.looked)
	all := newViewer(nil)
	all.enough = true
	task.Receive(l, Taps{all.tap})
	emit(task, l, 80)
	require.Equal(t, 1, all.looked)
	require.Len(t, all.words, 1)
}

// A marker of a batch is not a tuple.
func TestTapAndMarkers(t *testing.T) {
	task, l, _ := startBolt(t, topology.AtMostOnce, nil, byWord)
	v := newViewer(nil)
	task.Receive(l, Taps{v.tap})
	task.enter(l)
	task.out.mark(tuple.BatchID{Tx: 1})
	require.Zero(t, v.looked)
}

// A kids is a context in which the actors are listed and get no messages.
type kids struct {
	loop
	all  []*kid
	sent map[*kid][]any
}

type kid struct{ actor.Behavior }

func (k *kids) Spawn(_ string, b actor.Behavior) actor.Ref {
	c := &kid{b}
	k.all = append(k.all, c)
	return c
}

func (k *kids) Send(to actor.Ref, msg any) {
	if c, is := to.(*kid); is {
		k.sent[c] = append(k.sent[c], msg)
	}
}

// taps returns the last ones that an actor was told of; nil: none.
func (k *kids) taps(c *kid) (last Taps) {
	for _, m := range k.sent[c] {
		if t, is := m.(Taps); is {
			last = t
		}
	}
	return last
}

// Each life of each task has the present taps, and none when there are none.
func TestTapsOfNewLives(t *testing.T) {
	_, _, plan := startBolt(t, topology.AtLeastOnce, nil, byWord)
	set := &Settings{MaxReplays: 3, MessageTimeout: time.Minute, Event: func(Event) {}}
	k := &kids{sent: map[*kid][]any{}}
	s := NewSupervisor(plan, set, metricsOf(plan), func(error) {})
	s.Start(k)
	require.Len(t, k.all, len(plan.Tasks))
	tap := newViewer(nil).tap
	s.Receive(k, Taps{tap})
	for _, c := range k.all {
		require.Equal(t, Taps{tap}, k.taps(c))
	}
	die := func() *kid {
		s.Receive(k, actor.Terminated{Ref: s.children[1].ref, Err: errors.New("x")})
		return k.all[len(k.all)-1]
	}
	require.Equal(t, Taps{tap}, k.taps(die()))
	s.Receive(k, Taps{})
	require.Empty(t, k.taps(k.all[len(k.all)-1]))
	require.Nil(t, k.taps(die()))
}

// BenchmarkTap is BenchmarkOutbox with and without somebody who looks. One operation is
// one word. The clock of this context goes on with the tuples, 10 ns for each.
func BenchmarkTap(b *testing.B) {
	for _, tap := range []string{"none", "other", "all", "where", "enough"} {
		b.Run("tap="+tap, func(b *testing.B) {
			t, l, _ := startBolt(b, topology.AtMostOnce, nil, byWord)
			v := newViewer(nil)
			v.tap.Seen = func(string, tuple.Tuple) bool { return tap != "enough" }
			switch tap {
			case "other":
				v.tap.Component = "other"
			case "where":
				v.tap.Where = func() func(tuple.Tuple) (bool, error) {
					return func(x tuple.Tuple) (bool, error) { return x.String("word") == "whale", nil }
				}
			}
			if tap != "none" {
				t.Receive(l, Taps{v.tap})
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if i%1024 == 0 {
					l.now += 10240
				}
				t.collector.Emit(texts[i%len(texts)])
			}
		})
	}
}

func metricsOf(p *topology.Plan) (ms []*metrics.Task) {
	for id := range p.Tasks {
		n := p.Node(tuple.TaskID(id))
		ms = append(ms, metrics.NewTask(p.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	return ms
}
