package trident

import (
	"context"
	"errors"
	"fmt"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// A body is one life of one task of a component: its operators, wired together. What an
// operator emits is given to the next one by a call.
//
// Owner: the task's turn, but for what [stateBody] says.
type body struct {
	c       *component
	in      []func(tuple.Tuple) // by input
	batches []perBatch          // of operators that remember something within a batch; inputs before who reads them
	keeper  anyKeeper           // of the state, if there is one
	opens   []func(context.Context, *bolt.Task) error
	closes  []func() error

	out *bolt.Collector // of the call under way
	err error           // of an operator, in the call under way
	tx  tuple.TxID      // whose elements come; 0: not known

	entries map[*node][]any // by input: func(T); while it is wired
}

// A perBatch is what an operator remembers of batches.
type perBatch interface {
	enter(tx tuple.TxID)
	complete(tx tuple.TxID) // emits what there is to say of it, and forgets it
	forget()                // all of them
}

func newBody(c *component) *body {
	t := &body{c: c, entries: map[*node][]any{}}
	for i := range c.nodes {
		n := c.nodes[len(c.nodes)-1-i] // who reads comes first
		t.entries[n] = n.make(t, n)
	}
	for i, k := 0, len(t.batches)-1; i < k; i, k = i+1, k-1 {
		t.batches[i], t.batches[k] = t.batches[k], t.batches[i]
	}
	for _, in := range c.inputs {
		t.in = append(t.in, in.node.inputs[in.input].edge.carrier.receive(t.entries[in.node][in.input]))
	}
	t.entries = nil
	return t
}

// factory returns the factory of c's bolts.
func (c *component) factory() bolt.Factory {
	for _, n := range c.nodes {
		if n.state != nil {
			return func() bolt.Bolt { return &stateBody{newBody(c)} }
		}
	}
	return func() bolt.Bolt { return newBody(c) }
}

func (t *body) Prepare(ctx context.Context, task *bolt.Task) error {
	for _, open := range t.opens {
		if err := open(ctx, task); err != nil {
			return err
		}
	}
	return nil
}

func (t *body) Close() error {
	var errs []error
	for _, c := range t.closes {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (t *body) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if t.tx == 0 {
		return bolt.Reject(fmt.Errorf("component %s is of an exactly-once topology and gets tuples of no batch: run it with that guarantee", t.c.name))
	}
	t.out, t.err = out, nil
	t.in[in.Input()](in)
	return t.err
}

func (t *body) Batch(tx tuple.TxID) {
	t.tx = tx
	for _, s := range t.batches {
		s.enter(tx)
	}
}

func (t *body) Complete(tx tuple.TxID, out *bolt.Collector) error {
	if len(t.batches) == 0 {
		return nil
	}
	now := t.tx
	t.Batch(tx)
	t.out, t.err = out, nil
	for _, s := range t.batches {
		s.complete(tx)
	}
	if t.tx = 0; now != 0 && now != tx {
		t.Batch(now)
	}
	return t.err
}

func (t *body) Round() {
	t.tx = 0
	for _, s := range t.batches {
		s.forget()
	}
}

// memory is a perBatch with one S for each batch.
//
// The places of two batches are two places in memory: so the one of a batch that is being
// committed, elsewhere than on the task's turn, can be read while others come and go.
type memory[S any] struct {
	now    *S // of the present batch
	places [bolt.MaxAhead]place[S]
	free   []*S
	fresh  func() *S
	clear  func(*S) // makes it fresh again
	done   func(*S) // emits what there is to say of a batch
}

type place[S any] struct {
	tx tuple.TxID
	s  *S // nil: nothing is here
}

// remember adds what an operator of t remembers.
func remember[S any](t *body, m *memory[S]) *memory[S] {
	t.batches = append(t.batches, m)
	return m
}

func (m *memory[S]) enter(tx tuple.TxID) {
	p := &m.places[tx%bolt.MaxAhead]
	if p.s == nil {
		p.tx = tx
		if k := len(m.free); k > 0 {
			p.s, m.free = m.free[k-1], m.free[:k-1]
		} else {
			p.s = m.fresh()
		}
	}
	if p.tx != tx {
		panic(fmt.Sprintf("trident: batches %d and %d are under way: that is more than %d", p.tx, tx, bolt.MaxAhead))
	}
	m.now = p.s
}

// of returns what there is of a batch, or nil.
func (m *memory[S]) of(tx tuple.TxID) *S {
	if p := &m.places[tx%bolt.MaxAhead]; p.tx == tx {
		return p.s
	}
	return nil
}

func (m *memory[S]) complete(tx tuple.TxID) {
	m.done(m.now)
	m.leave(&m.places[tx%bolt.MaxAhead])
}

func (m *memory[S]) leave(p *place[S]) {
	m.clear(p.s)
	m.free = append(m.free, p.s)
	p.s, p.tx, m.now = nil, 0, nil
}

func (m *memory[S]) forget() {
	for i := range m.places {
		if m.places[i].s != nil {
			m.leave(&m.places[i])
		}
	}
}
