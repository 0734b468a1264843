package sim

import (
	gocontext "context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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

// row returns the values of a tuple.
func (s *scene) row(root, id uint64, by int64, seq int64) []any {
	var key any = id % s.keys
	if s.mixed && id&1 != 0 {
		key = strconv.FormatUint(id%s.keys, 10)
	}
	return []any{root, id, key, by, seq}
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
		s.rec.violate("positions", "%s is asked for split %q", s.rec.scene.parts[s.part].name, split)
		return s.rec.splits[s.part][0], 0
	}
	n := 0
	if position != "" {
		if n, err = strconv.Atoi(position); err != nil {
			s.rec.violate("positions", "%s is given the position %q, which it never gave out", s.rec.scene.parts[s.part].name, position)
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
	r := &simReader{rec: s.rec, b: b, proc: s.rec.w.running, next: n}
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
	closed bool
}

type promptReader struct{ *simReader }

func (promptReader) Prompt() {}

func (r *simReader) Next(_ gocontext.Context, out *spout.Out) error {
	s := r.rec.scene
	p := &s.parts[r.b.part]
	if r.closed {
		r.rec.violate("sources", "%s: Next of a reader that was closed", r.b)
	}
	r.rec.reads(r.proc)
	r.rec.w.Spend(time.Duration(mix(uint64(r.next), 'w', 0) % uint64(p.wait+1)))
	id := r.rec.here()
	r.rec.hangIn(r.proc, id, chaos.InNext)
	if r.rec.paused(id) {
		return nil
	}
	if mix(uint64(r.next), 'e', r.rec.calls)%8 == 0 && p.wait > 0 {
		r.rec.calls++
		return nil // nothing just now
	}
	r.rec.calls++
	n := 1 + int(mix(uint64(r.next), 'n', 1)%uint64(p.perCall))
	for ; n > 0 && r.next < r.b.messages && !out.Full(); n-- {
		m := r.rec.read(r.b, r.next)
		if h := r.rec.adv.hits(chaos.Panic, id, m.id); h != nil && r.b.once("panic", r.next) || r.rec.adv.strikes(chaos.Panic, id, "") != nil {
			r.rec.panicNow(r.proc, chaos.Panic)
		}
		r.rec.panicIn(r.proc, id, chaos.InNext)
		if r.rec.breaks(id, chaos.InNext, m.id, func() bool { return r.b.once("next", r.next) }) {
			return errBroken
		}
		r.next++
		r.emit(m, out)
		if r.rec.again(id, m.id) {
			r.emit(m, out)
		}
	}
	if r.next >= r.b.messages {
		return io.EOF
	}
	return nil
}

func (r *simReader) emit(m *root, out *spout.Out) {
	s := r.rec.scene
	m.reads++
	if tasks := s.parts[r.b.part].directTasks(m.stream); tasks > 0 {
		out.EmitDirectTo(streamName(m.stream), directTask(m.id, tasks), s.row(m.id, m.id, 0, 0)...)
	} else {
		out.EmitTo(streamName(m.stream), s.row(m.id, m.id, 0, 0)...)
	}
}

func (r *simReader) Position() string { return strconv.Itoa(r.next) }

func (r *simReader) Close() error {
	if r.closed {
		r.rec.violate("sources", "%s: a reader is closed twice", r.b)
	}
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
	late     int64              // the first number that it emits as a replaced one; 0: none
	last     map[[2]int64]int64 // the last number heard from an incarnation on a stream
	streams  []bolt.Output
	kept     []keptTuple
	calls    *calls
}

func (rec *record) factory(part int) bolt.Factory {
	return func() bolt.Bolt {
		b := &simBolt{rec: rec, part: part, number: int64(len(rec.bolts) + 1), proc: rec.w.running, last: map[[2]int64]int64{}}
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
	if most := s.parts[b.part].spend; most > 0 {
		rec.w.Spend(time.Duration(mix(e.id, 'd', uint64(e.tries)) % uint64(most+1)))
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
	out = out.To(b.streams[stream])
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
	if b.finished++; b.finished > 1 {
		b.rec.violate("finish", "%s, incarnation %d, is finished twice", b.name(), b.number)
	}
	if !b.rec.drained && !b.rec.inputOver(b.part) {
		b.rec.violate("finish", "%s is finished, and its input is not at its end", b.name())
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
				m.head().kinFails++
				m.head().kinRejects++
				return append(dst, rec.scene.parts[to].parallel)
			}
			return append(dst, rec.scene.tasks(e, to, id)...)
		}
	}
}

// checkRoute compares the task that a tuple has come to with its grouping.
func (b *simBolt) checkRoute(e edge, key string) {
	rec := b.rec
	switch e.grouping {
	case topology.Global:
		if b.task != 0 {
			rec.violate("routing", "%s gets a tuple that is for the first task", b.name())
		}
	case topology.PartialKey:
		k := routeKey{b.part, e.from, e.stream, key}
		if at := rec.halves[k]; slices.Contains(at, b.task) {
			break
		} else if rec.halves[k] = append(at, b.task); len(at) == 2 {
			rec.violate("routing", "the partial key %q of %s goes to tasks %v", key, rec.scene.parts[b.part].name, rec.halves[k])
		}
	case topology.Fields:
		k := routeKey{b.part, e.from, e.stream, key}
		if owner, known := rec.owners[k]; !known {
			rec.owners[k] = b.task
		} else if owner != b.task {
			rec.violate("routing", "key %q of %s goes to task %d and to task %d", key, rec.scene.parts[b.part].name, owner, b.task)
		}
	}
}

// checkOrder compares the numbers that one incarnation has put on its tuples.
func (b *simBolt) checkOrder(e edge, by, seq int64) {
	if by == 0 {
		return // a message: it may be a replay
	}
	k := [2]int64{by, int64(e.stream)}
	if seq <= b.last[k] {
		b.rec.violate("order", "%s gets number %d of incarnation %d behind number %d", b.name(), seq, by, b.last[k])
	}
	b.last[k] = max(seq, b.last[k])
}

const never = time.Duration(math.MaxInt64)
