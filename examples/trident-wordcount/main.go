// Command trident-wordcount counts the words of a book, or of any text it is given, exactly
// once, and prints the most frequent ones. With --state it keeps what it has counted: a
// run that was killed, even by kill -9, is gone on with by the next one.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/examples/wordcount/counting"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/state/pebble"
	"github.com/egretstream/egret/trident"
)

func main() {
	file := flag.String("file", "", "a text, plain or .gz (default: a book)")
	dir := flag.String("state", "", "directory that keeps what was counted; the next run goes on with it")
	top := flag.Int("top", 20, "words to print")
	rate := flag.Float64("rate", 0, "at most so many lines a second; 0: as many as go through")
	flag.Parse()
	text := counting.Book()
	if *file != "" {
		text = from.Lines(*file)
	}
	if *rate != 0 {
		text = from.Paced(text, *rate)
	}
	if err := count(context.Background(), text, *dir, *top, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "trident-wordcount:", err)
		os.Exit(1)
	}
}

// count counts the words of the text and prints the most frequent ones.
func count(ctx context.Context, text spout.Source, dir string, top int, out io.Writer) error {
	var where state.Backend = memory.New()
	if dir != "" {
		where = pebble.Dir(dir + "/counts")
	}
	counts := trident.StateOf[string, int64]("counts", where, trident.Opaque)
	stats, err := egret.Run(ctx, trident.New("trident-wordcount", func(b *trident.Builder) {
		words := trident.FlatMap(trident.From[string](b, "lines", text), words).Name("split").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), counts, trident.Count[string]()).Parallel(4)
	}), egret.Config{StateDir: dir})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, stats)
	r, err := counts.Open(ctx, "trident-wordcount", trident.Latest)
	if err != nil {
		return err
	}
	defer r.Close()
	words, err := r.Top(ctx, top, func(a, b trident.Pair[string, int64]) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Key, b.Key))
	})
	for _, w := range words {
		fmt.Fprintln(out, w.Key, w.Value)
	}
	return err
}

// words emits the words of a line: runs of ASCII letters, in lower case.
func words(line string, emit func(string)) {
	for word := range strings.FieldsFuncSeq(line, notLetter) {
		emit(strings.ToLower(word))
	}
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
