package chaos

import (
	"fmt"
	"strconv"
	"time"
)

// A Clock is what the time of a fault is counted in.
type Clock uint8

const (
	Time     Clock = iota // since the faults began
	Messages              // that actors have sent, so maybe in the middle of a call
	Events                // of the simulation
	Ends                  // end-of-input messages that were sent, maybe in the middle of a call
)

var clockNames = [...]string{"", "message", "event", "end"}

// A Point is a time, or a count in another clock.
type Point struct {
	Clock Clock
	At    int64 // in nanoseconds if Clock is Time
}

func at(d time.Duration) Point { return Point{At: int64(d)} }

func (p Point) String() string {
	if p.Clock == Time {
		return time.Duration(p.At).String()
	}
	return fmt.Sprintf("%s %d", clockNames[p.Clock], p.At)
}

// When says when a fault is done. The zero When is from the beginning until
// everything is healed.
type When struct {
	// Once says that it is done at From and at no other time.
	Once bool
	// Every, if not 0, has it done at From and then again and again, so long after.
	Every time.Duration
	From  Point
	// To ends it. The zero Point does not: it goes on until everything is healed.
	To Point
}

// At is once, at a time.
func At(d time.Duration) When { return When{Once: true, From: at(d)} }

// AtCount is once, at a count in a clock.
func AtCount(c Clock, n int64) When { return When{Once: true, From: Point{c, n}} }

// Between is all the time between two times.
func Between(from, to time.Duration) When { return When{From: at(from), To: at(to)} }

// Every is again and again, for the first time when d has passed.
func Every(d time.Duration) When { return When{Every: d, From: at(d)} }

func (w When) String() string {
	text := ""
	switch {
	case w.Once:
		return "at " + w.From.String()
	case w.Every > 0:
		text = "every " + w.Every.String()
		if w.From == at(w.Every) && w.To == (Point{}) {
			return text
		}
		text += " "
	case w.From == (Point{}) && w.To == (Point{}):
		return ""
	}
	text += "from " + w.From.String()
	if w.To != (Point{}) {
		text += " to " + w.To.String()
	}
	return text
}

// Holds reports whether a lasting fault is there at a time.
func (w When) Holds(now time.Duration) bool {
	return now >= time.Duration(w.From.At) && (w.To == Point{} || now < time.Duration(w.To.At))
}

func (w When) check() error {
	if w.From.At < 0 || w.To.At < 0 || w.Every < 0 {
		return fmt.Errorf("a time below 0")
	}
	if w.Once {
		return nil
	}
	if w.From.Clock != Time || w.To.Clock != Time {
		return fmt.Errorf("a count can only be said with at")
	}
	if w.To != (Point{}) && w.To.At <= w.From.At {
		return fmt.Errorf("it is to end at %v, and begins at %v only", w.To, w.From)
	}
	return nil
}

// when takes the words of time from the front.
func (t *words) when() (w When, err error) {
	switch {
	case t.take("at"):
		w.Once = true
		w.From, err = t.point()
		return w, err
	case t.take("every"):
		if w.Every, err = t.duration("every"); err != nil {
			return w, err
		}
		if w.Every == 0 {
			return w, fmt.Errorf("every 0s would never end")
		}
		w.From = at(w.Every)
	}
	if t.take("from") {
		if w.From, err = t.point(); err != nil {
			return w, err
		}
	}
	if t.take("to") {
		if w.To, err = t.point(); err == nil && w.To == (Point{}) {
			err = fmt.Errorf("it is to end at 0s, when it has not begun")
		}
	}
	return w, err
}

func (t *words) point() (p Point, err error) {
	for c, name := range clockNames {
		if name == "" || !t.take(name) {
			continue
		}
		n, err := strconv.ParseInt(t.next(), 10, 64)
		if err != nil || n < 0 {
			return p, fmt.Errorf("after %q comes a number, as in %s 120", name, name)
		}
		return Point{Clock(c), n}, nil
	}
	d, err := t.duration("at, from and to")
	return at(d), err
}

func (t *words) duration(after string) (time.Duration, error) {
	s := t.next()
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no time: after %s comes one like 200ms or 1.5s", s, after)
	}
	return d, nil
}
