package broker

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/mutation"
)

// MaxFrame is how many bytes a frame may have, if nothing else is said.
const MaxFrame = 16 << 20

// A LinkConfig sets up one end of a link; each 0 stands for its default.
type LinkConfig struct {
	Self          cluster.Home
	Peer          cluster.Home // boot 0: not known yet
	Cluster       string       // its id
	Version       string       // of this program, for people
	MaxFrame      int          // bytes of a frame with its header; default MaxFrame
	ControlBudget int          // bytes that may wait in the control lane; default 64 MB
	DataBudget    int          // the same of the data lane, see [Share]; default 64 MB
	Last          uint64       // epoch of an earlier Link of this process to the peer; see [Link.Last]
}

// A Link is one end of what is between two processes of different nodes. Whatever
// connections come and go, each frame that is queued arrives once, in the order of its
// lane, or the link is reset, and both ends hear of it: reliable or dead.
//
//	             one end                        the other
//	Hello     -- epoch 0, last 0 ------------------>  Greeted: Fresh
//	Greeted  <------------------ epoch 0, last 0 --   Hello
//	Write     -- epoch 1, seq 1, acked 0 ---------->  Arrived
//	          -- epoch 1, seq 2, acked 0 ---->X       Broken
//	Hello     -- epoch 1, received 0 -------------->  Greeted: Resumed
//	Greeted  <------------- epoch 1, received 1 ---   Hello
//	Write     -- epoch 1, seq 2, acked 0 ---------->  Arrived
//	Arrived  <------------- epoch 1, acked 2 -------  Idle, Write
//
// An epoch ends when one end has forgotten it: its process is another one, or it gave
// the link up by Forget. The other end then finds out that what it kept was for nobody.
//
// A process that drops its Link to a node and later makes another one keeps Last, because
// epochs must not come twice. Owner: the actor of the link. A Link is not safe for concurrent use.
//
// Invariants:
//
//   - sent has consecutive numbers, of which seq is the last; what is acked is not in it
//   - bytes are those of all frames in lanes and sent
//   - epoch is 0 or last; without an epoch there is nothing in sent
type Link struct {
	LinkConfig
	peer  cluster.Home
	epoch uint64 // 0: none
	last  uint64
	share *Share

	lanes    [lanes]fifo[item] // not written yet, so without numbers
	sent     fifo[item]        // written and not acked
	seq      uint64            // the last that was given
	bytes    [lanes]int
	received uint64 // all frames up to this one, in epoch

	// Of the connection.
	mine      *Greeting // that was said; nil: there is no connection
	up        bool      // and has been answered
	next      int       // of sent, what is to be written
	unwritten int       // bytes that the connection has not written
	owed      int       // frames that have come and were not acked
	owedBytes int
	due       bool // they are to be acked now

	frames, written  uint64 // all frames, and their bytes
	resent, repeated uint64
}

type item struct {
	Frame
	sender Sender
	again  bool // it was written to several connections
}

// An Outcome says what a connection means for the link.
type Outcome uint8

const (
	Fresh   Outcome = iota // a new epoch begins; nothing was lost
	Resumed                // nothing has happened
	Reset                  // a new epoch begins, and everything that was queued is given up
)

var outcomeNames = [...]string{"fresh", "resumed", "reset"}

func (o Outcome) String() string { return outcomeNames[o] }

var (
	// ErrFull reports a frame for which there is no room: the other end has taken
	// nothing for too long.
	ErrFull = errors.New("the link is full")
	// ErrSequence reports a frame that does not belong where it came. The connection is
	// bad: break it, the link goes on.
	ErrSequence = errors.New("a frame out of sequence")
)

const (
	ackFrames = 32 // come before they are acked at once
	ackBytes  = 64 << 10
	copied    = 1 << 10 // a shorter payload is copied behind its header
)

// NewLink returns an end without epoch and connection.
func NewLink(c LinkConfig) *Link {
	if c.MaxFrame <= 0 {
		c.MaxFrame = MaxFrame
	}
	if c.ControlBudget <= 0 {
		c.ControlBudget = 64 << 20
	}
	if c.DataBudget <= 0 {
		c.DataBudget = 64 << 20
	}
	return &Link{LinkConfig: c, peer: c.Peer, last: c.Last, share: NewShare(c.DataBudget)}
}

// Peer returns who is at the other end, with the last boot that was heard of.
func (l *Link) Peer() cluster.Home { return l.peer }

// Last returns the last epoch in which the link was.
func (l *Link) Last() uint64 { return l.last }

// Up reports whether frames may be written now.
func (l *Link) Up() bool { return l.up }

// Bytes returns how many bytes of frames wait to be written or acked.
func (l *Link) Bytes() (control, data int) { return l.bytes[Control], l.bytes[Data] }

