package egret

import (
	"sync"
	"time"
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
