package task

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// The rarer of the groupings that look at every tuple: not those by fields and for
// every task, which are hot.

// A choice is what a route with one of the rarer groupings keeps.
type choice struct {
	given   []uint64         // of a partial key: tuples, by lane
	chooser topology.Chooser // of a custom one
	lanes   []int            // what chooser said last
	room    []int            // that it is given
	view    tuple.View
}

// setup is an error if user code does not give the route its chooser.
func (ch *choice) setup(c *core, r *topology.Route) (err error) {
	to := &c.plan.Components[r.To]
	switch r.Grouping {
	case topology.PartialKey:
		ch.given = make([]uint64, to.Parallel)
	case topology.Custom:
		ch.room = make([]int, 0, to.Parallel)
		s := topology.Sender{Stream: c.node.Streams[r.Stream], Index: c.plan.Tasks[c.id].Index, To: to.Name, Tasks: to.Parallel}
		defer func() {
			if v := recover(); v != nil {
				err = mistake(s.Stream, r, fmt.Sprintf("panic before there was a chooser: %v%s", v, panicPlace()))
			}
		}()
		if ch.chooser = r.Choose(s); ch.chooser == nil {
			return mistake(s.Stream, r, "its function has returned no chooser")
		}
	}
	return nil
}

// choose puts a tuple into the lanes that its grouping says. After an error, which
// rejects the tuple, it is in none of them.
func (o *outbox) choose(t *route, r *tuple.Row, a *anchor) error {
	switch t.Grouping {
	case topology.PartialKey:
		o.add(t.lighter(r), r, a)
	case topology.Direct:
		if r.Direct == 0 {
			o.c.node.Streams[t.Stream].NeedsTask()
		}
		o.add(&t.lanes[r.Direct-1], r, a)
	case topology.Custom:
		if err := t.consult(o.c.node.Streams[t.Stream], r); err != nil {
			return err
		}
		for _, k := range t.choice.lanes {
			o.add(&t.lanes[k], r, a)
		}
	}
	return nil
}

// lighter returns the one of a key's two lanes that was given fewer tuples.
func (t *route) lighter(r *tuple.Row) *lane {
	given := t.choice.given
	i, k := tuple.Owners(tuple.Hash(r.Cells, r.Kinds, t.Fields), len(given))
	if given[k] < given[i] {
		i = k
	}
	given[i]++
	return &t.lanes[i]
}

// consult sets choice.lanes to what the chooser says of a tuple.
func (t *route) consult(s *tuple.Schema, r *tuple.Row) (err error) {
	ch := &t.choice
	defer func() {
		ch.view.Close()
		if v := recover(); v != nil {
			if m := tuple.Misused(v); m != nil {
				err = mistake(s, t.Route, m.Error())
			} else {
				err = mistake(s, t.Route, fmt.Sprintf("panic: %v%s", v, panicPlace()))
			}
		}
	}()
	ch.lanes = ch.chooser(ch.view.Tuple(s, r), ch.room[:0])
	for _, k := range ch.lanes {
		if uint(k) >= uint(len(t.lanes)) {
			return mistake(s, t.Route, fmt.Sprintf("it chose task %d, and there are tasks 0 to %d", k, len(t.lanes)-1))
		}
	}
	return nil
}

func mistake(s *tuple.Schema, r *topology.Route, what string) error {
	return errors.New("custom grouping " + r.Custom + " of stream " + s.Component + "." + s.Stream + ": " + what)
}

// panicPlace says where the panic that is being recovered happened: " at file.go:7".
func panicPlace() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for thrown := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			thrown = true
		case thrown && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf(" at %s:%d", path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// reject rejects what a bolt has emitted: with it the tuple in hand, or those that
// it was anchored to.
func (o *outbox) reject(err error) {
	if o.putter == nil {
		tuple.Misuse(err.Error())
	}
	t := o.bolt
	text := "bolt " + t.node.Name + ": " + cut(err.Error(), failureText)
	t.told(&Failure{Err: err.Error(), Unsent: true})
	for _, r := range o.putter.refs {
		r.part.fails = append(r.part.fails, refusal{r.part.tree, r.index, acker.Rejected, text})
	}
}

// A refusals is the messages of the tree that is being emitted which a grouping
// has rejected.
//
// Invariant: if there are any, edge is in the account of the tree, so that it
// stays open until they are reported.
type refusals struct {
	edge  tuple.EdgeID
	fails []acker.Fail
	// Without tracking they are only told.
	n     int64
	again time.Duration // not before
}

// refuse books that a message has been rejected by a grouping.
func (o *outbox) refuse(a *anchor, err error) {
	text := o.c.node.Kind() + " " + o.c.node.Name + ": " + cut(err.Error(), failureText)
	r := &o.refused
	if a == nil {
		o.tellUnsent(text, "")
		return
	}
	if len(r.fails) == 0 {
		r.edge = o.rnd.next()
		a.acc.xor ^= r.edge
	}
	r.fails = append(r.fails, acker.Fail{Seq: a.tree.Seq, Index: a.index, Class: acker.Rejected, Err: text})
}

// tellUnsent makes known that a tuple could not be sent.
func (o *outbox) tellUnsent(text, what string) {
	c, r := o.c, &o.refused
	r.n++
	f := &Failure{Task: c.m.Name, Err: text, Failed: r.n, Tuple: what, Unsent: true, Quiet: r.n > 1 && c.now < r.again}
	if !f.Quiet {
		r.again = c.now + failureEvery
	}
	c.set.Event(f)
}

// refuse reports the rejected messages of the tree that was opened last.
func (o *origin) refuse(seq uint64) {
	c, r := o.c, &o.c.out.refused
	o.ledger.Report(c.now, &acker.Report{
		From: c.id, FromLife: c.life, To: c.id, ToLife: c.life,
		Entries: []acker.Entry{{Seq: seq, Xor: r.edge}}, Fails: r.fails,
	})
	r.fails = r.fails[:0]
}
