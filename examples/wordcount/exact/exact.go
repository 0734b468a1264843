// Package exact is a topology that counts the words of a book, or of any text it is given,
// exactly once, in a state that can be queried.
package exact

import (
	"strings"

	"github.com/egretstream/egret/examples/wordcount/counting"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/state/pebble"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// Topology returns the topology wordcount-exact.
func Topology() *topology.Topology {
	inMemory := memory.New() // one for the program: a query builds the topology anew
	return trident.New("wordcount-exact", func(b *trident.Builder) {
		var where state.Backend = inMemory
		if dir := b.String("counts", "", "directory in which the counts survive; default: in memory"); dir != "" {
			where = pebble.Dir(dir)
		}
		words := trident.FlatMap(trident.From[string](b, "lines", text(b)), words).Name("split").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity),
			trident.StateOf[string, int64]("counts", where, trident.Opaque), trident.Count[string]()).Parallel(4)
	})
}

// text is what the flags ask to be counted.
func text(b *trident.Builder) (lines spout.Source) {
	lines = counting.Book()
	if files := b.Strings("file", nil, "a text, plain or .gz, or - for standard input; may be repeated (default: a book)"); len(files) > 0 {
		lines = from.Lines(files...)
	}
	if times := b.Int("repeat", 1, "how often to read the text; 0: for ever"); times != 1 {
		lines = spout.Repeat(lines, times)
	}
	if rate := b.Float("rate", 0, "at most so many lines a second; 0: as many as go through"); rate != 0 {
		lines = from.Paced(lines, rate)
	}
	return lines
}

// words emits the words of a line: runs of ASCII letters, in lower case.
func words(line string, emit func(string)) {
	for word := range strings.FieldsFuncSeq(line, notLetter) {
		emit(strings.ToLower(word))
	}
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
