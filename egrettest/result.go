package egrettest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Result is what a run has done. Lists are in the order of the messages that things
// came of, and for one message in the order in which one task would have emitted
// them; what comes of Tick or Flush follows the messages that were there before it, and
// what comes of Finish is last, task after task.
//
// Attempts that ended because a task died are left out, since all of them comes
// again.
type Result struct {
	Failed []Execution // that returned an error or panicked
	Dead   []Letter    // messages that were given up
	Stats  *egret.Stats
	Err    error // what egret.Run would have returned

	t          T
	plan       *topology.Plan
	emissions  []*emission
	executions []*execution
	messages   []*message
}

// A Tuple is one that was emitted. Its values are nil, bool, int64, uint64, float64,
// string, []byte, time.Time, time.Duration, or what was given to tuple.Any.
type Tuple struct {
	Component, Stream string
	Fields            []string
	Values            []any
}

// String returns the values with spaces between them.
func (t Tuple) String() string {
	texts := make([]string, len(t.Values))
	for i, v := range t.Values {
		if x, err := tuple.ValueOf(v); err == nil {
			texts[i] = x.String()
		} else {
			texts[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(texts, " ")
}

// named returns the stream and the values of a tuple, for errors.
func (t Tuple) named() string { return t.Component + "." + t.Stream + " (" + t.String() + ")" }

// Tuples are some tuples in order.
type Tuples []Tuple

// Lines returns the text of each tuple.
func (ts Tuples) Lines() []string {
	lines := make([]string, len(ts))
	for i, t := range ts {
		lines[i] = t.String()
	}
	return lines
}

// Rows returns the values of each tuple.
func (ts Tuples) Rows() [][]any {
	rows := make([][]any, len(ts))
	for i, t := range ts {
		rows[i] = t.Values
	}
	return rows
}

// String returns the lines as one text.
func (ts Tuples) String() string { return strings.Join(ts.Lines(), "\n") }

// Sorted returns the tuples in the order of their texts, for components that emit in
// no order, such as one that goes over a map.
func (ts Tuples) Sorted() Tuples {
	return slices.SortedStableFunc(slices.Values(ts), func(a, b Tuple) int { return strings.Compare(a.String(), b.String()) })
}

// An Execution is one call of Execute.
type Execution struct {
	Component string
	In        Tuple
	Emitted   Tuples
	Err       error // what it returned, a *PanicError, or bolt.Reject of a misuse
}

// A PanicError is a panic in Execute.
type PanicError struct{ Value any }

func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// A Message is what a spout emitted, or a bolt in Tick, Flush or Finish.
type Message struct {
	Tuple
	Acked bool    // everything that came of it is done
	Dead  *Letter // it was given up
	// Executions are all that it led to, those of earlier attempts first.
	Executions []Execution
}

// A Letter is a message that was given up.
type Letter struct {
	Tuple
	Err      error // the first failure of its last attempt
	Failures int
	Losses   int
	History  []string // what ended each attempt, the last ones if there were many
}

// Tuples returns what a component has emitted on all its streams.
func (r *Result) Tuples(component string) Tuples {
	r.t.Helper()
	if n := r.node(component); n != nil {
		return r.tuples(func(t Tuple) bool { return t.Component == component })
	}
	return nil
}

// Stream returns what a component has emitted on one of its streams.
func (r *Result) Stream(component, stream string) Tuples {
	r.t.Helper()
	n := r.node(component)
	if n == nil {
		return nil
	}
	if !slices.ContainsFunc(n.Streams, func(s *tuple.Schema) bool { return s.Stream == stream }) {
		r.t.Fatalf("egrettest: component %s has no stream %q (it has %s)", component, stream, streams(n))
		return nil
	}
	return r.tuples(func(t Tuple) bool { return t.Component == component && t.Stream == stream })
}

// Messages returns the messages of a component: of a spout all that it emitted, of a
// bolt what Tick and Finish emitted.
func (r *Result) Messages(component string) []Message {
	r.t.Helper()
	if r.node(component) == nil {
		return nil
	}
	led := map[*message][]Execution{}
	for _, e := range r.executions {
		if a := e.in.attempt(); a != nil {
			led[a.message] = append(led[a.message], e.result(r.plan))
		}
	}
	var all []Message
	for _, m := range r.messages {
		if m.first == nil || r.plan.Components[m.first.component].Name != component {
			continue
		}
		all = append(all, Message{Tuple: m.first.tuple(r.plan), Acked: m.acked, Dead: m.letter, Executions: led[m]})
	}
	return all
}

// Acked returns the messages of a component that are done. In an at-most-once
// topology there are none, since nothing is tracked.
func (r *Result) Acked(component string) Tuples {
	r.t.Helper()
	var all Tuples
	for _, m := range r.Messages(component) {
		if m.Acked {
			all = append(all, m.Tuple)
		}
	}
	return all
}

// Executions returns what a bolt has executed.
func (r *Result) Executions(component string) []Execution {
	r.t.Helper()
	n := r.node(component)
	if n == nil {
		return nil
	}
	if n.Bolt == nil {
		r.t.Fatalf("egrettest: component %s is a spout: it executes nothing", component)
		return nil
	}
	var all []Execution
	for _, x := range r.executions {
		if r.plan.Components[x.component].Name == component {
			all = append(all, x.result(r.plan))
		}
	}
	return all
}

func (r *Result) tuples(want func(Tuple) bool) Tuples {
	var all Tuples
	for _, e := range r.emissions {
		if t := e.tuple(r.plan); want(t) {
			all = append(all, t)
		}
	}
	return all
}

func (r *Result) node(component string) *topology.Node {
	r.t.Helper()
	n := node(r.plan, component)
	if n == nil {
		r.t.Fatalf("egrettest: there is no component %q (have %s)", component, names(r.plan))
	}
	return n
}
