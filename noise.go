package egret

import (
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/amount"
)

const (
	burstMost = 10 // records about the same thing in the same component, in
	burstTime = 10 * time.Second
)

// A noise keeps what happens again and again from flooding the log: of each kind
// and component the first ones are logged, and how many were not.
type noise struct {
	mu     sync.Mutex
	bursts map[topic]*burst
}

type topic struct{ component, what string }

type burst struct {
	since  time.Time
	logged int   // since then
	more   int64 // not logged, since the last one that was
}

// pass reports whether one more is to be logged, and how many before it were not.
func (n *noise) pass(t topic, now time.Time) (more int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.bursts[t]
	if b == nil {
		b = &burst{since: now}
		if n.bursts == nil {
			n.bursts = map[topic]*burst{}
		}
		n.bursts[t] = b
	}
	if now.Sub(b.since) >= burstTime {
		b.since, b.logged = now, 0
	}
	if b.logged >= burstMost {
		b.more++
		return 0, false
	}
	b.logged++
	more, b.more = b.more, 0
	return more, true
}

// about returns the logger for something that a task has met, or nil if enough of
// it has been logged.
func (r *Running) about(task, what string) *slog.Logger {
	component, index, _ := strings.Cut(task, "/")
	more, ok := r.noise.pass(topic{component, what}, time.Now())
	if !ok {
		return nil
	}
	log := r.logger(component)
	if i, err := strconv.Atoi(index); err == nil {
		log = log.With("task", i)
	}
	if more > 0 {
		log = log.With("unlogged", more)
	}
	return log
}

func (r *Running) logger(component string) *slog.Logger {
	return r.config.Logger.With("topology", r.plan.Topology, "component", component)
}

// quiet says at the end of the run what was not logged.
func (n *noise) quiet(r *Running) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range slices.SortedFunc(maps.Keys(n.bursts), func(a, b topic) int {
		return strings.Compare(a.component+"/"+a.what, b.component+"/"+b.what)
	}) {
		if more := n.bursts[t].more; more > 0 {
			r.logger(t.component).Warn("and "+amount.Digits(more)+" more: "+t.what, "unlogged", more)
		}
	}
}
