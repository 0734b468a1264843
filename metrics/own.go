package metrics

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// A Gauge is a level that goes up and down, with one writer and any number of
// readers.
type Gauge struct{ bits atomic.Uint64 }

// Set sets the level. Only the owner calls it.
func (g *Gauge) Set(v float64) { g.bits.Store(math.Float64bits(v)) }

// Load returns the level as it was a moment ago.
func (g *Gauge) Load() float64 { return math.Float64frombits(g.bits.Load()) }

// A Kind is what a metric does with what it is given.
type Kind uint8

const (
	CounterKind Kind = iota
	GaugeKind
	HistogramKind
)

var kindNames = [...]string{"counter", "gauge", "histogram"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// A Unit is what the values of a histogram are.
type Unit uint8

const (
	None    Unit = iota // a number of something
	Seconds             // recorded as time.Duration, shown as seconds
	Bytes
)

func (u Unit) suffix() string { return [...]string{"", "_seconds", "_bytes"}[u] }

const (
	mostOwn  = 256 // metrics of one task: each is kept for as long as the run
	longName = 100 // bytes
)

// A Definition says what the name of an own metric stands for.
type Definition struct {
	Name, Help string
	Kind       Kind
	Unit       Unit // of a histogram
}

// reserved are the ends of names that a format gives to parts of a metric.
var reserved = []string{"_total", "_count", "_sum", "_bucket", "_created", "_info", "_seconds", "_bytes"}

// check says what is wrong with d, and what to write instead.
func (d *Definition) check() error {
	bad := func(why string) error { return fmt.Errorf("%s %q: %s", d.Kind, d.Name, why) }
	if d.Name == "" || len(d.Name) > longName || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" ||
		d.Name[0] < 'a' || strings.HasSuffix(d.Name, "_") || strings.Contains(d.Name, "__") {
		return bad(fmt.Sprintf("a name is made of a-z, 0-9 and single _ between them, begins with a letter and has at most %d bytes", longName))
	}
	if strings.TrimSpace(d.Help) == "" {
		return bad("say in a sentence what it counts")
	}
	if d.Unit > Bytes {
		return bad("there is no such unit")
	}
	if d.Kind == CounterKind {
		if base, ok := strings.CutSuffix(d.Name, "_total"); !ok || base == "" {
			return bad("the name of a counter ends in _total")
		}
		return nil
	}
	if suffix := d.Unit.suffix(); !strings.HasSuffix(d.Name, suffix) {
		return bad("a histogram in this unit ends in " + suffix)
	}
	for _, end := range reserved {
		unit := end == "_seconds" || end == "_bytes"
		if !strings.HasSuffix(d.Name, end) || unit && (d.Kind == GaugeKind || end == d.Unit.suffix()) {
			continue
		}
		if unit {
			return bad("the name ends in " + end + ", so give the histogram that unit")
		}
		return bad("a name of this kind must not end in " + end)
	}
	return nil
}

// Names are the own metrics of a run by name, so that one means the same in all
// tasks. Any number of tasks may use it at the same time.
type Names struct {
	all atomic.Pointer[map[string]Definition] // replaced, never changed
}

// claim takes a name, or says what it already stands for.
func (n *Names) claim(d Definition) error {
	key := strings.TrimSuffix(d.Name, "_total") // which some formats leave away
	for {
		old := n.all.Load()
		next := map[string]Definition{key: d}
		if old != nil {
			if had, taken := (*old)[key]; taken {
				return had.differs(d)
			}
			for k, v := range *old {
				next[k] = v
			}
		}
		if n.all.CompareAndSwap(old, &next) {
			return nil
		}
	}
}

func (d *Definition) differs(other Definition) error {
	switch {
	case *d == other:
		return nil
	case d.Name == other.Name && d.Kind == other.Kind && d.Unit == other.Unit:
		return fmt.Errorf("%s %q: it is there with another help text, %q: a name means one thing in a topology", other.Kind, other.Name, d.Help)
	case d.Name == other.Name && d.Kind == other.Kind:
		return fmt.Errorf("%s %q: it is there with another unit: a name means one thing in a topology", other.Kind, other.Name)
	}
	return fmt.Errorf("%s %q: there is a %s %q already: choose another name", other.Kind, other.Name, d.Kind, d.Name)
}

// A Metric is one that a bolt counts for itself. What belongs to its kind is used.
type Metric struct {
	Definition
	Counter   Counter
	Gauge     Gauge
	Histogram *Histogram
	_         [128]byte // what lies behind is another task's
}

// Own is what one task counts for itself. The task alone adds to it, and its lives
// share it; All may be called by anybody. The zero value is ready.
type Own struct {
	Names *Names // of the run, set before there is a metric; nil: they are compared with nobody's
	all   atomic.Pointer[[]*Metric]
}

// All returns the metrics in the order in which they were made. The caller must
// not change the slice.
func (o *Own) All() []*Metric {
	if all := o.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Counter returns the counter of a name, a new one at the first time.
func (o *Own) Counter(name, help string) (*Counter, error) {
	m, err := o.get(Definition{Name: name, Help: help, Kind: CounterKind})
	if err != nil {
		return nil, err
	}
	return &m.Counter, nil
}

// Gauge returns the gauge of a name, a new one at the first time.
func (o *Own) Gauge(name, help string) (*Gauge, error) {
	m, err := o.get(Definition{Name: name, Help: help, Kind: GaugeKind})
	if err != nil {
		return nil, err
	}
	return &m.Gauge, nil
}

// Histogram returns the histogram of a name, a new one at the first time.
func (o *Own) Histogram(name, help string, unit Unit) (*Histogram, error) {
	m, err := o.get(Definition{Name: name, Help: help, Kind: HistogramKind, Unit: unit})
	if err != nil {
		return nil, err
	}
	return m.Histogram, nil
}

func (o *Own) get(d Definition) (*Metric, error) {
	was := o.all.Load()
	var all []*Metric
	if was != nil {
		all = *was
	}
	for _, m := range all {
		if m.Name == d.Name {
			return m, m.differs(d)
		}
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if len(all) >= mostOwn {
		return nil, errors.New("a task may have 256 metrics of its own: is a name made of data?")
	}
	if o.Names != nil {
		if err := o.Names.claim(d); err != nil {
			return nil, err
		}
	}
	m := &Metric{Definition: d}
	if d.Kind == HistogramKind {
		m.Histogram = new(Histogram)
	}
	grown := append(slices.Clone(all), m)
	if !o.all.CompareAndSwap(was, &grown) {
		return o.get(d) // the life before this one has not come back, and is here too
	}
	return m, nil
}
