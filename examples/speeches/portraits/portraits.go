// Package portraits is a topology that shows by what words and how long sentences one
// can tell the presidents of the United States, from their messages to Congress.
package portraits

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

//go:embed speeches.ndjson.gz
var since1961 embed.FS

// Topology returns the topology speeches.
func Topology() *topology.Topology { return topology.New("speeches", speeches) }

func speeches(b *topology.Builder) {
	source := from.JSONLinesFS(since1961, "speeches.ndjson.gz")
	if files := b.Strings("file", nil, "a file of JSON lines with year, speaker, party and text, plain or .gz, or - for standard input; may be repeated (default: the speeches since 1961)"); len(files) > 0 {
		source = from.JSONLines(files...)
	}
	words := b.Int("words", 5, "words to print for each speaker")
	if words < 0 {
		b.Check(fmt.Errorf("--words is %d: it must be at least 0", words))
	}
	texts := b.Spout("speeches", source.Int("year")).Emits("year", "speaker", "party", "text")
	read := b.Bolt("read", newReader, texts.Shuffle()).Parallel(b.Int("readers", 2, "tasks that read speeches")).
		Emits("word", "speaker", "count").EmitsTo("speech", "speaker", "party", "year", "words", "sentences")
	uses := b.Bolt("uses", newUses, read.By("word")).Parallel(2).Emits("speaker", "word", "count", "all")
	portraits := b.Bolt("portraits", newPortraits(words), uses.Global(), read.Stream("speech").Global()).Emits("line")
	b.Bolt("print", to.Stdout(), portraits.Global())
}

// reader counts the words of each speech.
type reader struct{ speech bolt.Output }

func newReader() bolt.Bolt { return &reader{} }

func (r *reader) Prepare(_ context.Context, task *bolt.Task) error {
	r.speech = task.Output("speech")
	return nil
}

func (r *reader) Execute(in tuple.Tuple, out *bolt.Collector) error {
	text, speaker := in.String("text"), in.String("speaker")
	counts, n := map[string]int{}, 0
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return !unicode.IsLetter(c) }) {
		counts[strings.ToLower(word)]++
		n++
	}
	for word, count := range counts {
		if utf8.RuneCountInString(word) >= shortest {
			out.Emit(word, speaker, count)
		}
	}
	out.To(r.speech).Emit(speaker, in.String("party"), in.Int64("year"), n, sentences(text))
	return nil
}

// sentences counts full stops, question and exclamation marks, several in a row
// as one. There is at least one sentence.
func sentences(text string) (n int) {
	isEnd := func(c byte) bool { return c == '.' || c == '?' || c == '!' }
	for i := range len(text) {
		if isEnd(text[i]) && (i == 0 || !isEnd(text[i-1])) {
			n++
		}
	}
	return max(n, 1)
}

// uses knows who uses a word how often. Each task has words of its own.
type uses map[string]map[string]int64 // by word and speaker

func newUses() bolt.Bolt { return uses{} }

func (u uses) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	word := in.String("word")
	if u[word] == nil {
		u[strings.Clone(word)] = map[string]int64{} // kept, so cloned
	}
	u[word][strings.Clone(in.String("speaker"))] += in.Int64("count")
	return nil
}

const (
	fewest   = 8 // uses of a word that are no accident
	shortest = 5 // letters of a word that says something
)

func (u uses) Finish(out *bolt.Collector) error {
	for word, speakers := range u {
		all := int64(0)
		for _, n := range speakers {
			all += n
		}
		for speaker, n := range speakers {
			if n >= fewest {
				out.Emit(speaker, word, n, all)
			}
		}
	}
	return nil
}

// portraits puts together what is known of each speaker.
type portraits struct {
	words    int // to print
	speakers map[string]*portrait
}

type portrait struct {
	party                      string
	first, last                int64 // year
	speeches, words, sentences int64
	uses                       []use
}

type use struct {
	word   string
	n, all int64
}

func newPortraits(words int) bolt.Factory {
	return func() bolt.Bolt { return &portraits{words, map[string]*portrait{}} }
}

func (p *portraits) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	speaker := in.String("speaker")
	s := p.speakers[speaker]
	if s == nil {
		s = &portrait{first: math.MaxInt64}
		p.speakers[strings.Clone(speaker)] = s
	}
	if in.Stream() != "speech" {
		s.uses = append(s.uses, use{strings.Clone(in.String("word")), in.Int64("count"), in.Int64("all")})
		return nil
	}
	if year := in.Int64("year"); year < s.first {
		s.first, s.party = year, strings.Clone(in.String("party"))
	}
	s.last = max(s.last, in.Int64("year"))
	s.speeches++
	s.words += in.Int64("words")
	s.sentences += in.Int64("sentences")
	return nil
}

// Finish emits a line for each speaker, in the order of time.
func (p *portraits) Finish(out *bolt.Collector) error {
	all := int64(0)
	for _, s := range p.speakers {
		all += s.words
	}
	for _, name := range slices.SortedFunc(maps.Keys(p.speakers), func(x, y string) int {
		return cmp.Or(cmp.Compare(p.speakers[x].first, p.speakers[y].first), strings.Compare(x, y))
	}) {
		s := p.speakers[name]
		// A word tells somebody who uses it often, and four times as often as all do.
		often := func(u use) float64 { return float64(u.n) / float64(s.words) / (float64(u.all) / float64(all)) }
		surprise := func(u use) float64 { return float64(u.n) * math.Log(often(u)) }
		s.uses = slices.DeleteFunc(s.uses, func(u use) bool { return often(u) < 4 })
		slices.SortFunc(s.uses, func(x, y use) int {
			return cmp.Or(cmp.Compare(surprise(y), surprise(x)), strings.Compare(x.word, y.word))
		})
		var words []string
		for _, u := range s.uses[:min(len(s.uses), p.words)] {
			words = append(words, u.word)
		}
		out.Emit(fmt.Sprintf("%d-%d  %-22s %-2s  %3d speeches, %6d words and %4.1f in a sentence: %s",
			s.first, s.last, name, s.party, s.speeches, s.words/s.speeches, float64(s.words)/float64(s.sentences), strings.Join(words, ", ")))
	}
	return nil
}
