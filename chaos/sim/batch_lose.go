package sim

import (
	"slices"

	"github.com/egretstream/egret/tuple"
)

// Stores that break their word. Nothing can be promised of what is in them then but that
// it does not go on: a task that writes or joins says that something is lost, and the
// topology stops for that.

// mostOlder is how many earlier contents of a store are kept to be put back.
const mostOlder = 64

// keep keeps what is durable now, if it is to be put back.
func (s *simState) keep() {
	if !s.run.s.loses() {
		return
	}
	s.older = append(s.older, s.disk.clone())
	if len(s.older) > mostOlder {
		s.older = slices.Delete(s.older, 0, 1)
	}
}

// rewind makes the store one of those that it was, and reports whether there is one.
func (s *simState) rewind(fits func(*stateImage) bool) bool {
	var all []int
	for i := range s.older {
		if fits(&s.older[i]) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return false
	}
	at := all[s.run.chance.IntN(len(all))]
	s.disk = s.older[at].clone()
	s.image, s.older = s.disk.clone(), s.older[:at]
	s.first += len(s.tail)
	s.tail = nil
	s.life++
	s.run.lost = s.run.runs
	return true
}

// loses reports whether a store of the scene breaks its word.
func (s *batchScene) loses() bool { return s.does("forget") || s.does("put back") }

// forget has a store lose what it has acknowledged to lives that it still lets write: who
// writes next is the first one who can see it.
func (r *batchRun) forget(n int) bool {
	for i := range r.states {
		s := r.states[(i+n)%len(r.states)]
		if s != nil && s.rewind(func(m *stateImage) bool { return m.fences == s.disk.fences && m.last != s.disk.last }) {
			return true
		}
	}
	return false
}

// putBack does a deed that waits for a batch to be committed which an attempt before had
// written, too: the process ends, and a copy from that attempt takes the place of the
// store. It has the same batches.
func (r *batchRun) putBack() {
	for _, d := range r.waiting {
		if d.kind != "put back" || d.left == 0 || r.healed || r.w.Now() < d.at {
			continue
		}
		for i := range r.states {
			s := r.states[(i+d.n)%len(r.states)]
			if s == nil || !s.rewind(func(m *stateImage) bool { return m.last != s.disk.last && sameBatches(m, &s.disk) }) {
				continue
			}
			d.left = 0
			r.did(d.kind)
			r.crash()
			return
		}
	}
}

// unfix does a deed that waits for a state without values before to have a batch that is
// not committed: the process ends, and the record is as it was before it had the ranges of
// that batch.
func (r *batchRun) unfix() {
	for _, d := range r.waiting {
		if d.kind != "unfix" || d.left == 0 || r.healed || r.w.Now() < d.at || r.records.record.Fixed == nil {
			continue
		}
		ahead := func(s *simState) bool {
			return s != nil && r.s.parts[s.part].plain && slices.ContainsFunc(s.disk.last[:], func(b tuple.BatchID) bool { return b.Tx == r.records.record.Committed+1 })
		}
		if !slices.ContainsFunc(r.states, ahead) {
			continue
		}
		d.left = 0
		r.did(d.kind)
		r.crash()
		if slices.ContainsFunc(r.states, ahead) { // what it has is durable, so nothing but the ranges was lost
			r.records.record.Fixed, r.lost = nil, r.runs
		}
		return
	}
}

func sameBatches(a, b *stateImage) bool {
	for g := range tuple.KeyGroups {
		if a.last[g].Tx != b.last[g].Tx {
			return false
		}
	}
	return true
}
