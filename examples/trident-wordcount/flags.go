package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
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

const name = "trident-wordcount"

func main() {
	file := flag.String("file", "", "a text, plain or .gz (default: a book)")
	dir := flag.String("state", "", "directory that keeps what was counted; the next run, even after kill -9, goes on with it")
	top := flag.Int("top", 20, "words to print; 0: all")
	rate := flag.Float64("rate", 0, "at most so many lines a second; 0: as many as go through")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: unknown argument %q: it takes flags only, see --help\n", name, flag.Arg(0))
		os.Exit(2)
	}
	if *top < 0 {
		fmt.Fprintf(os.Stderr, "%s: --top is %d: it must be at least 0\n", name, *top)
		os.Exit(2)
	}
	if !(*rate >= 0) {
		fmt.Fprintf(os.Stderr, "%s: --rate is %v: it must be at least 0\n", name, *rate)
		os.Exit(2)
	}
	o := options{text: counting.Book(), dir: *dir, top: *top}
	if *file != "" {
		o.text = from.Lines(*file)
	}
	if *rate != 0 {
		o.text = from.Paced(o.text, *rate)
	}
	if err := count(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// options are what to count, and where.
type options struct {
	text spout.Source
	dir  string // "": in memory
	top  int    // words to print, 0: all
}

func (o *options) states() state.Backend {
	if o.dir == "" {
		return memory.New()
	}
	return pebble.Dir(o.dir + "/counts")
}

// print prints the most frequent words of the state.
func (o *options) print(ctx context.Context, stats *egret.Stats, counts *trident.State[string, int64], out io.Writer) error {
	fmt.Fprintln(os.Stderr, stats)
	r, err := counts.Open(ctx, name, trident.Latest)
	if err != nil {
		return err
	}
	defer r.Close()
	words, err := r.Top(ctx, cmp.Or(o.top, math.MaxInt), func(a, b trident.Pair[string, int64]) int {
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
