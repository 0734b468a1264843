package batch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// A work is a batch that is under way.
type work struct {
	tx    tuple.TxID
	began time.Duration
	stage Stage // Emitting stands for everything before Fixing

	got                         []marks // by TaskID
	unemitted, unready, unwrote int     // answers that are missing

	ranges  map[string]Ranges
	written map[string]tuple.Groups

	messages, tuples, keys int

	failed error // why, if it has
	by     tuple.TaskID
}

// marks are what a task has said of a batch.
type marks uint8

const (
	hasEmitted marks = 1 << iota
	hasReadied
	hasWritten
)

// complete reports whether all tasks that are not behind a state have all of the batch.
func (w *work) complete() bool { return w.unemitted == 0 && w.unready == 0 }

// lacks reports whether the task is one that the batch waits for now.
func (w *work) lacks(r *Role, id tuple.TaskID) bool {
	switch w.stage {
	case Emitting:
		return r.Kind == Spout && w.got[id]&hasEmitted == 0 || r.readies() && w.got[id]&hasReadied == 0
	case Writing:
		return r.writes() && w.got[id]&hasWritten == 0
	}
	return false
}

// find returns the batch if it is under way, else nil.
func (c *Coordinator) find(tx tuple.TxID) *work {
	if i := tx - c.record.Committed - 1; i < tuple.TxID(len(c.batches)) && tx > c.record.Committed {
		return c.batches[i]
	}
	return nil
}

// take takes in an answer of this round, and reports whether it says something new.
func (c *Coordinator) take(from tuple.TaskID, a *Answer) bool {
	r := &c.roles[from]
	if r.Kind == Bystander {
		return false
	}
	w := c.find(a.Tx)
	switch a.Kind {
	case Joined:
		if c.joined[from] {
			return false
		}
		c.joined[from] = true
		c.unjoined--
		return true
	case Input:
		in := &c.inputs[from]
		last := c.record.Committed + tuple.TxID(len(c.batches))
		if r.Kind != Spout || a.Tx < in.said || a.Tx > last || a.Tx == in.said && a.More == in.more && a.Ended == in.ended {
			return false
		}
		in.said, in.more, in.ended = a.Tx, a.More, a.Ended
		return true
	case Failed:
		switch {
		case a.Broken:
			c.stop(Event{Kind: Fatal, BatchID: a.BatchID, Tasks: []tuple.TaskID{from}, Err: errors.New(a.Err)})
			return true
		case w == nil:
			return false
		}
		return c.fail(w, from, errors.New(a.Err))
	case Fenced:
		if r.Kind != Stateful || c.phase != Joining || c.joined[from] {
			return false
		}
		c.challenge(from, a)
		return true
	case Emitted:
		if r.Kind != Spout || w == nil || !w.mark(from, hasEmitted) {
			return false
		}
		w.unemitted--
		c.emitted(w, from, a)
		return true
	case Ready:
		if !r.readies() || w == nil || !w.mark(from, hasReadied) {
			return false
		}
		w.unready--
		w.tuples += a.Tuples
		return true
	case Wrote:
		// One that comes before it was asked for is not believed: it is asked for later.
		if !r.writes() || w == nil || w.stage != Writing || !w.mark(from, hasWritten) {
			return false
		}
		w.unwrote--
		w.keys += a.Keys
		if r.Behind {
			w.tuples += a.Tuples
		}
		if r.Kind == Stateful && !a.Groups.Empty() {
			all := w.written[r.Component]
			for i := range all {
				all[i] |= a.Groups[i]
			}
			w.written[r.Component] = all
		}
		return true
	}
	return false
}

// mark reports whether a mark of the task is new.
func (w *work) mark(id tuple.TaskID, m marks) bool {
	old := w.got[id]
	w.got[id] |= m
	return old&m == 0
}

// emitted takes in what a spout task has emitted of a batch.
func (c *Coordinator) emitted(w *work, from tuple.TaskID, a *Answer) {
	w.messages += a.Tuples
	if in := &c.inputs[from]; a.Tx > in.said { // else a later word of it has come before
		in.said, in.more, in.ended = a.Tx, a.More, a.Ended
		in.full++
		if !a.More {
			in.full = 0
		}
	}
	component := c.roles[from].Component
	all := w.ranges[component]
	if all == nil {
		all = Ranges{}
		w.ranges[component] = all
	}
	for _, split := range slices.Sorted(maps.Keys(a.Ranges)) {
		if _, twice := all[split]; twice { // T14
			c.fail(w, from, fmt.Errorf("two tasks of %s have read split %q: a split is one task's", component, split))
			return
		}
		all[split] = a.Ranges[split]
	}
}

