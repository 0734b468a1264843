package chaos

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is one thing that is done. Which of its fields count depends on its kind:
// see [Kind.Usage].
type Fault struct {
	When   When
	Kind   Kind
	Who    Who   // whose; of a link, the sender
	To     Who   // of a link, the receiver; nobody: all links
	Class  Class // of messages
	Rate   Rate  // 0: each
	Least  time.Duration
	Most   time.Duration // how long, or up to how long
	Factor float64       // how many times as long
	Times  int           // the Nth tuple, or how many lives
	Call   Call          // the next call of that kind; "": a tuple
}

// A Rate is how many of a million.
type Rate int32

// Percent makes a rate of one, to the ten-thousandth.
func Percent(p float64) Rate { return Rate(math.Round(p * 10_000)) }

// OneIn is one in n, or as near as it can be written; at least one in a million.
func OneIn(n int) Rate { return Rate(max(1, 1_000_000/n)) }

func (r Rate) String() string { return strconv.FormatFloat(float64(r)/10_000, 'f', -1, 64) + "%" }

func parseRate(s string) (Rate, error) {
	digits, is := strings.CutSuffix(s, "%")
	p, err := strconv.ParseFloat(digits, 64)
	if is && err == nil && p > 0 && p <= 100 && Percent(p) > 0 {
		return Percent(p), nil
	}
	return 0, fmt.Errorf("%q is no rate: say one above 0%% and up to 100%%, in steps of 0.0001%%, like 4%%", s)
}

func (f Fault) String() string {
	parts := []string{}
	add := func(s ...string) { parts = append(parts, s...) }
	if when := f.When.String(); when != "" {
		add(when)
	}
	add(string(f.Kind))
	for _, c := range grammars[f.Kind].form {
		switch c {
		case 'W':
			add(f.Who.String())
		case 'L', 'l':
			if f.To != (Who{}) || c == 'L' {
				add(f.Who.String(), "->", f.To.String())
			}
		case 'C':
			add(string(f.Class))
		case 'R', 'r':
			if f.Rate > 0 || c == 'R' {
				add(f.Rate.String())
			}
		case 'P':
			switch {
			case !f.When.Once && f.When.Every == 0:
				add(f.Rate.String())
			case f.Call != "":
				add("in", string(f.Call))
			default:
				add("on", strconv.Itoa(f.Times))
			}
		case 'I':
			if f.Call != "" {
				add("in", string(f.Call))
			}
		case 'D':
			add("for", f.Most.String())
		case 'd':
			if f.Most > 0 {
				add("within", f.Most.String())
			}
		case 'J':
			add("by", f.Most.String())
		case 'F':
			add("by", strconv.FormatFloat(f.Factor, 'f', -1, 64))
		case 'S':
			least := "0"
			if f.Least > 0 {
				least = f.Least.String()
			}
			add(least + ".." + f.Most.String())
		case 'A':
			if f.Times > 0 {
				add("again", strconv.Itoa(f.Times))
			}
		}
	}
	return strings.Join(parts, " ")
}

// MarshalText returns what String does.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText is ParseFault.
func (f *Fault) UnmarshalText(text []byte) (err error) {
	*f, err = ParseFault(string(text))
	return err
}

// ParseFault reads one fault.
func ParseFault(text string) (f Fault, err error) {
	t := &words{strings.Fields(text)}
	if f.When, err = t.when(); err != nil {
		return f, err
	}
	f.Kind = Kind(t.next())
	g, is := grammars[f.Kind]
	if !is {
		return f, fmt.Errorf("%q is no fault: the faults are %s", f.Kind, list(kinds))
	}
	for _, c := range g.form {
		if err = t.field(c, &f); err != nil {
			return f, fmt.Errorf("%w (%s)", err, f.Kind.Usage())
		}
	}
	if len(t.rest) > 0 {
		return f, fmt.Errorf("nothing was to follow, and there is %q (%s)", strings.Join(t.rest, " "), f.Kind.Usage())
	}
	return f, f.check()
}

