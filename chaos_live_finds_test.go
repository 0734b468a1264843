package egret

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos/live"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// What a topology is executed by is looked at, not only how often.
func TestLiveFindsWrongTuples(t *testing.T) {
	oddly := func(odd func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error) func(*topology.Plan, *task.Settings) {
		return func(p *topology.Plan, _ *task.Settings) {
			inner := p.Components[1].Bolt
			p.Components[1].Bolt = func() bolt.Bolt { return &oddBolt{Bolt: inner(), odd: odd} }
		}
	}
	var last tuple.Tuple
	for name, tt := range map[string]struct {
		breaks func(*topology.Plan, *task.Settings)
		says   []string
		lost   bool
		each   int64 // messages at a time; 0: 20
	}{
		"a tuple is executed twice": {breaks: oddly(func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error {
			if n == 12 {
				if err := b.Execute(in, out); err != nil {
					return err
				}
			}
			return b.Execute(in, out)
		}), says: []string{"another tuple was executed in its place, or again", "Egret says that it is done, and 1 tuple too many of it were executed"}},
		"a tuple is executed in place of its neighbour": {breaks: oddly(func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error {
			if n == 3 {
				in = last
			}
			last = in
			return b.Execute(in, out)
		}), says: []string{"another tuple was executed in its place, or again"}},
		"a tuple is passed over": {breaks: oddly(func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error {
			if n == 12 {
				return nil
			}
			return b.Execute(in, out)
		}), says: []string{"another tuple was executed in its place, or again"}, lost: true},
		"the only tuple of a parcel is passed over": {each: 1, breaks: oddly(func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error {
			if n == 12 {
				return nil
			}
			return b.Execute(in, out)
		}), says: []string{"its tuple was put away without being executed"}, lost: true},
		"a parcel has fewer tuples": {each: 1, breaks: oddly(func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error {
			if n == 12 {
				_ = b.Execute(in, out)
			}
			return b.Execute(in, out)
		}), says: []string{"more tuples were executed than its parcel had"}},
		"a message is replayed with the values of another one": {breaks: func(_ *topology.Plan, set *task.Settings) {
			tree, known := set.Probe.Tree, map[*spout.Batch]int{}
			set.Probe.Tree = func(id tuple.TreeID, b *spout.Batch, first, n int) {
				if id.Task == 0 { // the spout's, on its turn
					if n == 1 && known[b] > first {
						first = (first + 1) % b.Len() // so what is emitted is not what this has
					}
					known[b] = first + n
				}
				tree(id, b, first, n)
			}
		}, says: []string{"a tuple was executed as this message that has not its values"}},
		"a message of its own is lost before it is sent": {breaks: func(p *topology.Plan, set *task.Settings) {
			collected, once := set.Probe.Collected, sync.Once{}
			set.Probe.Collected = func(id tuple.TaskID) {
				once.Do(func() { collected(id) })
				collected(id)
			}
		}, says: []string{"it was emitted in Tick and never sent"}},
	} {
		t.Run(name, func(t *testing.T) {
			top := topology.New("wrong", func(b *topology.Builder) {
				each := cmp.Or(tt.each, 20)
				in := b.Spout("in", from.Schedule(50, 0, func(i int64, _ time.Time, out *spout.Out) {
					for k := range each {
						out.Emit(i*each + k)
					}
				})).Emits("n")
				two := b.Bolt("two", func() bolt.Bolt { return new(telling) }, in.Shuffle()).Emits("n").Every(100 * time.Millisecond)
				b.Bolt("last", slowly, two.Shuffle())
			})
			r := harmed(t, top, "every 101ms kill last/*", Config{}, tt.breaks)
			said := map[string]bool{}
			for _, v := range r.Violations {
				said[v.What] = true
			}
			for _, what := range tt.says {
				require.True(t, said[what], "%v", r.Violations)
			}
			require.True(t, r.Failed())
			require.ErrorContains(t, liveOutcome(r), "violation")
			require.Equal(t, tt.lost, r.Lost > 0, "what comes of the wrong one may make up for it")
			o := r.Own
			require.Equal(t, o.Messages, o.Done+o.Dead+o.HandedBack+o.Gone+o.Unsent+o.Open)
		})
	}
}

// An oddBolt does with each tuple of a task's life, counted from 1, what it likes.
type oddBolt struct {
	bolt.Bolt
	odd func(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector, n int) error
	n   int
}

func (o *oddBolt) Execute(in tuple.Tuple, out *bolt.Collector) error {
	o.n++
	return o.odd(o.Bolt, in, out, o.n)
}

func (o *oddBolt) Prepare(ctx context.Context, t *bolt.Task) error {
	return o.Bolt.(bolt.Preparer).Prepare(ctx, t)
}

func (o *oddBolt) Tick(out *bolt.Collector) error { return o.Bolt.(bolt.Ticker).Tick(out) }

// A telling bolt passes on what it gets, and now and then something of its own.
type telling struct{}