// fail marks a batch as one that has failed. The round ends when it is the first (T2).
func (c *Coordinator) fail(w *work, from tuple.TaskID, err error) bool {
	if w.failed != nil {
		return false
	}
	w.failed, w.by = err, from
	c.failures[w.tx]++
	c.event(Event{Kind: BatchFailed, BatchID: tuple.BatchID{Attempt: c.attempt, Tx: w.tx}, Tasks: []tuple.TaskID{from}, Err: err, Failures: c.failures[w.tx]})
	return true
}

// wants reports whether another batch is to begin. It is if a spout task has input that
// no batch was begun for, that is: if what it said last is that there is more, and it has
// said that after the last batch. So an idle topology has no batches, and one where a
// message comes now and then has one for each, and no empty ones behind it. But then a
// spout task would do nothing from when it has emitted a batch to when it hears of the
// next: after two batches in succession with more behind them it may have one batch that
// waits while it emits another. What that costs is one empty batch at the end of a flood.
//
// No batch begins behind one that has failed, for it would be thrown away. One with fixed
// ranges begins whatever the spout tasks say: parts of it may be written.
func (c *Coordinator) wants(now time.Duration) bool {
	if c.held || c.draining || c.resume > 0 || len(c.batches) >= c.set.Ahead {
		return false
	}
	for _, w := range c.batches {
		if w.failed != nil {
			return false
		}
	}
	if len(c.batches) == 0 && c.record.Fixed != nil {
		return true
	}
	last := c.record.Committed + tuple.TxID(len(c.batches))
	for i := range c.inputs {
		if in := &c.inputs[i]; in.more && (last == in.said || last == in.said+1 && in.full >= 2) {
			return true
		}
	}
	return false
}

// begin begins the next batch (T5, T16).
func (c *Coordinator) begin(now time.Duration) {
	w := &work{
		tx: c.record.Committed + tuple.TxID(len(c.batches)) + 1, began: now, got: make([]marks, len(c.roles)),
		unemitted: c.emitters, unready: c.readiers, unwrote: c.writers,
		ranges: map[string]Ranges{}, written: map[string]tuple.Groups{},
	}
	c.batches = append(c.batches, w)
	for i := range c.roles {
		if r := &c.roles[i]; r.Kind == Spout {
			c.order(tuple.TaskID(i), c.beginning(r, w.tx))
		}
	}
	c.progress(now)
}

// beginning is the order Begin.
func (c *Coordinator) beginning(r *Role, tx tuple.TxID) Order {
	o := Order{Kind: Begin, BatchID: tuple.BatchID{Tx: tx}}
	if r.Transactional && c.record.Fixed != nil && tx == c.record.Committed+1 {
		if o.Fixed = c.record.Fixed[r.Component]; o.Fixed == nil {
			o.Fixed = Ranges{}
		}
	}
	return o
}

// advance brings the first batch as far as it goes (T10).
func (c *Coordinator) advance(now time.Duration) {
	for c.phase == Running && c.asked == (Request{}) && len(c.batches) > 0 {
		w := c.batches[0]
		if mutation.Is(mutation.WriteUnordered) {
			if i := slices.IndexFunc(c.batches, func(w *work) bool { return w.stage == Emitting && w.complete() }); i > 0 {
				w = c.batches[i]
			}
		}
		if mutation.Is(mutation.FailAtOnce) {
			if i := slices.IndexFunc(c.batches, func(w *work) bool { return w.failed != nil }); i > 0 {
				w = c.batches[i]
			}
		}
		if w.failed != nil {
			c.failed(now, w)
			return
		}
		switch w.stage {
		case Emitting:
			if !w.complete() {
				return
			}
			if !c.asFixed(w) {
				continue
			}
			if c.fixes && c.record.Fixed == nil && !mutation.Is(mutation.FixLeftOut) {
				w.stage = Fixing
				c.ask(Request{Append: &Entry{Epoch: c.record.Epoch, Fix: &Fix{w.tx, c.fixed(w)}}})
				return
			}
			c.write(w)
		case Writing:
			if w.unwrote > 0 && !mutation.Is(mutation.CommitUnwritten) {
				return
			}
			w.stage = Committing
			c.sum = Event{Kind: Committed, BatchID: tuple.BatchID{Attempt: c.attempt, Tx: w.tx},
				Messages: w.messages, Tuples: w.tuples, Keys: w.keys, Began: w.began}
			c.ask(Request{Append: &Entry{Epoch: c.record.Epoch, Commit: c.commit(w)}})
		default: // its request has been answered, see appended
			return
		}
	}
}

