package egret_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/trident"
)

var uses = trident.StateOf[string, int64]("uses", memory.New(), trident.Opaque)

func countUses(b *trident.Builder) {
	lines := trident.From[string](b, "lines", from.Lines(b.String("file", "-", "text to count; - is standard input")))
	words := trident.FlatMap(lines, fields).Name("split").Parallel(2)
	trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), uses, trident.Count[string]()).Parallel(4)
}

func fields(line string, emit func(string)) {
	for word := range strings.FieldsSeq(line) {
		emit(word)
	}
}

// A program beside a cluster reads what that has counted, from any node.
func ExampleCluster_Query() {
	ctx := context.Background()
	counts, err := trident.Query(ctx, egret.Cluster{Node: "127.0.0.1:7101"}.Query, "uses", uses, "whale", "ship")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(counts["whale"], counts["ship"])
}

// Words are counted exactly once in a state, which is read when the run is over.
func Example_trident() {
	ctx := context.Background()
	_, err := egret.Run(ctx, trident.New("uses", countUses), egret.Config{
		Params: map[string][]string{"file": {"examples/wordcount/counting/moby_dick.txt.gz"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := uses.Open(ctx, "uses", trident.Latest)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	fmt.Println(r.Get(ctx, "whale"))
	// Output:
	// 373 true <nil>
}
