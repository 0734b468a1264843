// Slow counts words, with a bolt that is too slow for the others and does not like a word, and
// one that dies once, when there is a file of the name that SLOW_DIES says.
package main

import (
	"errors"
	"os"
	"strings"
	"sync"
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
	b.Bolt("top", bolt.Each(top), counts.Global())
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

var death sync.Once // of the process: the next life goes on

func top(in tuple.Tuple, _ *bolt.Collector) error {
	if in.String("word") != "ishmael" {
		return nil
	}
	if _, err := os.Stat(os.Getenv("SLOW_DIES")); err == nil {
		death.Do(func() { panic("call me nobody") })
	}
	return nil
}
