package egrettest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// An Item is one thing of an [Input]: made by [To], [Wait] or [Tick].
type Item struct {
	kind   kind
	stream *string // of a row; nil: the first one
	values []any
	wait   time.Duration
	tick   string // component
}

type kind uint8

const (
	row kind = iota
	wait
	tick
)

// To is a row on the stream of the spout that is named.
func To(stream string, values ...any) Item { return Item{stream: &stream, values: values} }

// Wait is a pause of the inputs.
func Wait(d time.Duration) Item { return Item{kind: wait, wait: d} }

// Tick calls Tick of each task of a bolt once, when everything that was given before
// has been executed, whether or not the bolt has an interval.
func Tick(component string) Item { return Item{kind: tick, tick: component} }

// Input gives a spout the messages that it is to emit, in the place of its source;
// without rows it emits none. A row is a []any with a value for each field, or for a
// stream of one field just the value, or an [Item]. Of several inputs all rows of the
// first come first; they may be of the same spout.
//
// A queue with an input is a spout: a message that fails is dead and not handed back.
func Input(spout string, rows ...any) Option {
	return func(s *setup) {
		for _, r := range rows {
			e := entry{spout: spout}
			switch r := r.(type) {
			case Item:
				e.Item = r
			case []any:
				e.values = r
			default:
				e.values = []any{r}
			}
			s.script.entries = append(s.script.entries, e)
		}
		s.script.spouts = append(s.script.spouts, spout)
	}
}

// A script is what the inputs give, in order. Its sources share it.
type script struct {
	spouts  []string // that have an input
	entries []entry
	atOnce  bool
	rec     *recorder
	next    int // entry; guarded by rec.mu
}

type entry struct {
	Item
	spout string
}

func (s *script) waits() (sum time.Duration) {
	for _, e := range s.entries {
		sum += e.wait
	}
	return sum
}

// install checks the entries and puts them in the place of sources.
func (s *script) install(plan *topology.Plan) (mistakes []error) {
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	var done []string
	for _, name := range s.spouts {
		if slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		switch n := node(plan, name); {
		case n == nil:
			wrong("Input: there is no spout %q (have %s)", name, names(plan))
		case n.Bolt != nil:
			wrong("Input: component %s is a bolt: give the input to a spout (have %s)", name, names(plan))
		default:
			n.Source, n.Queue = &source{script: s, spout: name, streams: n.Declared()}, nil
			mistakes = append(mistakes, s.check(plan, n)...)
		}
	}
	return mistakes
}

// check says what is wrong with the items of one spout.
func (s *script) check(plan *topology.Plan, n *topology.Node) (mistakes []error) {
	count := 0
	for k := range s.entries {
		e := &s.entries[k]
		if e.spout != n.Name {
			continue
		}
		count++
		if err := e.check(plan, n); err != nil {
			mistakes = append(mistakes, fmt.Errorf("Input(%q), item %d: %w", n.Name, count, err))
		}
	}
	return mistakes
}

func (e *entry) check(plan *topology.Plan, n *topology.Node) error {
	switch e.kind {
	case wait:
		if e.wait < 0 {
			return fmt.Errorf("Wait(%v): a pause is not negative", e.wait)
		}
		return nil
	case tick:
		if to := node(plan, e.tick); to == nil || to.Bolt == nil {
			return fmt.Errorf("Tick: there is no bolt %q (have %s)", e.tick, names(plan))
		}
		return nil
	}
	schema := n.Streams[0]
	if e.stream != nil {
		at := slices.IndexFunc(n.Declared(), func(x *tuple.Schema) bool { return x.Stream == *e.stream })
		if at < 0 {
			return fmt.Errorf("spout %s has no stream %q (it has %s)", n.Name, *e.stream, streams(n))
		}
		schema = n.Streams[at]
	}
	e.stream = &schema.Stream
	if len(e.values) != len(schema.Fields) {
		return fmt.Errorf("stream %s.%s has %s (%s), but the row has %s: write []any{...} with one for each field",
			n.Name, schema.Stream, amount.Of(len(schema.Fields), "field"), strings.Join(schema.Fields, ", "), amount.Of(len(e.values), "value"))
	}
	for k, v := range e.values {
		if _, err := tuple.ValueOf(v); err != nil {
			return fmt.Errorf("field %q of stream %s.%s: %w", schema.Fields[k], n.Name, schema.Stream, err)
		}
	}
	return nil
}

func names(plan *topology.Plan) string {
	var all []string
	for i := range plan.Components {
		all = append(all, plan.Components[i].Name)
	}
	return strings.Join(all, ", ")
}

func streams(n *topology.Node) string {
	var all []string
	for _, s := range n.Declared() {
		all = append(all, s.Stream)
	}
	return strings.Join(all, ", ")
}

// A source gives one spout its part of the script, in one split.
type source struct {
	script  *script
	spout   string
	streams []*tuple.Schema
}

func (s *source) Splits(context.Context) ([]spout.Split, error) {
	return []spout.Split{"input"}, nil
}

func (s *source) Open(_ context.Context, _ spout.Split, position string) (spout.Reader, error) {
	at := 0
	if position != "" {
		var err error
		if at, err = strconv.Atoi(position); err != nil {
			return nil, spout.Fatal(err)
		}
	}
	return &reader{s: s, at: at}, nil
}

// A reader walks over all entries of the script, and passes over those of others.
type reader struct {
	s  *source
	at int
}

func (r *reader) Position() string { return strconv.Itoa(r.at) }

func (r *reader) Next(ctx context.Context, out *spout.Out) error {
	s := r.s.script
	for ; r.at < len(s.entries); r.at++ {
		e := &s.entries[r.at]
		if e.spout != r.s.spout {
			continue
		}
		if out.Len() > 0 && (!s.atOnce || out.Full() || e.kind != row) {
			return nil
		}
		if !s.atOnce || e.kind == tick {
			if err := s.rec.quiet(ctx, func() bool { return s.atOnce || s.next == r.at }); err != nil {
				return err
			}
		}
		switch e.kind {
		case wait:
			if err := sleep(ctx, e.wait); err != nil {
				return err
			}
		case tick:
			if err := s.rec.tick(ctx, e.tick); err != nil {
				return err
			}
		default:
			s.rec.hand()
			out.EmitTo(*e.stream, e.values...)
		}
		s.rec.passed(s)
	}
	if out.Len() > 0 {
		return nil
	}
	if !s.atOnce { // nobody's input ends before all have
		if err := s.rec.quiet(ctx, func() bool { return s.next == len(s.entries) }); err != nil {
			return err
		}
	}
	return io.EOF
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
