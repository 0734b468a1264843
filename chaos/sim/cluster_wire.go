package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// A keeping is a connection that an agent wants to have.
type keeping struct {
	to    cluster.Home
	addr  string
	link  actor.Ref
	conn  *wireEnd // nil: there is none
	since time.Duration
	next  time.Duration // try
}

// A wireEnd is one end of a connection. What is written to it comes out of the other end in
// order, until the connection is over; then a part of what is under way may be lost.
type wireEnd struct {
	c      *clusterRun
	own    *process
	link   actor.Ref
	keep   *keeping
	other  *wireEnd
	closed bool     // nothing comes out here, and nothing is taken
	broken bool     // what is written is lost, and the link has yet to hear of it
	queue  []flight // on the way from here
	bad    time.Duration
	limit  time.Duration
	pumps  bool
}

type flight struct {
	sent, due time.Duration
	bytes     []byte
}

// Keep is that of [node.Network].
func (p *process) Keep(to cluster.Home, addr string, link actor.Ref) {
	p.Drop(to)
	p.keeps[to.Node] = &keeping{to: to, addr: addr, link: link, since: p.c.w.Now()}
}

// Drop is that of [node.Network].
func (p *process) Drop(to cluster.Home) {
	k := p.keeps[to.Node]
	if k == nil {
		return
	}
	if k.conn != nil {
		k.conn.Close()
	}
	delete(p.keeps, to.Node)
}

// dial makes the connections of a process that are due.
func (p *process) dial() {
	c, now := p.c, p.c.w.Now()
	if p.hung > now {
		return
	}
	for _, m := range c.machines {
		k := p.keeps[m.id]
		if k == nil || k.conn != nil || now < k.next || now < k.since {
			continue
		}
		fail := func(why string, refused bool) {
			link := k.link
			c.after(0, time.Millisecond, func() { p.send(link, node.Broken{Err: errors.New(why), Refused: refused}) })
			k.next = now + c.draw(100*time.Millisecond, 700*time.Millisecond)
		}
		q, dials := m.run, node.Dials(p.id, m.id)
		switch {
		case !c.joined(p.machine, m) || q == nil && m.silent || q != nil && q.hung > now:
			if dials {
				fail("simulated: timeout", false)
			}
		case q == nil:
			fail("simulated: connection refused", true)
		case dials && q.keeps[p.id] == nil:
			fail("simulated: not taken", false)
		case dials:
			c.connect(p, q)
		}
	}
}

func (c *clusterRun) connect(p, q *process) {
	a, b := p.keeps[q.id], q.keeps[p.id]
	if b.conn != nil {
		b.conn.forget() // the link hangs up when the new one comes
	}
	x := &wireEnd{c: c, own: p, link: a.link, keep: a}
	y := &wireEnd{c: c, own: q, link: b.link, keep: b, other: x}
	x.other = y
	a.conn, b.conn = x, y
	c.wires = append(c.wires, x, y)
	p.send(x.link, node.Connected{Conn: x})
	q.send(y.link, node.Connected{Conn: y})
}

// forget takes an end out of its keeping.
func (e *wireEnd) forget() {
	if e.keep.conn == e {
		e.keep.conn = nil
	}
}

// Write is that of [node.Conn].
func (e *wireEnd) Write(pieces [][]byte) {
	if e.closed || e.broken {
		return
	}
	c := e.c
	least, most := 20*time.Microsecond, c.s.latency
	if c.slow > 0 {
		most += 200 * time.Millisecond
	}
	f := flight{sent: c.w.Now(), bytes: slices.Concat(pieces...)}
	f.due = f.sent + c.draw(least, least+most)
	if c.slow > 0 {
		f.due += time.Duration(len(f.bytes)) * time.Microsecond
	}
	if n := len(e.queue); n > 0 {
		f.due = max(f.due, e.queue[n-1].due)
	}
	e.queue = append(e.queue, f)
	e.pump(f.due)
}

func (e *wireEnd) pump(at time.Duration) {
	if !e.pumps {
		e.pumps = true
		e.c.at(at, e.flow)
	}
}

