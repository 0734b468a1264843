package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A DeadLetter is a message that Egret has given up.
type DeadLetter struct {
	ID        string // the store's name for it; "" without a store
	Time      time.Time
	Component string // whose message it is
	Task      string // "lines/0"
	Stream    string
	Fields    []string
	Values    []tuple.Value
	Masked    []string // fields whose values are not for people; it is not stored
	Direct    int      // 1 + the task that its emitter chose, on a direct stream; else 0
	Err       string
	Failures  int
	Losses    int
	History   []string // what ended each attempt, the last ones if there were many
	Deaths    int      // 1, and one more for each time that it was replayed in vain
}

// Letters gives a task dead letters of its component to be replayed. Last lets it
// end: there are no others of those that waited when the run began.
type Letters struct {
	Letters []*DeadLetter
	Last    bool
}

// letters are the dead letters of an origin.
//
//	attempt --bury--> fresh --stored--> outgoing --emitted, done--> settled
//	                     without a store ^   without a subscriber ^
//
// A message stays open until it is settled, so its position does not move before its
// letter is stored and those who want to hear of it have heard.
type letters struct {
	fresh    []*grave // to be stored
	storing  bool     // Bury is under way, or a timer for the next try is set
	attempts int      // of Bury, in a row without success
	outgoing []*grave // to be emitted on the stream of dead letters
	stream   int      // its index; -1: nobody listens
	heard    map[*spout.Batch]*grave

	again     []*DeadLetter // to be replayed
	replaying map[*spout.Batch]*DeadLetter
}

// A grave is a message that is dead and not settled yet.
type grave struct {
	a      *attempt
	letter *DeadLetter
}

const (
	letterSplit   = -1 // Split of a batch that holds one letter
	letterHistory = 64 // entries of a letter that is replayed again and again
)

type (
	// buried is the result of Bury.
	buried struct {
		graves []*grave
		stored int // of them, the first ones
		err    error
	}
	bury struct{} // the pause before the next try is over
)

func (o *origin) setupLetters() {
	o.stream = -1
	if n := o.c.node; n.Dead {
		o.stream = len(n.Streams) - 1
	}
	o.heard, o.replaying = map[*spout.Batch]*grave{}, map[*spout.Batch]*DeadLetter{}
	o.again, o.c.letters = o.c.letters, nil
}

// bury gives a message up.
func (o *origin) bury(a *attempt) {
	g := &grave{a, o.letter(a)}
	if o.c.set.Store == nil || mutation.Is(mutation.PassUnstored) {
		o.mourn(g)
		return
	}
	o.fresh = append(o.fresh, g)
	o.store()
}

func (o *origin) letter(a *attempt) *DeadLetter {
	s, cells := a.batch.Message(int(a.index))
	schema := o.c.node.Streams[s.Stream]
	masked := schema.Masked
	if o.c.plan.NoTaps {
		masked = schema.Fields
	}
	l := &DeadLetter{
		Time: o.c.set.Began.Add(o.c.now), Component: o.c.node.Name, Task: o.c.m.Name,
		Stream: schema.Stream, Fields: schema.Fields, Masked: masked, Values: tuple.CloneRow(cells, s.Kinds), Direct: s.Direct,
		Err: a.err, Failures: a.failures, Losses: a.losses, History: a.history, Deaths: 1,
	}
	if before := o.replaying[a.batch]; before != nil {
		l.ID, l.Deaths = before.ID, before.Deaths+1
		l.Failures, l.Losses = l.Failures+before.Failures, l.Losses+before.Losses
		l.History = append(append(append([]string(nil), before.History...), "replayed"), a.history...)
		l.History = l.History[max(0, len(l.History)-letterHistory):]
	}
	return l
}

// store stores what is fresh, in one go: a storm of dead messages is no storm of
// writes. One call is under way at a time.
func (o *origin) store() {
	if o.storing || len(o.fresh) == 0 {
		return
	}
	o.storing = true
	graves, store := o.fresh, o.c.set.Store
	o.fresh = nil
	all := make([]*DeadLetter, len(graves))
	for i, g := range graves {
		all[i] = g.letter
	}
	o.c.ctx.Block(func() any {
		stored, err := store.Bury(all)
		return buried{graves, stored, err}
	})
}

func (o *origin) stored(m buried) {
	o.storing = false
	if m.err == nil {
		m.stored = len(m.graves)
	}
	if m.stored > 0 {
		o.attempts = 0
	}
	for _, g := range m.graves[:m.stored] {
		o.mourn(g)
	}
	if m.err == nil {
		o.store()
		return
	}
	o.fresh = append(m.graves[m.stored:], o.fresh...)
	if errors.Is(m.err, ErrFull) {
		o.c.fail(fmt.Errorf("%s: cannot store %s: %w", o.c.m.Name, amount.Of(len(o.fresh), "dead message"), m.err), true, true)
		return
	}
	o.attempts++
	pause := backoff(o.attempts)
	o.c.set.Event(&StoreError{Doing: fmt.Sprintf("store %d dead letters of %s", len(o.fresh), o.c.m.Name), Err: m.err, Again: pause})
	o.storing = true
	o.c.after(pause, bury{})
}

