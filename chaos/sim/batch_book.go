package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	batchstate "github.com/egretstream/egret/state"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A batchBook is what really happened to an exactly-once topology: what the record and the
// stores have, and what was said. No counter of Egret's has a part in it.
type batchBook struct {
	run        *batchRun
	bad        *Violation
	checks     map[chaos.Checker]*checked
	features   map[string]bool
	executions int

	// positions that the record has, by part and split; want is, by state and key, the ids
	// of all messages before them.
	positions map[[2]int]int
	want      []map[string]map[uint64]batchClaim

	rounds map[tuple.Attempt]*batchRound
	links  map[acquaintance]*batchLink
	all    []acquaintance // in the order of their first word
	pairs  creditBook

	begun    tuple.BatchID // in this run, the last one
	furthest tuple.TxID    // and the last one that is none again
	again    int64

	joined  map[*proc]tuple.Attempt // what a task has said last that it has joined, or a coordinator has ordered
	refused [metrics.StaleKinds]int // by stores
}

func newBatchBook(r *batchRun) *batchBook {
	b := &batchBook{
		run: r, checks: map[chaos.Checker]*checked{}, features: map[string]bool{}, positions: map[[2]int]int{},
		rounds: map[tuple.Attempt]*batchRound{}, links: map[acquaintance]*batchLink{}, pairs: newCreditBook(),
		joined: map[*proc]tuple.Attempt{},
	}
	for range r.s.parts {
		b.want = append(b.want, map[string]map[uint64]batchClaim{})
	}
	return b
}

func (b *batchBook) tally(c chaos.Checker) *checked {
	if b.checks[c] == nil {
		b.checks[c] = &checked{}
	}
	return b.checks[c]
}

func (b *batchBook) check(c chaos.Checker) { b.tally(c).safety++ }
func (b *batchBook) twin(c chaos.Checker)  { b.tally(c).twin++ }

func (b *batchBook) counted() (safety, twins map[chaos.Checker]int) {
	return (&record{checks: b.checks}).counted()
}

func (b *batchBook) violate(c chaos.Checker, format string, args ...any) {
	if b.bad == nil {
		b.bad = &Violation{c, fmt.Sprintf(format, args...), b.run.w.Now()}
	}
}

func (b *batchBook) saw(feature string) { b.features[feature] = true }

// name is that of the task whose code is running.
func (b *batchBook) name() string { return b.run.w.running.label }

// position reads a position that somebody gives a source.
func (b *batchBook) position(part int, split, text string) int {
	k, err := strconv.Atoi(split)
	n := 0
	if err == nil && text != "" {
		n, err = strconv.Atoi(text)
	}
	if p := &b.run.s.parts[part]; err != nil || k < 0 || k >= len(p.splits) || n < 0 || n > p.splits[k] {
		b.violate(chaos.Positions, "%s has no position %q in split %q", p.name, text, split)
		return 0
	}
	return n
}

// entered books what the record has made of an entry: before is how it was.
func (b *batchBook) entered(before *batch.Record, e *batch.Entry, err error) {
	b.check(chaos.Record)
	now := &b.run.records.record
	b.run.w.note(fmt.Sprintf("entry of epoch %d, begin %v, commit %v, fix %v: epoch %d, batch %d", e.Epoch, e.Begin, e.Commit != nil, e.Fix != nil, now.Epoch, now.Committed), nil, nil, nil)
	switch {
	case err != nil:
		b.saw("stale entry")
		if now.Epoch != before.Epoch || now.Committed != before.Committed {
			b.violate(chaos.Record, "an entry is refused and taken")
		}
		return
	case e.Begin:
		if e.Epoch <= before.Epoch {
			b.violate(chaos.Record, "epoch %d begins, and there was %d", e.Epoch, before.Epoch)
		}
		return
	case e.Epoch != before.Epoch:
		b.violate(chaos.Record, "an entry of epoch %d is taken, and it is %d", e.Epoch, before.Epoch)
	case e.Fix != nil:
		b.saw("ranges fixed")
		return
	case e.Commit.Tx != before.Committed+1:
		b.violate(chaos.Record, "batch %d is committed, and it was %d", e.Commit.Tx, before.Committed)
	}
	if e.Commit == nil {
		return // ranges, of another epoch
	}
	b.twin(chaos.Record)
	b.committed(e.Commit)
}

