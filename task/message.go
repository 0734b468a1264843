package task

import (
	"fmt"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// What tasks say to each other, beside *tuple.Parcel and *acker.Report.

// A Limit says how many tuples a sender may have sent in all. It carries empty
// parcels home, and says how quick the receiver is. Late or repeated ones do no
// harm.
type Limit struct {
	From, To         tuple.TaskID // receiver of the tuples, sender of the tuples
	FromLife, ToLife tuple.Incarnation
	Total            uint64
	Each             time.Duration // that a tuple has taken the receiver of late
	Parcels          []*tuple.Parcel
}

// An Ask is sent by one who has waited for room for a while: the receiver says
// its limit again.
type Ask struct {
	From, To         tuple.TaskID
	FromLife, ToLife tuple.Incarnation
}

// An End says that its sender will not send another tuple. It follows all of
// them on the same link.
type End struct {
	From, To         tuple.TaskID
	FromLife, ToLife tuple.Incarnation
}

// A Dry says that its sender has sent all that it had for now, and waits for what
// is held: its input has ended, but for replays. The next parcel takes it back, or a
// Dry that says Not.
type Dry struct {
	From, To         tuple.TaskID
	FromLife, ToLife tuple.Incarnation
	Not              bool
}

// A Peer says which life of a task is the present one and where it is. All
// lives before it are dead.
type Peer struct {
	Task tuple.TaskID
	Life tuple.Incarnation
	Ref  actor.Ref // nil: not known yet
	Far  bool      // it is on another node, and Ref is the link to that
}

// Peers tells a task of others, at the start and after each death.
type Peers struct{ Peers []Peer }

// Drain tells a spout task to read no more: its input ends here. The coordinator of
// batches begins no more of them.
type Drain struct{}

// To the supervisor.
type (
	// ended: all input has ended, all messages are done.
	ended struct {
		task tuple.TaskID
		life tuple.Incarnation
	}
	// failed: the incarnation has ended itself.
	failed struct {
		task  tuple.TaskID
		life  tuple.Incarnation
		err   error
		fatal bool          // end the run with err
		own   bool          // outside Execute: counts towards giving the task up
		until time.Duration // when the life was good; 0: until it has ended
		away  bool          // what keeps the task's state may be away: does not, if it was there in this run
	}
	// committed: everything before the position is done.
	committed struct {
		task     tuple.TaskID
		life     tuple.Incarnation
		split    string
		position string
		index    int // of the split in the task's share
	}
	// Stop asks the supervisor to end the run as it is.
	Stop struct{}
)

// Timers, to oneself.
type (
	begin   struct{} // the pause before this life is over
	tick    struct{}
	press   struct{}                 // is MaxPending in the way of what is held?
	quiet   struct{ arrived uint64 } // is there still nothing new?
	sayHeld struct{}                 // still at rest, with tuples that are held?
	check   struct{}                 // deadlines and still-queued notes, each quarter of the message timeout
	ask     struct{}                 // still without room?
	replay  struct{ at int64 }
	reopen  struct{ r *reading } // the pause of a split is over
	commit  struct{}             // positions that wait to be told
)

var (
	orderClasses  = map[batch.OrderKind]string{batch.Join: "join", batch.Begin: "begin", batch.Write: "write", batch.Settled: "settled", batch.Finish: "finish"}
	answerClasses = map[batch.AnswerKind]string{batch.Joined: "joined", batch.Input: "input", batch.Emitted: "emitted", batch.Ready: "ready", batch.Wrote: "wrote", batch.Failed: "failed", batch.Fenced: "fenced"}
)

// Class names the kind of a message, for fault plans and event logs.
func Class(msg any) string {
	switch m := msg.(type) {
	case *tuple.Parcel:
		if m.Marker {
			return "marker"
		}
		return "parcel"
	case *acker.Report:
		switch {
		case len(m.Entries)+len(m.Fails) > 0:
			return "report"
		case len(m.Lost) > 0:
			return "lost"
		case len(m.Queued) > 0:
			return "still-queued"
		}
		return "held"
	case *Limit, Credit:
		return "limit"
	case *Ask:
		return "ask"
	case *End:
		return "end"
	case *Dry:
		return "dry"
	case *Order:
		return orderClasses[m.Kind]
	case *Answer:
		return answerClasses[m.Kind]
	case *Peers:
		return "peers"
	case tick:
		return "tick"
	case *Far:
		return Class(m.Msg)
	case *Encoded:
		return "parcel"
	case Drain, Stop, Halt, halt, *Replan, *replanned, *Elsewhere, ended, failed, committed, underWay, kept, replayed, *Letters, Taps, Oldest, Whereabouts, *openAsked, openSaid:
		return "control"
	case actor.Terminated:
		return "terminated"
	default:
		return fmt.Sprintf("%T", msg)
	}
}
