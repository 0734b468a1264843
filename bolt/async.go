package bolt

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// Async returns a factory of bolts that call f where it may wait, for a service
// say, and for at most limit tuples of a task at a time; then the task takes no
// more. A call of yield emits a tuple on the component's first stream when f has
// returned nil; if it returns an error, nothing is emitted and the input fails, see
// [Reject]. A panic of f fails the input too.
//
// What comes of a quick call is emitted before that of a slow one which began
// earlier; see [AsyncInOrder]. f is called by several goroutines at the same time,
// may use in for ever, calls yield from one goroutine at a time and not after it has
// returned, and must return soon after ctx has ended: its task has then.
// A call that takes longer than the topology's message timeout needs a component
// that Holds for as long, or its message is replayed meanwhile.
func Async(limit int, f func(ctx context.Context, in tuple.Tuple, yield func(values ...any)) error) Factory {
	return func() Bolt { return &async{limit: limit, f: f} }
}

// AsyncInOrder is [Async] with what comes of the tuples in the order in which they
// came. A slow call so holds up the tuples behind it, and they count as under way.
func AsyncInOrder(limit int, f func(ctx context.Context, in tuple.Tuple, yield func(values ...any)) error) Factory {
	return func() Bolt { return &async{limit: limit, f: f, ordered: true} }
}

// Invariant: open counts the calls whose tuples are neither acked nor failed; of an
// ordered one they are in calls, in the order in which they began.
type async struct {
	limit   int
	f       func(context.Context, tuple.Tuple, func(...any)) error
	ordered bool
	open    int
	calls   []*call
	schema  *tuple.Schema // nil: nothing can be emitted
	logger  *slog.Logger
	panics  int
}

// A call is one of f. While f runs, it is f's.
type call struct {
	in     *Held
	row    tuple.Row
	values [][]tuple.Value
	err    error
	stack  []byte // of a panic
	done   bool
}

func (a *async) Prepare(_ context.Context, task *Task) error {
	if a.limit < 1 {
		return Reject(fmt.Errorf("component %s allows %d calls at a time: it must be at least 1", task.Component, a.limit))
	}
	if len(task.Streams) > 0 {
		a.schema = task.Streams[0]
	}
	a.logger = task.Logger
	return nil
}

func (a *async) Execute(in tuple.Tuple, out *Collector) error {
	c := &call{in: out.Retain(in)}
	if a.ordered {
		a.calls = append(a.calls, c)
	}
	if a.open++; a.open == a.limit {
		out.keeper("Pause").Pause(true)
	}
	out.block(func(ctx context.Context) any {
		a.run(ctx, c)
		return nil
	}, func(any) {
		c.done = true
		a.returned(c, out)
	})
	return nil
}

// run calls f, elsewhere. It reads of a only what never changes.
func (a *async) run(ctx context.Context, c *call) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if err := tuple.Misused(r); err != nil {
			c.err = Reject(err)
			return
		}
		c.err, c.stack = fmt.Errorf("panic in a call of Async: %v", r), debug.Stack()
	}()
	c.err = a.f(ctx, c.in.Tuple, func(values ...any) {
		if a.schema == nil {
			tuple.Misuse("the component declares no stream: add .Emits(...)")
		}
		c.row.Set(a.schema, values)
		c.values = append(c.values, tuple.CloneRow(c.row.Cells, c.row.Kinds))
	})
}

// returned settles a call that has come back, and in order what waited behind it.
func (a *async) returned(c *call, out *Collector) {
	if !a.ordered || mutation.Is(mutation.CallsUnordered) {
		a.settle(c, out)
		return
	}
	for len(a.calls) > 0 && a.calls[0].done {
		c := a.calls[0]
		a.calls[0] = nil
		a.calls = a.calls[1:]
		a.settle(c, out)
	}
}

func (a *async) settle(c *call, out *Collector) {
	if a.open--; a.open == a.limit-1 {
		out.keeper("Pause").Pause(false)
	}
	if c.stack != nil {
		if a.panics++; a.panics == 1 {
			a.logger.Error(c.err.Error(), "stack", string(c.stack))
		}
	}
	if c.err != nil {
		c.in.Fail(c.err)
		return
	}
	to := out.Anchor(c.in)
	for _, v := range c.values {
		to.emitValues(v)
	}
	c.in.Ack()
}