func (telling) Execute(in tuple.Tuple, out *bolt.Collector) error {
	out.Emit(in.Int64("n"))
	return nil
}

func (telling) Tick(out *bolt.Collector) error {
	for i := range int64(5) {
		out.Emit(-i)
	}
	return nil
}

// What a source gives once only is gone with its task, and nobody can say that it is not.
func TestLiveUnsteadySource(t *testing.T) {
	var n atomic.Int64 // the life that was killed may be in it still
	once := spout.Func(func(_ context.Context, out *spout.Out) error {
		time.Sleep(time.Millisecond)
		out.Emit(n.Add(1))
		return nil
	})
	r := harmed(t, twice(once, slowly), "every 100ms from 51ms kill in", Config{}, nil)
	require.Empty(t, r.Violations)
	require.Len(t, r.Unsteady, 1)
	require.Equal(t, "func", r.Unsteady[0].Split)
	require.Positive(t, r.Unsteady[0].Unknown)
	require.True(t, r.Failed())
	require.ErrorContains(t, liveOutcome(r), "in, split func, gives other messages when it is read again: what became of ")
	var b strings.Builder
	r.Print(&b)
	require.Contains(t, b.String(), "0 never executed to the end that is known of")
}

// A queue is told the right thing of each of its messages.
func TestLiveFindsWrongAnswers(t *testing.T) {
	for says, odd := range map[string]func(q spout.Queue) spout.Queue{
		"Egret has acked it, and it was not executed to the end":              func(q spout.Queue) spout.Queue { return &oddQueue{Queue: q, acks: true} },
		"Egret has handed it back, and it has neither failed nor was it lost": func(q spout.Queue) spout.Queue { return &oddQueue{Queue: q, fails: true} },
	} {
		t.Run(says, func(t *testing.T) {
			var memory *from.Memory
			top := topology.New("queue", func(b *topology.Builder) {
				b.Bolt("last", slowly, b.Queue("jobs", memory.Queue).Emits("n").Shuffle())
			})
			r := harmed(t, top, "every 20ms kill last", Config{}, func(p *topology.Plan, _ *task.Settings) {
				inner := p.Components[0].Queue
				p.Components[0].Queue = func() spout.Queue { return odd(inner()) }
			}, func(o *live.Options) {
				memory = from.NewMemory(100).Redeliver(10 * time.Millisecond)
				go func() { // ends with the bubble
					for i := range int64(2000) {
						time.Sleep(time.Millisecond)
						if _, err := memory.Push(context.Background(), i); err != nil {
							return
						}
					}
					memory.Close()
				}()
			})
			require.NotEmpty(t, r.Violations)
			for _, v := range r.Violations {
				require.Equal(t, says, v.What)
				require.Equal(t, "jobs", v.Message.Component)
			}
			require.Positive(t, r.Answers.Given)
		})
	}
}

// An oddQueue acks what is to be handed back, or hands back the first one that is done.
type oddQueue struct {
	spout.Queue
	acks, fails bool
}

func (q *oddQueue) Open(ctx context.Context, t *spout.Task) error {
	return q.Queue.(spout.Opener).Open(ctx, t)
}

func (q *oddQueue) Ack(ctx context.Context, id string) error {
	if q.fails {
		q.fails = false
		return q.Queue.Fail(ctx, id, spout.ErrLost)
	}
	return q.Queue.Ack(ctx, id)
}

func (q *oddQueue) Fail(ctx context.Context, id string, why error) error {
	if q.acks {
		return q.Queue.Ack(ctx, id)
	}
	return q.Queue.Fail(ctx, id, why)
}

// What a bolt refuses is not charged to a fault, and what dies of it is counted once.
func TestLiveFailuresAreNoLosses(t *testing.T) {
	refuses := bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
		if n := in.Int64("n"); n < 0 && n > -3 {
			return bolt.Reject(errors.New("no"))
		} else if n%500 == 7 {
			return errors.New("sorry")
		}
		return nil
	})
	top := topology.New("refused", func(b *topology.Builder) {
		in := b.Spout("in", ticking(0)).Emits("n")
		two := b.Bolt("two", func() bolt.Bolt { return new(telling) }, in.Shuffle()).Emits("n").Every(100 * time.Millisecond)
		b.Bolt("last", refuses, two.Shuffle())
	})
	r := harmed(t, top, "at 1s stall last/0 for 1ns", Config{MaxReplays: 1}, nil)
	require.Empty(t, r.Violations)
	require.Zero(t, r.Lost)
	require.Positive(t, r.Dead)
	require.Positive(t, r.Own.Dead)
	require.Equal(t, r.Letters, r.Dead+r.Own.Dead)
	require.EqualValues(t, 2*r.Dead+r.Own.Dead, r.Failures)
	require.Zero(t, r.Recoveries[0].Messages)
	require.Zero(t, r.Own.Gone)
	require.Equal(t, r.Own.Messages, r.Own.Done+r.Own.Dead)
}
