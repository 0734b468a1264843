package task

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A desk is the context of a supervisor whose tasks do nothing by themselves.
type desk struct {
	loop
	spawned, stopped, abandoned []actor.Ref
	behaviors                   []actor.Behavior
	after                       []any
	sent                        map[actor.Ref][]any
}

func (d *desk) Spawn(_ string, b actor.Behavior) actor.Ref {
	d.spawned = append(d.spawned, len(d.spawned)) // the number is the ref
	d.behaviors = append(d.behaviors, b)
	return len(d.spawned) - 1
}
func (d *desk) Stop(ref actor.Ref)             { d.stopped = append(d.stopped, ref) }
func (d *desk) Abandon(ref actor.Ref)          { d.abandoned = append(d.abandoned, ref) }
func (d *desk) After(_ time.Duration, msg any) { d.after = append(d.after, msg) }
func (d *desk) Send(to actor.Ref, msg any)     { d.sent[to] = append(d.sent[to], msg) }

// A life that is let go of counts until it has ended: what it has open is given up then, once,
// and the next life, if it is in the same place, begins then and not before.
func TestParting(t *testing.T) {
	const in, out = 0, 1
	top := topology.New("t", func(b *topology.Builder) {
		numbers := b.Spout("in", spout.Slice("x")).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), numbers.Shuffle())
	})
	for _, tt := range []struct {
		name  string
		stays bool
		hangs bool
	}{{"its next life is here", true, false}, {"it moves away", false, false}, {"it does not come back", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			d := &desk{loop: loop{rnd: rand.New(rand.NewPCG(1, 2))}, sent: map[actor.Ref][]any{}}
			share := func(epoch uint32, here bool) *Share {
				return &Share{Run: 1, First: 1, Over: "over", Here: []bool{true, here}, Epoch: []uint32{1, epoch}, Retired: make([]bool, 2)}
			}
			plan := func(epoch uint32) *topology.Plan {
				p, err := top.Build(topology.Options{Epoch: epoch})
				require.NoError(t, err)
				return p
			}
			ms := []*metrics.Task{metrics.NewTask("in/0", 1, 0), metrics.NewTask("out/0", 0, 1)}
			var notices []string
			set := &Settings{ParcelSize: 256, MaxPending: 1 << 16, PendingBytes: 1 << 30, TreeSize: 256, StuckAfter: time.Second, Share: share(1, true), Event: func(e Event) {
				if n, is := e.(*Notice); is {
					notices = append(notices, n.Text)
				}
			}}
			s := NewSupervisor(plan(1), set, ms, func(error) {})
			s.Start(d)
			require.Equal(t, []actor.Ref{in, out}, d.spawned)
			d.sent = map[actor.Ref][]any{}

			call := s.children[out].call
			if tt.hangs {
				call.Begin(uint8(inExecute), d.now, 0, 1)
			}
			s.Receive(d, &Replan{Plan: plan(2), Share: share(2, tt.stays), Metrics: ms})
			require.Equal(t, []actor.Ref{out}, d.stopped)
			require.Len(t, d.spawned, 2, "the one before has not ended")
			for _, msg := range d.sent["over"] {
				_, is := msg.(*Lives)
				require.False(t, is, "none has begun")
			}
			s.Receive(d, Halt{N: 1})
			s.Receive(d, rested{task: in, life: s.children[in].life, n: 1})
			s.Receive(d, d.after[len(d.after)-1])
			if tt.stays {
				require.NotContains(t, d.sent["over"], AtRest{1, 1}, "not all have begun")
			}
			ms[out].Messages.Add(7) // that it has open

			if tt.hangs {
				for _, msg := range d.after {
					if look, is := msg.(lookParting); is {
						s.Receive(d, look)
					}
				}
				require.Equal(t, []actor.Ref{out}, d.abandoned)
				require.Equal(t, []string{"task out/0 was let go of and has not come back from Execute for 1s: it is not waited for"}, notices)
				require.True(t, call.End().Taken(), "what it still counts is for nobody")
				require.EqualValues(t, 7, ms[out].Abandoned.Load())
			} else {
				ms[out].HandedBack.Add(3) // on its way out
				s.Receive(d, actor.Terminated{Ref: out})
				require.EqualValues(t, 4, ms[out].Abandoned.Load())
			}
			require.Zero(t, ms[out].Open())
			require.Empty(t, s.partings)
			s.Receive(d, actor.Terminated{Ref: out})
			if !tt.stays {
				require.Len(t, d.spawned, 2)
				return
			}
			require.Equal(t, []actor.Ref{in, out, 2}, d.spawned)
			next := Peer{Task: out, Life: tuple.NewIncarnation(2, 1), Ref: 2}
			require.Contains(t, d.sent["over"], &Lives{1, []Peer{next}})
			require.Contains(t, d.sent[in], &Peers{Peers: []Peer{next}})
			require.Equal(t, 2, s.running)
			require.EqualValues(t, 1, d.behaviors[2].(*boltTask).halt, "it begins at rest, as all are")
		})
	}
}