// committed checks that each state has, durably, what was in the batch, and nothing else.
func (b *batchBook) committed(c *batch.Commit) {
	s := b.run.s
	fresh := make([]map[string][]uint64, len(s.parts))
	for _, component := range slices.Sorted(maps.Keys(c.Positions)) {
		part := slices.IndexFunc(s.parts, func(p batchPart) bool { return p.name == component })
		for _, split := range slices.Sorted(maps.Keys(c.Positions[component])) {
			n := b.position(part, split, c.Positions[component][split])
			k, _ := strconv.Atoi(split)
			b.check(chaos.Positions)
			at := [2]int{part, k}
			if n < b.positions[at] {
				b.violate(chaos.Positions, "batch %d takes split %s of %s back from %d to %d", c.Tx, split, component, b.positions[at], n)
			}
			for ; b.positions[at] < n; b.positions[at]++ {
				id := batchMessageID(part, k, b.positions[at])
				s.descend(part, s.key(id), id, batchClaim{}, func(to int, key string, id uint64, claim batchClaim) {
					if fresh[to] == nil {
						fresh[to] = map[string][]uint64{}
					}
					if b.want[to][key] == nil {
						b.want[to][key] = map[uint64]batchClaim{}
					}
					fresh[to][key] = append(fresh[to][key], id)
					b.want[to][key][id] = claim
				})
			}
		}
	}
	for i, store := range b.run.states {
		if store != nil && b.run.lost == 0 { // else who looks next sees that
			b.compare(store, c.Tx, fresh[i], fresh)
		}
	}
}

// compare checks what a state has when a batch is committed.
func (b *batchBook) compare(store *simState, tx tuple.TxID, keys map[string][]uint64, fresh []map[string][]uint64) {
	name := b.run.s.parts[store.part].name
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		b.check(chaos.States)
		row := store.disk.rows[stateKey(key)]
		if row.Tx != tx {
			b.violate(chaos.States, "batch %d is committed, and has %d entries of key %s for %s, which has that key of batch %d", tx, len(keys[key]), key, name, row.Tx)
			return
		}
		b.same(name, key, tx, row, b.want[store.part][key])
		for _, e := range entriesOf(row.Value) {
			if slices.Contains(keys[key], e.id) {
				b.claimed(name, key, tx, e, b.want[store.part][key][e.id], fresh)
			}
		}
	}
	for k, row := range store.disk.rows { // in any order: it says no key
		if row.Tx > tx || row.Tx == tx && keys[k.Bytes] == nil {
			b.violate(chaos.States, "batch %d is committed, and %s has a key of batch %d that is not in it", tx, name, row.Tx)
		}
	}
}

// same checks that a key has each id once.
func (b *batchBook) same(name, key string, tx tuple.TxID, row batchstate.Row, want map[uint64]batchClaim) {
	has := map[uint64]bool{}
	for _, e := range entriesOf(row.Value) {
		if _, is := want[e.id]; !is {
			b.violate(chaos.States, "batch %d is committed, and %s has of key %s what is not committed: %x", tx, name, key, e.id)
		}
		if has[e.id] {
			b.violate(chaos.States, "batch %d is committed, and %s has of key %s something twice: %x", tx, name, key, e.id)
		}
		has[e.id] = true
	}
	if len(has) < len(want) {
		b.violate(chaos.States, "batch %d is committed, and %s has %d of %d entries of key %s", tx, name, len(has), len(want), key)
	}
}

