package from

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/egretstream/egret/spout"
)

// burst is how late messages may be so that they are made up for at once. What
// is later than that is not made up for.
const burst = 10 * time.Millisecond

// A pacer says when the messages of a source are due: message i at start plus i
// times the interval. Time is an argument.
//
// It is shared by the tasks that read the source, hence the lock, which is never
// held while anybody waits.
type pacer struct {
	perSecond float64

	mu    sync.Mutex
	start time.Time // when message 0 was due; zero before the first take
	taken int64     // messages given out since start
}

// take gives out messages that are due, at most n, or says how long it is until
// the next one is.
func (p *pacer) take(now time.Time, n int) (messages int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.start.IsZero() {
		p.start = now
	}
	next := p.start.Add(offset(p.taken, p.perSecond))
	if late := now.Sub(next) - burst; late > 0 {
		p.start = p.start.Add(late)
	}
	if wait := next.Sub(now); wait > 0 {
		return 0, wait
	}
	due := dueBy(now.Sub(p.start), p.perSecond) - p.taken
	messages = int(min(due, int64(n)))
	p.taken += int64(messages)
	return messages, 0
}

// giveBack returns messages that were taken and did not come; a negative number
// is one of messages that came without having been taken.
func (p *pacer) giveBack(messages int) {
	p.mu.Lock()
	p.taken -= int64(messages)
	p.mu.Unlock()
}

// offset returns how long after message 0 message i is due.
func offset(i int64, perSecond float64) time.Duration {
	const century = 100 * 365 * 24 * time.Hour // beyond it a Duration is near its end
	ns := math.Ceil(float64(i) * 1e9 / perSecond)
	return time.Duration(min(ns, float64(century)))
}

// dueBy returns how many messages are due by a time after message 0.
//
// Invariant: offset(dueBy(d)-1) <= d < offset(dueBy(d)), which rounding alone
// would not give.
func dueBy(d time.Duration, perSecond float64) int64 {
	n := int64(float64(d)*perSecond/1e9) + 1
	for n > 0 && offset(n-1, perSecond) > d {
		n--
	}
	for offset(n, perSecond) <= d {
		n++
	}
	return n
}

// checkRate refuses a rate that no clock can keep.
func checkRate(perSecond float64) error {
	if perSecond > 0 && perSecond <= 1e9 {
		return nil
	}
	return spout.Fatal(fmt.Errorf("a source is to give %v messages a second: the rate must be above 0 and at most 1e9", perSecond))
}