func (t *words) field(c rune, f *Fault) (err error) {
	switch c {
	case 'W':
		f.Who, err = parseWho(t.next())
	case 'L', 'l':
		if c == 'l' && (len(t.rest) < 2 || t.rest[1] != "->") {
			return nil
		}
		if f.Who, err = parseWho(t.next()); err != nil {
			return err
		}
		if !t.take("->") {
			return fmt.Errorf("a link is written count/1 -> split")
		}
		f.To, err = parseWho(t.next())
	case 'C':
		if f.Class = Class(t.next()); !slices.Contains(classes, f.Class) {
			return fmt.Errorf("%q is no class of messages: the classes are %s", f.Class, list(classes))
		}
	case 'R':
		f.Rate, err = parseRate(t.next())
	case 'r':
		if len(t.rest) > 0 && t.rest[0] != "in" {
			f.Rate, err = parseRate(t.next())
		}
	case 'P':
		if !f.When.Once && f.When.Every == 0 {
			return t.field('R', f)
		}
		if len(t.rest) > 0 && t.rest[0] == "in" {
			return t.field('I', f)
		}
		if !t.take("on") {
			return fmt.Errorf("say on which tuple, as in on 100, or in which call, as in in tick")
		}
		f.Times, err = t.number()
	case 'I':
		if !t.take("in") {
			return nil
		}
		if f.Call = Call(t.next()); !slices.Contains(calls, f.Call) {
			return fmt.Errorf("%q is no call: the calls are %s", f.Call, list(calls))
		}
	case 'D':
		if !t.take("for") {
			return fmt.Errorf("say for how long, as in for 2s")
		}
		f.Most, err = t.duration("for")
	case 'd':
		if t.take("within") {
			f.Most, err = t.duration("within")
		}
	case 'J':
		if !t.take("by") {
			return fmt.Errorf("say by how much, as in by 2s")
		}
		f.Most, err = t.duration("by")
	case 'F':
		if !t.take("by") {
			return fmt.Errorf("say how many times as long, as in by 4")
		}
		s := t.next()
		f.Factor, err = strconv.ParseFloat(s, 64)
		if err != nil {
			err = fmt.Errorf("%q is no number of times, as in by 4", s)
		}
	case 'S':
		least, most, is := strings.Cut(t.next(), "..")
		if !is {
			return fmt.Errorf("say the least and the most, as in 0..400ms")
		}
		span := &words{[]string{least, most}}
		if f.Least, err = span.duration("a dot"); err == nil {
			f.Most, err = span.duration("two dots")
		}
	case 'A':
		if t.take("again") {
			f.Times, err = t.number()
		}
	}
	return err
}

// check says what is wrong with a fault whose fields can be written.
func (f Fault) check() error {
	g := grammars[f.Kind]
	if err := f.When.check(); err != nil {
		return err
	}
	once := f.When.Once || f.When.Every > 0
	switch {
	case once && !g.once:
		return fmt.Errorf("%s lasts: say from and to, or no time at all", f.Kind)
	case !once && !g.lasts:
		return fmt.Errorf("%s happens at a time: say at 2s or every 2s", f.Kind)
	case f.Kind == Break && once != (f.Rate == 0):
		return fmt.Errorf("break errs once, at a time, or for a rate of all calls, and not both")
	case f.Call != "" && !once:
		return fmt.Errorf("in %s is for at and every: it is the next one that is meant", f.Call)
	case f.Most < f.Least:
		return fmt.Errorf("%v..%v: the most is less than the least", f.Least, f.Most)
	case strings.ContainsAny(g.form, "DJS") && f.Most == 0:
		return fmt.Errorf("0s is no time: it would do nothing")
	case f.Kind == Slow && !(f.Factor > 0 && f.Factor <= 1e6):
		return fmt.Errorf("by %v: say a factor above 0 and up to a million", f.Factor)
	}
	return nil
}

// Words that are still to be read.
type words struct{ rest []string }

func (t *words) next() string {
	if len(t.rest) == 0 {
		return ""
	}
	s := t.rest[0]
	t.rest = t.rest[1:]
	return s
}

func (t *words) take(word string) bool {
	if len(t.rest) == 0 || t.rest[0] != word {
		return false
	}
	t.rest = t.rest[1:]
	return true
}

func (t *words) number() (int, error) {
	s := t.next()
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no number from 1 on", s)
	}
	return int(n), nil
}

func list[T ~string](all []T) string {
	var b strings.Builder
	for i, s := range all {
		switch {
		case i == len(all)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}
