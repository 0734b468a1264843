package broker

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// Two ends of a link whose connection keeps what was written.
type twoEnds struct {
	t    *testing.T
	a, b *Link
}

func newTwoEnds(t *testing.T) *twoEnds {
	home := func(n cluster.NodeID) cluster.Home { return cluster.Home{Node: n, Boot: 1} }
	e := &twoEnds{t, NewLink(LinkConfig{Self: home(1), Peer: home(2)}), NewLink(LinkConfig{Self: home(2), Peer: home(1)})}
	e.connect()
	return e
}

func (e *twoEnds) connect() {
	hellos := [][]Frame{cutFrames(e.t, [][]byte{e.a.Hello()}), cutFrames(e.t, [][]byte{e.b.Hello()})}
	for i, l := range []*Link{e.b, e.a} {
		g, err := ParseGreeting(hellos[i][0].Payload)
		require.NoError(e.t, err)
		_, err = l.Greeted(g)
		require.NoError(e.t, err)
	}
}

// carry lets all that one end writes arrive.
func (e *twoEnds) carry(from, to *Link) {
	frames := cutFrames(e.t, from.Write(nil, 1<<20))
	from.Wrote(from.unwritten)
	for i := range frames {
		_, err := to.Arrived(&frames[i])
		require.NoError(e.t, err)
	}
}

// The memory of a parcel comes back to its sender when the other end has it, once, and
// not at all if an earlier connection may still be reading it.
func TestMemoryComesBack(t *testing.T) {
	e := newTwoEnds(t)
	one, other := Sender{Run: 1, Task: 1}, Sender{Run: 1, Task: 2}
	memory := map[byte]*byte{}
	// What the link makes itself, of kind Task, does not come back.
	queue := func(kind Kind, s Sender, mark byte) {
		b := make([]byte, mostCredit/2) // more than is worth a grant
		b[0] = mark
		memory[mark] = unsafe.SliceData(b)
		require.NoError(t, e.a.Queue(Data, kind, 1, s, b))
	}
	back := func() map[Sender]string {
		got := map[Sender]string{}
		for _, s := range []Sender{one, other} { // who has used up what it may gets more
			queue(Task, s, 't')
		}
		for _, g := range e.a.Raise(nil) {
			for _, b := range g.Empty {
				require.Same(t, memory[b[0]], unsafe.SliceData(b))
				got[g.Sender] += string(b[0])
			}
		}
		return got
	}
	ack := func() {
		e.b.Idle()
		e.carry(e.b, e.a)
	}

	queue(Parcel, one, 'a')
	queue(Parcel, other, 'b')
	require.Empty(t, back())
	e.carry(e.a, e.b)
	require.Empty(t, back(), "it is not known to have arrived")
	ack()
	require.Equal(t, map[Sender]string{one: "a", other: "b"}, back())

	queue(Parcel, one, 'c')
	e.a.Write(nil, 1<<20) // and is lost
	e.connect()
	e.carry(e.a, e.b)
	queue(Parcel, one, 'd')
	e.carry(e.a, e.b)
	ack()
	require.Equal(t, map[Sender]string{one: "d"}, back())

	queue(Parcel, one, 'e')
	e.carry(e.a, e.b)
	e.connect() // the ack is lost, but it has arrived
	require.Equal(t, map[Sender]string{one: "e"}, back())

	e.a.Forget()
	require.Empty(t, back(), "of what was given up, nobody knows who reads it")
}

func TestMemoryThatWaitsIsBounded(t *testing.T) {
	s := NewShare(1 << 20)
	for range 10 * mostEmpty {
		s.Queued(Sender{}, 1)
		s.Emptied(Sender{}, nil)
		s.Freed(Sender{}, 1)
	}
	s.Emptied(Sender{Task: 9}, nil) // nobody
	require.Len(t, s.Raise(nil)[0].Empty, mostEmpty)
}
