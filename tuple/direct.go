package tuple

import "fmt"

// SetDirect is Set for a tuple whose emitter has chosen the task that gets it, by
// its index. It panics with a misuse when the stream is not direct or its
// subscriber has no such task.
func (r *Row) SetDirect(s *Schema, task int, values []any) {
	if uint(task) >= uint(s.Direct) {
		s.refuseTask(task)
	}
	r.Set(s, values)
	r.Direct = task + 1
}

// NeedsTask panics with a misuse if s is direct: a tuple on it was emitted without
// a task.
func (s *Schema) NeedsTask() {
	if s.Direct > 0 {
		panic(misuse{fmt.Sprintf("stream %s.%s is direct: use EmitDirect and choose a task from 0 to %d", s.Component, s.Stream, s.Direct-1)})
	}
}

func (s *Schema) refuseTask(task int) {
	if s.Direct == 0 {
		panic(misuse{fmt.Sprintf("stream %s.%s is not direct: use Emit, or subscribe to it with Direct()", s.Component, s.Stream)})
	}
	panic(misuse{fmt.Sprintf("stream %s.%s is direct to tasks 0 to %d, but task %d was chosen", s.Component, s.Stream, s.Direct-1, task)})
}

// A View shows a row as a Tuple, to code that is asked about a tuple before it is
// in a parcel. The zero View is ready for use.
type View struct{ p Parcel }

// Tuple returns a view on r, good until Close or until r is changed.
func (v *View) Tuple(s *Schema, r *Row) Tuple {
	v.p.Schema, v.p.Kinds, v.p.Cells, v.p.n = s, r.Kinds, r.Cells, 1
	return v.p.Tuple(0)
}

// Close ends the life of the Tuple, whose use is then found out.
func (v *View) Close() {
	v.p.Expire()
	v.p.Kinds, v.p.Cells, v.p.n = nil, nil, 0
}