// mourn tells of a letter that is stored, if there is a store.
func (o *origin) mourn(g *grave) {
	o.c.set.Event(g.letter)
	if o.stream >= 0 && g.letter.Stream != topology.DeadLetterStream && !mutation.Is(mutation.LetterUnheard) {
		o.outgoing = append(o.outgoing, g)
		return
	}
	o.close(g)
}

// close settles a dead message.
func (o *origin) close(g *grave) {
	o.c.m.Dead.Add(1)
	o.forget(g.a)
	o.settled(g.a.batch, 1)
}

// emitLetters emits what is to be heard and to be replayed. It returns false when it
// has to wait for room.
func (o *origin) emitLetters() bool {
	if len(o.outgoing)+len(o.again) == 0 {
		return true
	}
	emitted := 0
	for ; len(o.outgoing) > 0 && o.c.out.kept == 0; emitted++ {
		g := o.outgoing[0]
		o.outgoing = o.outgoing[1:]
		o.heard[o.emitOne(o.stream, g.letter.row(), 0)] = g
	}
	for ; len(o.again) > 0 && o.c.out.kept == 0 && !o.full(); emitted++ {
		l := o.again[0]
		o.again = o.again[1:]
		stream := streamOf(o.c.node, l) // the supervisor has seen to it that it is there
		o.replaying[o.emitOne(stream, l.Values, l.Direct)] = l
	}
	if emitted > 0 {
		o.settle() // one that nobody receives is done already
	}
	return o.c.out.kept == 0
}

// emitOne emits a message in a batch of its own.
func (o *origin) emitOne(stream int, values []tuple.Value, direct int) *spout.Batch {
	var r tuple.Row
	r.SetValues(o.c.node.Streams[stream], values)
	r.Direct = direct
	b := o.c.batches.get()
	b.Split = letterSplit
	b.Append(stream, &r)
	o.c.m.Letters.Add(1)
	o.keep(b)
	o.emit(b, 0)
	return b
}

// letterDone is told when the one message of such a batch is done or dead.
func (o *origin) letterDone(b *spout.Batch) {
	g, l := o.heard[b], o.replaying[b]
	delete(o.heard, b)
	delete(o.replaying, b)
	b.Split = 0
	o.c.batches.put(b)
	if g != nil {
		o.close(g)
	}
	if l != nil && !mutation.Is(mutation.LetterForgotten) {
		o.c.ctx.Send(o.c.sup, replayed{o.c.id, o.c.life, l.ID})
	}
}

// streamOf returns the stream that a letter's message was emitted on, or -1 if the
// component has none of that name with those fields.
func streamOf(n *topology.Node, l *DeadLetter) int {
	for i, s := range n.Streams {
		if s.Stream == l.Stream && slices.Equal(s.Fields, l.Fields) {
			return i
		}
	}
	return -1
}

// size is about how many bytes l takes in memory.
func (l *DeadLetter) size() int {
	n := 512 + len(l.Err)
	for _, h := range l.History {
		n += len(h)
	}
	for _, v := range l.Values {
		n += 64
		switch v.Kind() {
		case tuple.KindString:
			n += len(v.String())
		case tuple.KindBytes:
			n += len(v.Bytes())
		}
	}
	return n
}

// row returns what l is on the stream of dead letters; topology.DeadLetters says
// what its fields are.
func (l *DeadLetter) row() []tuple.Value {
	history, _ := json.Marshal(l.History)
	var row []tuple.Value
	for _, x := range []any{
		l.ID, l.Time, l.Component, l.Task, l.Stream, l.Err, l.Failures, l.Losses, string(history), l.JSON(),
	} {
		v, err := tuple.ValueOf(x)
		if err != nil {
			panic(err) // a time that no clock shows
		}
		row = append(row, v)
	}
	return row
}

// JSON returns the letter's values as a JSON object, in the order of the fields.
// Times are RFC 3339, durations the text of Go, bytes base64; a number that JSON
// does not have is its text, as is a value without a JSON form.
func (l *DeadLetter) JSON() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, v := range l.Values {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(l.Fields[i])
		b.Write(name)
		b.WriteByte(':')
		var x any = v.Any()
		if v.Kind() == tuple.KindDuration {
			x = v.String()
		}
		text, err := json.Marshal(x)
		if err != nil {
			text, _ = json.Marshal(v.String())
		}
		b.Write(text)
	}
	b.WriteByte('}')
	return b.String()
}
