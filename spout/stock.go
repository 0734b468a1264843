package spout

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// idleCalls bounds how often one call of Next asks for messages without getting
// any, so that a function that passes over nearly everything cannot hold up the
// task's turn.
const idleCalls = 4096

// Slice returns a source of one message with one field for each item, in one
// split. The items must be of a type that Emit accepts, and a slice given as
// items... must not be changed as long as the source is used. Its position is
// the index of an item.
func Slice[T any](items ...T) Source {
	return &counted{name: "slice", splits: 1, end: int64(len(items)), emit: func(_ int, i int64, out *Out) { out.Emit(items[i]) }}
}

// Rows returns a source of one message for each row, whose values are the
// message's fields, in one split. The rows must not be changed as long as the
// source is used. Its position is the index of a row.
func Rows(rows ...[]any) Source {
	return &counted{name: "rows", splits: 1, end: int64(len(rows)), emit: func(_ int, i int64, out *Out) { out.Emit(rows[i]...) }}
}

// Generate returns a source that calls f with 0, 1, 2, ... up to n-1, or for
// ever if n is 0, in one split. Each call usually emits one message; none or a
// few are fine too.
//
// The position is i, so the source is read again by calling f again: it should
// emit the same messages for the same i. It is called on the task's turn and
// must not wait. It is called by one task at a time, but not always by the same.
func Generate(n int64, f func(i int64, out *Out)) Source {
	return generate(1, n, func(_ int, i int64, out *Out) { f(i, out) })
}

// GenerateSplits is like [Generate] with several splits, which several tasks can
// read at the same time; n counts the calls for each of them. f is called for
// different splits concurrently.
func GenerateSplits(splits int, n int64, f func(split int, i int64, out *Out)) Source {
	return generate(splits, n, f)
}

func generate(splits int, n int64, f func(int, int64, *Out)) *counted {
	c := &counted{name: "generate", splits: splits, end: n, emit: f}
	switch {
	case splits < 1:
		c.err = Fatal(fmt.Errorf("a source of generated messages has %d splits: it needs at least 1", splits))
	case n < 0:
		c.err = Fatal(fmt.Errorf("a source of generated messages has the length %d: it must be at least 0, which is endless", n))
	case n == 0:
		c.end = math.MaxInt64
	}
	return c
}

// counted is a source whose messages have numbers.
type counted struct {
	name   string
	splits int
	end    int64 // number behind the last of each split
	emit   func(split int, i int64, out *Out)
	err    error // a mistake in how the source was made
}

func (c *counted) Splits(context.Context) ([]Split, error) {
	if c.err != nil {
		return nil, c.err
	}
	if c.splits == 1 {
		return []Split{Split(c.name)}, nil
	}
	splits := make([]Split, c.splits)
	for i := range splits {
		splits[i] = Split(c.name + ":" + strconv.Itoa(i))
	}
	return splits, nil
}

func (c *counted) Open(_ context.Context, split Split, position string) (Reader, error) {
	if c.err != nil {
		return nil, c.err
	}
	k, err := c.index(split)
	if err != nil {
		return nil, err
	}
	i, err := number(split, position)
	if err != nil {
		return nil, err
	}
	if i > c.end {
		return nil, Fatal(fmt.Errorf("position %d of split %q is behind its end, which is %d: the position belongs to another source", i, split, c.end))
	}
	return &countedReader{c: c, split: k, i: i}, nil
}

func (c *counted) index(split Split) (int, error) {
	rest, ok := strings.CutPrefix(string(split), c.name)
	if ok && rest == "" && c.splits == 1 {
		return 0, nil
	}
	if digits, ok := strings.CutPrefix(rest, ":"); ok && c.splits > 1 {
		if k, err := strconv.Atoi(digits); err == nil && k >= 0 && k < c.splits {
			return k, nil
		}
	}
	return 0, unknown(split)
}

type countedReader struct {
	c     *counted
	split int
	i     int64 // the next
}

func (r *countedReader) Prompt() {}

func (r *countedReader) Next(_ context.Context, out *Out) error {
	idle, n := 0, out.Len()
	for r.i < r.c.end && !out.Full() && idle < idleCalls {
		r.c.emit(r.split, r.i, out)
		r.i++
		if out.Len() == n {
			idle++
		}
		n = out.Len()
	}
	if r.i == r.c.end {
		return io.EOF
	}
	return nil
}

func (r *countedReader) Position() string { return strconv.FormatInt(r.i, 10) }

// Func returns a source that calls next for its messages, in one split. next
// follows the rules of Reader.Next; it may wait. It is never called by two tasks
// at the same time.
//
// The source cannot be read again: its position only counts messages, and a task
// that is started again goes on where next goes on. Messages that the task had
// been given but were not done by then are lost. Use a Source of your own where
// that matters, and [Generate] where the messages can be computed.
func Func(next func(ctx context.Context, out *Out) error) Source { return function(next) }

type function func(ctx context.Context, out *Out) error

const funcSplit Split = "func"

func (function) Splits(context.Context) ([]Split, error) { return []Split{funcSplit}, nil }

func (f function) Open(_ context.Context, split Split, position string) (Reader, error) {
	if split != funcSplit {
		return nil, unknown(split)
	}
	n, err := number(split, position)
	if err != nil {
		return nil, err
	}
	return &funcReader{f: f, n: n}, nil
}

type funcReader struct {
	f function
	n int64 // messages so far
}

func (r *funcReader) Next(ctx context.Context, out *Out) error {
	before := out.Len()
	err := r.f(ctx, out)
	r.n += int64(out.Len() - before)
	return err
}

func (r *funcReader) Position() string { return strconv.FormatInt(r.n, 10) }

// number reads a position that is a number.
func number(split Split, position string) (int64, error) {
	if position == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(position, 10, 64)
	if err != nil || n < 0 {
		return 0, Fatal(fmt.Errorf("position %q of split %q is not a number of messages: the position belongs to another source", position, split))
	}
	return n, nil
}

func unknown(split Split) error {
	return Fatal(fmt.Errorf("the source has no split %q: it has changed since it listed its splits", split))
}
