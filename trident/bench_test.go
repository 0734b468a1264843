package trident_test

import (
	"testing"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
)

// BenchmarkSplit is a line of ten words split and counted for a batch, with nothing
// behind: what operators in one task cost.
func BenchmarkSplit(b *testing.B) {
	counts := trident.StateOf[string, int64]("counts", memory.New(), trident.Opaque)
	plan, err := wordcount(nil, counts, trident.Opaque, true).Build(topology.Options{})
	if err != nil {
		b.Fatal(err)
	}
	n := plan.Components[1]
	t := n.Bolt().(bolt.Batched)
	out := bolt.NewCollector(b.Context(), n.Streams, nowhere{})
	var row tuple.Row
	in := plan.Components[0].Streams[0]
	row.Set(in, []any{"the quick brown fox jumps over the lazy dog today"})
	p := &tuple.Parcel{Schema: in}
	p.Begin(row.Kinds, 1)
	p.Append(&row)
	t.Round()
	t.Batch(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Execute(p.Tuple(0), out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10, "ns/word")
}

type nowhere struct{}

func (nowhere) Put(int, *tuple.Row) {}

// BenchmarkCommit is a batch of 20,000 keys that are in the cache.
func BenchmarkCommit(b *testing.B) {
	counts := trident.StateOf[string, int64]("counts", memory.New(), trident.Opaque)
	plan, err := wordcount(nil, counts, trident.Opaque, true).Build(topology.Options{Parallel: map[string]int{"counts": 1}})
	if err != nil {
		b.Fatal(err)
	}
	n := plan.Components[2]
	t := n.Bolt().(bolt.Stateful)
	if err := t.(bolt.Preparer).Prepare(b.Context(), &bolt.Task{Topology: "wordcount", Component: "counts", Parallel: 1}); err != nil {
		b.Fatal(err)
	}
	out := bolt.NewCollector(b.Context(), n.Streams, nowhere{})
	at := tuple.Attempt{Epoch: 1, Round: 1}
	if err := t.Join(b.Context(), &bolt.Join{Fence: tuple.Fence{Attempt: at, Life: 1}, Last: make([]tuple.BatchID, tuple.KeyGroups)}); err != nil {
		b.Fatal(err)
	}
	t.Round()
	in := plan.Components[1].Streams[0]
	const keys = 20_000
	p := &tuple.Parcel{Schema: in}
	var row tuple.Row
	for i := range keys {
		row.Set(in, []any{"word" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576)), 1})
		if i == 0 {
			p.Begin(row.Kinds, keys)
		}
		p.Append(&row)
	}
	tx := tuple.TxID(0)
	b.ReportAllocs()
	for b.Loop() {
		tx++
		t.Batch(tx)
		for i := range keys {
			if err := t.Execute(p.Tuple(i), out); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := t.Commit(b.Context(), tuple.BatchID{Attempt: at, Tx: tx}); err != nil {
			b.Fatal(err)
		}
		if err := t.Complete(tx, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}
