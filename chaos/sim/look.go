package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/tuple"
)

// A look is at one event of a run, to tell a person how two runs differ.
type look struct {
	event int // counted from 1
	at    time.Duration
	who   string
	doing string
	told  []told
}

// A told is something that happened in the event, in words.
type told struct {
	words string
	rows  [][]string // what is in the message; of a parcel: the fields of its tuples
	hash  uint64     // of the run up to here
}

// happens says which event it is that comes now.
func (l *look) happens(w *World, e *event) {
	if w.count != l.event {
		return
	}
	l.at, l.doing = w.now, kindNames[e.kind]
	if p := e.proc; p != nil {
		l.who = p.label
	} else if e.link != nil {
		l.who = e.link.to.label
	}
}

// calls says which call the event is.
func (l *look) calls(w *World, p *proc, s step, m message) {
	if w.count != l.event {
		return
	}
	l.who, l.doing = p.label, string(s)
	if m.body != nil {
		l.doing += " " + w.thing(m.body)
	}
	if m.from != nil && m.from != p {
		l.doing += " from " + m.from.label
	}
}

// notes takes a line of the log.
func (l *look) notes(w *World, line []byte) {
	if w.count == l.event {
		_, text, _ := strings.Cut(string(line), " ")
		l.told = append(l.told, told{words: "makes the log say \"" + text + "\"", hash: w.hash})
	}
}

func (l *look) did(w *World, d deed, to *proc, body any, n time.Duration) {
	if w.count != l.event {
		return
	}
	t := told{hash: w.hash}
	switch d {
	case sends:
		t.words = "sends " + w.thing(body) + " to " + to.label
	case sets:
		t.words = fmt.Sprintf("sets a timer of %v for %s", n, w.thing(body))
	case asks:
		t.words = "calls Block"
	case gets:
		t.words = "returns " + w.thing(body)
	case posts:
		t.words = "posts " + w.thing(body)
	case watches:
		t.words = "watches " + to.label
	case stops:
		t.words = "stops " + to.label
	case spends:
		t.words = "spends " + n.String()
	case hung:
		t.words = "hangs for " + n.String()
	case rests:
		t.words = [...]string{"wants no other turn", "wants another turn"}[n]
	}
	if p, is := body.(*tuple.Parcel); is {
		t.rows = rowsOf(p)
	} else if s := w.describe(body); s != "" {
		t.rows = [][]string{{s}}
	}
	l.told = append(l.told, t)
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
