package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	require.Len(t, lines(), lineCount)
	for _, line := range lines() {
		require.Len(t, strings.Fields(line), wordsPerLine)
		require.Equal(t, strings.Join(strings.Fields(line), " "), line, "words have one space between them")
	}
	seen := map[string]bool{}
	for rank := range vocabulary {
		seen[wordOf(rank)] = true
	}
	require.Len(t, seen, vocabulary, "every rank has a word of its own")
}

func TestLinesAreTheSameInEveryProcess(t *testing.T) {
	// A changed generator would make figures of two versions incomparable.
	require.Equal(t, "4095d32fb9d2dbd81611fbf842ca625a", wantDigest(2))
}

func TestCut(t *testing.T) {
	for _, line := range []string{"", "a", "a b", "the cow jumped over", lines()[7]} {
		var got []string
		for word, rest := cut(line); word != ""; word, rest = cut(rest) {
			got = append(got, word)
		}
		require.Equal(t, strings.Fields(line), append([]string{}, got...), "%q", line)
	}
}

func TestDigestIsOfTheSums(t *testing.T) {
	of := func(words string) counts {
		c := counts{}
		for _, w := range strings.Fields(words) {
			c.add(w)
		}
		return c
	}
	whole := digest([]counts{of("a b a c")})
	require.Equal(t, whole, digest([]counts{of("c a"), of("a b")}))
	require.NotEqual(t, whole, digest([]counts{of("a b c")}))
	require.NotEqual(t, whole, digest([]counts{of("a b b c")}))
}
