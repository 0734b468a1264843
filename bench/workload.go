package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

const (
	lineCount    = 4096
	wordsPerLine = 6
	vocabulary   = 10_000
	digestPasses = 8 // over the lines, by each spout
)

// lines returns the lines that every workload reads, the same in every process.
// They are made on the first call and must not be changed.
var lines = sync.OnceValue(func() []string {
	r := rand.New(rand.NewPCG(1, 2))
	rank := rand.NewZipf(r, 1.1, 1, vocabulary-1)
	all := make([]string, lineCount)
	words := make([]string, wordsPerLine)
	for i := range all {
		for k := range words {
			words[k] = wordOf(int(rank.Uint64()))
		}
		all[i] = strings.Join(words, " ")
	}
	return all
})

// wordOf makes the word of a rank, of one to three syllables. Frequent words are
// short, as in a language.
func wordOf(rank int) string {
	w := syllable(rank % 100)
	if rank >= 100 {
		w += syllable(rank / 100)
	}
	if rank >= 1000 {
		w += syllable(rank * 37 % 100)
	}
	return w
}

func syllable(n int) string {
	return string([]byte{"bcdfghjklmnpqrstvwxz"[n/5], "aeiou"[n%5]})
}

// cut returns the first word of a line and what is behind it, and nothing when
// there is none. Words have one space between them.
func cut(line string) (word, rest string) {
	if i := strings.IndexByte(line, ' '); i >= 0 {
		return line[:i], line[i+1:]
	}
	return line, ""
}

// counts are the words that one task has seen.
type counts map[string]*int64

func (c counts) add(word string) {
	n := c[word]
	if n == nil {
		n = new(int64)
		c[strings.Clone(word)] = n // kept, so cloned
	}
	*n++
}

// digest returns a short text that is the same for the same sums of counts,
// however they are spread over tasks.
func digest(tasks []counts) string {
	sum := map[string]int64{}
	for _, c := range tasks {
		for word, n := range c {
			sum[word] += *n
		}
	}
	h := sha256.New()
	for _, word := range slices.Sorted(maps.Keys(sum)) {
		fmt.Fprintf(h, "%s=%d\n", word, sum[word])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// wantDigest returns the digest of what so many readers see in the fixed amount,
// counted by one loop.
func wantDigest(readers int) string {
	c := counts{}
	for _, line := range lines() {
		for word, rest := cut(line); word != ""; word, rest = cut(rest) {
			c.add(word)
		}
	}
	for _, n := range c {
		*n *= int64(readers * digestPasses)
	}
	return digest([]counts{c})
}
