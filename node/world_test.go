package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A world runs links in one goroutine, with connections that carry as much as a test
// wants. A ref that is not a link is a recorder: it keeps what it gets.
type world struct {
	t     require.TestingT
	now   time.Duration
	mail  []letter
	alarm []letter // timers
	links []*Link
	got   map[actor.Ref][]any
}

type letter struct {
	to  actor.Ref
	msg any
	at  time.Duration
}

// A seat is the context of one link.
type seat struct {
	*world
	link *Link
}

func (s seat) Self() actor.Ref            { return s.link }
func (s seat) Now() time.Duration         { return s.now }
func (s seat) Send(to actor.Ref, msg any) { s.mail = append(s.mail, letter{to: to, msg: msg}) }
func (s seat) After(d time.Duration, msg any) {
	s.alarm = append(s.alarm, letter{s.link, msg, s.now + d})
}
func (s seat) Rand() *rand.Rand                       { panic("no chance") }
func (s seat) Spawn(string, actor.Behavior) actor.Ref { panic("no children") }
func (s seat) Watch(actor.Ref)                        { panic("nobody to watch") }
func (s seat) Stop(actor.Ref)                         { panic("nobody to stop") }
func (s seat) Poster() func(any)                      { panic("nothing from outside") }
func (s seat) Abandon(actor.Ref)                      { panic("no children") }
func (s seat) Inspect(actor.Ref)                      { panic("no children") }
func (s seat) Block(func() any)                       { panic("nothing to wait for") }

func newWorld(t require.TestingT) *world { return &world{t: t, got: map[actor.Ref][]any{}} }

// link starts the link of a process to another node. Its agent is a recorder, named
// "agent" and the number of its node.
func (w *world) link(self cluster.Home, peer cluster.NodeID, change ...func(*broker.LinkConfig)) *Link {
	c := broker.LinkConfig{Self: self, Peer: cluster.Home{Node: peer}, Cluster: "c0ffee", Version: "test"}
	for _, f := range change {
		f(&c)
	}
	l := NewLink(c, agent(self.Node))
	w.links = append(w.links, l)
	l.Start(seat{w, l})
	return l
}

func agent(n cluster.NodeID) string { return "agent " + n.String()[15:] }

func (w *world) send(to actor.Ref, msg any) { w.mail = append(w.mail, letter{to: to, msg: msg}) }

// settle delivers everything that has been sent, and gives each link a turn.
func (w *world) settle() {
	for {
		for len(w.mail) > 0 {
			m := w.mail[0]
			w.mail = w.mail[1:]
			if l, ok := m.to.(*Link); ok {
				l.Receive(seat{w, l}, m.msg)
			} else {
				w.got[m.to] = append(w.got[m.to], m.msg)
			}
		}
		for _, l := range w.links {
			l.Turn(seat{w, l})
		}
		if len(w.mail) == 0 {
			return
		}
	}
}

// pass lets time pass: timers that are due ring.
func (w *world) pass(d time.Duration) {
	w.now += d
	rest := w.alarm[:0:0]
	for _, a := range w.alarm {
		if a.at <= w.now {
			w.send(a.to, a.msg)
		} else {
			rest = append(rest, a)
		}
	}
	w.alarm = rest
	w.settle()
}

// take returns what a recorder has got, and forgets it.
func (w *world) take(ref actor.Ref) []any {
	got := w.got[ref]
	delete(w.got, ref)
	for i := range got {
		if up, is := got[i].(LinkUp); is { // whose epoch is looked at elsewhere
			up.Epoch = 0
			got[i] = up
		}
	}
	return got
}

// A cable is a connection between two links.
type cable struct{ ends [2]*plug }

// A plug is one end of it.
type plug struct {
	w      *world
	link   *Link
	sent   []byte // on the way to the other end
	closed bool
}

func (p *plug) Write(pieces [][]byte) {
	if p.closed {
		return
	}
	p.sent = append(p.sent, bytes.Join(pieces, nil)...)
}

func (p *plug) Close() {
	if !p.closed {
		p.closed = true
		p.w.send(p.link, Broken{Conn: p, Err: errors.New("closed")})
	}
}

func (w *world) connect(a, b *Link) *cable {
	c := &cable{}
	for i, l := range []*Link{a, b} {
		c.ends[i] = &plug{w: w, link: l}
		w.send(l, Connected{c.ends[i]})
	}
	w.settle()
	return c
}

// carry takes whole frames, up to most bytes or one, to the other end.
func (c *cable) carry(from, most int) {
	p, other := c.ends[from], c.ends[1-from]
	var frames [][]byte
	size := 0
	for len(p.sent)-size >= 4 {
		n := 4 + int(binary.LittleEndian.Uint32(p.sent[size:]))
		if size > 0 && size+n > most {
			break
		}
		frames = append(frames, bytes.Clone(p.sent[size:size+n]))
		size += n
	}
	if size == 0 {
		return
	}
	p.sent = p.sent[size:]
	if !p.closed {
		p.w.send(p.link, Wrote{p, size})
	}
	if !other.closed {
		p.w.send(other.link, Arrived{other, frames})
	}
	p.w.settle()
}

// flow carries everything, both ways, until nothing is left.
func (c *cable) flow() {
	for len(c.ends[0].sent)+len(c.ends[1].sent) > 0 {
		for from := range c.ends {
			c.carry(from, 1<<20)
		}
	}
}

// cut breaks the connection. What is on the way is lost.
func (c *cable) cut() {
	for _, p := range c.ends {
		p.sent = nil
		p.Close()
	}
	c.ends[0].w.settle()
}

// parcel is one of a single tuple, in wire form.
func parcel(t require.TestingT, from, to tuple.TaskID, n int) *task.Encoded {
	p := &tuple.Parcel{From: from, FromLife: tuple.NewIncarnation(1, 1), To: to, ToLife: tuple.NewIncarnation(1, 1), Schema: &tuple.Schema{Fields: []string{"n"}}}
	p.Begin([]tuple.Kind{tuple.KindInt64}, 1)
	var row tuple.Row
	row.Set(p.Schema, []any{n})
	p.Append(&row)
	b, err := tuple.AppendParcel(nil, p)
	require.NoError(t, err)
	return &task.Encoded{From: from, FromLife: p.FromLife, To: to, Tuples: 1, Bytes: b}
}
