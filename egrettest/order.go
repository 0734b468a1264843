package egrettest

import (
	"slices"

	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Where a tuple stands in the results is a function of what it came of, never of
// when it was emitted.

// attempt returns the attempt that e came of; nil if that is not known.
func (e *emission) attempt() *attempt {
	for e.by != nil {
		e = e.by.in
	}
	return e.of
}

// path is what emissions are ordered by: the message, the attempt, and then for
// each step on the way who took it and which of its emissions it was.
func (e *emission) path() []int {
	if x := e.by; x != nil {
		return append(x.path(), e.seq)
	}
	if e.of == nil {
		return nil
	}
	return append(e.of.message.path(), e.of.number)
}

func (m *message) path() []int { return []int{m.epoch, int(m.task), m.ordinal} }

func (x *execution) path() []int { return append(x.in.path(), x.component, x.input, x.index) }

func (e *emission) tuple(plan *topology.Plan) Tuple {
	s := plan.Components[e.component].Streams[e.stream]
	return Tuple{Component: s.Component, Stream: s.Stream, Fields: s.Fields, Values: e.values}
}

func (x *execution) result(plan *topology.Plan) Execution {
	r := Execution{Component: plan.Components[x.component].Name, In: x.in.tuple(plan), Err: x.err}
	for _, e := range x.emitted {
		r.Emitted = append(r.Emitted, e.tuple(plan))
	}
	return r
}

func values(vs []tuple.Value) []any {
	all := make([]any, len(vs))
	for i, v := range vs {
		all[i] = v.Any()
	}
	return all
}

// fill writes what was recorded into a result, in order.
func (r *recorder) fill(to *Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := func(e *emission) bool { a := e.attempt(); return a != nil && a.lost }
	to.plan = r.plan
	to.emissions = inOrder(slices.DeleteFunc(r.emissions, lost), (*emission).path)
	to.executions = inOrder(slices.DeleteFunc(r.executions, func(x *execution) bool { return lost(x.in) }), (*execution).path)
	first := map[*message]*execution{}
	for _, x := range to.executions {
		if x.err == nil {
			continue
		}
		to.Failed = append(to.Failed, x.result(r.plan))
		if a := x.in.attempt(); a != nil {
			if f := first[a.message]; f == nil || f.in.attempt().number < a.number {
				first[a.message] = x
			}
		}
	}
	to.messages = inOrder(r.messages, (*message).path)
	for _, m := range to.messages {
		if m.letter != nil {
			if x := first[m]; x != nil {
				m.letter.Err = x.err
			}
			to.Dead = append(to.Dead, *m.letter)
		}
	}
	to.Dead = append(to.Dead, r.letters...)
}

// inOrder sorts by paths, each of which it asks for once.
func inOrder[E any](all []E, path func(E) []int) []E {
	type place struct {
		of   E
		path []int
	}
	places := make([]place, len(all))
	for i, x := range all {
		places[i] = place{x, path(x)}
	}
	slices.SortStableFunc(places, func(a, b place) int { return slices.Compare(a.path, b.path) })
	for i := range places {
		all[i] = places[i].of
	}
	return all
}
