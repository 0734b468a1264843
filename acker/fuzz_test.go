package acker

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

// A book is the slow obvious ledger: a list of trees, each with the whole set of
// its edges and of the tasks that they went to. Edges are single bits, so that
// no two different sets have the same XOR.
type book struct {
	timeout         time.Duration
	next            uint64
	trees           []*page
	dead            map[tuple.TaskID]tuple.Incarnation
	checked         time.Duration
	moving, holding time.Duration
	holder          int
	ends            []Verdict[int]
	late            []Fail
	learned         []Death
	stale           uint64
}

type page struct {
	seq      uint64
	edges    map[int]bool          // made or consumed, not yet both
	goals    map[tuple.TaskID]bool // an edge went to the living of these
	deadline time.Duration
	fails    map[uint16]Fail
	holder   int
	waits    bool
	message  int
}

// cast are the tasks of the fuzzed plan; two pairs of them share a bit.
var cast = []tuple.TaskID{1, 2, 3, 4, 65, 66}

func casts(from, to tuple.TaskID) bool {
	return slices.Index(cast, from) < slices.Index(cast, to)
}

func alike(a, b tuple.TaskID) bool { return a%64 == b%64 }

func (b *book) tree(seq uint64) *page {
	for _, p := range slices.Backward(b.trees) {
		if p.seq == seq {
			return p
		}
	}
	return nil
}

func (b *book) end(p *page, o Outcome) {
	v := Verdict[int]{Seq: p.seq, Outcome: o, Message: p.message, Holder: p.holder}
	for _, f := range p.fails {
		v.Fails = append(v.Fails, f)
	}
	slices.SortFunc(v.Fails, func(f, g Fail) int { return cmp.Compare(f.Index, g.Index) })
	b.ends = append(b.ends, v)
	b.trees = slices.DeleteFunc(b.trees, func(q *page) bool { return p == q })
}

func (b *book) lost(d Death) (news bool) {
	if b.dead[d.Task] >= d.Life {
		return false
	}
	b.dead[d.Task] = d.Life
	for _, p := range slices.Clone(b.trees) {
		for goal := range p.goals {
			if alike(goal, d.Task) {
				b.end(p, Lost)
				break
			}
		}
	}
	return true
}

// A draft is an entry before its edges and tasks are folded into numbers.
type draft struct {
	seq   uint64
	edges []int
	goals []tuple.TaskID
}

func (d draft) entry() (e Entry) {
	e.Seq = d.seq
	for _, k := range d.edges {
		e.Xor ^= 1 << k
	}
	for _, t := range d.goals {
		e.Mask |= Bit(t)
	}
	return e
}

func (p *page) toggle(edges []int) {
	for _, k := range edges {
		if p.edges[k] {
			delete(p.edges, k)
		} else {
			p.edges[k] = true
		}
	}
}

func (b *book) open(now time.Duration, d draft, message int) {
	p := &page{seq: b.next, edges: map[int]bool{}, goals: map[tuple.TaskID]bool{}, deadline: now + b.timeout, fails: map[uint16]Fail{}, holder: -1, message: message}
	b.next++
	b.trees = append(b.trees, p)
	p.toggle(d.edges)
	for _, t := range d.goals {
		p.goals[t] = true
	}
	if len(p.edges) == 0 {
		b.end(p, Done)
	}
}

func (b *book) report(now time.Duration, r *Report, drafts []draft) {
	said := map[tuple.TaskID]tuple.Incarnation{}
	for _, d := range r.View {
		if b.lost(d) {
			b.learned = append(b.learned, d)
		}
		said[d.Task] = max(said[d.Task], d.Life)
	}
	for _, f := range r.Fails {
		if p := b.tree(f.Seq); p == nil {
			if f.Class == Panicked || f.Class == Hung {
				b.late = append(b.late, f)
			}
		} else if old, ok := p.fails[f.Index]; !ok || f.Class > old.Class || f.Class == Hung && old.Class == Hung && f.Suspects == 1 {
			p.fails[f.Index] = f
		}
	}
	for _, seq := range r.Lost {
		if p := b.tree(seq); p != nil {
			b.end(p, Lost)
		}
	}
	if r.FromLife <= b.dead[r.From] {
		b.stale += uint64(len(drafts))
		return
	}
	if len(r.Entries) > 0 || len(r.Fails) > 0 || len(r.Lost) > 0 || len(r.Queued) > 0 {
		b.moving = now
	}
	for _, d := range drafts {
		p := b.tree(d.seq)
		if p == nil {
			b.stale++
			continue
		}
		ignorant := false
		for _, t := range d.goals {
			for dead, life := range b.dead {
				if alike(t, dead) && casts(r.From, dead) && said[dead] < life {
					ignorant = true
				}
			}
		}
		if ignorant {
			b.end(p, Lost)
			continue
		}
		p.deadline, p.waits = now+b.timeout, false
		p.toggle(d.edges)
		for _, t := range d.goals {
			p.goals[t] = true
		}
		if len(p.edges) == 0 {
			b.end(p, Done)
		}
	}
	for _, seq := range r.Queued {
		if p := b.tree(seq); p != nil {
			p.deadline, p.waits = now+b.timeout, false
		}
	}
	for _, h := range r.Held {
		if p := b.tree(h.Seq); p != nil {
			p.holder, p.waits = h.Component, h.Waits
			b.holder, b.holding = h.Component, now
			if h.Within {
				p.deadline = now + b.timeout
			}
		}
	}
}

func (b *book) waiting(now, d time.Duration) bool {
	for _, p := range b.trees {
		if !p.waits {
			return false
		}
	}
	return b.holding > b.moving && b.moving+d <= now
}

