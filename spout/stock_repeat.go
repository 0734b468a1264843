package spout

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Repeat returns a source that reads each split of source times times, or for
// ever if times is 0. A split that brings no message from its beginning to its
// end is not read again.
//
// A position is the number of a round, from 0, and a position in source. What
// source reads again in each round must be what it read before, as with any
// source. If source is a [Committer], it hears of no commit, because what is done
// is needed again.
func Repeat(source Source, times int) Source { return &repeated{source, times} }

type repeated struct {
	source Source
	times  int
}

func (r *repeated) Splits(ctx context.Context) ([]Split, error) {
	if r.times < 0 {
		return nil, Fatal(fmt.Errorf("a source is repeated %d times: it must be at least 0, which is for ever", r.times))
	}
	return r.source.Splits(ctx)
}

func (r *repeated) Open(ctx context.Context, split Split, position string) (Reader, error) {
	round, inner := 0, ""
	if position != "" {
		digits, rest, ok := strings.Cut(position, ":")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 0 {
			return nil, Fatal(fmt.Errorf("position %q of split %q is not the number of a round, a colon and a position: the position belongs to another source", position, split))
		}
		round, inner = n, rest
	}
	rd := &repeatReader{r: r, split: split, round: round, begun: inner}
	if rd.over() {
		return rd, nil
	}
	first, err := r.source.Open(ctx, split, inner)
	if err != nil {
		return nil, err
	}
	rd.inner = first
	if _, ok := first.(Prompt); ok {
		rd.prompt = true
		return promptRepeatReader{rd}, nil
	}
	return rd, nil
}

type promptRepeatReader struct{ *repeatReader }

func (promptRepeatReader) Prompt() {}

type repeatReader struct {
	r      *repeated
	split  Split
	round  int
	prompt bool

	inner Reader // of this round; nil between rounds and behind the last
	begun string // where inner begins
	n     int    // messages of this round, from begun
	empty bool   // a whole round brought nothing
}

func (r *repeatReader) over() bool { return r.empty || r.r.times > 0 && r.round >= r.r.times }

func (r *repeatReader) Next(ctx context.Context, out *Out) error {
	for {
		if r.over() {
			return io.EOF
		}
		if r.inner == nil {
			inner, err := r.r.source.Open(ctx, r.split, "")
			if err != nil {
				return err
			}
			r.inner = inner
		}
		before := out.Len()
		err := r.inner.Next(ctx, out)
		r.n += out.Len() - before
		if err != io.EOF {
			return err
		}
		if err := r.end(); err != nil {
			return err
		}
		// A reader that is not prompt might wait although there are messages.
		if out.Full() || out.Len() > 0 && !r.prompt && !r.over() {
			return nil
		}
	}
}

// end goes on to the next round.
func (r *repeatReader) end() error {
	r.empty = r.n == 0 && r.begun == ""
	r.round++
	r.n, r.begun = 0, ""
	return r.Close()
}

func (r *repeatReader) Position() string {
	p := strconv.Itoa(r.round) + ":"
	if r.inner != nil {
		p += r.inner.Position()
	}
	return p
}

func (r *repeatReader) Close() error {
	c, ok := r.inner.(io.Closer)
	r.inner = nil
	if !ok {
		return nil
	}
	return c.Close()
}
