package task

import (
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

func (l *loop) Self() actor.Ref                        { return l }
func (l *loop) Now() time.Duration                     { l.now += time.Microsecond; return l.now }
func (l *loop) Rand() *rand.Rand                       { return l.rnd }
func (l *loop) After(time.Duration, any)               {}
func (l *loop) Watch(actor.Ref)                        {}
func (l *loop) Stop(actor.Ref)                         {}
func (l *loop) Block(func() any)                       {}
func (l *loop) Spawn(string, actor.Behavior) actor.Ref { return nil }
func (l *loop) Send(_ actor.Ref, msg any) {
	if p, ok := msg.(*tuple.Parcel); ok {
		l.parcel++
		pr := l.b.out.byTask[p.To]
		pr.meter.Raise(1 << 40)
		p.Reset()
		pr.free = append(pr.free, p)
	}
}

// BenchmarkBolt executes parcels of lines in a bolt that splits them into words,
// which go to two tasks by key: everything that a bolt task does but its mailbox.
func BenchmarkBolt(b *testing.B) {
	for _, g := range []topology.Guarantee{topology.AtMostOnce, topology.AtLeastOnce} {
		b.Run("guarantee="+g.String(), func(b *testing.B) {
			top := topology.New("t", func(b *topology.Builder) {
				lines := b.Spout("lines", spout.Slice("x")).Emits("line")
				words := b.Bolt("split", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
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
				}), lines.Shuffle()).Emits("word")
				b.Bolt("count", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), words.By("word")).Parallel(2)
				b.Guarantee(g)
			})
			plan, err := top.Build(topology.Options{Epoch: 1})
			if err != nil {
				b.Fatal(err)
			}
			set := &Settings{ParcelSize: 256, Linger: time.Millisecond, MaxPending: 1 << 16, TreeSize: 256, MessageTimeout: time.Minute, Event: func(Event) {}}
			l := &loop{rnd: rand.New(rand.NewPCG(1, 2))}
			peers := make([]Peer, len(plan.Tasks))
			for i := range peers {
				peers[i] = Peer{Task: tuple.TaskID(i), Life: tuple.NewIncarnation(1, 1), Ref: l}
			}
			n := plan.Node(1)
			t := NewBolt(plan, set, peers[1], peers, metrics.NewTask("split/0", len(n.Streams), len(n.Inputs)), l, 0).(*boltTask)
			l.b = t
			t.Start(l)
			var row tuple.Row
			lines := make([]string, 4096)
			for i := range lines {
				lines[i] = strings.TrimSpace(strings.Repeat("word"+string(rune('a'+i%26))+" ", 6))
			}
			fill := func(seq uint64) *tuple.Parcel {
				p := &tuple.Parcel{From: 0, FromLife: peers[0].Life, To: 1, ToLife: peers[1].Life, Schema: plan.Components[0].Streams[0]}
				p.Begin([]tuple.Kind{tuple.KindString}, 256)
				if g == topology.AtLeastOnce {
					p.Slots = append(p.Slots, tuple.Slot{Tree: tuple.TreeID{Task: 0, Incarnation: peers[0].Life, Seq: seq}, Edge: 1, Count: 256})
				}
				for i := range 256 {
					row.Set(plan.Components[0].Streams[0], []any{lines[(int(seq)*256+i)%len(lines)]})
					p.Append(&row)
					if g == topology.AtLeastOnce {
						p.AppendRefs(0, uint16(i), 1)
					}
				}
				return p
			}
			var ps []*tuple.Parcel
			for i := range 16 {
				ps = append(ps, fill(uint64(i+1)))
			}
			b.ReportAllocs()
			b.ResetTimer()
			words := 0
			for i := 0; words < b.N; i++ {
				t.Receive(l, ps[i%16])
				p := *ps[i%16]
				for t.Turn(l) {
				}
				*ps[i%16] = p
				t.empty[0] = t.empty[0][:0]
				words += 6 * 256
			}
		})
	}
}
