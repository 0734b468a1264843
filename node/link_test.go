package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

var home1, home2 = cluster.Home{Node: 1, Boot: 1}, cluster.Home{Node: 2, Boot: 1}

// pair returns two links that have never met, with tasks 1 on node 1 and 2 on node 2.
func pair(t require.TestingT, options ...func(*broker.LinkConfig)) (w *world, a, b *Link) {
	w = newWorld(t)
	a, b = w.link(home1, 2, options...), w.link(home2, 1, options...)
	w.send(a, Route{Run: 7, Task: 1, Ref: "task 1"})
	w.send(b, Route{Run: 7, Task: 2, Ref: "task 2"})
	w.settle()
	return w, a, b
}

func far(msg any) *task.Far { return &task.Far{Run: 7, Msg: msg} }

// All that tasks and agents say comes to whom it is for. Control overtakes parcels; what
// follows parcels does not.
func TestLinkCarries(t *testing.T) {
	w, a, b := pair(t)
	life := tuple.NewIncarnation(1, 1)
	parcels := []any{parcel(t, 1, 2, 1), parcel(t, 1, 2, 2), &task.Dry{From: 1, To: 2}, parcel(t, 1, 2, 3), &task.End{From: 1, To: 2, FromLife: life}}
	control := []any{&task.Limit{From: 1, To: 2, Total: 99, Each: time.Second}, &task.Ask{From: 1, To: 2},
		&acker.Report{From: 1, To: 2, Entries: []acker.Entry{{Seq: 1, Xor: 2, Mask: 3}}},
		&task.Order{From: 1, To: 2, Order: batch.Order{Kind: batch.Join, View: []tuple.Incarnation{life}}},
		&task.Answer{From: 1, To: 2, Answer: batch.Answer{Kind: batch.Joined}}}
	for _, msg := range append(parcels, control...) {
		w.send(a, far(msg))
	}
	w.send(a, far(&task.Peers{Peers: []task.Peer{{Task: 1, Life: life, Ref: "not for others"}}}))
	w.send(a, &Note{Payload: []byte("hello")})
	w.send(a, far(&task.Ask{From: 1, To: 3}))
	c := w.connect(a, b)
	c.flow()
	require.Equal(t, append(control, parcels...), w.take("task 2"))
	require.Equal(t, []any{LinkUp{home2, false, 0}}, w.take("agent 1"))
	require.Equal(t, []any{LinkUp{home1, false, 0}, &Lives{home1, 7, []task.Peer{{Task: 1, Life: life}}}, &Note{home1, []byte("hello")}}, w.take("agent 2"))

	w.pass(ackAfter)
	c.flow()
	w.send(a, Count{})
	w.send(b, Count{})
	w.settle()
	counts := w.take("agent 1")[0].(Counts)
	require.Zero(t, counts.Control+counts.Data)
	require.Equal(t, uint64(14), counts.FramesOut)
	require.Equal(t, uint64(2), counts.FramesIn)
	others := w.take("agent 2")[0].(Counts)
	require.Equal(t, uint64(1), others.Unrouted, "nobody is task 3")
	require.Equal(t, counts.BytesOut, others.BytesIn)
	require.Equal(t, counts.BytesIn, others.BytesOut)

	w.send(b, Route{Run: 7, Task: 2})
	w.send(a, far(&task.Ask{From: 1, To: 2}))
	w.settle()
	c.flow()
	require.Empty(t, w.take("task 2"), "it is gone")
}

