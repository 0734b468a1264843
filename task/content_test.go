package task

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

func parcelOf(edit func(*tuple.Parcel), rows ...[]any) *tuple.Parcel {
	s := &tuple.Schema{Component: "c", Stream: "s", Fields: []string{"a", "b"}}
	p := &tuple.Parcel{Schema: s, From: 1, FromLife: 1, To: 2, ToLife: 1}
	for i, values := range rows {
		var r tuple.Row
		r.Set(s, values)
		if i == 0 {
			p.Begin(r.Kinds, len(rows))
		}
		p.Append(&r)
	}
	edit(p)
	return p
}

func batchOf(rows ...[]any) *spout.Batch {
	s := &tuple.Schema{Component: "c", Stream: "s", Fields: []string{"a", "b"}}
	b := new(spout.Batch)
	for _, values := range rows {
		var r tuple.Row
		r.Set(s, values)
		b.Append(0, &r)
	}
	return b
}

// Two messages that say something else have another content, and the same message has
// the same twice and again when it was made anew.
func TestContent(t *testing.T) {
	as := func(*tuple.Parcel) {}
	peer := actor.Ref("peer")
	all := func() []any {
		return []any{
			parcelOf(as, []any{1, "x"}), parcelOf(as, []any{2, "x"}), parcelOf(as, []any{1, "y"}), parcelOf(as, []any{uint64(1), "x"}),
			parcelOf(as, []any{1.0, "x"}), parcelOf(as, []any{1, "x"}, []any{1, "x"}),
			parcelOf(func(p *tuple.Parcel) { p.ToLife = 2 }, []any{1, "x"}), parcelOf(func(p *tuple.Parcel) { p.Stream = 2 }, []any{1, "x"}),
			parcelOf(func(p *tuple.Parcel) { p.Opened = 2 }, []any{1, "x"}), parcelOf(func(p *tuple.Parcel) { p.Input = 2 }, []any{1, "x"}),
			parcelOf(func(p *tuple.Parcel) { p.Plan = 2 }, []any{1, "x"}),
			parcelOf(func(p *tuple.Parcel) {
				p.Slots, p.Refs = []tuple.Slot{{Tree: tuple.TreeID{Seq: 3}, Edge: 4, Count: 1}}, []tuple.Ref{{}}
			}, []any{1, "x"}),
			parcelOf(func(p *tuple.Parcel) {
				p.Slots, p.Refs = []tuple.Slot{{Tree: tuple.TreeID{Seq: 3}, Edge: 5, Count: 1}}, []tuple.Ref{{}}
			}, []any{1, "x"}),
			&acker.Report{}, &acker.Report{From: 1}, &acker.Report{FromLife: 1}, &acker.Report{To: 1}, &acker.Report{ToLife: 1},
			&acker.Report{View: []acker.Death{{}}}, &acker.Report{Entries: []acker.Entry{{}}}, &acker.Report{Fails: []acker.Fail{{}}}, &acker.Report{Held: []acker.Held{{}}},
			&acker.Report{View: []acker.Death{{Task: 1}}}, &acker.Report{View: []acker.Death{{Life: 1}}},
			&acker.Report{Entries: []acker.Entry{{Seq: 1}}}, &acker.Report{Entries: []acker.Entry{{Xor: 1}}}, &acker.Report{Entries: []acker.Entry{{Mask: 1}}},
			&acker.Report{Entries: []acker.Entry{{Seq: 1}, {Seq: 2}}}, &acker.Report{Entries: []acker.Entry{{Seq: 2}, {Seq: 1}}},
			&acker.Report{Fails: []acker.Fail{{Seq: 1}}}, &acker.Report{Fails: []acker.Fail{{Index: 1}}}, &acker.Report{Fails: []acker.Fail{{Class: acker.Hung}}},
			&acker.Report{Fails: []acker.Fail{{Err: "x"}}}, &acker.Report{Fails: []acker.Fail{{Suspects: 1}}},
			&acker.Report{Lost: []uint64{1}}, &acker.Report{Queued: []uint64{1}}, &acker.Report{Held: []acker.Held{{Seq: 1}}},
			&acker.Report{Held: []acker.Held{{Component: 1}}}, &acker.Report{Held: []acker.Held{{Within: true}}}, &acker.Report{Held: []acker.Held{{Waits: true}}},
			&Limit{}, &Limit{From: 1}, &Limit{To: 1}, &Limit{FromLife: 1}, &Limit{ToLife: 1}, &Limit{Total: 1}, &Limit{Each: 1}, &Limit{Parcels: []*tuple.Parcel{nil}},
			&Ask{}, &Ask{From: 1}, &End{}, &End{To: 1}, &Dry{}, &Dry{FromLife: 1}, &Dry{Not: true},
			&Order{}, &Order{To: 1}, &Order{Order: batch.Order{Kind: batch.Begin}}, &Order{Order: batch.Order{Kind: batch.Join, View: []tuple.Incarnation{1}}},
			&Answer{}, &Answer{From: 1}, &Answer{Answer: batch.Answer{Kind: batch.Wrote, Keys: 2}},
			joinDone{}, joinDone{at: tuple.Attempt{Round: 1}}, joinDone{err: io.EOF}, writeDone{}, writeDone{id: tuple.BatchID{Tx: 1}}, writeDone{err: io.EOF},
			&Peers{}, &Peers{[]Peer{{}}}, &Peers{[]Peer{{Task: 1}}}, &Peers{[]Peer{{Life: 1}}}, &Peers{[]Peer{{Ref: peer}}},
			&Letters{}, &Letters{Last: true}, &Letters{Letters: []*DeadLetter{{ID: "1"}}},
			Taps{}, Taps{{}}, Taps{{Component: "x"}}, Taps{{Stream: "x"}},
			actor.Terminated{}, actor.Terminated{Err: io.EOF}, actor.Terminated{Err: errors.New("x")},
			ended{}, ended{task: 1}, ended{life: 1},
			failed{}, failed{task: 1}, failed{err: io.EOF}, failed{fatal: true}, failed{own: true},
			committed{}, committed{index: 1}, committed{split: "x"}, committed{position: "x"},
			kept{}, kept{index: 1}, kept{position: "x"}, replayed{}, replayed{id: "x"},
			quiet{}, quiet{1}, replay{}, replay{1}, reopen{}, reopen{&reading{}}, reopen{&reading{index: 1}},
			splitsRead{}, splitsRead{splits: []spout.Split{"x"}}, splitsRead{err: io.EOF}, splitOpened{}, splitOpened{err: io.EOF},
			nextDone{batch: batchOf()}, nextDone{batch: batchOf([]any{1, "x"})}, nextDone{batch: batchOf([]any{1, "y"})},
			nextDone{batch: batchOf([]any{1, "x"}, []any{2.5, "x"})}, nextDone{batch: batchOf([]any{1, "x"}, []any{"2.5", "x"})},
			nextDone{batch: batchOf(), position: "x"}, nextDone{batch: batchOf(), err: io.EOF},
			queueBack{&queueCall{batch: batchOf()}}, queueBack{&queueCall{batch: batchOf([]any{1, "x"})}}, queueBack{&queueCall{batch: batchOf(), err: io.EOF}},
			closeDone{}, closeDone{err: io.EOF}, commitDone{}, commitDone{position: "x"}, commitDone{err: io.EOF},
			saved{}, saved{refused: 1}, saved{err: io.EOF}, buried{}, buried{stored: 1}, buried{err: io.EOF},
			replaysRead{}, replaysRead{more: true}, replaysRead{err: io.EOF}, replaysRead{letters: []*DeadLetter{{ID: "1"}}},
		}
	}
	seen := map[string]int{}
	again := all()
	for i, m := range all() {
		c := string(AppendContent([]byte("before"), m))
		require.Equal(t, "before", c[:6])
		require.Equal(t, c, string(AppendContent([]byte("before"), m)))
		require.Equal(t, c, string(AppendContent([]byte("before"), again[i])), "%T", m)
		key := fmt.Sprintf("%T ", m) + c
		if other, is := seen[key]; is {
			t.Errorf("message %d, %T %+v, has the content of message %d", i, m, m, other)
		}
		seen[key] = i
	}
}
