package bolt_test

import (
	"context"
	"fmt"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A sieve has two outputs: numbers that a prime divides, and the others.
type sieve struct {
	prime     int64
	multiples bolt.Output
}

func (s *sieve) Prepare(_ context.Context, task *bolt.Task) error {
	s.multiples = task.Output("multiples")
	return nil
}

func (s *sieve) Execute(in tuple.Tuple, out *bolt.Collector) error {
	n := in.Int64("n")
	if n != s.prime && n%s.prime == 0 {
		out.To(s.multiples).Emit(n, s.prime)
	} else {
		out.Emit(n) // the stream that was declared first
	}
	return nil
}

// A bolt emits on the stream that is declared first, and by To on the others.
func Example_outputs() {
	t := topology.New("sieve", func(b *topology.Builder) {
		sieveBy := func(prime int64) bolt.Factory { return func() bolt.Bolt { return &sieve{prime: prime} } }
		numbers := b.Spout("numbers", spout.Slice(9, 10, 11, 12)).Emits("n")
		odd := b.Bolt("two", sieveBy(2), numbers.Shuffle()).Emits("n").EmitsTo("multiples", "n", "by")
		prime := b.Bolt("three", sieveBy(3), odd.Shuffle()).Emits("n").EmitsTo("multiples", "n", "by")
		all := b.Bolt("all", bolt.Top(0, "n"), odd.Stream("multiples").Global(), prime.Stream("multiples").Global()).Emits("n", "by")
		b.Bolt("print", to.Stdout(), all.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 12 2
	// 10 2
	// 9 3
}

func ExampleFilter() {
	t := topology.New("long-words", func(b *topology.Builder) {
		words := b.Spout("words", spout.Slice("the", "cow", "jumped", "over")).Emits("word")
		long := b.Bolt("long", bolt.Filter(func(in tuple.Tuple) bool { return len(in.String("word")) > 3 }), words.Shuffle()).Emits("word")
		b.Bolt("print", to.Stdout(), long.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// jumped
	// over
}
