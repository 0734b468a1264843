package spout

import (
	"context"
	"errors"
	"log/slog"

	"github.com/egretstream/egret/tuple"
)

// A Queue is where messages come from that want an answer each, such as a queue
// of a message broker.
//
//	Next(out) --> out.Emit(id, values...) --> all that comes of it is done --> Ack(id)
//	                                     \--> failed, rejected, lost, ... ---> Fail(id, why)
//
// Egret never replays a message of a queue. For every message that the queue
// emits it calls exactly one of Ack and Fail, once, unless the process is killed;
// whether the message comes again is the queue's decision, and what comes again
// is a new message. So there are no dead letters either: the queue knows what was
// rejected.
//
// Next runs by itself, never twice at a time, and may wait. Ack and Fail are
// called one at a time, never from inside Emit, and mostly while a call of Next is
// under way elsewhere: what they share with it needs a lock. They hold up the
// task, so they should be quick. A panic in any of them ends this value's life.
//
// When a life ends with messages open, each of them is failed with an error that
// is [ErrUnfinished], also those that were emitted and had not been sent on. If Next is
// under way then, it does not know of the end before its ctx does, and what it
// emits after all is failed when it returns. Close() error, if there is one, is the last
// call; it is made if Open succeeded or there is none.
type Queue interface {
	// Next emits messages to out until out.Full(), and may wait for them; it should
	// not wait when it has some already. It returns io.EOF when the queue has ended;
	// messages emitted by that call count, as with any error. After another error
	// it is called again after a pause. The same error five times in a row, or one of
	// [Fatal] at once, ends the run, when what is open is finished. Next must return
	// soon after ctx has ended.
	Next(ctx context.Context, out *QueueOut) error
	// Ack says that everything that came of the message is done; of a topology that
	// runs at most once, that it was sent on. An error is logged, and the call is not
	// made again.
	Ack(ctx context.Context, id string) error
	// Fail hands a message back. errors.Is tells by why what has happened:
	// [ErrFailed], [ErrRejected], [ErrLost], [ErrTimedOut] or [ErrUnfinished]. An error is
	// logged, and the call is not made again. At the end of a life ctx has not ended.
	Fail(ctx context.Context, id string, why error) error
}

// A QueueFactory makes the queue of one incarnation of one task.
type QueueFactory func() Queue

// An Opener is a Queue that wants to know where it is, or connects, before the
// first call of Next. Open may wait; an error is like one of Next. ctx ends with
// the incarnation.
type Opener interface {
	Open(ctx context.Context, task *Task) error
}

// A Task tells a queue where it is.
type Task struct {
	Topology  string
	Component string
	Index     int // of the task in its component, from 0
	Parallel  int // tasks of the component
	Logger    *slog.Logger
}

// Why a message is handed back to its queue. The text of the error that Fail gets
// says more.
var (
	// ErrFailed: a bolt returned an error, or panicked on it. It may go well the
	// next time.
	ErrFailed = errors.New("failed")
	// ErrRejected: a bolt said that another try would not help.
	ErrRejected = errors.New("rejected")
	// ErrLost: a task has died, and tuples of the message may have been lost with it.
	// That is nobody's fault, and of all messages that were open there at most one is
	// what it died of.
	ErrLost = errors.New("lost with a task")
	// ErrTimedOut: for the message timeout nothing was heard of it.
	ErrTimedOut = errors.New("timed out")
	// ErrUnfinished: the task has ended or was told to read no more. The message may
	// not have been looked at.
	ErrUnfinished = errors.New("unfinished")
)

// A QueueOut takes the messages of one call of Next.
type QueueOut struct{ out Out }

// NewQueueOut returns a QueueOut for a queue with the given streams. It is called
// by the engine and by tests of queues.
func NewQueueOut(schemas []*tuple.Schema) *QueueOut {
	return &QueueOut{Out{schemas: schemas}}
}

// Emit appends a message with the given values on the queue's first stream. id is
// what Ack or Fail is told; Egret does not look at it, so it may be empty or the
// same for several. The values are what a bolt's Emit accepts.
func (o *QueueOut) Emit(id string, values ...any) {
	o.out.emit(0, values)
	o.out.batch.asks(id)
}

// EmitTo appends a message on the stream with the given name.
func (o *QueueOut) EmitTo(id, stream string, values ...any) {
	o.out.EmitTo(stream, values...)
	o.out.batch.asks(id)
}

// EmitDirect and EmitDirectTo append a message on a stream that is direct, for one
// task of its subscriber, and Tasks says how many there are: see [Out.EmitDirect].
func (o *QueueOut) EmitDirect(id string, task int, values ...any) {
	o.out.emitDirect(0, task, values)
	o.out.batch.asks(id)
}

func (o *QueueOut) EmitDirectTo(id, stream string, task int, values ...any) {
	o.out.EmitDirectTo(stream, task, values...)
	o.out.batch.asks(id)
}

func (o *QueueOut) Tasks(stream string) int { return o.out.Tasks(stream) }

// Full reports whether Next should return. A task asks for no more messages than
// MaxPending leaves room for; a queue that cannot stop may go on to 65,536 in one
// call.
func (o *QueueOut) Full() bool { return o.out.Full() }

// Len returns how many messages this call of Next has emitted.
func (o *QueueOut) Len() int { return o.out.Len() }

// Collect points o at a batch to append to, until it holds max messages.
func (o *QueueOut) Collect(b *Batch, max int) { o.out.Collect(b, max) }
