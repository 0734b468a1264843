package from_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
)

// Several tasks share the splits of several files.
func ExampleLines() {
	dir, err := os.MkdirTemp("", "lines")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cow, moon := filepath.Join(dir, "cow.txt"), filepath.Join(dir, "moon.txt")
	os.WriteFile(cow, []byte("the cow\njumped\n"), 0o600)
	os.WriteFile(moon, []byte("over\nthe moon"), 0o600)

	t := topology.New("rhyme", func(b *topology.Builder) {
		lines := b.Spout("lines", from.Lines(cow, moon)).Emits("line").Parallel(2)
		sums := b.Bolt("count", bolt.Count("line"), lines.By("line")).Emits("line", "count")
		b.Bolt("print", to.Stdout(), sums.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// jumped 1
	// over 1
	// the cow 1
	// the moon 1
}

// A rate makes of any source one that behaves like the live one.
func ExamplePaced() {
	ticks := from.Paced(spout.Slice("tick", "tock", "tick"), 1000) // a second
	t := topology.New("clock", func(b *topology.Builder) {
		b.Bolt("print", to.Stdout(), b.Spout("clock", ticks).Emits("tick").Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tick
	// tock
	// tick
}