// flow lets what is due come out at the other end.
func (e *wireEnd) flow() {
	e.pumps = false
	c, now := e.c, e.c.w.Now()
	for len(e.queue) > 0 && !e.closed {
		f := e.queue[0]
		if f.sent > e.own.killed {
			e.queue = nil
			return
		}
		if !c.reaches(e.own.machine, e.other.own.machine) || e.other.own.killed != never {
			e.pump(now + 20*time.Millisecond) // sent again and again
			return
		}
		if f.due > now {
			e.pump(f.due)
			return
		}
		e.queue = e.queue[1:]
		e.deliver(f)
	}
}

func (e *wireEnd) deliver(f flight) {
	e.own.send(e.link, node.Wrote{Conn: e, Bytes: len(f.bytes)})
	o := e.other
	if o.closed {
		return
	}
	var frames [][]byte
	for b := f.bytes; len(b) > 0; {
		n := int(binary.LittleEndian.Uint32(b)) + 4
		if _, err := broker.ParseFrame(b[:n:n]); err != nil {
			panic(fmt.Sprintf("what is written is no frame: %v", err))
		}
		frames = append(frames, b[:n:n])
		b = b[n:]
		if e.c.oneIn(4) {
			o.own.send(o.link, node.Arrived{Conn: o, Frames: frames})
			frames = nil
		}
	}
	if len(frames) > 0 {
		o.own.send(o.link, node.Arrived{Conn: o, Frames: frames})
	}
}

// Close is that of [node.Conn].
func (e *wireEnd) Close() {
	if e.closed {
		return
	}
	e.end(errors.New("simulated: closed"))
	e.goes(0, 2*time.Millisecond, "simulated: closed by the other end")
}

// end ends this end, of which the link is told.
func (e *wireEnd) end(err error) {
	if e.closed {
		return
	}
	e.closed = true
	e.forget()
	e.keep.next = e.c.w.Now() + e.c.draw(0, 300*time.Millisecond)
	c, link := e.c, e.link
	c.wires = slices.DeleteFunc(c.wires, func(x *wireEnd) bool { return x == e })
	c.after(0, time.Millisecond, func() { e.own.send(link, node.Broken{Conn: e, Err: err}) })
}

// goes ends the other end some time later, behind a part of what is on its way.
func (e *wireEnd) goes(least, most time.Duration, why string) {
	c := e.c
	queue := e.queue
	e.queue = nil
	keep := c.chance.IntN(len(queue) + 1)
	c.after(least, most, func() {
		if e.other.closed {
			return
		}
		for _, f := range queue[:keep] {
			if f.sent <= e.own.killed && c.reaches(e.own.machine, e.other.own.machine) {
				e.deliver(f)
			}
		}
		e.other.queue = nil
		e.other.end(errors.New(why))
	})
}

// died ends the end of a process that was killed. Without power nobody tells the other
// end, which finds out when nothing comes for long.
func (e *wireEnd) died(silent bool) {
	c := e.c
	e.closed = true
	c.wires = slices.DeleteFunc(c.wires, func(x *wireEnd) bool { return x == e })
	if silent {
		e.goes(time.Second, 5*time.Second, "simulated: timeout")
	} else {
		e.goes(0, 5*time.Millisecond, "simulated: connection reset")
	}
}

// breaks ends a connection in the middle. A part of what is on its way arrives.
func (e *wireEnd) breaks() {
	for _, x := range []*wireEnd{e, e.other} {
		if x.closed || x.broken {
			return
		}
	}
	for _, x := range []*wireEnd{e, e.other} {
		x.broken = true
		for _, f := range x.queue[:x.c.chance.IntN(len(x.queue)+1)] {
			x.deliver(f)
		}
		x.queue = nil
		x.c.after(0, time.Second, func() { x.end(errors.New("simulated: broken")) })
	}
}

// tickWires breaks connections over which nothing goes for long.
func (c *clusterRun) tickWires() {
	now := c.w.Now()
	for _, e := range slices.Clone(c.wires) {
		if e.closed || e.broken {
			continue
		}
		a, b := e.own, e.other.own
		ok := c.joined(a.machine, b.machine) && (!c.s.beats || a.awake() && b.awake())
		switch {
		case ok && e.other.closed && b.killed == never:
			e.end(errors.New("simulated: connection reset"))
		case ok:
			e.bad = 0
		case e.bad == 0:
			e.bad, e.limit = now, now+c.draw(time.Second, 4*time.Second)
		case now >= e.limit && a.awake():
			e.queue = nil
			e.end(errors.New("simulated: timeout"))
		}
	}
}
