package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/examples/wordcount/counting"
	"github.com/egretstream/egret/spout"
)

func top20(t *testing.T) string {
	want, err := os.ReadFile("../wordcount/counting/testdata/top20.txt")
	require.NoError(t, err)
	return string(want)
}

// The words are those of the other wordcount, and of ordinary tools.
func TestBook(t *testing.T) {
	var out strings.Builder
	require.NoError(t, count(t.Context(), options{counting.Book(), "", 20}, &out))
	require.Equal(t, top20(t), out.String())
}

// As of the other wordcount, --top 0 is all words.
func TestAllWords(t *testing.T) {
	var out strings.Builder
	require.NoError(t, count(t.Context(), options{spout.Slice("a b", "b"), "", 0}, &out))
	require.Equal(t, "b 2\na 1\n", out.String())
}

// The whole of a program that counts exactly once is short.
func TestIsShort(t *testing.T) {
	b, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(b), "\n"), 25)
}

// A run that has failed is gone on with, and one that was complete has nothing to do:
// each word is counted once.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	err := count(t.Context(), options{broken{counting.Book()}, dir, 20}, &out)
	require.ErrorContains(t, err, "no more")
	require.Empty(t, out.String())
	for range 2 {
		out.Reset()
		require.NoError(t, count(t.Context(), options{counting.Book(), dir, 20}, &out))
		require.Equal(t, top20(t), out.String())
	}
}

// broken is a source that ends the run behind 10,000 messages.
type broken struct{ spout.Source }

func (b broken) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	r, err := b.Source.Open(ctx, split, position)
	return &breaking{Reader: r}, err
}

type breaking struct {
	spout.Reader
	n int
}

func (b *breaking) Next(ctx context.Context, out *spout.Out) error {
	if b.n > 10_000 {
		return spout.Fatal(errors.New("no more"))
	}
	err := b.Reader.Next(ctx, out)
	b.n += out.Len()
	return err
}