// Written returns how many frames were written, and their bytes, over all connections.
func (l *Link) Written() (frames, bytes uint64) { return l.frames, l.written }

// Resent and Repeated return how many frames were written again on another connection,
// and how many had come before and were dropped.
func (l *Link) Resent() uint64   { return l.resent }
func (l *Link) Repeated() uint64 { return l.repeated }

// Queue puts a frame into a lane. The payload belongs to the link and must not be
// written to; that of a parcel mostly comes back with a [Grant]. Who sends data names
// itself, and keeps to what [Link.Raise] says. An error
// is ErrFrame, or ErrFull for the control lane; the frame is then not queued.
func (l *Link) Queue(lane Lane, kind Kind, run uint32, from Sender, payload []byte) error {
	i := item{Frame: Frame{Lane: lane, Kind: kind, Run: run, Payload: payload}, sender: from}
	size := i.Size()
	if size > l.MaxFrame {
		return fmt.Errorf("%w: a %v of %d bytes, and %d are the most that may travel at a time", ErrFrame, kind, size, l.MaxFrame)
	}
	if lane == Control && l.bytes[lane] > 0 && l.bytes[lane]+size > l.ControlBudget {
		return fmt.Errorf("%w: %d bytes wait for node %v", ErrFull, l.bytes[lane], l.peer.Node)
	}
	l.lanes[lane].push(i)
	l.bytes[lane] += size
	if lane == Data {
		l.share.Queued(from, size)
	}
	return nil
}

// Hello begins with a new connection and returns what is to be written to it first. The
// connection before it is over, and nothing that comes by it may be shown to the link.
func (l *Link) Hello() []byte {
	l.Broken()
	l.mine = &Greeting{Cluster: l.Cluster, Version: l.Version, From: l.Self, To: l.peer, Epoch: l.epoch, Last: l.last}
	if l.epoch != 0 {
		l.mine.Received = l.received
		if mutation.Is(mutation.AckAhead) {
			l.mine.Received++
		}
	}
	payload, err := json.Marshal(l.mine)
	if err != nil {
		panic(err) // it has only text and numbers
	}
	b := AppendFrame(nil, &Frame{Kind: Hello, Payload: payload})
	l.unwritten = len(b)
	l.wrote(len(b))
	return b
}

// Greeted takes what the other end of the connection has said first. An error is
// ErrCluster, ErrNode or ErrOver if the peer is refused, and then the link is as it was;
// or ErrSequence if the two do not remember the same, and then this end has forgotten
// the link: the outcome is Reset. The connection is to be broken.
func (l *Link) Greeted(g Greeting) (Outcome, error) {
	if l.mine == nil || l.up {
		return 0, fmt.Errorf("%w: a hello in the middle", ErrSequence)
	}
	if err := l.refuses(&g); err != nil {
		return 0, err
	}
	mine, unwritten := l.mine, l.unwritten // Expect forgets the connection, if the link was to another process
	lost := l.Expect(g.From.Boot)
	epoch := agree(mine, &g)
	outcome := Fresh
	switch {
	case l.epoch == 0 && lost:
		outcome = Reset
	case l.epoch == 0:
	case epoch != l.epoch:
		l.giveUp()
		outcome = Reset
	default:
		outcome = Resumed
	}
	if outcome == Resumed {
		acked := uint64(0)
		if g.Epoch == epoch {
			acked = g.Received
		}
		if first := l.seq - uint64(l.sent.len()); acked < first || acked > l.seq {
			l.Forget()
			return Reset, fmt.Errorf("%w: %v has %d frames, and %d to %d are known", ErrSequence, g.From, acked, first, l.seq)
		}
		l.acked(acked)
	} else {
		l.epoch, l.last, l.seq, l.received = epoch, epoch, 0, 0
	}
	l.mine, l.up, l.next, l.unwritten = mine, true, 0, unwritten
	l.owed, l.owedBytes, l.due = 0, 0, false
	return outcome, nil
}

// Expect says that a process of the peer has begun, whatever connections say: earlier
// ones are over. It reports whether the link was to one of those; everything that was
// queued is then given up, and the connection is to be broken.
func (l *Link) Expect(boot cluster.Boot) (reset bool) {
	if boot <= l.peer.Boot {
		return false
	}
	reset = l.peer.Boot != 0
	l.peer.Boot = boot
	if reset {
		l.Forget()
	}
	return reset
}

// Forget gives the link up: everything that was queued, here and at the other end. The
// connection is to be broken. What is queued from now on is for a new epoch.
func (l *Link) Forget() {
	l.giveUp()
	l.epoch = 0
	l.Broken()
}

func (l *Link) giveUp() {
	for lane := range l.lanes {
		l.lanes[lane] = fifo[item]{}
	}
	l.sent, l.bytes = fifo[item]{}, [lanes]int{}
	l.share.FreedAll()
}