// failed ends the round, or the topology, for the first batch has failed.
func (c *Coordinator) failed(now time.Duration, w *work) {
	n := c.failures[w.tx]
	if c.set.MaxReplays >= 0 && n > c.set.MaxReplays { // T19
		c.stop(Event{Kind: Fatal, BatchID: tuple.BatchID{Attempt: c.attempt, Tx: w.tx}, Tasks: []tuple.TaskID{w.by}, Failures: n,
			Err: fmt.Errorf("batch %d has failed in each of %d tries: %w", w.tx, n, w.failed)})
		return
	}
	c.resume = now + min(firstPause<<min(n-1, 16), mostPause)
	c.end(Failure, []tuple.TaskID{w.by})
}

// asFixed reports whether the batch has what it must have, or fails it.
func (c *Coordinator) asFixed(w *work) bool {
	for _, component := range slices.Sorted(maps.Keys(c.record.Fixed)) {
		if !maps.EqualFunc(w.ranges[component], c.record.Fixed[component], func(a, b Range) bool { return a.Messages == b.Messages }) {
			by := slices.IndexFunc(c.roles, func(r Role) bool { return r.Component == component })
			c.fail(w, tuple.TaskID(max(by, 0)), fmt.Errorf("%s has not given again what batch %d had of it: its source is not transactional, or another one", component, w.tx))
			return false
		}
	}
	return true
}

// fixed returns what the batch has of all transactional spouts. They are all in it, so
// that it is never empty.
func (c *Coordinator) fixed(w *work) map[string]Ranges {
	all := map[string]Ranges{}
	for i := range c.roles {
		if r := &c.roles[i]; r.Kind == Spout && r.Transactional {
			all[r.Component] = w.ranges[r.Component]
		}
	}
	return all
}

// write has all stateful tasks write the batch.
func (c *Coordinator) write(w *work) {
	w.stage = Writing
	for i := range c.roles {
		if c.roles[i].Kind == Stateful {
			c.order(tuple.TaskID(i), Order{Kind: Write, BatchID: tuple.BatchID{Tx: w.tx}})
		}
	}
}

// commit says how the record is when the batch is committed.
func (c *Coordinator) commit(w *work) *Commit {
	positions := map[string]Positions{}
	for component, ranges := range w.ranges {
		if fixed, ok := c.record.Fixed[component]; ok {
			ranges = fixed
		}
		for split, r := range ranges {
			if positions[component] == nil {
				positions[component] = Positions{}
			}
			positions[component][split] = r.To
		}
	}
	for i := range c.roles { // the record knows each state from its first batch on, written or not
		r := &c.roles[i]
		if _, is := w.written[r.Component]; r.Kind == Stateful && !is && c.record.Last[r.Component] == nil {
			w.written[r.Component] = tuple.Groups{}
		}
	}
	return &Commit{Tx: w.tx, Round: c.attempt.Round, Positions: positions, Written: w.written}
}

// appended goes on after an entry that is in the record.
func (c *Coordinator) appended(e *Entry) {
	switch {
	case e.Commit != nil:
		c.forget()
		c.patience = c.set.Patience
		c.sum.Took = c.moved - c.sum.Began
		c.event(c.sum)
		if c.phase != Running || len(c.batches) == 0 || c.batches[0].stage != Committing {
			return // the round has ended meanwhile
		}
		c.batches = c.batches[1:]
		for i := range c.roles {
			if c.roles[i].Settled {
				c.order(tuple.TaskID(i), Order{Kind: Settled, BatchID: tuple.BatchID{Tx: c.record.Committed}})
			}
		}
	case e.Fix != nil && c.phase == Running && len(c.batches) > 0 && c.batches[0].stage == Fixing && c.batches[0].failed == nil:
		c.write(c.batches[0])
	}
}
