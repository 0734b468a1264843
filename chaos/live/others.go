package live

import (
	"slices"

	"github.com/egretstream/egret/tuple"
)

// An other is a message of no split: of a bolt or a queue, or a letter.
type other struct {
	life  tuple.Incarnation
	batch uint64
	index int
}

func (t *tree) other(i int) other { return other{t.id.Incarnation, t.number, t.from + i} }

// Own counts the messages of no split.
type Own struct {
	Messages   int64 `json:"messages"`
	Done       int64 `json:"done"`
	Dead       int64 `json:"dead"`
	HandedBack int64 `json:"handed_back"` // to their queue
	Gone       int64 `json:"gone"`        // with the task whose memory they came of
	Unsent     int64 `json:"unsent"`      // emitted, and then nothing was heard of them
	Open       int64 `json:"open"`        // when the run ended
}

func (o *Own) plus(p Own) {
	o.Messages += p.Messages
	o.Done += p.Done
	o.Dead += p.Dead
	o.HandedBack += p.HandedBack
	o.Gone += p.Gone
	o.Unsent += p.Unsent
	o.Open += p.Open
}

// ended is how many have come to an end.
func (o *Own) ended() int64 { return o.Done + o.Dead + o.HandedBack + o.Gone + o.Unsent }

// others are those of a book that are open.
//
// Invariants:
//
//   - own.Messages = own.ended() + len(all)
//   - failed has the keys of those with a text, by their texts
type others struct {
	all    map[other]*otherMessage
	failed map[string][]other
	own    Own
}

type otherMessage struct {
	message
	text string // its values, if it has failed
}

func newOthers() others {
	return others{all: map[other]*otherMessage{}, failed: map[string][]other{}}
}

// message returns one, and makes it if it begins.
func (o *others) message(key other, begins bool) *message {
	m := o.all[key]
	if m == nil {
		m = new(otherMessage)
		if begins {
			o.all[key] = m
			o.own.Messages++
		}
	}
	return &m.message
}

// fails notes that one has failed: if it dies, only its values are told.
func (o *others) fails(key other, text string) {
	if m := o.all[key]; m != nil && m.text == "" {
		m.text = text
		o.failed[text] = append(o.failed[text], key)
	}
}

// ends takes one out, and reports whether it was there.
func (o *others) ends(key other) bool {
	m := o.all[key]
	if m == nil {
		return false
	}
	delete(o.all, key)
	if m.text != "" {
		keys := slices.DeleteFunc(o.failed[m.text], func(k other) bool { return k == key })
		if o.failed[m.text] = keys; len(keys) == 0 {
			delete(o.failed, m.text)
		}
	}
	return true
}

// dies takes one out that has failed and has these values, and reports whether there was
// one.
func (o *others) dies(text string) bool {
	keys := o.failed[text]
	if len(keys) == 0 {
		return false
	}
	o.ends(keys[0])
	o.own.Dead++
	return true
}

// died takes out those of lives that have ended.
func (o *others) died(life tuple.Incarnation) {
	for key := range o.all {
		if key.life <= life {
			o.ends(key)
			o.own.Gone++
		}
	}
}

// collected is told that a bolt has emitted a message of its own, in Tick, Flush or
// Finish. It is sent when the call has returned, or earlier.
func (r *record) collected(id tuple.TaskID) { r.seats[id].collected++ }

// during is told that a task begins such a call, or with "" that it is back and has sent
// what it had emitted, unless the call has panicked.
func (r *record) during(id tuple.TaskID, call string) {
	s := r.seats[id]
	s.unsent(r)
	if call != "" {
		s.during, s.returned = call, false
		return
	}
	if s.returned {
		s.missing = s.collected
	}
	s.collected = 0
}

// unsent books what was emitted and not sent, when the life goes on after that: one that
// was replaced in the call does not.
func (s *seat) unsent(r *record) {
	if s.missing <= 0 {
		return
	}
	b := r.books[s.id]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.others.own.Messages += s.missing
	b.others.own.Unsent += s.missing
	r.violated(Message{Component: b.node.Name}, "it was emitted in "+s.during+" and never sent")
	s.missing = 0
}
