// Slow counts words, with a bolt that is too slow for the others and does not like a word.
package main

import (
	"errors"
	"strings"
	"time"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func main() { egret.Main(topology.New("slow", slow)) }

func slow(b *topology.Builder) {
	lines := b.Spout("lines", spout.Repeat(spout.Slice("call me ishmael", "the whale the whale", "leviathan"), 0)).Emits("line")
	words := b.Bolt("split", bolt.Each(split), lines.Shuffle()).Emits("word")
	counts := b.Bolt("count", bolt.Each(count), words.By("word")).Emits("word", "letters").Parallel(2)
	b.Bolt("top", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), counts.Global())
}

func split(in tuple.Tuple, out *bolt.Collector) error {
	for word := range strings.FieldsSeq(in.String("line")) {
		out.Emit(word)
	}
	return nil
}

func count(in tuple.Tuple, out *bolt.Collector) error {
	time.Sleep(time.Millisecond)
	word := in.String("word")
	if word == "leviathan" {
		return bolt.Reject(errors.New("a leviathan is too large"))
	}
	out.Emit(word, len(word))
	return nil
}
