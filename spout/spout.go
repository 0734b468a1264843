// Package spout is the contract of what feeds a topology, with the stock parts
// that need no file, clock or network (those are in spout/from).
//
//	Source --Splits--> "book.txt:0-4194304", "book.txt:4194304-8388608", ...
//	   |                        each read by one task at a time
//	   +--Open(split, position)--> Reader --Next(out)--> messages
//
// A source can be read again, so it hears of no ack and no failure: Egret keeps
// the values of open messages, replays what failed or was lost, and commits the
// position of a split below which everything is done. A task that is started
// again reads on from there, so between that position and where it was some
// messages are read twice.
//
// A [Queue] is the other kind: it wants an answer for each message, and decides
// itself what comes again.
package spout

import (
	"context"
	"errors"

	"github.com/egretstream/egret/tuple"
)

// A Source is where messages come from. It describes the source and holds no
// state of a reader: its methods are called by several tasks at the same time.
type Source interface {
	// Splits lists the parts that can be read independently. Every task calls it
	// when it starts and takes its share, so it must list the same splits in the
	// same order each time, each once.
	Splits(ctx context.Context) ([]Split, error)
	// Open returns a reader of the split from the position, which is one that a
	// reader of the split returned before, or "" for the beginning.
	Open(ctx context.Context, split Split, position string) (Reader, error)
}

// A Split names a part of a source, for the source itself and for people.
type Split string

// A Reader reads one split. Its methods are called one at a time. If it has a
// method Close() error, that is called when it is no longer used.
type Reader interface {
	// Next appends messages to out until out.Full(), and may wait for them; it
	// should not wait when it has some already. It returns io.EOF when the split has
	// ended; messages appended by that call count. After any other error the split
	// is opened again, after a pause and when all messages before are done. The same
	// error five times at the same position ends the run. Next must return soon after
	// ctx has ended.
	Next(ctx context.Context, out *Out) error
	// Position says where a new reader has to begin so that it reads on behind the
	// messages that Next has appended so far. It is called after each Next.
	Position() string
}

// A Prompt reader never waits in Next, not even for a disk. Its Next is called
// on the task's own turn, which saves a switch for each call.
type Prompt interface {
	Reader
	Prompt()
}

// A Sifter is a Source that sets aside what it cannot read: it emits that as it is on
// BadStream, if that is not empty. Where fields of another stream of its spout are masked,
// so are all of that one.
type Sifter interface {
	BadStream() string
}

// A Committer is a Source that wants to know that everything before a position of
// a split is done. Commit is not called on the task's turn and may wait a while: no
// other one of the split is called before it has returned. One that does not return
// before the end of a run is left behind, and its source hears of no later position. In an
// exactly-once topology nobody calls it: how far each split is done is in the record of its
// batches.
type Committer interface {
	Commit(ctx context.Context, split Split, position string) error
}

// Fatal makes of err an error that ends the run when Next, Open or Splits
// returns it, without another try. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatal{err}
}

type fatal struct{ err error }

func (f *fatal) Error() string { return f.err.Error() }
func (f *fatal) Unwrap() error { return f.err }

// IsFatal reports whether err was made by [Fatal].
func IsFatal(err error) bool {
	_, ok := errors.AsType[*fatal](err)
	return ok
}

// An Out takes the messages of one call of Next.
type Out struct {
	row     tuple.Row
	direct  tuple.Row // of EmitDirect
	schemas []*tuple.Schema
	batch   *Batch
	max     int
}

// NewOut returns an Out for a spout with the given streams. It is called by the
// engine and by tests of readers.
func NewOut(schemas []*tuple.Schema) *Out { return &Out{schemas: schemas} }

// Emit appends a message with the given values on the spout's first stream. It
// accepts what a bolt's Emit accepts.
func (o *Out) Emit(values ...any) { o.emit(0, values) }

// EmitTo appends a message on the stream with the given name.
func (o *Out) EmitTo(stream string, values ...any) {
	o.emit(o.find(stream), values)
}

// EmitDirect appends a message on the spout's first stream, whose subscriber has
// asked for it with Direct; task is the index of its task that gets the message,
// from 0 to Tasks-1. A replay goes to the same task. A stream that is not
// direct and a task that is not there are a misuse.
func (o *Out) EmitDirect(task int, values ...any) { o.emitDirect(0, task, values) }

// EmitDirectTo is EmitDirect on the stream with the given name.
func (o *Out) EmitDirectTo(stream string, task int, values ...any) {
	o.emitDirect(o.find(stream), task, values)
}

// Tasks returns how many tasks EmitDirectTo can choose from on a stream: 0 if the
// stream is not direct.
func (o *Out) Tasks(stream string) int { return o.schemas[o.find(stream)].Direct }

func (o *Out) emitDirect(stream, task int, values []any) {
	o.declared()
	o.direct.SetDirect(o.schemas[stream], task, values)
	o.batch.Append(stream, &o.direct)
}

func (o *Out) find(stream string) int {
	for i, s := range o.schemas {
		if s.Stream == stream {
			return i
		}
	}
	tuple.Misuse("spout has no stream " + stream)
	return 0
}

func (o *Out) declared() {
	if len(o.schemas) == 0 {
		tuple.Misuse("the spout declares no stream: add .Emits(...)")
	}
}

func (o *Out) emit(stream int, values []any) {
	o.declared()
	s := o.schemas[stream]
	if s.Direct > 0 {
		s.NeedsTask()
	}
	o.row.Set(s, values)
	o.batch.Append(stream, &o.row)
}

// Full reports whether Next should return. A reader that cannot stop may go on
// to 65,536 messages in one call.
func (o *Out) Full() bool { return o.batch.n >= o.max || o.batch.text >= maxBatchText }

// Len returns how many messages this call of Next has appended.
func (o *Out) Len() int { return o.batch.n }

// Collect points o at a batch to append to, until it holds max messages.
func (o *Out) Collect(b *Batch, max int) { o.batch, o.max = b, max }

// Limit sets at how many messages o is full and returns the number before. It is
// for a source that hands its Out to the reader of another one, a few messages at
// a time; it sets the old number again before it returns.
func (o *Out) Limit(messages int) (before int) {
	before, o.max = o.max, messages
	return before
}
