package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/tuple"
)

// A look is at the present event of a run, to tell a person how two runs differ. What
// happens is kept as it is until the next event, and put into words only if it is asked
// for.
type look struct {
	event int // counted from 1
	kind  kind
	proc  *proc // whose event it is; nil: of a link or the test
	step  step  // of a call; "": none
	from  *proc // of the message that it is about; nil: none
	class string
	deeds []done
	lines []byte // the log's

	// In words.
	at    time.Duration
	who   string
	doing string
	told  []told
}

// A done is a deed, or a line of the log.
type done struct {
	deed  deed
	to    *proc
	body  any
	n     time.Duration
	hash  uint64 // of the run up to here
	lines int    // of the log, with this one; in bytes
}

// A told is a deed in words.
type told struct {
	words string
	rows  [][]string // what is in the message; of a parcel: the fields of its tuples
	hash  uint64
}

// happens begins with an event and forgets the one before.
func (l *look) happens(w *World, e *event) {
	clear(l.deeds)
	l.event, l.kind, l.proc, l.step, l.from, l.class = w.count, e.kind, e.proc, "", nil, ""
	l.deeds, l.lines = l.deeds[:0], l.lines[:0]
	if e.link != nil {
		l.proc = e.link.to
	}
}

// calls says which call of an actor the event is.
func (l *look) calls(w *World, p *proc, s step, m message) {
	l.proc, l.step, l.from = p, s, m.from
	if m.body != nil {
		l.class = w.class(m.body)
	}
}

// notes takes a line of the log.
func (l *look) notes(w *World, line []byte) {
	l.lines = append(l.lines, line...)
	l.did(w, logs, nil, nil, 0)
}

func (l *look) did(w *World, d deed, to *proc, body any, n time.Duration) {
	l.deeds = append(l.deeds, done{d, to, body, n, w.hash, len(l.lines)})
}

// tell puts the event into words. The messages that were sent in it are as they were
// sent.
func (l *look) tell(w *World) {
	l.at, l.doing = w.now, kindNames[l.kind]
	if l.proc != nil {
		l.who = l.proc.label
	}
	if l.step != "" {
		l.doing = strings.TrimSpace(string(l.step) + " " + l.class)
		if l.from != nil && l.from != l.proc {
			l.doing += " from " + l.from.label
		}
	}
	lines := 0
	for i := range l.deeds {
		d := &l.deeds[i]
		t := told{words: d.words(w), hash: d.hash}
		if d.deed == logs {
			_, text, _ := strings.Cut(string(l.lines[lines:d.lines]), " ") // without the time
			t.words = fmt.Sprintf("makes the log say %q", text)
			lines = d.lines
		}
		if p, is := d.body.(*tuple.Parcel); is {
			t.rows = rowsOf(p)
		} else if s := w.describe(d.body); s != "" {
			t.rows = [][]string{{s}}
		}
		l.told = append(l.told, t)
	}
}

func (d *done) words(w *World) string {
	switch d.deed {
	case sends:
		return "sends " + w.thing(d.body) + " to " + d.to.label
	case sets:
		return fmt.Sprintf("sets a timer of %v for %s", d.n, w.thing(d.body))
	case asks:
		return "calls Block"
	case gets:
		return "returns " + w.thing(d.body)
	case posts:
		return "posts " + w.thing(d.body)
	case watches:
		return "watches " + d.to.label
	case stops:
		return "stops " + d.to.label
	case spends:
		return "spends " + d.n.String()
	case hung:
		return "hangs for " + d.n.String()
	case rests:
		return "wants another turn"
	}
	return ""
}

// thing names a message: the class, and how many tuples.
func (w *World) thing(body any) string {
	if p, is := body.(*tuple.Parcel); is {
		return "a parcel of " + amount.Of(p.Len(), "tuple")
	}
	return w.class(body)
}

// rowsOf writes the tuples of a parcel, with the names of their fields.
func rowsOf(p *tuple.Parcel) (rows [][]string) {
	for i := range p.Len() {
		t, row := p.Tuple(i), []string(nil)
		for k := range t.Len() {
			text := t.At(k).String()
			if t.At(k).Kind() == tuple.KindString {
				text = strconv.Quote(text)
			}
			row = append(row, t.Fields()[k]+"="+text)
		}
		rows = append(rows, row)
	}
	return rows
}

// unlike returns the fields of two rows that are not the same in both.
func unlike(a, b []string) (x, y string) {
	if len(a) != len(b) {
		return strings.Join(a, " "), strings.Join(b, " ")
	}
	var xs, ys []string
	for i := range a {
		if a[i] != b[i] {
			xs, ys = append(xs, a[i]), append(ys, b[i])
		}
	}
	return strings.Join(xs, " "), strings.Join(ys, " ")
}

// other says in words how an event of one run was another in a second one: "" if it
// was the same.
func (l *look) other(second *look) string {
	one := func(ts []told, i int) string {
		if i < len(ts) {
			return "it " + ts[i].words
		}
		return "it does nothing more"
	}
	a, b := l.told, second.told
	i := 0
	for i < len(a) && i < len(b) && a[i].hash == b[i].hash {
		i++
	}
	switch {
	case i == len(a) && i == len(b):
		return ""
	case i == len(a) || i == len(b) || a[i].words != b[i].words:
		return one(a, i) + ", and in another run " + one(b, i)
	}
	for k := range min(len(a[i].rows), len(b[i].rows)) {
		x, y := unlike(a[i].rows[k], b[i].rows[k])
		if x == "" && y == "" {
			continue
		}
		where := ""
		if len(a[i].rows) > 1 {
			where = fmt.Sprintf(", number %d", k+1)
		}
		return fmt.Sprintf("it %s%s with %s, and in another run with %s", a[i].words, where, x, y)
	}
	return one(a, i) + ", and in another run one that is not the same"
}

var kindNames = [...]string{
	atRun: "its next step", atLink: "a message arrives", atLoose: "a message arrives", atTimer: "a timer rings", atStop: "an order to stop arrives",
	atBlock: "a function of Block", atReply: "the result of a Block arrives", atPlan: "a plan of the test",
}
