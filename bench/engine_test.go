package bench

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

const (
	turn     = time.Millisecond // of the toy engine
	perTurn  = 32               // messages that a reader emits in it
	turnRate = float64(perTurn) * float64(time.Second) / float64(turn)
)

// toy is an engine that does everything in one goroutine: each turn it asks
// every reader once and works through what it gets, then it sleeps.
type toy struct {
	plan    *topology.Plan
	bolts   map[tuple.TaskID]bolt.Bolt
	outs    map[int]*bolt.Collector
	parcels []tuple.Parcel // by receiving component
	turn    int
	ackable bool
	pause   time.Duration
	perTurn int

	mu     sync.Mutex
	counts Counts
}

func runToy(ctx context.Context, t *topology.Topology, g topology.Guarantee, _ string, _ bool) Running {
	return startToy(ctx, t, g, turn, perTurn)
}

// runHurried does not sleep, for processes where time is real.
func runHurried(ctx context.Context, t *topology.Topology, g topology.Guarantee, _ string, _ bool) Running {
	return startToy(ctx, t, g, 0, 256)
}

func startToy(ctx context.Context, t *topology.Topology, g topology.Guarantee, pause time.Duration, perTurn int) Running {
	plan, err := t.Build(topology.Options{Guarantee: &g})
	if err != nil {
		return Running{Wait: func() (Counts, error) { return Counts{}, err }}
	}
	e := &toy{plan: plan, bolts: map[tuple.TaskID]bolt.Bolt{}, outs: map[int]*bolt.Collector{},
		parcels: make([]tuple.Parcel, len(plan.Components)), ackable: g != topology.AtMostOnce, pause: pause, perTurn: perTurn}
	e.counts.ExecutedBy = map[string]int64{}
	for i := range plan.Components {
		e.outs[i] = bolt.NewCollector(ctx, plan.Components[i].Streams, &toySink{e, i})
	}
	for id, task := range plan.Tasks {
		if n := &plan.Components[task.Component]; n.Bolt != nil {
			e.bolts[tuple.TaskID(id)] = n.Bolt()
			if err := e.prepare(ctx, e.bolts[tuple.TaskID(id)], n, task.Index); err != nil {
				return Running{Stats: e.stats, Wait: func() (Counts, error) { return Counts{}, err }}
			}
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- e.run(ctx) }() // owner: who calls Wait
	return Running{Stats: e.stats, Wait: func() (Counts, error) {
		err := <-ended
		return e.stats(), err
	}}
}

// All that there is is one batch.
var only = tuple.BatchID{Attempt: tuple.Attempt{Epoch: 1, Round: 1}, Tx: 1}

func (e *toy) prepare(ctx context.Context, b bolt.Bolt, n *topology.Node, index int) error {
	if p, is := b.(bolt.Preparer); is {
		err := p.Prepare(ctx, &bolt.Task{Topology: e.plan.Topology, Component: n.Name, Index: index, Parallel: n.Parallel, Streams: n.Streams})
		if err != nil {
			return err
		}
	}
	if s, is := b.(bolt.Stateful); is && n.Stateful {
		if err := s.Join(ctx, &bolt.Join{Fence: tuple.Fence{Attempt: only.Attempt, Life: 1}}); err != nil {
			return err
		}
	}
	if t, is := b.(bolt.Batched); is {
		t.Round()
		t.Batch(only.Tx)
	}
	return nil
}

// commit completes the batch.
func (e *toy) commit(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.plan.Components {
		n := &e.plan.Components[c]
		for i := range n.Parallel {
			b := e.bolts[n.First+tuple.TaskID(i)]
			if s, is := b.(bolt.Stateful); is && n.Stateful {
				if _, err := s.Commit(ctx, only); err != nil {
					return err
				}
			}
			if t, is := b.(bolt.Batched); is {
				if err := t.Complete(only.Tx, e.outs[c]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (e *toy) stats() Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.counts
	c.ExecutedBy = map[string]int64{}
	for name, n := range e.counts.ExecutedBy {
		c.ExecutedBy[name] = n
	}
	var h metrics.Histogram
	h.Record(time.Millisecond, c.Acked)
	c.AckLatency = metrics.Read(&h)
	return c
}

func (e *toy) run(ctx context.Context) error {
	type reading struct {
		component int
		reader    spout.Reader
		out       *spout.Out
	}
	var open []reading
	for i := range e.plan.Components {
		n := &e.plan.Components[i]
		if n.Source == nil {
			continue
		}
		splits, err := n.Source.Splits(ctx)
		if err != nil {
			return err
		}
		if len(splits) != n.Parallel {
			return errors.New("there must be one split for each task")
		}
		for _, s := range splits {
			r, err := n.Source.Open(ctx, s, "")
			if err != nil {
				return err
			}
			open = append(open, reading{i, r, spout.NewOut(n.Streams)})
		}
	}
	for len(open) > 0 {
		left := open[:0]
		for _, r := range open {
			var b spout.Batch
			r.out.Collect(&b, e.perTurn)
			err := r.reader.Next(ctx, r.out)
			if err != nil && err != io.EOF {
				return err
			}
			e.mu.Lock()
			for i := range b.Len() {
				seg, cells := b.Message(i)
				e.counts.Emitted++
				e.deliver(r.component, seg.Stream, seg.Kinds, cells)
				if e.ackable {
					e.counts.Acked++
				}
			}
			e.mu.Unlock()
			if err == nil {
				left = append(left, r)
			}
		}
		open = left
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(e.pause):
		}
	}
	return e.commit(ctx)
}

// toySink takes what a component emits.
type toySink struct {
	e         *toy
	component int
}

func (s *toySink) Put(stream int, row *tuple.Row) {
	s.e.deliver(s.component, stream, row.Kinds, row.Cells)
}

func (e *toy) deliver(from, stream int, kinds []tuple.Kind, cells []tuple.Cell) {
	n := &e.plan.Components[from]
	for i := range n.Outputs {
		r := &n.Outputs[i]
		to := &e.plan.Components[r.To]
		p := &e.parcels[r.To] // free: a topology has no cycle
		p.Reset()
		p.Schema = n.Streams[r.Stream]
		p.Begin(kinds, 1)
		p.Append(&tuple.Row{Kinds: kinds, Cells: cells})
		e.turn++
		k := e.turn % to.Parallel
		if r.Grouping == topology.Fields {
			k = tuple.Owner((&tuple.Row{Kinds: kinds, Cells: cells}).KeyGroup(r.Fields), to.Parallel)
		}
		e.counts.Executed++
		e.counts.ExecutedBy[to.Name]++
		if err := e.bolts[to.First+tuple.TaskID(k)].Execute(p.Tuple(0), e.outs[r.To]); err != nil {
			panic(err)
		}
	}
}

// rows collects what a collector emits, as text.
type rows struct{ got [][]string }

func (r *rows) Put(_ int, row *tuple.Row) {
	p := &tuple.Parcel{}
	p.Begin(row.Kinds, 1)
	p.Append(row)
	var one []string
	for i := range p.Tuple(0).Len() {
		one = append(one, p.Tuple(0).At(i).String())
	}
	r.got = append(r.got, one)
}

// read calls Next once and returns its messages as text.
func read(t *testing.T, r spout.Reader, fields []string, max int) ([][]string, error) {
	t.Helper()
	out, b := spout.NewOut([]*tuple.Schema{{Component: "lines", Stream: "default", Fields: fields}}), &spout.Batch{}
	out.Collect(b, max)
	err := r.Next(t.Context(), out)
	var to rows
	for i := range b.Len() {
		seg, cells := b.Message(i)
		to.Put(0, &tuple.Row{Kinds: seg.Kinds, Cells: cells})
	}
	require.LessOrEqual(t, b.Len(), max)
	return to.got, err
}
