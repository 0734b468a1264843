package sim

import (
	gocontext "context"
	"errors"
	"fmt"
	"maps"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/chaos"
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
}

type stateImage struct {
	fences [tuple.KeyGroups]tuple.Fence
	last   [tuple.KeyGroups]tuple.TxID
	rows   map[batchstate.Key]batchstate.Row
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
	s.tail, s.image = nil, s.disk
	s.image.rows = maps.Clone(s.disk.rows)
	s.life++
}

// Join implements state.Store.
func (s *simState) Join(_ gocontext.Context, j *batchstate.Join) error {
	for g := range j.Groups.All() {
		if j.Fence.Less(s.image.fences[g]) {
			s.run.book.saw("stale join")
			return fmt.Errorf("group %d: %w", g, batchstate.ErrFenced)
		}
		var want tuple.TxID
		if j.Last != nil {
			want = j.Last[g]
		}
		if has := s.image.last[g]; has != want && has != j.Committed+1 {
			return fmt.Errorf("%w: group %d has batch %d, and the record %d of %d", batchstate.ErrLost, g, has, want, j.Committed)
		}
	}
	s.run.book.check(chaos.States)
	if j.Committed != s.run.records.record.Committed {
		s.run.book.saw("join behind the record")
	}
	fence, groups, committed, last, undo := j.Fence, j.Groups, j.Committed, j.Last, j.Undo
	s.apply(func(m *stateImage) {
		for g := range groups.All() {
			m.fences[g] = fence
			if m.last[g] != committed+1 || !undo {
				continue
			}
			if m.last[g] = 0; last != nil {
				m.last[g] = last[g]
			}
		}
		for k, row := range m.rows {
			if !undo || !groups.Has(k.Group) || row.Tx != committed+1 || mutation.Is(mutation.UndoLeftOut) {
				continue
			}
			s.run.book.saw("undone")
			m.rows[k] = batchstate.Row{Tx: committed, Value: row.Prev}
		}
	})
	return nil
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
		g := c.Group
		switch last := s.image.last[g]; {
		case s.image.fences[g] != w.Fence && !mutation.Is(mutation.FenceUncompared):
			s.run.book.saw("fenced write")
			return fmt.Errorf("batch %d, group %d: %w", w.Tx, g, batchstate.ErrFenced)
		case mutation.Is(mutation.GapIsRepeat) && last != w.Tx-1 && last != 0:
			return nil // it takes a batch behind a gap for one that it has
		case last > w.Tx, last == w.Tx && !w.Again:
			return fmt.Errorf("batch %d, group %d has %d: %w", w.Tx, g, last, batchstate.ErrFenced)
		case last > 0 && last < w.Tx-1:
			s.run.book.saw("gap in a store")
		}
	}
	s.run.book.writes(s, w)
	rows, tx := w.Rows, w.Tx
	s.apply(func(m *stateImage) {
		for _, c := range rows {
			m.last[c.Group] = tx
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
