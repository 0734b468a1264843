package egrettest_test

import (
	"fmt"
	"strings"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// An example has no *testing.T; two methods are enough.
type example struct{}

func (example) Helper()                           {}
func (example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

var t example

func wordcount(b *topology.Builder) {
	file := b.String("file", "-", "text to count; - is standard input")
	lines := b.Spout("lines", from.Lines(file)).Emits("line")
	words := b.Bolt("split", bolt.Each(split), lines.Shuffle()).Emits("word").Parallel(3)
	sums := b.Bolt("count", bolt.Count("word"), words.By("word")).Emits("word", "count").Parallel(3)
	b.Bolt("top", bolt.Top(2, "count"), sums.Global()).Emits("word", "count")
}

// split fails for a line that has nothing in it.
func split(in tuple.Tuple, out *bolt.Collector) error {
	if in.String("line") == "" {
		return fmt.Errorf("an empty line")
	}
	for word := range strings.FieldsSeq(in.String("line")) {
		out.Emit(word)
	}
	return nil
}

func Example() {
	r := egrettest.Run(t, topology.New("wordcount", wordcount),
		egrettest.Input("lines", "the cow jumped", "", "over the moon"))
	fmt.Println(r.Tuples("split").Lines())
	fmt.Println(r.Tuples("top").Lines())
	fmt.Printf("acked %q, dead %q\n", r.Acked("lines").Lines(), r.Dead[0].Tuple)
	fmt.Println(r.Failed[0].Component, r.Failed[0].Err)
	// Output:
	// [the cow jumped over the moon]
	// [the 2 cow 1]
	// acked ["the cow jumped" "over the moon"], dead ""
	// split an empty line
}
