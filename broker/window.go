package broker

import (
	"time"

	"github.com/egretstream/egret/mutation"
)

// Settings of a [Window]; each 0 stands for its default.
type Settings struct {
	Least int           // tuples, however slow the task; default 64
	Most  int           // tuples, however fast; default 8192, at least Least
	Span  time.Duration // of work that a window has room for; default 100 ms
	Bytes int           // of text in those tuples, as far as that leaves one a sender; default 64 MB
}

// A Window is the receiver's side of the pairs of all its senders. It has room
// for as many tuples as the task executes in Span. Half of it is divided equally;
// the other half goes to the senders by how much of theirs was executed of late.
// Every sender has room for one tuple at least, so many senders can make
// more of it than Size.
//
// A limit never goes down: a sender that falls idle keeps what it was told, and
// its share for others grows. What waits in the queue of one pair is at most the
// largest share that it ever had, or FirstLimit, and one parcel less a tuple.
//
// Owner: the receiving task. A Window is not safe for concurrent use.
type Window struct {
	Settings
	size    int // by the task's speed
	weight  int // bytes of text in a tuple: of the heaviest lately
	senders []sender
	used    uint64 // sum over senders
	since   int    // executed since used was last halved
	period  int    // size at that time

	// The task's speed: tuples executed and the time they took, both with what is
	// some Spans of work ago faded out.
	tuples, took float64
}

// A sender is one pair.
type sender struct {
	executed uint64
	told     uint64 // Invariant: it never falls, and is at most executed + share when it rises
	used     uint64 // tuples executed, those of the past halved again and again
}

// NewWindow returns the window of a task with a number of senders, which are
// named by their index. It begins at Least.
func NewWindow(senders int, s Settings) *Window {
	if s.Least <= 0 {
		s.Least = 64
	}
	if s.Most <= 0 {
		s.Most = 8192
	}
	s.Most = max(s.Most, s.Least)
	if s.Span <= 0 {
		s.Span = 100 * time.Millisecond
	}
	if s.Bytes <= 0 {
		s.Bytes = 64 << 20
	}
	w := &Window{Settings: s, size: s.Least, period: s.Least, senders: make([]sender, senders)}
	for i := range w.senders {
		w.senders[i].told = FirstLimit
	}
	return w
}

// Add makes room for one more sender, named by the next index.
func (w *Window) Add() { w.senders = append(w.senders, sender{told: FirstLimit}) }

// Size returns how many tuples the window has room for now, over all senders.
func (w *Window) Size() int {
	if w.weight == 0 {
		return w.size
	}
	return max(min(w.size, w.Bytes/w.weight), 1)
}

// Weighed says that n tuples have come with so many bytes of text in all. Heavy
// tuples make the window smaller at once, light ones give it back slowly.
func (w *Window) Weighed(n, bytes int) {
	each := bytes / max(n, 1)
	w.weight = max(each, w.weight-(w.weight-each)/8-1, 0)
}

// Each returns the time that a tuple has taken the task of late, 0 if that is not
// known yet.
func (w *Window) Each() time.Duration {
	if w.tuples == 0 {
		return 0
	}
	return time.Duration(w.took / w.tuples)
}

// Worked says that the task executed n tuples in a time, which sets the size. A
// clock may be too coarse to see them: a time of 0 is fine.
func (w *Window) Worked(n int, took time.Duration) {
	if n <= 0 {
		return // no evidence of any speed
	}
	// The conversions keep the compiler from fusing operations: the same run gives
	// the same sizes on every machine.
	d, span := float64(max(took, 0)), float64(w.Span)
	keep := span / float64(span+d)
	w.took = float64(w.took*keep) + d
	w.tuples = float64(w.tuples*keep) + float64(n)
	// What is faster than Most is not remembered, or it would take long to see that
	// it is over.
	most := float64(w.Most)
	w.tuples = min(w.tuples, most+float64(most*float64(w.took/span)))
	switch size := float64(w.tuples * span); {
	case size >= float64(most*w.took):
		w.size = w.Most
	case size <= float64(float64(w.Least)*w.took):
		w.size = w.Least
	default:
		w.size = int(size / w.took)
	}
}

// Executed says that n tuples of a sender have been executed, acked or not.
func (w *Window) Executed(s, n int) {
	p := &w.senders[s]
	p.executed += uint64(n)
	p.used += uint64(n)
	w.used += uint64(n)
	w.since += n
	// Each window's worth of tuples counts half of the next. With more senders than
	// tuples in a window it takes longer, so that it costs little per tuple.
	if w.since >= max(min(w.size, w.period), len(w.senders)) {
		w.fade()
	}
}

func (w *Window) fade() {
	w.since, w.period, w.used = 0, w.size, 0
	for i := range w.senders {
		p := &w.senders[i]
		p.used /= 2
		w.used += p.used
	}
}

// share returns how many tuples of a sender the window has room for.
func (w *Window) share(p *sender) uint64 {
	size := uint64(w.Size())
	equal := size / 2
	rest := size - equal
	n := uint64(len(w.senders))
	share := equal / n
	if w.used == 0 {
		share += rest / n
	} else {
		share += rest * p.used / w.used
	}
	return max(share, 1)
}

// Raise returns the limit of a sender and whether it is to be told: when the
// rise since it was last told is worth a message, half of its share or more, or
// when all that it may send has been executed. It then counts as told.
func (w *Window) Raise(s int) (limit uint64, tell bool) {
	p := &w.senders[s]
	share := w.share(p)
	limit = p.executed + share
	if mutation.Is(mutation.UnboundedLimit) {
		limit = 1 << 40
	}
	// If the sender has used up its limit and all was executed, the rise is a whole
	// share: so nobody waits for a limit that was not worth telling.
	if limit < p.told+max(share/2, 1) {
		return p.told, false
	}
	p.told = limit
	return limit, true
}

// Limit returns the limit of a sender for one who asks. It counts as told.
func (w *Window) Limit(s int) uint64 {
	p := &w.senders[s]
	p.told = max(p.told, p.executed+w.share(p))
	return p.told
}

// Reset begins a new pair with a new life of a sender: its total is 0 and its
// limit the first.
func (w *Window) Reset(s int) {
	p := &w.senders[s]
	w.used -= p.used
	*p = sender{told: FirstLimit}
}
