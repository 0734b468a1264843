package sim

import (
	gocontext "context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A queuePlan is what the queue of a part does.
type queuePlan struct {
	bare  bool // has no Open
	most  int  // how often a message may fail before it is given up
	eager bool // ends when there is nothing to deliver, and waits for no answer
	deaf  bool // its Next ignores the context at times
}

// drawQueues makes queues of some spouts. It has numbers of its own, so that the
// rest of a scene does not depend on it.
func (s *scene) drawQueues() {
	r := rand.New(rand.NewPCG(s.seed, 0x7175657565))
	s.wait = one[time.Duration](r, 0, 0, 0, time.Millisecond, 20*time.Millisecond)
	waits := false // for Flush, which comes when the input has ended
	for i := range s.parts {
		waits = waits || s.parts[i].act == holding && s.parts[i].every == 0
	}
	for i := range s.parts {
		p := &s.parts[i]
		if !p.spout() || !chance(r, 33) {
			continue
		}
		p.queue = &queuePlan{bare: chance(r, 40), most: one(r, 1, 2, 5), eager: waits || chance(r, 40), deaf: chance(r, 20)}
		total := 0
		for _, n := range p.splits {
			total += n
		}
		p.splits = []int{total}
	}
}

func (q *queuePlan) String() string {
	return fmt.Sprintf("a queue, eager %v, delivers up to %d failures", q.eager, q.most)
}

// A queueBook is the queue of a part, which its tasks share: it keeps the truth
// about each delivery. What comes again is a new message.
type queueBook struct {
	rec   *record
	part  int
	plan  *queuePlan
	total int         // messages
	gate  int         // of them, that are not held back until all is healed
	fresh int         // of them, that were delivered at least once
	all   []*delivery // by the id that an answer has
	open  []*delivery // without an answer, so far as is known
	again []*delivery // that have to come again
	lives []*simQueue
	eof   bool // Next has said so
	calls uint64
	errs  int // in a row
}

// A delivery is one message of a queue as Egret sees it.
type delivery struct {
	m      *root
	number int // of what is delivered
	fails  int // of the deliveries before
	at0    int // in all
	to     *simQueue
	acked  bool
	why    error    // of Fail
	at     []moment // of the answers
}

// A simQueue is one life of a queue's task.
type simQueue struct {
	book   *queueBook
	proc   *proc
	task   string
	open   bool
	closed int
	hand   int // deliveries without an answer
	until  time.Duration
	inNext bool
	behind int  // answers after the end of the task
	ill    bool // an answer has panicked
	numb   bool // Next has
}

type openingQueue struct{ *simQueue }

func (rec *record) newQueueBook(part int) *queueBook {
	p := &rec.scene.parts[part]
	b := &queueBook{rec: rec, part: part, plan: p.queue, total: p.splits[0], gate: p.splits[0]}
	if p.gates != nil {
		b.gate = p.gates[0]
	}
	return b
}

// queue is the factory of a part's queue.
func (b *queueBook) queue() spout.Queue {
	p := b.rec.w.running
	q := &simQueue{book: b, proc: p, task: p.ref.(address).name, open: b.plan.bare}
	b.lives = append(b.lives, q)
	if b.plan.bare {
		return q
	}
	return openingQueue{q}
}

// answered reports whether a delivery has an answer that was really given.
func (d *delivery) answered(now time.Duration) bool {
	return len(d.at) > 0 && d.at[0].at <= min(now, d.to.proc.silent)
}

// over reports whether a delivery that was handed back is the last one.
func (b *queueBook) over(d *delivery) bool {
	return errors.Is(d.why, spout.ErrRejected) || errors.Is(d.why, spout.ErrFailed) && d.fails+1 >= b.plan.most
}

// look takes in what was answered, and who can answer no more because it was
// killed: to the queue, it is gone without a word.
func (b *queueBook) look() {
	now := b.rec.w.now
	rest := b.open[:0]
	for _, d := range b.open {
		switch {
		case d.answered(now):
			if !d.acked && !b.over(d) {
				b.again = append(b.again, d)
			}
		case d.to.proc.silent <= now:
			b.again = append(b.again, d)
		default:
			rest = append(rest, d)
		}
	}
	b.open = rest
}

// take returns the next message for a life, or nil.
func (b *queueBook) take(q *simQueue) *delivery {
	d := &delivery{to: q}
	death := -1
	var was *delivery
	switch {
	case len(b.again) > 0 && (b.fresh == b.total || b.draw('a')%2 == 0):
		was = b.again[0]
		b.again = b.again[1:]
		d.number, d.fails, death = was.number, was.fails, was.m.death
		if errors.Is(was.why, spout.ErrFailed) {
			d.fails++
		}
	case b.fresh < b.total && (b.fresh < b.gate || b.rec.healed()):
		d.number = b.fresh
		b.fresh++
	default:
		return nil
	}
	name := fmt.Sprintf("%s delivery %d, of message %d,", b.rec.scene.parts[b.part].name, len(b.all), d.number)
	d.m = b.rec.add(b.part, mix(uint64(b.part), uint64(len(b.all)), 'q'), name)
	d.m.delivery, d.m.death = d, death
	d.at0 = len(b.all)
	b.rec.readFrom(d.m, q.proc)
	b.all, b.open = append(b.all, d), append(b.open, d)
	q.hand++
	if rec := b.rec; was == nil && rec.again(q.id(), d.m.id) {
		b.again = append(b.again, d) // before it has an answer
	}
	return d
}

// draw returns a number that depends on how many calls there were.
func (b *queueBook) draw(what uint64) uint64 {
	b.calls++
	return mix(b.calls, what, uint64(b.part))
}

// gone reports whether the life was killed before the call that goes on.
func (q *simQueue) gone() bool { return q.proc.state == ended && q.proc.silent != never }

// panics does so if a fault was armed for that call, or for a message in Next.
func (q *simQueue) panics(in chaos.Call) {
	rec, id := q.book.rec, q.id()
	if rec.adv.strikes(chaos.Panic, id, in) == nil && (in != chaos.InNext ||
		rec.adv.strikes(chaos.Panic, id, "") == nil && (rec.adv.hits(chaos.Panic, id, q.book.draw('p')) == nil)) {
		return
	}
	q.ill = q.ill || !q.inNext
	q.numb = q.numb || q.inNext
	rec.panicNow(q.proc, chaos.Panic)
}

func (q *simQueue) id() tuple.TaskID { return q.book.rec.adv.tasks[q.task] }

// fails returns an error now and then, the same one not too often in a row.
func (q *simQueue) fails(in chaos.Call) error {
	b := q.book
	if !b.rec.breaks(q.id(), in, b.draw('e'), func() bool { return b.errs < 3 }) {
		b.errs = 0
		return nil
	}
	b.errs++
	return errBroken
}

// under checks what must hold for each call.
func (q *simQueue) under(during string) {
	switch {
	case q.closed > 0:
		q.book.rec.violate(chaos.Answers, "%s: %s after Close", q.task, during)
	case !q.open && during != "Open":
		q.book.rec.violate(chaos.Answers, "%s: %s before Open", q.task, during)
	case during == "Ack" && (q.ill || q.proc.left < q.book.rec.w.Now()), during == "Next" && q.numb:
		q.book.rec.violate(chaos.Answers, "%s: %s in a life that is over", q.task, during)
	case q.inNext && !q.gone():
		q.book.rec.violate(chaos.Answers, "%s: %s inside Next", q.task, during)
	}
}

func (q openingQueue) Open(_ gocontext.Context, t *spout.Task) error {
	q.under("Open")
	q.book.rec.reads(q.proc)
	rec := q.book.rec
	if name := fmt.Sprintf("%s/%d", t.Component, t.Index); name != q.task {
		rec.violate(chaos.Answers, "Open of %s is told that it is %s", q.task, name)
	}
	if q.open {
		rec.violate(chaos.Answers, "%s is opened twice", q.task)
	}
	rec.w.Spend(time.Duration(q.book.draw('o') % uint64(5*time.Millisecond)))
	if err := q.fails(chaos.InOpen); err != nil {
		return fmt.Errorf("%w, in Open", err)
	}
	q.open = true
	return nil
}

func (q *simQueue) Next(ctx gocontext.Context, out *spout.QueueOut) error {
	q.under("Next")
	q.book.rec.reads(q.proc)
	b, rec := q.book, q.book.rec
	p := &rec.scene.parts[b.part]
	if rec.w.Now() < q.until {
		rec.violate(chaos.Answers, "%s: Next is called while another is under way", q.task)
	}
	if ctx.Err() != nil && b.draw('c')%2 == 0 {
		return ctx.Err()
	}
	q.inNext = true
	defer func() { q.inNext, q.until = false, rec.w.Now() }()
	b.look()
	paused := rec.paused(q.id())
	for n := 1 + int(b.draw('n')%uint64(p.perCall)); n > 0 && !out.Full() && !paused; n-- {
		d := b.take(q)
		if d == nil {
			break
		}
		m, id := d.m, strconv.Itoa(len(b.all)-1)
		rec.outs.emitted(q.id(), m.part, m.stream, m.id)
		if tasks := p.directTasks(m.stream); tasks > 0 {
			out.EmitDirectTo(id, streamName(m.stream), directTask(m.id, tasks), rec.scene.row(m.id, m.id, 0, 0)...)
		} else {
			out.EmitTo(id, streamName(m.stream), rec.scene.row(m.id, m.id, 0, 0)...)
		}
		q.panics(chaos.InNext)
	}
	rec.check(chaos.Pending)
	if most := q.mostInHand(); q.hand > most {
		rec.violate(chaos.Pending, "%s has %d messages in hand, and may have %d", q.task, q.hand, most)
	}
	rec.w.Spend(time.Duration(b.draw('w') % uint64(p.wait+1)))
	if b.fresh < b.gate || rec.healed() { // the same error too often at one place ends the run
		if err := q.fails(chaos.InNext); err != nil {
			return err
		}
	}
	if paused {
		rec.w.Spend(time.Duration(b.draw('P') % uint64(5*time.Millisecond)))
		return nil
	}
	if b.fresh == b.total && len(b.again) == 0 {
		if b.plan.eager || len(b.open) == 0 {
			b.eof = true
			return io.EOF
		}
	}
	if out.Len() == 0 && len(b.again) == 0 && b.fresh >= b.gate {
		wait := 50 * time.Millisecond
		if b.plan.deaf && b.draw('d')%10 == 0 {
			wait = 3 * time.Second
		}
		rec.w.Spend(time.Duration(b.draw('W') % uint64(wait)))
	}
	return nil
}

// mostInHand is how many messages a life may have in hand, with a Next that obeys
// Full.
func (q *simQueue) mostInHand() int {
	s := q.book.rec.scene
	switch {
	case s.guarantee == topology.AtMostOnce:
		return 1024
	case s.holds():
		return 1 << 30 // the limit may have been raised
	}
	return s.set.MaxPending
}

// answer books an answer. It returns nil if that was never given.
func (q *simQueue) answer(during, id string) *delivery {
	q.under(during)
	b, rec := q.book, q.book.rec
	rec.check(chaos.Answers)
	rec.calls++
	if q.gone() {
		return nil
	}
	n, err := strconv.Atoi(id)
	if err != nil || n >= len(b.all) {
		rec.violate(chaos.Answers, "%s: %s of %q, which it has not delivered", q.task, during, id)
		return nil
	}
	d := b.all[n]
	d.at = append(d.at, moment{rec.w.Now(), q.proc})
	q.hand--
	if rec.w.blocking {
		q.behind++
	}
	switch {
	case d.to != q:
		rec.violate(chaos.Answers, "%s: %s of %s which was given to another life", q.task, during, d.m.name)
	case len(d.at) > 1:
		rec.violate(chaos.Answers, "%s has %d answers", d.m.name, len(d.at))
	}
	return d
}

func (q *simQueue) Ack(_ gocontext.Context, id string) error {
	d := q.answer("Ack", id)
	if d == nil {
		return nil
	}
	rec := q.book.rec
	d.acked = true
	if rec.scene.guarantee == topology.AtLeastOnce {
		rec.check(chaos.Acks)
		if e := d.m.missing(rec.w.Now()); e != nil {
			rec.violate(chaos.Acks, "%s is acked, but %s is missing", d.m.name, rec.where(e))
		}
		if !d.m.acked {
			rec.violate(chaos.Answers, "%s is acked without a verdict", d.m.name)
		}
	}
	rec.hangIn(q.proc, q.id(), chaos.InAck)
	q.panics(chaos.InAck)
	return q.fails(chaos.InAck)
}

func (q *simQueue) Fail(ctx gocontext.Context, id string, why error) error {
	d := q.answer("Fail", id)
	if d == nil {
		return nil
	}
	d.why = why
	q.checkWhy(ctx, d)
	q.book.rec.hangIn(q.proc, q.id(), chaos.InFail)
	q.panics(chaos.InFail)
	return q.fails(chaos.InFail)
}

// checkWhy checks that what a queue is told of a message is true.
func (q *simQueue) checkWhy(ctx gocontext.Context, d *delivery) {
	rec, m := q.book.rec, d.m
	ending := q.proc.state != running || q.proc.left != never
	if q.ill && !errors.Is(d.why, spout.ErrUnfinished) {
		rec.violate(chaos.Answers, "%s is handed back (%v) behind a panic", m.name, d.why)
	}
	wrong := func(what string) {
		rec.violate(chaos.Answers, "%s is handed back (%v), but %s", m.name, d.why, what)
	}
	if q.proc.state != running && ctx.Err() != nil {
		wrong("the context of that call has ended")
	}
	head := m.head()
	if errors.Is(d.why, spout.ErrUnfinished) {
		if !ending && !rec.drained {
			wrong("nothing has ended")
		}
		return
	}
	switch untracked := rec.scene.guarantee == topology.AtMostOnce; {
	case untracked && !errors.Is(d.why, spout.ErrRejected):
		wrong("it is not tracked") // only a grouping can have refused to send it on
	case !untracked && (m.verdicts != 1 || m.acked):
		wrong(fmt.Sprintf("it has %d verdicts and is acked: %v", m.verdicts, m.acked))
	}
	switch {
	case errors.Is(d.why, spout.ErrRejected):
		if head.kinRejects == 0 {
			wrong("nobody has rejected it")
		}
	case errors.Is(d.why, spout.ErrFailed):
		switch {
		case head.kinFails == 0 && head.kinHangs == 0:
			wrong("nobody has refused it")
		case head.kinFails == head.kinRejects && head.kinHangs == 0:
			wrong("all who have refused it have rejected it")
		}
	case errors.Is(d.why, spout.ErrLost):
		if m.lost == 0 && rec.hung == 0 {
			wrong("it was not lost")
		}
	case errors.Is(d.why, spout.ErrTimedOut):
		if m.timedOut == 0 {
			wrong("it has not timed out")
		}
	default:
		wrong("that is no reason that package spout knows")
	}
}

func (q *simQueue) Close() error {
	q.under("Close")
	q.closed++
	return nil
}
