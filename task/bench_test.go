package task

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A loop is a context that sends every parcel straight home.
type loop struct {
	b      *boltTask
	rnd    *rand.Rand
	now    time.Duration
	parcel int
}

func (l *loop) Self() actor.Ref          { return l }
func (l *loop) Now() time.Duration       { l.now += time.Microsecond; return l.now }
func (l *loop) Rand() *rand.Rand         { return l.rnd }
func (l *loop) After(time.Duration, any) {}
func (l *loop) Watch(actor.Ref)          {}
func (l *loop) Stop(actor.Ref)           {}
func (l *loop) Poster() func(any)        { return func(any) {} }

func (l *loop) Block(func() any)                       {}
func (l *loop) Abandon(actor.Ref)                      {}
func (l *loop) Inspect(actor.Ref)                      {}
func (l *loop) Spawn(string, actor.Behavior) actor.Ref { return nil }
func (l *loop) Send(_ actor.Ref, msg any) {
	if p, ok := msg.(*tuple.Parcel); ok && l.b != nil {
		l.parcel++
		pr := l.b.out.byTask[p.To]
		pr.meter.Raise(1 << 40)
		p.Reset()
		pr.free = append(pr.free, p)
	}
}

// startBolt starts the task of a bolt that sends to two counting tasks, in a
// context that sends every parcel straight home.
func startBolt(b testing.TB, g topology.Guarantee, execute func(tuple.Tuple, *bolt.Collector) error, group func(*topology.Component) topology.Subscription) (*boltTask, *loop, *topology.Plan) {
	top := topology.New("t", func(b *topology.Builder) {
		lines := b.Spout("lines", spout.Slice("x")).Emits("line")
		words := b.Bolt("split", bolt.Each(execute), lines.Shuffle()).Emits("word")
		b.Bolt("count", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), group(words)).Parallel(2)
		b.Guarantee(g)
	})
	plan, err := top.Build(topology.Options{Epoch: 1})
	if err != nil {
		b.Fatal(err)
	}
	set := &Settings{
		ParcelSize: 256, Linger: time.Millisecond, MaxPending: 1 << 16, TreeSize: 256, QueuedBytes: 64 << 20,
		MessageTimeout: time.Minute, Event: func(Event) {},
	}
	l := &loop{rnd: rand.New(rand.NewPCG(1, 2))}
	peers := make([]Peer, len(plan.Tasks))
	for i := range peers {
		peers[i] = Peer{Task: tuple.TaskID(i), Life: tuple.NewIncarnation(1, 1), Ref: l}
	}
	n := plan.Node(1)
	t := NewBolt(context.Background(), plan, set, peers[1], peers, metrics.NewTask("split/0", len(n.Streams), len(n.Inputs)), l, 0).(*boltTask)
	l.b = t
	t.Start(l)
	return t, l, plan
}

func byWord(c *topology.Component) topology.Subscription { return c.By("word") }

func partialByWord(c *topology.Component) topology.Subscription { return c.PartialBy("word") }

func customByWord(c *topology.Component) topology.Subscription {
	return c.Custom("length", func(s topology.Sender) topology.Chooser {
		return func(t tuple.Tuple, to []int) []int { return append(to, len(t.String("word"))%s.Tasks) }
	})
}

// BenchmarkOutbox emits one word at a time: a collector, a grouping, a parcel.
func BenchmarkOutbox(b *testing.B) {
	words := [8]string{"whale", "the", "of", "sea", "ship", "captain", "ahab", "white"}
	for name, group := range map[string]func(*topology.Component) topology.Subscription{"fields": byWord, "shuffle": (*topology.Component).Shuffle, "partial": partialByWord, "custom": customByWord} {
		for _, g := range []topology.Guarantee{topology.AtMostOnce, topology.AtLeastOnce} {
			b.Run("grouping="+name+"/guarantee="+g.String(), func(b *testing.B) {
				t, _, plan := startBolt(b, g, nil, group)
				var acc account
				if g == topology.AtLeastOnce {
					t.out.anchor = &anchor{tree: tuple.TreeID{Incarnation: tuple.NewIncarnation(plan.Epoch, 1), Seq: 1}, acc: &acc, key: 1}
				}
				b.ReportAllocs()
				for i := range b.N {
					t.collector.Emit(words[i%len(words)])
				}
			})
		}
	}
}

// BenchmarkBolt executes parcels of lines in a bolt that splits them into words,
// which go to two tasks by key: everything that a bolt task does but its mailbox.
// One operation is one word.
func BenchmarkBolt(b *testing.B) {
	const perLine, size = 6, 256
	split := func(in tuple.Tuple, out *bolt.Collector) error {
		line := in.String("line")
		for {
			i := strings.IndexByte(line, ' ')
			if i < 0 {
				out.Emit(line)
				return nil
			}
			out.Emit(line[:i])
			line = line[i+1:]
		}
	}
	for _, g := range []topology.Guarantee{topology.AtMostOnce, topology.AtLeastOnce} {
		b.Run("guarantee="+g.String(), func(b *testing.B) {
			t, l, plan := startBolt(b, g, split, byWord)
			schema, life := plan.Components[0].Streams[0], tuple.NewIncarnation(plan.Epoch, 1)
			var full []*tuple.Parcel
			for seq := range uint64(16) {
				p := &tuple.Parcel{From: 0, FromLife: life, To: 1, ToLife: life, Schema: schema}
				p.Begin([]tuple.Kind{tuple.KindString}, size)
				var row tuple.Row
				for i := range size {
					row.Set(schema, []any{strings.TrimSpace(strings.Repeat("word"+string(rune('a'+i%26))+" ", perLine))})
					p.Append(&row)
				}
				if g == topology.AtLeastOnce {
					p.Slots = append(p.Slots, tuple.Slot{Tree: tuple.TreeID{Incarnation: life, Seq: seq + 1}, Edge: 1, Count: size})
					p.AppendRefs(0, 0, size)
				}
				full = append(full, p)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for words, i := 0, 0; words < b.N; words, i = words+perLine*size, i+1 {
				p := full[i%len(full)]
				was := *p // the task empties it
				t.Receive(l, p)
				for t.Turn(l) {
				}
				*p = was
				t.empty[0] = t.empty[0][:0]
			}
		})
	}
}
