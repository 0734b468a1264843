package sim_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos/sim"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A topology of one's own, under faults from twenty seeds: no word may be lost, and
// where nothing was tried again, none may be counted twice.
func ExampleOptions_topology() {
	s := sim.Seeds(context.Background(), 1, 20, sim.Options{Topology: func(run *sim.Run) *topology.Topology {
		counts := map[string]int{}
		run.Check(func(o *sim.Outcome) error {
			if n := counts["tick"]; n < 400 || n > 400 && o.Once() {
				return fmt.Errorf("tick was counted %d times", n)
			}
			return nil
		})
		return topology.New("words", func(b *topology.Builder) {
			lines := b.Spout("lines", spout.Repeat(spout.Slice("tick tock", "tick"), 200)).Emits("line")
			words := b.Bolt("split", bolt.Each(splitWords), lines.Shuffle()).Emits("word").Parallel(2)
			b.Bolt("count", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				counts[strings.Clone(in.String("word"))]++
				return nil
			}), words.By("word")).Parallel(2)
		})
	}}, nil)
	fmt.Println(s.Seeds, "seeds,", s.Faults["kill"] > 0, s.Err())
	// Output: 20 seeds, true <nil>
}

func splitWords(in tuple.Tuple, out *bolt.Collector) error {
	for word := range strings.FieldsSeq(in.String("line")) {
		out.Emit(word)
	}
	return nil
}