func TestLinkGoesOnOverAnotherConnection(t *testing.T) {
	w, a, b := pair(t)
	c := w.connect(a, b)
	c.flow()
	w.take("agent 1")
	w.take("agent 2")
	for n := range 3 {
		w.send(a, far(parcel(t, 1, 2, n)))
		w.settle()
	}
	c.carry(0, 1)
	c.cut()
	require.Equal(t, []any{LinkDown{home2, errors.New("closed"), false}}, w.take("agent 1"))
	w.send(a, far(parcel(t, 1, 2, 3)))
	w.settle()

	// What comes of the connection before is not looked at.
	old := c.ends[1]
	c = w.connect(a, b)
	w.send(b, Arrived{old, [][]byte{{1, 2, 3}}})
	w.send(b, Broken{Conn: old, Err: errors.New("long ago")})
	w.send(b, Wrote{old, 1 << 30})
	c.flow()
	require.Equal(t, []any{LinkUp{home2, true, 0}}, w.take("agent 1"))
	require.Equal(t, []any{LinkDown{home1, errors.New("closed"), false}, LinkUp{home1, true, 0}}, w.take("agent 2"))
	require.Equal(t, []any{parcel(t, 1, 2, 0), parcel(t, 1, 2, 1), parcel(t, 1, 2, 2), parcel(t, 1, 2, 3)}, w.take("task 2"))

	// A new one takes the place of one that is there.
	next := w.connect(a, b)
	require.True(t, c.ends[0].closed)
	require.True(t, c.ends[1].closed)
	next.flow()
	require.Equal(t, []any{LinkDown{home2, errors.New("another connection takes its place"), false}, LinkUp{home2, true, 0}}, w.take("agent 1"))

	// Bytes that have changed on the way.
	w.take("agent 2")
	w.send(a, far(parcel(t, 1, 2, 4)))
	w.send(a, far(parcel(t, 1, 2, 5)))
	w.settle()
	next.ends[0].sent[broker.HeaderSize] ^= 1
	next.flow()
	require.True(t, next.ends[1].closed)
	down := w.take("agent 2")
	require.Len(t, down, 1, "what came behind it is not looked at")
	require.ErrorIs(t, down[0].(LinkDown).Err, broker.ErrFrame)
	w.connect(a, b).flow()
	require.Equal(t, []any{parcel(t, 1, 2, 4), parcel(t, 1, 2, 5)}, w.take("task 2"))
	require.Equal(t, []any{LinkUp{home1, true, 0}}, w.take("agent 2"))
}

func TestAnotherProcess(t *testing.T) {
	w, a, b := pair(t)
	c := w.connect(a, b)
	c.flow()
	w.send(a, far(parcel(t, 1, 2, 1)))
	w.settle()
	c.cut()
	w.take("agent 1")
	next := cluster.Home{Node: 2, Boot: 2}
	b2 := w.link(next, 1)
	c = w.connect(a, b2)
	c.flow()
	require.Equal(t, []any{LinkReset{home2, "the other end has forgotten the link"}, LinkUp{next, false, 0}}, w.take("agent 1"))
	require.Zero(t, a.count().Data)

	// It is heard of otherwise, and what is for it is sent before any connection.
	w.send(a, Expect{3})
	w.settle()
	require.Equal(t, []any{LinkReset{next, "process 3 of the node has begun"}, LinkDown{cluster.Home{Node: 2, Boot: 3}, errors.New("process 3 of the node has begun"), false}}, w.take("agent 1"))
	require.True(t, c.ends[0].closed)
	w.send(a, far(parcel(t, 1, 2, 2)))
	b3 := w.link(cluster.Home{Node: 2, Boot: 3}, 1)
	w.send(b3, Route{Run: 7, Task: 2, Ref: "task 2"})
	w.take("task 2")
	w.connect(a, b3).flow()
	require.Equal(t, []any{parcel(t, 1, 2, 2)}, w.take("task 2"))

	// The old one is refused.
	w.take("agent 1")
	c = w.connect(a, b2)
	c.flow()
	got := w.take("agent 1")
	require.ErrorIs(t, got[1].(LinkDown).Err, broker.ErrOver)
	require.True(t, c.ends[0].closed)

	w.send(a, Broken{Err: errors.New("nobody listens"), Refused: true})
	w.settle()
	require.Equal(t, []any{LinkDown{cluster.Home{Node: 2, Boot: 3}, errors.New("nobody listens"), true}}, w.take("agent 1"))
}

func TestAnotherCluster(t *testing.T) {
	w := newWorld(t)
	a := w.link(home1, 2)
	b := w.link(home2, 1, func(c *broker.LinkConfig) { c.Cluster = "other" })
	w.connect(a, b).flow()
	for _, n := range []cluster.NodeID{1, 2} {
		got := w.take(agent(n))
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0].(LinkDown).Err, broker.ErrCluster)
		require.ErrorContains(t, got[0].(LinkDown).Err, "c0ffee")
		require.ErrorContains(t, got[0].(LinkDown).Err, "other")
	}
}

