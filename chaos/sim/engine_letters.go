package sim

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A mourner is a part that subscribes to dead letters of others: its tuples come of
// no message of the scene, so they have a book of their own.

// A letterBook is what became of the letters of one message.
type letterBook struct {
	tries   int
	refused int
	rejects int
	heard   []moment
	dead    []moment // letters that were given up themselves
}

// drawMourner has numbers of its own, so that the rest of a scene does not depend
// on it.
func (s *scene) drawMourner() {
	r := rand.New(rand.NewPCG(s.seed, 0x6d6f75726e))
	if s.guarantee == topology.AtMostOnce || !chance(r, 60) {
		return
	}
	p := part{name: "letters", parallel: 1 + r.IntN(2), mourns: map[int]topology.Grouping{}, spend: one[time.Duration](r, 0, time.Millisecond, 30*time.Millisecond)}
	for i := range s.parts {
		if x := &s.parts[i]; x.queue == nil && x.streams > 0 && chance(r, 70) {
			p.mourns[i] = one(r, topology.Shuffle, topology.Fields, topology.All, topology.Global)
		}
	}
	if len(p.mourns) == 0 {
		return
	}
	s.parts = append(s.parts, p)
}

// mourned reports whether somebody listens to the dead letters of a part.
func (s *scene) mourned(part int) bool {
	last := &s.parts[len(s.parts)-1]
	_, is := last.mourns[part]
	return is
}

func isLetter(stream string) bool { return stream == topology.DeadLetterStream }

// letterRoot returns the message that a letter's row speaks of.
func (rec *record) letterRoot(row []tuple.Value) *root {
	var values struct{ Root uint64 }
	if err := json.Unmarshal([]byte(row[9].String()), &values); err != nil {
		rec.violate(chaos.DeadLetters, "the values %s of a letter: %v", row[9], err)
	}
	m := rec.roots[values.Root]
	if m == nil {
		rec.violate(chaos.DeadLetters, "a letter of a message that there is not: %s", row[9])
		return &root{}
	}
	return m
}

// mourn executes a letter.
func (b *simBolt) mourn(in tuple.Tuple) error {
	rec := b.rec
	rec.check(chaos.DeadLetters)
	p := &rec.scene.parts[b.part]
	row := make([]tuple.Value, in.Len())
	for i := range row {
		row[i] = in.At(i)
	}
	m := rec.letterRoot(row)
	if !isLetter(in.Stream()) || !rec.scene.mourned(m.part) || in.Component() != rec.scene.parts[m.part].name {
		rec.violate(chaos.Routing, "%s gets a letter of %s from %s.%s", b.name(), m.name, in.Component(), in.Stream())
	}
	if got := in.String("stream"); got != streamName(m.stream) {
		rec.violate(chaos.DeadLetters, "a letter says that %s was emitted on %s", m.name, got)
	}
	if in.String("component") != in.Component() || (in.String("id") == "") != (rec.store == nil) || in.String("error") == "" {
		rec.violate(chaos.DeadLetters, "the letter of %s has component %q, id %q, error %q", m.name, in.String("component"), in.String("id"), in.String("error"))
	}
	if len(m.dead) == 0 {
		rec.violate(chaos.DeadLetters, "%s gets a letter of %s, which is not dead", b.name(), m.name)
	}
	if !b.prepared || b.closed > 0 {
		rec.violate(chaos.Routing, "%s executes before Prepare or after Close", b.name())
	}
	rec.taken(b)
	l := &m.letters
	l.tries++
	if p.spend > 0 {
		rec.w.Spend(time.Duration(mix(m.id, 'd', uint64(l.tries)) % uint64(p.spend+1)))
	}
	what := rec.trouble(b.id(), mix(m.id, 'l', 0), l.refused)
	if what != "" {
		l.refused++
	}
	switch what {
	case "":
	case chaos.Reject:
		rec.adv.did(what, "")
		l.rejects++
		return bolt.Reject(errTuple)
	case chaos.Refuse:
		rec.adv.did(what, "")
		return errTuple
	default:
		rec.panicNow(b.proc, what)
	}
	l.heard = append(l.heard, rec.moment(b.proc))
	return nil
}

// told reports whether a dead message may be forgotten: whoever wants to hear of it
// has heard, or the letter is dead itself.
func (rec *record) told(m *root) bool {
	now := rec.w.Now()
	return !rec.scene.mourned(m.part) || happened(m.letters.heard, now) || happened(m.letters.dead, now)
}

// letterVerdict checks what the engine thinks of a tree of letters.
func (rec *record) letterVerdict(t *openTree, v *task.Verdict, i int, cells []tuple.Cell, s []tuple.Kind, bad map[int]acker.Fail) {
	m := rec.letterRoot(tuple.CloneRow(cells, s))
	l := &m.letters
	f, failed := bad[i]
	switch {
	case failed && f.Class != acker.Hung:
		rec.check(chaos.Failures)
		if l.refused == 0 {
			rec.violate(chaos.Failures, "the letter of %s has failed (%s), but nobody has refused it", m.name, f.Err)
		}
	case failed:
		rec.violate(chaos.Hangs, "the letter of %s is a suspect, and letters hang nobody", m.name)
	case v.Outcome == acker.Done:
		rec.check(chaos.Acks)
		if !happened(l.heard, rec.w.Now()) {
			rec.violate(chaos.Acks, "the letter of %s is acked, and nobody has heard of it", m.name)
		}
	case v.Outcome == acker.Lost:
		rec.check(chaos.Losses)
		if !rec.edges.mayBeLost(v.Tree) {
			rec.violate(chaos.Losses, "the letter of %s is lost, but no tuple of its tree %v can have gone to a life that is over", m.name, v.Tree)
		}
	case !rec.excused(t, m):
		rec.violate(chaos.Timeouts, "the letter of %s has timed out, but nothing of it was dropped", m.name)
	}
}

// letterDead books that a letter has been given up, which makes no other letter.
func (rec *record) letterDead(d *task.DeadLetter, by *proc) {
	m := rec.letterRoot(d.Values)
	l := &m.letters
	if most := rec.scene.set.MaxReplays; l.rejects == 0 && (most < 0 || l.refused <= most) {
		rec.violate(chaos.DeadLetters, "the letter of %s is dead, but was refused only %d times and never rejected: %s", m.name, l.refused, d.Err)
	}
	l.dead = append(l.dead, moment{rec.w.Now(), by})
}

// lettersOf checks that somebody has heard of a message that is dead at the end.
func (rec *record) lettersOf(m *root) {
	rec.twin(chaos.DeadLetters)
	if len(m.dead) > 0 && !m.acked && !rec.told(m) {
		rec.violate(chaos.DeadLetters, "the run has ended, %s is dead, and its letter was not heard of (tried %d times, refused %d)", m.name, m.letters.tries, m.letters.refused)
	}
}

// mournings returns the subscriptions of a mourner.
func (s *scene) mournings(p *part, declared []*topology.Component) (subs []topology.Subscription) {
	for i := range declared {
		grouping, is := p.mourns[i]
		if !is {
			continue
		}
		letters := declared[i].DeadLetters()
		switch grouping {
		case topology.Shuffle:
			subs = append(subs, letters.Shuffle())
		case topology.Fields:
			subs = append(subs, letters.By("values"))
		case topology.All:
			subs = append(subs, letters.All())
		case topology.Global:
			subs = append(subs, letters.Global())
		}
	}
	return subs
}