func (b *book) expire(now time.Duration) {
	late := now-b.checked > b.timeout/2
	b.checked = now
	for _, p := range slices.Clone(b.trees) {
		if late {
			p.deadline = now + b.timeout
		} else if p.deadline <= now {
			b.end(p, TimedOut)
		}
	}
}

// A tape is the fuzzer's input, read as choices.
type tape []byte

func (t *tape) pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b) % n
}

func (t *tape) task() tuple.TaskID { return cast[t.pick(len(cast))] }

func (t *tape) death() Death { return Death{t.task(), tuple.Incarnation(t.pick(4))} }

func (t *tape) draft(seq uint64) draft {
	d := draft{seq: seq}
	for range t.pick(4) {
		d.edges = append(d.edges, t.pick(6))
	}
	for range t.pick(3) {
		d.goals = append(d.goals, t.task())
	}
	return d
}

func (t *tape) report(next uint64) (*Report, []draft) {
	// Mostly young trees, sometimes one that shares its place with another.
	seq := func() uint64 {
		back := uint64(t.pick(5))
		if t.pick(8) == 0 {
			back += uint64(t.pick(256)) * 16
		}
		return next - back
	}
	r := &Report{From: t.task(), FromLife: tuple.Incarnation(1 + t.pick(4)), ToLife: 1}
	var drafts []draft
	what := t.pick(64)
	for range what & 3 {
		d := t.draft(seq())
		drafts = append(drafts, d)
		r.Entries = append(r.Entries, d.entry())
	}
	if what&4 != 0 {
		for range 1 + t.pick(3) {
			r.View = append(r.View, t.death())
		}
	}
	if what&8 != 0 {
		r.Fails = append(r.Fails, Fail{Seq: seq(), Index: uint16(t.pick(3)), Class: FailClass(t.pick(4)), Suspects: t.pick(3), Err: string(rune('a' + t.pick(26)))})
	}
	switch what & 48 {
	case 16:
		r.Lost = append(r.Lost, seq())
	case 32:
		r.Queued = append(r.Queued, seq())
	case 48:
		r.Held = append(r.Held, Held{Seq: seq(), Component: t.pick(5), Within: t.pick(2) == 0, Waits: t.pick(3) > 0})
	}
	return r, drafts
}

func same(a, b Verdict[int]) bool {
	return a.Seq == b.Seq && a.Outcome == b.Outcome && a.Message == b.Message && a.Holder == b.Holder && slices.Equal(a.Fails, b.Fails)
}

// FuzzLedger plays the same conversation to a Ledger and to a book.
func FuzzLedger(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x01\x01 a tree, a report \x01\x02\x00\x01\x00\x00\x02\x01\x01"))
	f.Add([]byte{4, 255, 1, 0, 0, 1, 3, 4, 255, 1, 2, 2, 1, 2, 3, 0, 3, 3, 3, 3, 4, 200})
	noise := make([]byte, 4096)
	for x, i := uint64(88172645463325252), 0; i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		noise[i] = byte(x >> 32)
	}
	for i := 0; i < len(noise); i += 256 {
		f.Add(noise[i : i+256])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const timeout = 40
		in := tape(data[:min(len(data), 1024)]) // the book is slow
		l := NewLedger[int](Config{Life: 1, Timeout: timeout, Sends: casts})
		b := &book{timeout: timeout, next: 1, dead: map[tuple.TaskID]tuple.Incarnation{}}
		var now time.Duration
		for len(in) != 0 {
			now += time.Duration(in.pick(4))
			switch in.pick(6) {
			case 0:
				d := in.draft(0)
				e := d.entry()
				require.Equal(t, b.next, l.Next())
				require.Equal(t, b.next, l.Open(now, e.Xor, e.Mask, len(in)))
				b.open(now, d, len(in))
			case 1, 2:
				r, drafts := in.report(b.next)
				l.Report(now, r)
				b.report(now, r, drafts)
			case 3:
				d := in.death()
				l.Lost(now, d)
				b.lost(d)
			case 4: // many trees, so that the ring grows and comes round
				for range 8 * in.pick(20) {
					d := draft{edges: []int{int(b.next) % 6}, goals: cast[:1+b.next%2]}
					e := d.entry()
					l.Open(now, e.Xor, e.Mask, int(b.next))
					b.open(now, d, int(b.next))
					if b.next%16 != 0 {
						r := &Report{From: cast[0], FromLife: 9, ToLife: 1, Entries: []Entry{{Seq: b.next - 1, Xor: e.Xor}}}
						l.Report(now, r)
						b.report(now, r, []draft{{seq: b.next - 1, edges: d.edges}})
					}
				}
			case 5:
				now += time.Duration(in.pick(24))
				l.Expire(now)
				b.expire(now)
				l.check(t)
			}
			if got := l.Drain(nil); !slices.EqualFunc(b.ends, got, same) {
				require.Equal(t, b.ends, got)
			}
			require.True(t, slices.Equal(b.late, l.Late(nil)), "late: %v", b.late)
			require.True(t, slices.Equal(b.learned, l.Learned(nil)), "learned: %v", b.learned)
			require.Equal(t, b.stale, l.Stale())
			require.Equal(t, len(b.trees), l.Len())
			holder, waiting := l.Waiting(now, 5)
			require.Equal(t, b.holder, holder)
			require.Equal(t, b.waiting(now, 5), waiting)
			b.ends, b.late, b.learned = b.ends[:0], b.late[:0], b.learned[:0]
		}
		l.check(t)
	})
}