// A member that sends what cannot be read: the frame counts as arrived and nobody has
// got it, so the link is dead.
func TestUnreadableMessages(t *testing.T) {
	for name, send := range map[string]func(*Link) error{
		"message": func(b *Link) error { return b.link.Queue(broker.Control, broker.Task, 7, broker.Sender{}, []byte{99}) },
		"parcel":  func(b *Link) error { return b.link.Queue(broker.Data, broker.Parcel, 7, broker.Sender{}, []byte{99}) },
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b := pair(t)
			c := w.connect(a, b)
			c.flow()
			w.take("agent 1")
			require.NoError(t, send(b))
			w.settle()
			c.flow()
			got := w.take("agent 1")
			require.Len(t, got, 2)
			require.Equal(t, home2, got[0].(LinkReset).Peer)
			require.Contains(t, got[0].(LinkReset).Why, "0000000000000002.1 has sent what this program cannot read")
			require.IsType(t, LinkDown{}, got[1])
			require.True(t, c.ends[0].closed)
			require.Equal(t, uint64(1), a.count().Corrupt)

			c.cut()
			w.take("agent 2")
			w.connect(a, b).flow()
			require.Equal(t, []any{LinkUp{home2, false, 0}}, w.take("agent 1"))
			require.Equal(t, []any{LinkReset{home1, "the other end has forgotten the link"}, LinkUp{home1, false, 0}}, w.take("agent 2"))
		})
	}
}

func TestForgottenLink(t *testing.T) {
	w, a, b := pair(t)
	w.connect(a, b).flow()
	w.take("agent 1")
	w.take("agent 2")
	w.send(a, far(parcel(t, 1, 2, 1)))
	w.send(a, Forget{})
	w.settle()
	require.Equal(t, []any{LinkReset{home2, "it was given up"}, LinkDown{home2, errors.New("it was given up"), false}}, w.take("agent 1"))
	w.send(a, far(parcel(t, 1, 2, 2)))
	w.connect(a, b).flow()
	require.Equal(t, []any{parcel(t, 1, 2, 2)}, w.take("task 2"))
	w.pass(ackAfter)
	require.Equal(t, uint64(1), b.count().Resets)
}

// A node that takes nothing for long: what is said again anyway is dropped first, and in
// the end the link is dead, not the memory full.
func TestLinkThatIsDownIsBounded(t *testing.T) {
	w := newWorld(t)
	a := w.link(home1, 2, func(c *broker.LinkConfig) { c.ControlBudget = 2 << 20 })
	report := &acker.Report{From: 1, To: 2, Entries: make([]acker.Entry, 1000)}
	for a.count().Control <= repeatable {
		w.send(a, far(report))
		w.settle()
	}
	before := a.count().Control
	w.send(a, far(&task.Ask{From: 1, To: 2}))
	w.send(a, far(&acker.Report{From: 1, To: 2, Queued: []uint64{1}}))
	w.settle()
	require.Equal(t, before, a.count().Control)
	for range 100 {
		w.send(a, far(report))
	}
	w.settle()
	got := w.take("agent 1")
	require.NotEmpty(t, got)
	require.Contains(t, got[0].(LinkReset).Why, "the link is full")
	require.Less(t, a.count().Control, 2<<20)
}

// A report with more text than a frame can have comes in several.
func TestLongReport(t *testing.T) {
	w := newWorld(t)
	small := func(c *broker.LinkConfig) { c.MaxFrame = 4096 }
	a, b := w.link(home1, 2, small), w.link(home2, 1, small)
	w.send(b, Route{Run: 7, Task: 2, Ref: "task 2"})
	r := &acker.Report{From: 1, To: 2, View: []acker.Death{{Task: 2, Life: 1}}, Entries: []acker.Entry{{Seq: 1}}}
	for i := range 20 {
		r.Fails = append(r.Fails, acker.Fail{Seq: 1, Index: uint16(i), Err: strings.Repeat("x", 1000)})
	}
	w.send(a, far(r))
	w.connect(a, b).flow()
	var fails []acker.Fail
	got := w.take("task 2")
	require.Greater(t, len(got), 4)
	for i, msg := range got {
		part := msg.(*acker.Report)
		fails = append(fails, part.Fails...)
		require.Equal(t, r.View, part.View)
		require.Equal(t, i == len(got)-1, len(part.Entries) == 1, "entries come last")
	}
	require.Equal(t, r.Fails, fails)
	require.Zero(t, a.count().Resets)
}

