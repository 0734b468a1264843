package egrettest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// When the next row may come, and what a run waits for.

// change wakes those who wait for something; r.mu is held.
func (r *recorder) change() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// wait waits until ok, which is called with r.mu held, or ctx ends.
func (r *recorder) wait(ctx context.Context, ok func() bool) error {
	for {
		r.mu.Lock()
		if ok() {
			r.mu.Unlock()
			return nil
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// quiet waits until ok, and everything that inputs have given has been executed, is
// acked or dead or retained, and everybody knows of the tasks that have died by it.
func (r *recorder) quiet(ctx context.Context, ok func() bool) error {
	return r.wait(ctx, func() bool { return ok() && r.atRest() })
}

func (r *recorder) atRest() bool {
	return r.handed == r.emitted && len(r.links) == 0 && r.waiting == 0 && r.busy == 0 && r.away == 0 && len(r.news) == 0
}

func (r *recorder) hand() {
	r.mu.Lock()
	r.handed++
	r.mu.Unlock()
}

// passed says that one entry of the script has been given.
func (r *recorder) passed(s *script) {
	r.mu.Lock()
	s.next++
	r.change()
	r.mu.Unlock()
}

// tick lets every task of a bolt tick and waits until it has.
func (r *recorder) tick(ctx context.Context, component string) error {
	var of []*station
	r.mu.Lock()
	for i := range r.stations {
		if s := &r.stations[i]; r.plan.Components[s.component].Name == component {
			s.wanted++
			of = append(of, s)
		}
	}
	r.change()
	r.mu.Unlock()
	return r.quiet(ctx, func() bool {
		return !slices.ContainsFunc(of, func(s *station) bool { return s.wanted > 0 })
	})
}

func (r *recorder) wantsTick(alive context.Context, id tuple.TaskID, b bolt.Bolt) bool {
	s := &r.stations[id]
	if r.wait(alive, func() bool { return s.wanted > 0 && s.own == "" }) != nil {
		return false
	}
	if _, is := b.(bolt.Ticker); !is {
		r.giveUp("Tick(%q): the bolt is a %T, which has no method Tick(*bolt.Collector) error", r.plan.Components[s.component].Name, b)
		return false
	}
	return true
}

func (r *recorder) giveUp(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == "" {
		r.why = fmt.Sprintf(format, args...)
		close(r.hopeless)
	}
}

// learned books that a task has heard of another's life. As long as somebody has not,
// what is sent may go to a dead one and come again, so the next row waits for it.
func (r *recorder) learned(id tuple.TaskID, p task.Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]tuple.TaskID{id, p.Task}
	if life, is := r.news[key]; is && p.Life >= life {
		delete(r.news, key)
		r.change()
	}
}

// open says what a run that has not come to rest waits for.
func (r *recorder) open(stats *egret.Stats) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	open, hands := 0, 0
	for _, m := range r.messages {
		if m.acked || m.letter != nil || m.first == nil {
			continue
		}
		if open++; open <= 5 {
			fmt.Fprintf(&b, "\n\tmessage of %s: %s", r.plan.TaskName(m.task), m.first.tuple(r.plan).named())
		}
	}
	if open > 5 {
		fmt.Fprintf(&b, "\n\t... and %d more messages", open-5)
	}
	for id := range r.stations {
		name := r.plan.TaskName(tuple.TaskID(id))
		if x := r.stations[id].hand; x != nil {
			hands++
			fmt.Fprintf(&b, "\n\t%s is in Execute with %s", name, x.in.tuple(r.plan).named())
		} else if own := r.stations[id].own; own != "" {
			fmt.Fprintf(&b, "\n\t%s is in %s", name, own)
		}
	}
	if len(r.links) > hands {
		fmt.Fprintf(&b, "\n\t%s on the way", amount.Of(len(r.links)-hands, "tuple"))
	}
	kept := make([]int, len(r.plan.Components))
	for _, x := range r.held {
		kept[x.component]++
	}
	for i, n := range kept {
		if n > 0 {
			fmt.Fprintf(&b, "\n\t%s retained by %s", amount.Of(n, "tuple"), r.plan.Components[i].Name)
		}
	}
	for id, t := range stats.Tasks {
		if r.stations[id].hand != nil {
			t.Queued-- // told above
		}
		if t.Queued > 0 {
			fmt.Fprintf(&b, "\n\t%s queued for %s", amount.Of(t.Queued, "tuple"), t.Task)
		}
	}
	if r.script.next < len(r.script.entries) {
		fmt.Fprintf(&b, "\n\tthe inputs have given %d of %d items", r.script.next, len(r.script.entries))
	} else if open == 0 && b.Len() == 0 {
		b.WriteString("\n\tnothing is open: a source that is not replaced by an Input has not ended")
	}
	return b.String()
}
