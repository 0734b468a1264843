package task

import (
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// How the coordinator of batches of a part of a run keeps its record: who is over the
// supervisor has the log.

type (
	// SaveRecord asks who is over the supervisor for a change of the record of batches, on
	// behalf of one life of its coordinator. RecordSaved is the answer, which goes to that
	// life. Until then that life asks for nothing else, unless the plan changes: then it
	// asks anew, and wants no answer to what it has asked for before. It may take as long
	// as there is nobody who could agree on it.
	SaveRecord struct {
		Run   uint32
		Ref   actor.Ref // of the life that asks
		Life  tuple.Incarnation
		N     uint64       // counts what it has asked for
		Entry *batch.Entry // of Begin without an epoch and a life; not to be changed
	}
	// RecordSaved says what has become of a change. After an error it is not made any more,
	// if it was not made before, and who has asked coordinates no more. Record is the
	// record as Begin has found it, and the task's own. Fatal: no other try helps.
	RecordSaved struct {
		N      uint64
		Record *batch.Record
		Err    error
		Fatal  bool
	}
)

// askLog asks for a change of the record; nil is Begin.
func (t *coordTask) askLog(e *batch.Entry) {
	if t.begins = e == nil; t.begins {
		e = &batch.Entry{Begin: true}
	}
	t.asked++
	t.ctx.Send(t.set.Share.Over, &SaveRecord{Run: t.set.Share.Run, Ref: t.ctx.Self(), Life: t.life, N: t.asked, Entry: e})
}

// recordSaved takes in the answer, unless the machine that it was for is no more.
func (t *coordTask) recordSaved(m *RecordSaved) {
	switch {
	case m.N != t.asked:
	case m.Fatal:
		t.fail(m.Err, true, true)
	case t.begins:
		t.machine.Recovered(t.now, m.Record, m.Err)
	default:
		t.machine.Appended(t.now, m.Err)
	}
}
