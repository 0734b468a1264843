package live

import (
	"math/bits"
	"slices"
)

// Folded is what is known of messages that nothing more comes of.
type Folded struct {
	Messages int64 `json:"messages"`
	Replayed int64 `json:"replayed"` // emitted more than once
	// By number: how many were emitted once, twice, ..., and were executed to the end
	// never, once, ... The last one of each is so often and more.
	Attempts []int64 `json:"attempts"`
	Ends     []int64 `json:"executed_to_the_end"`
	// Executions is how often a bolt executed something of a message: entry n counts
	// the messages with 2^(n-1) to 2^n-1 of them, entry 0 those with none.
	Executions []int64 `json:"executions_log2"`
	All        int64   `json:"executions"`
	Most       int64   `json:"executions_most"`
}

const mostCounted = 16 // attempts and ends that are counted by their number

func (f *Folded) add(m *message) {
	f.Messages++
	if m.attempts > 1 {
		f.Replayed++
	}
	count(&f.Attempts, min(int(m.attempts), mostCounted))
	count(&f.Ends, min(int(m.ends), mostCounted))
	n := int64(m.executions)
	count(&f.Executions, bits.Len64(uint64(n)))
	f.All += n
	f.Most = max(f.Most, n)
}

func count(in *[]int64, at int) {
	for len(*in) <= at {
		*in = append(*in, 0)
	}
	(*in)[at]++
}

// plus adds what another book has folded.
func (f *Folded) plus(o *Folded) {
	f.Messages += o.Messages
	f.Replayed += o.Replayed
	f.All += o.All
	f.Most = max(f.Most, o.Most)
	for _, s := range []struct{ to, from *[]int64 }{{&f.Attempts, &o.Attempts}, {&f.Ends, &o.Ends}, {&f.Executions, &o.Executions}} {
		for i, n := range *s.from {
			for len(*s.to) <= i {
				*s.to = append(*s.to, 0)
			}
			(*s.to)[i] += n
		}
	}
}

// fold lets go of the messages at the front that nothing more can come of.
func (b *book) fold(s *split) {
	n := 0
	for n < len(s.messages) && s.base+int64(n) < s.committed && s.messages[n].trees == 0 {
		n++
	}
	if n < len(s.messages) && n < max(1024, len(s.messages)/4) {
		return // moving the others is not worth it
	}
	for i := range n {
		m := &s.messages[i]
		if m.state&(done|dead) == 0 && m.ends == 0 {
			b.loses(Message{Component: b.node.Name, Split: string(s.name), Ordinal: s.base + int64(i)})
		}
		b.folded.add(m)
	}
	s.base += int64(n)
	s.messages = s.messages[:copy(s.messages, s.messages[n:])]
	if cap(s.messages) > 4096 && len(s.messages) < cap(s.messages)/8 {
		s.messages = slices.Clone(s.messages)
	}
}

// loses books a message that was never executed to the end, and is not dead.
func (b *book) loses(m Message) {
	if b.lost++; len(b.lostOnes) < mostLost {
		b.lostOnes = append(b.lostOnes, m)
	}
}

// close folds all messages at the end of a run. If it has not come to its end, what is
// not done was open, and not lost.
func (b *book) close(finished bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	values := map[place][]string{}
	for _, t := range b.trees {
		for i := range t.counts {
			if t.split >= 0 && t.settled[i>>6]&(1<<(i&63)) == 0 {
				values[t.place(i)] = b.valuesOf(t, i)
				b.settle(t, i, b.message(t, i, false))
			}
		}
	}
	for k, s := range b.splits {
		for i := range s.messages {
			m := &s.messages[i]
			if m.attempts == 0 {
				continue // not emitted: the run was drained before
			}
			at := place{k, s.base + int64(i)}
			switch {
			case m.state&(done|dead) != 0 || m.ends > 0 || b.isDead(at, m):
			case !finished && m.state&disputed == 0:
				b.open++
			default:
				b.loses(Message{Component: b.node.Name, Split: string(s.name), Ordinal: at.ordinal, Values: values[at]})
			}
			b.folded.add(m)
		}
		s.messages = nil
	}
	b.others.own.Open = int64(len(b.others.all))
}
