// Package counting is a topology that counts the words of a book, or of any text it
// is given, and prints the most frequent ones.
package counting

import (
	"embed"
	"strings"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

//go:embed moby_dick.txt.gz
var book embed.FS

// Topology returns the topology wordcount.
func Topology() *topology.Topology { return topology.New("wordcount", wordcount) }

func wordcount(b *topology.Builder) {
	lines := b.Spout("lines", text(b)).Emits("line").Parallel(b.Int("spouts", 1, "tasks that read"))
	words := b.Bolt("split", bolt.Each(split), lines.Shuffle()).Emits("word").Parallel(b.Int("split", 2, "tasks that split lines"))
	sums := b.Bolt("count", newCounts, words.By("word")).Emits("word", "count").Parallel(b.Int("count", 4, "tasks that count"))
	top := b.Bolt("top", bolt.Top(b.Int("top", 20, "words to print; 0: all"), "count"), sums.Global()).Emits("word", "count")
	b.Bolt("print", to.Stdout(), top.Global())
}

// Book returns the lines of the book.
func Book() spout.Source { return from.LinesFS(book, "moby_dick.txt.gz") }

// text is what the flags ask to be counted.
func text(b *topology.Builder) (lines spout.Source) {
	lines = Book()
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

// split emits the words of a line: runs of ASCII letters, in lower case.
func split(in tuple.Tuple, out *bolt.Collector) error {
	for word := range strings.FieldsFuncSeq(in.String("line"), notLetter) {
		out.Emit(strings.ToLower(word))
	}
	return nil // acks in; its words are anchored to it
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

type counts map[string]*int64 // one per task, so no lock

func newCounts() bolt.Bolt { return counts{} }

func (c counts) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	word := in.String("word")
	if c[word] == nil {
		c[strings.Clone(word)] = new(int64) // kept, so cloned
	}
	*c[word]++
	return nil
}

func (c counts) Finish(out *bolt.Collector) error { // once, when all input has ended
	for word, n := range c {
		out.Emit(word, *n)
	}
	return nil
}
