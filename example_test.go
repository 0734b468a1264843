package egret_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func wordcount(b *topology.Builder) {
	file := b.String("file", "-", "text to count; - is standard input")
	lines := b.Spout("lines", from.Lines(file)).Emits("line")
	words := b.Bolt("split", bolt.Each(split), lines.Shuffle()).Emits("word").Parallel(2)
	sums := b.Bolt("count", bolt.Count("word"), words.By("word")).Emits("word", "count").Parallel(4)
	top := b.Bolt("top", bolt.Top(3, "count"), sums.Global()).Emits("word", "count")
	b.Bolt("print", to.Stdout(), top.Global())
}

func split(in tuple.Tuple, out *bolt.Collector) error {
	for word := range strings.FieldsSeq(in.String("line")) {
		out.Emit(word)
	}
	return nil // acks the line; its words are anchored to it
}

// The words of a book are split by two tasks and counted by four, and every line
// is tracked until all its words are counted. A program gets flags and commands
// for its topologies from Main; here one is run from Go.
func Example() {
	stats, err := egret.Run(context.Background(), topology.New("wordcount", wordcount), egret.Config{
		Params: map[string][]string{"file": {"examples/wordcount/counting/moby_dick.txt.gz"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stats.Input, "lines")
	// Output:
	// the 13434
	// of 6373
	// and 5815
	// 21424 lines
}
