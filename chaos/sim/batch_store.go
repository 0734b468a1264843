package sim

import (
	gocontext "context"
	"errors"
	"maps"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	batchstate "github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

var errRecord = errors.New("simulated: no quorum")

// A simState is a state.Store that outlives tasks and processes. What it has taken is
// seen at once, and durable a while later: what is not durable when a process crashes
// may be lost, from some write on.
//
//	Join, Write --> image (seen) --> tail --sync--> disk
//	                  ^                              |
//	                  +-----------crash--------------+
type simState struct {
	run   *batchRun
	part  int
	image stateImage
	disk  stateImage
	tail  []func(*stateImage) // of disk to image
	first int                 // number of tail[0]
	life  int                 // counts crashes
	older []stateImage        // what disk was, the latest last; of a store that will lose something
}

type stateImage struct {
	fences [tuple.KeyGroups]tuple.Fence
	last   [tuple.KeyGroups]tuple.BatchID
	rows   map[batchstate.Key]batchstate.Row
}

func (m *stateImage) clone() stateImage {
	c := *m
	c.rows = maps.Clone(m.rows)
	return c
}

func newSimState(r *batchRun, part int) *simState {
	s := &simState{run: r, part: part}
	s.image.rows, s.disk.rows = map[batchstate.Key]batchstate.Row{}, map[batchstate.Key]batchstate.Row{}
	return s
}

// apply does something to what is seen, and has it made durable. It returns when it is.
func (s *simState) apply(op func(*stateImage)) {
	op(&s.image)
	s.tail = append(s.tail, op)
	number, life := s.first+len(s.tail), s.life
	d := s.run.draw(0, s.run.s.disk)
	s.run.w.schedule(s.run.w.Now()+d, func() {
		if life == s.life && number > s.first {
			s.sync(number - s.first)
			s.run.unfix()
		}
	})
	if mutation.Is(mutation.WroteUnsynced) {
		return
	}
	s.run.w.Spend(d + 1)
}

// sync makes the next n of the tail durable.
func (s *simState) sync(n int) {
	for _, op := range s.tail[:n] {
		s.keep()
		op(&s.disk)
	}
	s.first += n
	s.tail = s.tail[n:]
}

// crash loses what is not durable, from some write on.
func (s *simState) crash() {
	kept := s.run.chance.IntN(len(s.tail) + 1)
	if kept < len(s.tail) {
		s.run.book.saw("unsynced write lost")
	}
	s.sync(kept)
	s.tail, s.image = nil, s.disk.clone()
	s.life++
}

// Join implements state.Store.
func (s *simState) Join(_ gocontext.Context, j *batchstate.Join) (ahead tuple.Groups, err error) {
	var behind tuple.Groups // that have the batch behind the committed one
	for g := range j.Groups.All() {
		yes, err := j.Check(g, s.image.fences[g], s.image.last[g])
		if errors.Is(err, batchstate.ErrFenced) {
			s.run.book.saw("stale join")
			s.run.book.refused[metrics.StaleJoin]++
		}
		if err != nil {
			return ahead, err
		}
		if yes {
			behind.Add(g)
		}
	}
	s.run.book.check(chaos.States)
	if j.Committed != s.run.records.record.Committed {
		s.run.book.saw("join behind the record")
	}
	s.apply(func(m *stateImage) {
		for g := range j.Groups.All() {
			m.fences[g], m.last[g] = j.Fence, j.Leaves(g, behind.Has(g))
		}
		for k, row := range m.rows {
			if !j.Undo || !j.Groups.Has(k.Group) || row.Tx != j.Committed+1 || mutation.Is(mutation.UndoLeftOut) {
				continue
			}
			s.run.book.saw("undone")
			m.rows[k] = batchstate.Row{Tx: j.Committed, Value: row.Prev}
		}
	})
	if !j.Undo {
		ahead = behind
	}
	return ahead, nil
}

// Get implements state.Store.
func (s *simState) Get(_ gocontext.Context, keys []batchstate.Key) ([]batchstate.Row, error) {
	rows := make([]batchstate.Row, len(keys))
	for i, k := range keys {
		rows[i] = s.image.rows[k]
	}
	return rows, nil
}

// Write implements state.Store.
func (s *simState) Write(_ gocontext.Context, w *batchstate.Write) error {
	for _, c := range w.Rows {
		last, fence := s.image.last[c.Group], s.image.fences[c.Group]
		if mutation.Is(mutation.GapIsRepeat) && last.Tx != w.Tx-1 && last.Tx != 0 {
			return nil // it takes a batch behind a gap for one that it has
		}
		if fence != w.Fence {
			s.run.book.saw("fenced write")
		}
		if err := w.Check(c.Group, fence, last); err != nil {
			if errors.Is(err, batchstate.ErrFenced) {
				s.run.book.refused[metrics.StaleWrite]++
			}
			return err
		}
		if last.Tx > 0 && last.Tx < w.Tx-1 {
			s.run.book.saw("gap in a store")
		}
	}
	s.run.book.writes(s, w)
	rows, stamp := w.Rows, w.Stamp()
	s.apply(func(m *stateImage) {
		for _, c := range rows {
			m.last[c.Group] = stamp
			m.rows[c.Key] = c.Row
		}
	})
	return nil
}

// Scan implements state.Store.
func (s *simState) Scan(gocontext.Context, *tuple.Groups, func(batchstate.Key, batchstate.Row) bool) error {
	return errors.ErrUnsupported
}

// Close implements state.Store.
func (s *simState) Close() error { return nil }

// simRecords is a batch.Records that outlives processes. Its answers may be lost, and its
// entries come late, or twice.
type simRecords struct {
	run    *batchRun
	record batch.Record
}

// enter applies an entry, or not, now or later, and says what its coordinator hears.
func (s *simRecords) enter(e *batch.Entry) error {
	r := s.run
	r.w.Spend(r.draw(0, r.s.disk))
	for _, d := range r.s.deeds {
		if !r.lasting(d) || !r.oneIn(3) {
			continue
		}
		switch d.kind {
		case "record fails":
			r.did(d.kind)
			return errRecord
		case "record lost":
			r.did(d.kind)
			_ = s.apply(e)
			return errRecord
		case "record late":
			r.did(d.kind)
			r.w.schedule(r.w.Now()+r.draw(0, 2*r.upTo(d)), func() { _ = s.apply(e) })
			if r.oneIn(2) {
				return errRecord
			}
			return s.apply(e) // and once more later
		}
	}
	return s.apply(e)
}

func (s *simRecords) apply(e *batch.Entry) error {
	before := s.record.Clone()
	err := s.record.Apply(e)
	s.run.book.entered(before, e, err)
	if err == nil && e.Commit != nil {
		s.run.putBack()
	}
	return err
}

// Begin implements batch.Records.
func (s *simRecords) Begin(gocontext.Context) (*batch.Record, error) {
	l := s.run.lives[s.run.w.running]
	if err := s.enter(&batch.Entry{Epoch: s.record.Epoch + 1, Begin: true, Life: l.life}); err != nil {
		return nil, err
	}
	return s.record.Clone(), nil
}

// Append implements batch.Records.
func (s *simRecords) Append(_ gocontext.Context, e *batch.Entry) error { return s.enter(e) }
