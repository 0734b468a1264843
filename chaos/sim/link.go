package sim

import (
	"time"

	"github.com/egretstream/egret/actor"
)

// Links says how messages travel. Most arrive after anything up to Quick; one in
// LateEvery takes up to Late; one in FreezeEvery finds its link frozen for up to
// Freeze, and what is sent behind it waits too. A zero field takes its default,
// a negative one turns off what it stands for.
type Links struct {
	Quick       time.Duration // default 50 us
	Late        time.Duration // default 5 ms
	LateEvery   int           // default 40
	Freeze      time.Duration // default 20 ms
	FreezeEvery int           // default 1000
}

func (l *Links) setDefaults() {
	def(&l.Quick, 50*time.Microsecond)
	def(&l.Late, 5*time.Millisecond)
	def(&l.LateEvery, 40)
	def(&l.Freeze, 20*time.Millisecond)
	def(&l.FreezeEvery, 1000)
}

// def sets a field that was not given, and makes "none" zero.
func def[T ~int | ~int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
	*field = max(*field, 0)
}

// A Verdict is what happens to one message. The zero Verdict lets it pass.
type Verdict struct {
	Drop bool
	// Delay is added to the message's own delay. Unless it is Loose, what the
	// sender says to the same receiver later waits behind it.
	Delay time.Duration
	// Loose takes the message out of the order of its pair.
	Loose bool
	// Copies arrive besides the message itself, loose. They are the same value:
	// only for messages whose receiver does not take them over.
	Copies int
	// Behind keeps the copies in the order of the pair, just behind the message.
	Behind bool
}

// A message is on its way or in a mailbox.
type message struct {
	from *proc
	sent time.Duration // by the sender's clock; zero for what it did not say itself: timers, news of its end
	due  time.Duration // when it arrives, if its link is not frozen and nothing is in front of it
	body any
}

// A link carries what one actor says to another, in order.
//
// Invariant: armed means that the heap has an atLink for this link; a link that
// has messages is armed. Only the first message of a link is ever on the heap,
// which is what keeps the order.
type link struct {
	from, to *proc
	queue    fifo
	armed    bool
	frozen   time.Duration // nothing arrives before
}

// link returns the link between two actors.
func (w *World) link(from, to *proc) *link {
	l := from.links[to]
	if l == nil {
		l = &link{from: from, to: to}
		if from.links == nil {
			from.links = make(map[*proc]*link)
		}
		from.links[to] = l
		from.out = append(from.out, l)
	}
	return l
}

// delay draws how long a message or a result takes.
func (w *World) delay() time.Duration {
	if w.oneIn(w.links.LateEvery) {
		return w.upTo(w.links.Late)
	}
	return w.upTo(w.links.Quick)
}

func (w *World) oneIn(n int) bool { return n > 0 && w.chance.IntN(n) == 0 }

func (w *World) upTo(d time.Duration) time.Duration {
	return time.Duration(w.chance.Int64N(int64(d) + 1))
}

// post sends what one actor says to another on its way: once, or more often, or
// not at all.
func (w *World) post(from, to *proc, body any) {
	w.did(sends, to, body, 0)
	m := message{from: from, sent: w.Now(), body: body}
	switch v, ok := w.rule(to, m); {
	case !ok:
	case from.state == ended: // killed by the hook
		w.note("unsaid", to, from, body)
	default:
		w.dispatch(to, m, v)
		for range v.Copies {
			if v.Behind {
				w.note("copy", to, from, body)
				w.dispatch(to, m, Verdict{})
			}
		}
	}
}

// tell sends the news that p has ended, behind all that p said.
func (w *World) tell(watcher, p *proc) {
	m := message{from: p, body: actor.Terminated{Ref: p.ref, Err: p.err}}
	if v, ok := w.rule(watcher, m); ok {
		w.dispatch(watcher, m, v)
	}
}

func (w *World) dispatch(to *proc, m message, v Verdict) {
	if v.Loose {
		w.postLoose(to, m, v.Delay)
		return
	}
	l := w.link(m.from, to)
	if w.oneIn(w.links.FreezeEvery) {
		l.frozen = max(l.frozen, w.Now()+w.upTo(w.links.Freeze))
	}
	m.due = w.Now() + w.delay() + v.Delay
	l.queue.push(m)
	w.left.Messages++
	w.arm(l)
}

// rule asks what is to happen to a message and sends its copies. It says no if
// the message itself is dropped.
func (w *World) rule(to *proc, m message) (v Verdict, ok bool) {
	if w.onSend == nil {
		return v, true
	}
	v = w.onSend(m.from.ref, to.ref, m.body)
	v.Delay = max(v.Delay, 0)
	for range v.Copies {
		if !v.Behind {
			w.note("copy", to, m.from, m.body)
			w.postLoose(to, m, v.Delay)
		}
	}
	if v.Drop {
		w.note("drop", to, m.from, m.body)
	}
	return v, !v.Drop
}

func (w *World) postLoose(to *proc, m message, extra time.Duration) {
	w.left.Messages++
	w.push(event{at: w.Now() + w.delay() + extra, kind: atLoose, proc: to, msg: m})
}

func (w *World) arm(l *link) {
	if !l.armed && l.queue.len() > 0 {
		l.armed = true
		w.push(event{at: max(w.now, l.queue.at(0).due, l.frozen), kind: atLink, link: l})
	}
}

// arrive takes the first message off a link. The link may have been frozen or
// cut since the event was made.
func (w *World) arrive(l *link) {
	l.armed = false
	if w.now < l.frozen || l.queue.len() == 0 {
		w.arm(l)
		return
	}
	m := l.queue.pop()
	w.arm(l)
	w.deliver(l.to, m)
}

// deliver puts a message into a mailbox.
func (w *World) deliver(p *proc, m message) {
	switch {
	case m.sent > m.from.silent:
		// Its sender was killed in the middle of a call, before it came to say this.
		w.lose("unsaid", p, m)
	case p.state >= stopping:
		w.lose("lost", p, m)
	default:
		p.mailbox.push(m)
		w.wake(p)
	}
}

func (w *World) lose(what string, p *proc, m message) {
	w.left.Messages--
	w.note(what, p, m.from, m.body)
}

// FreezeLink holds up everything from one actor to another, also what is on its
// way, for d from now. A nil from is the outside.
func (w *World) FreezeLink(from, to actor.Ref, d time.Duration) {
	sender := w.outside
	if from != nil {
		sender = w.find(from)
	}
	receiver := w.find(to)
	l := w.link(sender, receiver)
	l.frozen = max(l.frozen, w.Now()+d)
	w.note("link", receiver, sender, nil)
}