// claimed checks the number that came with an entry.
func (b *batchBook) claimed(name, key string, tx tuple.TxID, e batchEntry, claim batchClaim, fresh []map[string][]uint64) {
	n := uint64(0)
	if i := claim.state - 1; i >= 0 {
		n = uint64(len(b.want[i][claim.key]))
		if !claim.behind {
			n -= uint64(len(fresh[i][claim.key]))
		}
		b.check(chaos.Reads)
		b.twin(chaos.Reads)
	}
	if e.number != n {
		b.violate(chaos.Reads, "batch %d is committed, and %s has of key %s an entry with number %d, and it is %d", tx, name, key, e.number, n)
	}
}

// writes checks what is written: of the batch behind the last committed one.
func (b *batchBook) writes(s *simState, w *batchstate.Write) {
	b.check(chaos.States)
	if c := b.run.records.record.Committed; w.Tx != c+1 {
		b.violate(chaos.States, "%s writes batch %d of attempt %v, and %d is committed", b.run.s.parts[s.part].name, w.Tx, w.Fence.Attempt, c)
	}
}

// event checks what people are told.
func (b *batchBook) event(e task.Event) {
	b.check(chaos.Panics)
	switch e := e.(type) {
	case *task.Died:
		p, _ := errors.AsType[*task.PanicError](e.Err)
		switch {
		case p != nil && p.Value != any(errBroken):
			b.violate(chaos.Panics, "%s life %v: %v\n%s", e.Task, e.Life, p.Value, p.Stack)
		case errors.Is(e.Err, batchstate.ErrLost) && b.run.lost == 0:
			b.violate(chaos.States, "%s life %v: %v", e.Task, e.Life, e.Err)
		case !b.run.s.faults:
			b.violate(chaos.Panics, "%s life %v has died, and nothing was done to it: %v", e.Task, e.Life, e.Err)
		case errors.Is(e.Err, batch.ErrStale):
			b.saw("coordinator replaced")
		case errors.Is(e.Err, batchstate.ErrFenced):
			b.saw("life fenced")
		}
	case *task.Notice:
		for _, c := range []batch.Cause{batch.Death, batch.Failure, batch.Timeout, batch.Unknown} {
			if strings.Contains(e.Text, "come again") && strings.Contains(e.Text, fmt.Sprintf("): %v", c)) {
				b.saw(fmt.Sprintf("round after: %v", c))
			}
		}
	case *task.SourceError:
		if b.run.deeds["break"] == 0 {
			b.violate(chaos.Sources, "%s: %v", e.Task, e.Err)
		}
	}
}

// runEnds checks how a run has ended.
func (b *batchBook) runEnds() {
	r := b.run
	b.check(chaos.Ending)
	b.twin(chaos.Ending)
	switch {
	case r.lost > 0 && errors.Is(r.err, batchstate.ErrLost):
		b.saw("loss told")
		r.ended, r.told = true, true
	case r.err == nil && r.complete():
		r.ended = r.runs > r.lost // else nobody may have looked since: the next run's tasks do
	case r.err == nil && !r.asked:
		b.violate(chaos.Ending, "the run has ended before its input was committed%s", r.stuck())
	case r.err != nil && !r.forgiven(r.err):
		b.violate(chaos.Ending, "the run has ended with: %v", r.err)
	default:
		b.saw("run goes on")
	}
}

// atEnd checks what must hold when everything is committed and has stopped.
func (b *batchBook) atEnd() {
	r := b.run
	b.check(chaos.Rest)
	b.twin(chaos.Rest)
	if left := r.w.Left(); left != (Left{}) {
		b.violate(chaos.Rest, "left when everything has stopped: %v", left)
	}
	if r.told {
		return // it has stopped in the middle
	}
	for i, store := range r.states {
		if store == nil {
			continue
		}
		b.twin(chaos.States)
		for _, key := range slices.Sorted(maps.Keys(b.want[i])) {
			b.same(r.s.parts[i].name, key, r.records.record.Committed, store.disk.rows[stateKey(key)], b.want[i][key])
		}
	}
	b.creditAtEnd()
	b.refusedAtEnd()
}
