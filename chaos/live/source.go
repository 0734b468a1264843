package live

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A source is a user's, whose messages are numbered in each split. A position is the
// number of the next message and the source's own position behind it.
type source struct {
	spout.Source
	record *record
	node   *topology.Node
	mu     sync.Mutex
	splits map[spout.Split]int // in their order
}

func (r *record) watchSource(n *topology.Node) spout.Source {
	return &source{Source: n.Source, record: r, node: n}
}

// Splits are those of the user's source. Those of one task are the ones that its batches
// count by their index.
func (s *source) Splits(ctx context.Context) ([]spout.Split, error) {
	all, err := s.Source.Splits(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.splits == nil {
		s.splits = map[spout.Split]int{}
	}
	for i, name := range all {
		if _, known := s.splits[name]; !known {
			s.splits[name] = i
			b, k := s.place(i)
			b.name(k, name)
		}
	}
	return all, nil
}

// place returns the book of the task that reads the i-th split, and its index there.
func (s *source) place(i int) (b *book, split int) {
	return s.record.books[s.node.First+tuple.TaskID(i%s.node.Parallel)], i / s.node.Parallel
}

func (s *source) Open(ctx context.Context, name spout.Split, position string) (spout.Reader, error) {
	s.mu.Lock()
	i, known := s.splits[name]
	s.mu.Unlock()
	if !known {
		return nil, spout.Fatal(fmt.Errorf("split %q was not listed", name))
	}
	ordinal, inner, ok := cutPosition(position)
	if !ok && position != "" {
		return nil, spout.Fatal(fmt.Errorf("position %q of split %q has no ordinal", position, name))
	}
	r, err := s.Source.Open(ctx, name, inner)
	if err != nil || r == nil {
		return r, err
	}
	b, k := s.place(i)
	w := &reader{Reader: r, record: s.record, book: b, split: k, ordinal: ordinal}
	if _, is := r.(spout.Prompt); is {
		return prompt{w}, nil
	}
	return w, nil
}

// Commit is told, beside the user's source, what Egret holds to be done.
func (s *source) Commit(ctx context.Context, name spout.Split, position string) error {
	s.mu.Lock()
	i := s.splits[name]
	s.mu.Unlock()
	ordinal, inner, _ := cutPosition(position)
	b, k := s.place(i)
	b.committed(k, ordinal)
	if c, is := s.Source.(spout.Committer); is {
		return c.Commit(ctx, name, inner)
	}
	return nil
}

func position(ordinal int64, inner string) string {
	return strconv.FormatInt(ordinal, 10) + "@" + inner
}

// cutPosition takes a position apart.
func cutPosition(position string) (ordinal int64, inner string, ok bool) {
	digits, inner, found := strings.Cut(position, "@")
	ordinal, err := strconv.ParseInt(digits, 10, 64)
	return ordinal, inner, found && err == nil
}

// A reader is a user's, whose messages are numbered.
type reader struct {
	spout.Reader
	record  *record
	book    *book
	split   int
	ordinal int64 // of the next message
}

// A prompt one does not wait.
type prompt struct{ *reader }

func (prompt) Prompt() {}

func (r *reader) Next(ctx context.Context, out *spout.Out) error {
	if r.record.enough.Load() && r.ordinal >= r.book.high(r.split) {
		return nil // only what has been read before
	}
	t := r.record.troubles[r.book.id]
	if t.any.Load() {
		paused, err := t.paused()
		if err != nil || paused {
			return err
		}
	}
	before := out.Len()
	err := r.Reader.Next(ctx, out)
	n := out.Len() - before
	r.ordinal += int64(n)
	if t.any.Load() {
		t.panics(n)
	}
	return err
}

func (r *reader) Position() string {
	return position(r.ordinal, r.Reader.Position())
}

func (r *reader) Close() error {
	if c, is := r.Reader.(io.Closer); is {
		return c.Close()
	}
	return nil
}
