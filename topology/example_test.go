package topology_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// book stands for a source that reads a file.
type book string

func (b book) Splits(context.Context) ([]spout.Split, error) {
	return []spout.Split{spout.Split(b)}, nil
}

func (book) Open(context.Context, spout.Split, string) (spout.Reader, error) {
	return nil, fmt.Errorf("not in this example")
}

type each func(in tuple.Tuple, out *bolt.Collector) error

func (e each) Execute(in tuple.Tuple, out *bolt.Collector) error { return e(in, out) }

func newSplit() bolt.Bolt {
	return each(func(in tuple.Tuple, out *bolt.Collector) error {
		for word := range strings.FieldsSeq(in.String("line")) {
			out.Emit(word)
		}
		return nil
	})
}

type counts map[string]*int64

func newCounts() bolt.Bolt { return counts{} }

func (c counts) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	word := in.String("word")
	if c[word] == nil {
		c[strings.Clone(word)] = new(int64)
	}
	*c[word]++
	return nil
}

func (c counts) Finish(out *bolt.Collector) error {
	for word, n := range c {
		out.Emit(word, *n)
	}
	return nil
}

// newTop returns a factory of bolts that would print the n greatest counts.
func newTop(int) bolt.Factory {
	return func() bolt.Bolt {
		return each(func(tuple.Tuple, *bolt.Collector) error { return nil })
	}
}

func wordcount(b *topology.Builder) {
	file := b.String("file", "moby.txt", "text to count")
	lines := b.Spout("lines", book(file)).Emits("line")
	words := b.Bolt("split", newSplit, lines.Shuffle()).Emits("word").Parallel(2)
	sums := b.Bolt("count", newCounts, words.By("word")).Emits("word", "count").Parallel(4)
	b.Bolt("top", newTop(b.Int("top", 20, "words to print")), sums.Global())
}

func Example() {
	t := topology.New("wordcount", wordcount)
	params, err := t.Params()
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range params {
		fmt.Printf("--%s %s (default %s)\n", p.Name, p.Usage, p.Default)
	}

	plan, err := t.Build(topology.Options{
		Params:   map[string][]string{"top": {"10"}},
		Parallel: map[string]int{"count": 8},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.Draw())
	// Output:
	// --file text to count (default moby.txt)
	// --top words to print (default 20)
	// wordcount: 4 components, 12 tasks, at-least-once
	//
	// ○  lines  spout    (line)
	// │    shuffle
	// ●  split  bolt ×2  (word)
	// │    by word
	// ●  count  bolt ×8  (word, count)
	// │    global
	// ●  top    bolt
}

// Build tells every mistake, not just the first.
func ExampleTopology_Build() {
	t := topology.New("wordcount", func(b *topology.Builder) {
		lines := b.Spout("lines", book("moby.txt")).Emits("line")
		words := b.Bolt("split", newSplit, lines.Shuffle()).Emits("word").Parallel(0)
		b.Bolt("count", newCounts, words.By("wrod"), words.Stream("late").Shuffle())
	})
	_, err := t.Build(topology.Options{Params: map[string][]string{"tpo": {"3"}}})
	fmt.Println(err)
	// Output:
	// unknown parameter "tpo" (have none)
	// bolt split: parallelism 0 is not between 1 and 4096
	// bolt count: stream split.default has no field "wrod" (it has "word")
	// bolt count: component split has no stream "late" (it has "default")
}