// Tasks are told how much they may send, so that a node which takes nothing fills no
// more than the budget.
func TestCreditOfLink(t *testing.T) {
	w := newWorld(t)
	a := w.link(home1, 2, func(c *broker.LinkConfig) { c.DataBudget = 100_000 })
	w.send(a, Route{Run: 7, Task: 1, Ref: "task 1"})
	given, limit := 0, uint64(1)
	for uint64(given) < limit {
		p := parcel(t, 1, 2, 0)
		given += len(p.Bytes) + broker.HeaderSize
		w.send(a, far(p))
		w.settle()
		for _, msg := range w.take("task 1") {
			c := msg.(task.Credit)
			require.Equal(t, []any{a, tuple.NewIncarnation(1, 1)}, []any{c.Link, c.Life})
			require.Greater(t, c.Bytes, limit)
			limit = c.Bytes
		}
	}
	require.InDelta(t, 50_000, given, 200, "half of it is for others")
	require.Equal(t, given, a.count().Data)
	b := w.link(home2, 1)
	w.connect(a, b).flow()
	got := w.take("task 1")
	require.NotEmpty(t, got)
	require.Greater(t, got[0].(task.Credit).Bytes, limit, "what has arrived makes room")
	w.send(a, Gone{Run: 7, Task: 1, Life: tuple.NewIncarnation(1, 1)})
	w.settle()
}

// Over connections that break at any time, what each task sends each other arrives once
// and in order; the same process never loses anything, and what is written does not
// change when memory that has come back is used again.
func TestLinksOverBadConnections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// So small that memory comes back after a few parcels.
		w, a, b := pair(t, func(c *broker.LinkConfig) { c.DataBudget = 2000 })
		links := []*Link{a, b}
		sent, want := [2]int{}, [2][]any{}
		got := [2][]any{}
		notes := [2][]any{}
		c := w.connect(a, b)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			end := rapid.IntRange(0, 1).Draw(t, "end")
			from, to := tuple.TaskID(end+1), tuple.TaskID(2-end)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				p := parcel(t, from, to, sent[end])
				want[end] = append(want[end], parcel(t, from, to, sent[end]))
				w.send(links[end], far(p))
				sent[end]++
			case 3:
				m := &Note{Payload: fmt.Append(nil, sent[end])}
				notes[end] = append(notes[end], string(m.Payload))
				w.send(links[end], m)
				sent[end]++
			case 4, 5, 6:
				c.carry(end, rapid.IntRange(1, 500).Draw(t, "bytes"))
			case 7:
				w.pass(ackAfter)
			case 8:
				c.cut()
			case 9:
				c = w.connect(a, b)
			}
			if rapid.Bool().Draw(t, "settle") {
				w.settle()
			}
			for end := range got {
				got[end] = append(got[end], dataOf(w.take(fmt.Sprint("task ", 2-end)))...)
			}
		}
		w.settle()
		c = w.connect(a, b)
		c.flow()
		w.pass(ackAfter)
		c.flow()
		for end, l := range links {
			require.Equal(t, want[end], append(got[end], dataOf(w.take(fmt.Sprint("task ", 2-end)))...))
			var said []any
			for _, msg := range w.take(agent(cluster.NodeID(2 - end))) {
				switch m := msg.(type) {
				case *Note:
					said = append(said, string(m.Payload))
				case LinkReset:
					require.Fail(t, "nobody has forgotten anything", m.Why)
				}
			}
			require.Equal(t, notes[end], said)
			counts := l.count()
			require.Zero(t, counts.Control+counts.Data)
		}
	})
}

// dataOf leaves out what a link says to a task.
func dataOf(msgs []any) (data []any) {
	for _, m := range msgs {
		if c, ok := m.(task.Credit); ok {
			scribble(c)
		} else {
			data = append(data, m)
		}
	}
	return data
}

// scribble uses memory that has come back.
func scribble(c task.Credit) {
	for _, b := range c.Empty {
		for i := range b {
			b[i] = 0xff
		}
	}
}

func TestOneOfTwoDials(t *testing.T) {
	require.True(t, Dials(1, 2))
	require.False(t, Dials(2, 1))
}

var _ actor.Behavior = (*Link)(nil)
