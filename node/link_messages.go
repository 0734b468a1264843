package node

import (
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A Conn carries bytes to another node and frames from there, which come as messages.
// Neither method waits. After Close, or when the connection breaks, a Broken comes.
type Conn interface {
	// Write hands over pieces, which are sent as if they were one. They do not change until
	// they have arrived at the other end. Wrote says how far it is.
	Write(pieces [][]byte)
	Close()
}

// From a host to a Link.
type (
	// Connected gives the link a new connection, which takes the place of the one it has.
	// Of two nodes that can reach each other one should dial, see [Dials]: if both did,
	// each could close what the other uses.
	Connected struct{ Conn Conn }
	// Arrived has whole frames, each with its length before it. The memory is the link's
	// and is never written again.
	Arrived struct {
		Conn   Conn
		Frames [][]byte
	}
	// Wrote says how many more bytes of Write the connection has sent on.
	Wrote struct {
		Conn  Conn
		Bytes int
	}
	// Broken says that a connection is over, or, without Conn, that there was none to be
	// had. Refused: nobody listens where the node should be, so its process is over.
	Broken struct {
		Conn    Conn
		Err     error
		Refused bool
	}
)

// From the agent to a Link, beside a *task.Far, whose Msg may also be *task.Peers.
type (
	// Route says where a task of this node is. Ref nil: it is here no more.
	Route struct {
		Run  uint32
		Task tuple.TaskID
		Ref  actor.Ref
	}
	// Gone says that a life of a task of this node has ended, and sends nothing more.
	Gone struct {
		Run  uint32
		Task tuple.TaskID
		Life tuple.Incarnation
	}
	// Expect says that a process of the peer has begun: earlier ones are over.
	Expect struct{ Boot cluster.Boot }
	// Forget gives the link up: all that was sent by it and is not known to have arrived,
	// each way. What is sent from now on is for a new one.
	Forget struct{}
	// Count asks for Counts.
	Count struct{}
)

// A Note is what an agent says to another one. It comes with the process that it is
// from; who sends one leaves that away.
type Note struct {
	From    cluster.Home
	Payload []byte
}

// From a Link to its agent.
type (
	// LinkUp says that there is a connection. Resumed: nothing was lost since the one
	// before.
	LinkUp struct {
		Peer    cluster.Home
		Resumed bool
		Epoch   uint64 // of the link, for a later one to this process
	}
	// LinkDown says that there is none, and why. What is sent waits for the next one.
	// Refused is that of Broken. If the two nodes should not talk to each other at all, Err
	// is broker.ErrCluster, ErrNode or ErrOver.
	LinkDown struct {
		Peer    cluster.Home
		Err     error
		Refused bool
	}
	// LinkReset says that something that was sent to Peer, or by it, may be lost: what is
	// behind the link is dead for this node. It comes before LinkUp.
	LinkReset struct {
		Peer cluster.Home // the process that it was sent to
		Why  string
	}
	// Lives says which lives of the peer's tasks are the present ones.
	Lives struct {
		From  cluster.Home
		Run   uint32
		Peers []task.Peer
	}
	// Counts are totals since the link began, but for what waits.
	Counts struct {
		Peer                cluster.Home
		FramesIn, FramesOut uint64
		BytesIn, BytesOut   uint64
		Resent, Repeated    uint64 // frames
		Corrupt             uint64 // frames that could not be read
		Unrouted            uint64 // messages for tasks that are not here
		Resets              uint64
		Control, Data       int // bytes that wait to be written or acked
	}
)

// Dials reports whether a node is the one that dials another; else it is dialled.
func Dials(self, peer cluster.NodeID) bool { return self < peer }