// Broken says that the connection is over. What is not acked waits for the next one.
func (l *Link) Broken() { l.mine, l.up, l.unwritten = nil, false, 0 }

// Write appends to dst what may go onto the connection now, and counts it as
// unwritten: frames that were written to an earlier connection, then control, then
// data, until most bytes are unwritten. The pieces are to be written as if they were
// one; they hold whole frames, and do not change until those have arrived.
func (l *Link) Write(dst [][]byte, most int) [][]byte {
	var b []byte
	cut := 0 // of b, what is in dst
	for l.up && l.unwritten < most {
		i := l.take()
		if i == nil {
			break
		}
		i.Epoch, i.Acked = l.epoch, l.ack()
		b = appendHeader(b, &i.Frame)
		if len(i.Payload) <= copied {
			b = append(b, i.Payload...)
		} else {
			dst = append(dst, b[cut:len(b):len(b)], i.Payload)
			cut = len(b)
		}
		l.unwritten += i.Size()
		l.wrote(i.Size())
	}
	if l.up && (l.due || l.owed >= ackFrames || l.owedBytes >= ackBytes) {
		b = appendHeader(b, &Frame{Kind: Ack, Epoch: l.epoch, Acked: l.ack()})
		l.unwritten += HeaderSize
		l.wrote(HeaderSize)
	}
	if len(b) > cut {
		dst = append(dst, b[cut:])
	}
	return dst
}

func (l *Link) wrote(size int) {
	l.frames++
	l.written += uint64(size)
}

// take returns the next frame to be written, or nil.
func (l *Link) take() *item {
	if l.next < l.sent.len() {
		i := l.sent.at(l.next)
		i.again = true
		l.next++
		l.resent++
		return i
	}
	for lane := range l.lanes {
		if q := &l.lanes[lane]; q.len() > 0 {
			i := q.pop()
			l.seq++
			i.Seq = l.seq
			l.sent.push(i)
			l.next++
			return l.sent.at(l.next - 1)
		}
	}
	return nil
}

// ack returns what has arrived, for a frame that tells it.
func (l *Link) ack() uint64 {
	l.owed, l.owedBytes, l.due = 0, 0, false
	return l.received
}

// Wrote says that the connection has written n bytes.
func (l *Link) Wrote(n int) { l.unwritten = max(l.unwritten-n, 0) }

// Arrived takes a frame that has come by the connection, and reports whether it is to
// be delivered: it is the next one. An error is ErrSequence: the connection is to be
// broken.
func (l *Link) Arrived(f *Frame) (deliver bool, err error) {
	switch {
	case !l.up:
		return false, fmt.Errorf("%w: a %v before a hello", ErrSequence, f.Kind)
	case f.Kind == Hello:
		return false, fmt.Errorf("%w: a hello in the middle", ErrSequence)
	case f.Epoch != l.epoch:
		return false, fmt.Errorf("%w: a %v of epoch %d in epoch %d", ErrSequence, f.Kind, f.Epoch, l.epoch)
	case f.Acked > l.seq:
		return false, fmt.Errorf("%w: %d frames are acked, and there were %d", ErrSequence, f.Acked, l.seq)
	case f.Seq > l.received+1:
		return false, fmt.Errorf("%w: %d after %d", ErrSequence, f.Seq, l.received)
	}
	l.acked(f.Acked)
	if f.Kind == Ack {
		return false, nil
	}
	l.owed++
	l.owedBytes += f.Size()
	if f.Seq <= l.received {
		l.repeated++
		return false, nil
	}
	l.received = f.Seq
	return true, nil
}

// acked lets go of what has arrived at the other end.
func (l *Link) acked(seq uint64) {
	for l.sent.len() > 0 && l.sent.at(0).Seq <= seq {
		i := l.sent.pop()
		l.bytes[i.Lane] -= i.Size()
		if i.Lane == Data {
			if i.Kind == Parcel && !i.again { // an earlier connection may still be reading it
				l.share.Emptied(i.sender, i.Payload)
			}
			l.share.Freed(i.sender, i.Size())
		}
		l.next = max(l.next-1, 0)
	}
}

// Owes reports whether frames have come that were not acked. Who owes says Idle after
// 20 ms without a Write.
func (l *Link) Owes() bool { return l.owed > 0 }

// Idle has the next Write ack what has come.
func (l *Link) Idle() { l.due = l.owed > 0 }

// Raise appends to dst what the senders of data are to be told, after a stretch of calls
// of Queue and Arrived.
func (l *Link) Raise(dst []Grant) []Grant { return l.share.Raise(dst) }

// ForgetSender says that a sender will queue nothing more.
func (l *Link) ForgetSender(s Sender) { l.share.Forget(s) }
