package egret_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

type counts map[string]*int64

func (c counts) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	w := in.String("word")
	if c[w] == nil {
		c[strings.Clone(w)] = new(int64)
	}
	*c[w]++
	return nil
}

func (c counts) Finish(out *bolt.Collector) error {
	for w, n := range c {
		out.Emit(w, *n)
	}
	return nil
}

type gather struct{ got map[string]int64 }

func (g gather) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	g.got[in.String("word")] += in.Int64("count")
	return nil
}

func TestCountsWords(t *testing.T) {
	var lines []string
	for range 10000 {
		lines = append(lines, "the cow jumped over the moon")
	}
	got := map[string]int64{}
	top := topology.New("words", func(b *topology.Builder) {
		lines := b.Spout("lines", spout.Slice(lines...)).Emits("line")
		words := b.Bolt("split", func() bolt.Bolt {
			return each(func(in tuple.Tuple, out *bolt.Collector) error {
				for w := range strings.FieldsSeq(in.String("line")) {
					out.Emit(w)
				}
				return nil
			})
		}, lines.Shuffle()).Emits("word").Parallel(2)
		sums := b.Bolt("count", func() bolt.Bolt { return counts{} }, words.By("word")).Emits("word", "count").Parallel(4)
		b.Bolt("gather", func() bolt.Bolt { return gather{got} }, sums.Global())
	})
	for _, encode := range []bool{false, true} {
		clear(got)
		stats, err := egret.Run(t.Context(), top, egret.Config{AlwaysEncode: encode})
		require.NoError(t, err)
		t.Log(stats)
		require.Equal(t, map[string]int64{"the": 20000, "cow": 10000, "jumped": 10000, "over": 10000, "moon": 10000}, got)
	}
}

type ctx = context.Context

type each func(in tuple.Tuple, out *bolt.Collector) error

func (f each) Execute(in tuple.Tuple, out *bolt.Collector) error { return f(in, out) }
