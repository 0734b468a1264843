// Command trident-wordcount counts the words of a book, or of any text it is given, exactly
// once, and prints the most frequent ones; its flags and its output are in flags.go.
package main

import (
	"context"
	"io"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/trident"
)

// count counts into a state that survives kill -9, if there is a directory for it.
func count(ctx context.Context, o options, out io.Writer) error {
	counts := trident.StateOf[string, int64]("counts", o.states(), trident.Opaque)
	stats, err := egret.Run(ctx, trident.New(name, func(b *trident.Builder) {
		words := trident.FlatMap(trident.From[string](b, "lines", o.text), words).Name("split").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), counts, trident.Count[string]()).Parallel(4)
	}), egret.Config{StateDir: o.dir})
	if err != nil {
		return err
	}
	return o.print(ctx, stats, counts, out)
}
