// Package bolttest runs one bolt over given tuples, as a topology would: prepared,
// one tuple after the other, then finished and closed.
//
//	r := bolttest.Run(t, bolt.Count("word"),
//		bolttest.Emits("word", "count"),
//		bolttest.In("word").Rows("the", "cow", "the"))
//	require.Equal(t, []string{"cow 1", "the 2"}, r.Tuples().Lines())
//
// The bolt runs in a topology of its own, on one task, under package egrettest, so
// everything that a bolt can do works as in a run. It may be called inside a synctest
// bubble; then [Wait] and [Every] take no real time.
package bolttest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

// A Part is one of what Run is given beside the bolt.
type Part func(*parts)

type parts struct {
	outputs []output
	inputs  []Stream // those that differ
	script  []entry
	every   time.Duration
	wrong   []string
}

type entry struct {
	stream Stream // of a row
	item   egrettest.Item
	row    bool
}

type output struct {
	stream string
	fields []string
}

// Emits declares the stream "default" of the bolt.
func Emits(fields ...string) Part { return EmitsTo("default", fields...) }

// EmitsTo declares another stream. Emit without a choice of stream goes to the one
// that was declared first.
func EmitsTo(stream string, fields ...string) Part {
	return func(p *parts) { p.outputs = append(p.outputs, output{stream, fields}) }
}

// Every gives the bolt an interval at which it is ticked, beside [Tick].
func Every(d time.Duration) Part { return func(p *parts) { p.every = d } }

// Wait is a pause before the rows that follow.
func Wait(d time.Duration) Part {
	return func(p *parts) { p.script = append(p.script, entry{item: egrettest.Wait(d)}) }
}

// Tick calls the bolt's Tick once, between the rows before it and those behind.
func Tick() Part {
	return func(p *parts) { p.script = append(p.script, entry{item: egrettest.Tick(name)}) }
}

// name is the bolt's, as it stands in errors.
const name = "it"

// A Stream is one that the bolt gets tuples from.
type Stream struct {
	component, stream string
	fields            []string
}

// In returns the stream "default" of a component "in" with the given fields.
func In(fields ...string) Stream { return Stream{"in", "default", slices.Clone(fields)} }

// From returns a stream of the same fields with other names, for a bolt that tells
// its inputs apart.
func (s Stream) From(component, stream string) Stream {
	s.component, s.stream = component, stream
	return s
}

// Row is one tuple for the bolt.
func (s Stream) Row(values ...any) Part { return s.Rows(values) }

// Rows are several: each a []any with a value for each field, or for a stream of one
// field just the value.
func (s Stream) Rows(rows ...any) Part {
	return func(p *parts) {
		p.declare(s)
		for _, row := range rows {
			values, is := row.([]any)
			if !is {
				values = []any{row}
			}
			p.script = append(p.script, entry{s, egrettest.To(s.stream, values...), true})
		}
	}
}

func (p *parts) declare(s Stream) {
	for _, x := range p.inputs {
		if x.component == s.component && x.stream == s.stream {
			if !slices.Equal(x.fields, s.fields) {
				p.wrong = append(p.wrong, "stream "+s.component+"."+s.stream+" is given with the fields ("+
					strings.Join(x.fields, ", ")+") and ("+strings.Join(s.fields, ", ")+"): use From to tell them apart")
			}
			return
		}
	}
	p.inputs = append(p.inputs, s)
}

// A Result is what the bolt has done.
type Result struct {
	Inputs []Input // in order
	Err    error   // what ended the bolt otherwise than by its end, such as an error of Prepare
	run    *egrettest.Result
}

// An Input is one tuple that the bolt got.
type Input struct {
	egrettest.Tuple
	Emitted egrettest.Tuples // anchored to it
	Err     error            // what Execute returned, see egrettest.Execution
	Acked   bool
}

// Rejected reports whether the bolt has said, or a misuse, that another try would
// not help.
func (i Input) Rejected() bool { return bolt.IsReject(i.Err) }

// Tuples returns what the bolt has emitted on all its streams, in order.
func (r *Result) Tuples() egrettest.Tuples { return r.run.Tuples(name) }

// Stream returns what the bolt has emitted on one of its streams, in order.
func (r *Result) Stream(stream string) egrettest.Tuples { return r.run.Stream(name, stream) }

// Run makes one bolt and runs it over the rows that the parts give, in order, then
// calls its Finish. A tuple that fails is not tried again. After a panic in Execute
// the factory makes another bolt for the rows that follow.
//
// A mistake in the parts fails the test, and so does a bolt that does not come to
// its end within 30 s; see egrettest.Run.
func Run(t egrettest.T, factory bolt.Factory, what ...Part) *Result {
	t.Helper()
	p := &parts{}
	for _, part := range what {
		part(p)
	}
	if len(p.wrong) > 0 {
		t.Fatalf("bolttest: %s", strings.Join(p.wrong, "\n"))
		return nil
	}
	if len(p.inputs) == 0 {
		p.inputs = []Stream{In("none")}
	}
	top := topology.New("bolttest", func(b *topology.Builder) { p.define(b, factory) })
	run := egrettest.Run(t, top, p.options()...)
	if run == nil {
		return nil
	}
	return p.result(run)
}

// options gives the script to the spouts; what is no row goes to any of them.
func (p *parts) options() (all []egrettest.Option) {
	for _, s := range p.inputs {
		all = append(all, egrettest.Input(s.component)) // also those without rows
	}
	for _, e := range p.script {
		if !e.row {
			e.stream = p.inputs[0]
		}
		all = append(all, egrettest.Input(e.stream.component, e.item))
	}
	return all
}

func (p *parts) result(run *egrettest.Result) *Result {
	r := &Result{run: run}
	if !errors.Is(run.Err, egret.ErrDead) {
		r.Err = run.Err
	}
	of := map[string][]egrettest.Message{}
	for _, s := range p.inputs {
		of[s.component] = run.Messages(s.component)
	}
	for _, e := range p.script {
		ms := of[e.stream.component]
		if !e.row || len(ms) == 0 { // no row, or one that was not reached
			continue
		}
		of[e.stream.component] = ms[1:]
		in := Input{Tuple: ms[0].Tuple, Acked: ms[0].Acked}
		for _, x := range ms[0].Executions {
			in.Emitted, in.Err = append(in.Emitted, x.Emitted...), x.Err
		}
		r.Inputs = append(r.Inputs, in)
	}
	return r
}

func (p *parts) define(b *topology.Builder, factory bolt.Factory) {
	var subs []topology.Subscription
	var spouts []string
	for _, s := range p.inputs {
		c := b.Component(s.component)
		if !slices.Contains(spouts, s.component) {
			spouts = append(spouts, s.component)
			c = b.Spout(s.component, spout.Rows())
		}
		subs = append(subs, c.EmitsTo(s.stream, s.fields...).Stream(s.stream).Global())
	}
	it := b.Bolt(name, factory, subs...)
	for _, o := range p.outputs {
		it.EmitsTo(o.stream, o.fields...)
	}
	if p.every != 0 {
		it.Every(p.every)
	}
}
