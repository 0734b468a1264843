// Package bolt is the contract of what works on tuples, with the stock parts
// that need no file, clock or network (those are in bolt/to).
//
//	          Prepare
//	             |
//	tuple --> Execute(in, out) --> nil: acked      error: failed, its message
//	             |                                 is replayed after a pause
//	           Tick(out)
//	           Flush(out)    nothing more for now, and tuples are retained
//	             |
//	          Finish(out)   when all input has ended
//	             |
//	           Close
//
// What Execute emits is anchored to its input: the message is done when
// everything that came of it is. A bolt is one task's own, so it needs no lock;
// its memory dies with the task's incarnation.
package bolt

import (
	"context"
	"errors"
	"log/slog"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/tuple"
)

// A Bolt works on tuples. Its methods are called one at a time.
//
// A panic in any of them ends this value's life: the tuple in hand fails, and
// the component's factory makes a new one.
type Bolt interface {
	// Execute handles one tuple. Returning nil acks it; returning an error fails
	// it, and with it the message it came of, which is replayed after a pause; see
	// [Reject] for what is not worth another try.
	Execute(in tuple.Tuple, out *Collector) error
}

// A Factory makes the bolt of one incarnation of one task.
type Factory func() Bolt

// A Preparer is a Bolt that wants to know where it is before its first tuple. An
// error ends the incarnation, and the run when it comes again and again, or at once
// if [Reject] has made it.
// ctx ends with the incarnation.
type Preparer interface {
	Prepare(ctx context.Context, task *Task) error
}

// A Ticker is a Bolt that is called at the interval its component was given
// (topology.Component.Every), and never without one. What Tick emits is anchored to nothing: it is
// tracked as a message of the task's own, and replayed by it.
type Ticker interface {
	Tick(out *Collector) error
}

// A Flusher is a Bolt that retains tuples for others to come. Flush is called when
// it holds some and, for now, no others will come: all sources before it have ended,
// are being drained, or have failed and will be opened again when what is open is
// done, so they wait for what is held; no replay is on its way; and so it has been
// for 200 ms. It should let go of what it holds. What it does not
// anchor to tuples that it holds is tracked like what Tick emits.
//
// It is called again when messages were replayed since, and may be called when the
// last tuple was let go of just before; behind Finish, too, if a task before it has
// died behind its end and its next life has sent something. In a topology that is
// not tracked it is called once, before Finish.
type Flusher interface {
	Flush(out *Collector) error
}

// A Finisher is a Bolt with something to say when all its input has ended, once
// per task; an interrupt that lets a run finish what is open ends the input too.
// What Finish emits is tracked like what Tick emits. It is not called when a run is
// stopped with messages open. A life that follows one that died in or after Finish
// is called again.
type Finisher interface {
	Finish(out *Collector) error
}

// A Closer is a Bolt that has something to free. Close is called for every
// incarnation whose Prepare succeeded, or that has no Prepare, except when its
// process is killed. It cannot emit.
type Closer interface {
	Close() error
}

// A Task tells a bolt where it is.
type Task struct {
	Topology  string
	Component string
	Index     int             // of the task in its component, from 0
	Parallel  int             // tasks of the component
	Life      int             // of the task in this run: 1, and one more each time it is started again
	Continued bool            // the run goes on from what an earlier one has left in egret.Config.StateDir, so what that wrote is to be kept
	Logger    *slog.Logger    // says topology, component and task with each record
	Streams   []*tuple.Schema // the declared outputs
	Own       *metrics.Own    // where Counter, Gauge and Histogram put what they make; nil: a new one
}

// Output returns the handle of a declared stream, for [Collector.To]. A stream
// that was not declared is a misuse: Prepare stops there and the run fails.
func (t *Task) Output(stream string) Output {
	for i, s := range t.Streams {
		if s.Stream == stream {
			return Output(i)
		}
	}
	tuple.Misuse("component " + t.Component + " declares no stream " + stream)
	return 0
}

// An Output is one of the streams that a component declares.
type Output int

// Reject makes of err an error that Execute returns when another try would not
// help: the message is dead at once. Reject(nil) is nil.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &rejected{err}
}

type rejected struct{ err error }

func (r *rejected) Error() string { return r.err.Error() }
func (r *rejected) Unwrap() error { return r.err }

// IsReject reports whether err was made by [Reject].
func IsReject(err error) bool {
	_, ok := errors.AsType[*rejected](err)
	return ok
}

// A Sink is where the engine takes what a collector emits.
type Sink interface {
	Put(stream int, row *tuple.Row)
}

// A Collector takes what a bolt emits. It is a struct and not an interface so
// that the values given to Emit stay on the caller's stack. It may only be used
// during the call that it was given to.
type Collector struct {
	row     tuple.Row
	direct  tuple.Row // of EmitDirect
	schemas []*tuple.Schema
	sink    Sink
	ctx     context.Context
	output  int
	others  []*Collector // by Output, made when To is first called
	_       [128]byte    // what lies behind is another task's: see tuple.Row
}

// NewCollector returns a collector for a bolt with the given streams; the engine
// and tests call it.
func NewCollector(ctx context.Context, schemas []*tuple.Schema, sink Sink) *Collector {
	return &Collector{schemas: schemas, sink: sink, ctx: ctx}
}

// Emit emits a tuple on the component's first stream, or on the one that c came
// of by To. The values must be as many as the stream has fields, each a built-in
// integer, float, bool, string, []byte (copied), time.Time, time.Duration, nil
// or a [tuple.Value]; integers become int64 or uint64 and floats float64.
// Anything else is a misuse that rejects the tuple in hand.
func (c *Collector) Emit(values ...any) {
	o := c.output
	if uint(o) >= uint(len(c.schemas)) {
		tuple.Misuse("the component declares no stream: add .Emits(...)")
	}
	c.row.Set(c.schemas[o], values)
	c.sink.Put(o, &c.row)
}

// EmitDirect is Emit on a stream whose subscriber has asked for it with Direct: task
// is the index of its task that gets the tuple, from 0 to Tasks-1. A stream that is
// not direct and a task that is not there are a misuse, as is Emit on a stream
// that is direct.
func (c *Collector) EmitDirect(task int, values ...any) {
	o := c.output
	if uint(o) >= uint(len(c.schemas)) {
		tuple.Misuse("the component declares no stream: add .Emits(...)")
	}
	c.direct.SetDirect(c.schemas[o], task, values)
	c.sink.Put(o, &c.direct)
}

// Tasks returns how many tasks EmitDirect can choose from: 0 if the stream is not
// direct.
func (c *Collector) Tasks() int {
	if uint(c.output) >= uint(len(c.schemas)) {
		return 0
	}
	return c.schemas[c.output].Direct
}

// To returns the collector of one of the component's streams, for the same call as
// c: out.To(late).Emit(...).
func (c *Collector) To(o Output) *Collector {
	if c.others == nil {
		c.others = make([]*Collector, len(c.schemas))
	}
	if uint(o) >= uint(len(c.schemas)) {
		tuple.Misuse("no such output: get it from Task.Output in Prepare")
	}
	if c.others[o] == nil {
		c.others[o] = &Collector{schemas: c.schemas, sink: c.sink, ctx: c.ctx, output: int(o), others: c.others}
	}
	return c.others[o]
}

// Context ends with the incarnation of the task.
func (c *Collector) Context() context.Context { return c.ctx }
