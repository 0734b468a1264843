package sim

import (
	gocontext "context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// errs and panics of simulated parts. What else comes out of a task is a fault of
// the engine.
var (
	errBroken = errors.New("simulated: broken")
	errTuple  = errors.New("simulated: tuple refused")
)

// A simSource reads messages that are a function of their place.
type simSource struct {
	rec  *record
	part int
}

func (s *simSource) Splits(gocontext.Context) (splits []spout.Split, err error) {
	for k := range s.rec.scene.parts[s.part].splits {
		splits = append(splits, spout.Split(strconv.Itoa(k)))
	}
	return splits, nil
}

func (s *simSource) find(split spout.Split, position string) (*splitBook, int) {
	k, err := strconv.Atoi(string(split))
	if err != nil {
		s.rec.violate(chaos.Positions, "%s is asked for split %q", s.rec.scene.parts[s.part].name, split)
		return s.rec.splits[s.part][0], 0
	}
	n := 0
	if position != "" {
		if n, err = strconv.Atoi(position); err != nil {
			s.rec.violate(chaos.Positions, "%s is given the position %q, which it never gave out", s.rec.scene.parts[s.part].name, position)
		}
	}
	return s.rec.splits[s.part][k], n
}

func (s *simSource) Open(_ gocontext.Context, split spout.Split, position string) (spout.Reader, error) {
	b, n := s.find(split, position)
	s.rec.reads(s.rec.w.running)
	s.rec.passed(b, n, "opened at")
	s.rec.opened(b, n)
	s.rec.panicIn(s.rec.w.running, s.rec.here(), chaos.InOpen)
	if s.rec.breaks(s.rec.here(), chaos.InOpen, mix(uint64(n), b.number(), 0), func() bool { return b.once("open", n) }) {
		return nil, errBroken
	}
	r := &simReader{rec: s.rec, b: b, proc: s.rec.w.running, next: n, at: n}
	if again := s.rec.scene.parts[s.part].again; again > 0 && n > 0 && s.rec.scene.guarantee == topology.AtLeastOnce {
		r.next = max(0, n-again) // it repeats what it should not
		s.rec.saw("source that repeats")
	}
	s.rec.readers++
	if s.rec.scene.parts[s.part].prompt {
		return promptReader{r}, nil
	}
	return r, nil
}

func (s *simSource) Commit(_ gocontext.Context, split spout.Split, position string) error {
	b, n := s.find(split, position)
	s.rec.passed(b, n, "committed at")
	s.rec.committed(b, n)
	if s.rec.breaks(s.rec.here(), chaos.InCommit, mix(uint64(n), b.number(), 0), always) {
		return errBroken
	}
	return nil
}

type simReader struct {
	rec    *record
	b      *splitBook
	proc   *proc // that has opened it
	next   int
	at     int           // the position; next may be before it, of a source that repeats
	idle   time.Duration // nothing to read before
	closed bool
}

type promptReader struct{ *simReader }

func (promptReader) Prompt() {}

// Between calls of Next that have nothing to give.
const (
	pollPrompt = 20 * time.Millisecond // on the turn
	poll       = 100 * time.Millisecond
)

// Next gives out what there is, unless the source stalls: for want of messages, or
// since it is held back.
func (r *simReader) Next(_ gocontext.Context, out *spout.Out) error {
	p := &r.rec.scene.parts[r.b.part]
	if r.closed {
		r.rec.violate(chaos.Sources, "%s: Next of a reader that was closed", r.b)
	}
	r.rec.check(chaos.Sources)
	r.rec.reads(r.proc)
	r.rec.w.Spend(time.Duration(mix(uint64(r.next), 'w', 0) % uint64(p.wait+1)))
	id := r.rec.here()
	r.rec.hangIn(r.proc, id, chaos.InNext)
	r.rec.calls++
	if r.rec.paused(id) {
		return nil
	}
	if mix(uint64(r.next), 'e', r.rec.calls)%8 == 0 && p.wait > 0 {
		return nil // nothing just now
	}
	if p.stallIn > 0 && mix(uint64(r.next), 'z', r.rec.calls)%uint64(p.stallIn) == 0 {
		r.idle = r.rec.w.Now() + time.Duration(mix(uint64(r.next), 'Z', r.rec.calls)%uint64(p.stall))
		r.rec.saw("stalling source")
	}
	if r.stalls(p, out) {
		return nil
	}
	n := 1 + int(mix(uint64(r.next), 'n', 1)%uint64(p.perCall))
	for ; n > 0 && !r.b.over(r.next) && !r.held() && !out.Full(); n-- {
		m := r.rec.read(r.b, r.next)
		if h := r.rec.adv.hits(chaos.Panic, id, m.id); h != nil && r.b.once("panic", r.next) || r.rec.adv.strikes(chaos.Panic, id, "") != nil {
			r.rec.panicNow(r.proc, chaos.Panic)
		}
		r.rec.panicIn(r.proc, id, chaos.InNext)
		if r.rec.breaks(id, chaos.InNext, m.id, func() bool { return r.b.once("next", r.next) }) {
			return errBroken
		}
		r.next++
		r.at = max(r.at, r.next)
		r.emit(m, out)
		if r.rec.again(id, m.id) {
			r.emit(m, out)
		}
		if r.b.endless && r.next >= r.b.messages {
			break // it has given enough, and goes on slowly
		}
	}
	if r.b.over(r.next) {
		return io.EOF
	}
	return nil
}

func (r *simReader) emit(m *root, out *spout.Out) {
	s := r.rec.scene
	r.rec.readFrom(m, r.proc)
	r.rec.outs.emitted(r.rec.here(), m.part, m.stream, m.id)
	if tasks := s.parts[r.b.part].directTasks(m.stream); tasks > 0 {
		out.EmitDirectTo(streamName(m.stream), directTask(m.id, tasks), s.row(m.id, m.id, 0, 0)...)
	} else {
		out.EmitTo(streamName(m.stream), s.row(m.id, m.id, 0, 0)...)
	}
}

// held reports whether the next message is held back until all is healed.
func (r *simReader) held() bool { return r.next >= r.b.gate && !r.rec.healed() }

// stalls reports whether there is nothing to give for some time, and lets some of it
// pass.
func (r *simReader) stalls(p *part, out *spout.Out) bool {
	enough := r.b.endless && r.next >= r.b.messages
	wait := max(r.idle-r.rec.w.Now(), 0)
	if wait == 0 && !r.held() && !enough || r.b.over(r.next) {
		return false
	}
	switch {
	case wait > 0 && !p.prompt:
	case p.prompt:
		wait = pollPrompt
	default:
		wait = poll
	}
	r.rec.w.Spend(wait)
	return !enough || r.held() || mix(uint64(r.next), 'y', r.rec.calls)%8 > 0
}

func (r *simReader) Position() string { return strconv.Itoa(r.at) }

func (r *simReader) Close() error {
	if r.closed {
		r.rec.violate(chaos.Sources, "%s: a reader is closed twice", r.b)
	}
	r.rec.check(chaos.Sources)
	r.closed = true
	r.rec.readers--
	return nil
}

// A simBolt is one incarnation of one task.
type simBolt struct {
	rec      *record
	part     int
	task     int
	number   int64 // of all incarnations
	proc     *proc
	seq      int64
	ticks    int
	prepared bool
	finished int
	closed   int
	late     int64             // the first number that it emits as a replaced one; 0: none
	last     map[lineKey]int64 // the last number heard
	said     []int64           // by stream: the last number that it has put on a tuple
	streams  []bolt.Output
	kept     []keptTuple
	calls    *calls
}

func (rec *record) factory(part int) bolt.Factory {
	return func() bolt.Bolt {
		b := &simBolt{rec: rec, part: part, number: int64(len(rec.bolts) + 1), proc: rec.w.running, last: map[lineKey]int64{}}
		rec.bolts = append(rec.bolts, b)
		return b
	}
}

func (b *simBolt) name() string { return fmt.Sprintf("%s/%d", b.rec.scene.parts[b.part].name, b.task) }

func (b *simBolt) Prepare(ctx gocontext.Context, t *bolt.Task) error {
	b.task = t.Index
	b.rec.hangIn(b.proc, b.id(), chaos.InPrepare)
	b.rec.panicIn(b.proc, b.id(), chaos.InPrepare)
	for i := range t.Streams {
		b.streams = append(b.streams, t.Output(streamName(i)))
	}
	b.prepared = true
	if a := b.rec.scene.parts[b.part].act; a == calling || a == inOrder {
		b.calls = b.newCalls()
		return b.calls.Bolt.(bolt.Preparer).Prepare(ctx, t)
	}
	return nil
}

func (b *simBolt) Execute(in tuple.Tuple, out *bolt.Collector) error {
	rec, s := b.rec, b.rec.scene
	if s.parts[b.part].mourns != nil {
		return b.mourn(in)
	}
	e := rec.begin(b, in)
	if e == nil {
		return bolt.Reject(errTuple)
	}
	if p := &s.parts[b.part]; p.spend > 0 {
		rec.w.Spend(p.least + time.Duration(mix(e.id, 'd', uint64(e.tries))%uint64(p.spend-p.least+1)))
	}
	rec.hangWith(b, e)
	what := rec.trouble(b.id(), mix(e.id, 't', uint64(b.part)), e.fails)
	early := mix(e.id, 'b', 0)%2 == 0 // trouble before it has emitted anything
	if what != "" && (early || b.calls != nil && fatal(what)) {
		return b.inTrouble(e, what)
	}
	switch {
	case b.calls != nil:
		return b.call(e, what, in, out)
	case s.parts[b.part].act == holding && !fatal(what):
		b.keep(e, what, in, out)
		return nil
	}
	b.children(e, out, atOnce|later)
	if what != "" {
		return b.inTrouble(e, what)
	}
	e.oks = append(e.oks, rec.moment(b.proc))
	return nil
}

func (b *simBolt) emit(out *bolt.Collector, stream int, id uint64, row []any) {
	if b.rec.twist != nil {
		b.rec.twist(b, row)
	}
	b.rec.outs.emitted(b.id(), b.part, stream, id)
	out = out.To(b.streams[stream])
	if seq := row[4].(int64); seq > 0 {
		for len(b.said) <= stream {
			b.said = append(b.said, 0)
		}
		b.said[stream] = max(b.said[stream], seq)
	}
	if tasks := b.rec.scene.parts[b.part].directTasks(stream); tasks > 0 {
		out.EmitDirect(directTask(id, tasks), row...)
		return
	}
	out.Emit(row...)
}

func fatal(k chaos.Kind) bool { return k == chaos.Panic || k == chaos.Poison }

func (b *simBolt) inTrouble(e *execution, what chaos.Kind) error {
	e.fails++
	e.root.fails++
	head := e.root.head()
	head.kinFails++
	head.kinFailed = b.rec.w.Now()
	switch what {
	case chaos.Reject:
		b.rec.adv.did(what, "")
		e.root.rejects++
		head.kinRejects++
		return bolt.Reject(errTuple)
	case chaos.Refuse:
		b.rec.adv.did(what, "")
		return errTuple
	}
	e.root.accidents++
	e.accidents++
	b.rec.panicNow(b.proc, what)
	return nil
}

// own emits n messages of the bolt's own.
func (b *simBolt) own(n int, out *bolt.Collector) {
	for range n {
		if len(b.streams) == 0 {
			return
		}
		m := b.rec.own(b)
		b.emit(out, m.stream, m.id, b.rec.scene.row(m.id, m.id, 0, 0))
	}
}

func (b *simBolt) Tick(out *bolt.Collector) error {
	b.rec.outs.mayGoOn(b, "ticks")
	b.letGo(out)
	if b.rec.scene.parts[b.part].act == holding {
		return nil
	}
	if b.ticks++; b.ticks > 12 {
		return nil
	}
	b.rec.hangIn(b.proc, b.id(), chaos.InTick)
	b.isLate()
	b.own(int(mix(uint64(b.number), 'k', uint64(b.ticks))%3), out)
	b.rec.panicIn(b.proc, b.id(), chaos.InTick)
	return nil
}

func (b *simBolt) Finish(out *bolt.Collector) error {
	b.rec.check(chaos.Finishes)
	if b.finished++; b.finished > 1 {
		b.rec.violate(chaos.Finishes, "%s, incarnation %d, is finished twice", b.name(), b.number)
	}
	if !b.rec.drained && !b.rec.inputOver(b.part) {
		b.rec.violate(chaos.Finishes, "%s is finished, and its input is not at its end", b.name())
	}
	b.letGo(out)
	b.rec.hangIn(b.proc, b.id(), chaos.InFinish)
	b.isLate()
	if b.rec.scene.parts[b.part].act == counting {
		b.own(1+int(mix(uint64(b.number), 'g', 0)%20), out)
	}
	b.rec.panicIn(b.proc, b.id(), chaos.InFinish)
	return nil
}

func (b *simBolt) Close() error {
	b.closed++
	return nil
}

// chooser sends tuples on an edge to the tasks that the scene says.
func (rec *record) chooser(e edge, to int) func(topology.Sender) topology.Chooser {
	return func(topology.Sender) topology.Chooser {
		return func(t tuple.Tuple, dst []int) []int {
			id := t.Uint64("id")
			if rec.adv.hits(chaos.Misroute, rec.task(to, 0), mix(id, 'w', uint64(to))) != nil {
				rec.adv.did(chaos.Misroute, "")
				m := rec.roots[t.Uint64("root")]
				m.fails++
				m.rejects++
				m.strays++
				head := m.head()
				head.kinFails++
				head.kinRejects++
				head.kinFailed = rec.w.Now()
				return append(dst, rec.scene.parts[to].parallel)
			}
			return append(dst, rec.scene.tasks(e, to, id)...)
		}
	}
}

const never = time.Duration(math.MaxInt64)
