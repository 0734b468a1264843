package view

import (
	"encoding/json"
	"math"
	"time"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Own is what a bolt counts for itself.
type Own struct {
	Name      string     `json:"name"`
	Help      string     `json:"help"`
	Kind      string     `json:"kind"` // counter, gauge or histogram
	Value     Number     `json:"value"`
	Histogram *Histogram `json:"histogram,omitempty"`
}

// A Number is one that may be none: then, and if it is infinite, it is null in JSON, which
// knows of nothing of that kind.
type Number float64

// MarshalJSON returns the number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads a number; null is none.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Read returns what a task has done. It may be called at any time; counts are those of a
// moment ago, and not all of the same moment.
func Read(p *topology.Plan, id tuple.TaskID, m *metrics.Task) Task {
	t := Task{Task: m.Name, Component: p.Node(id).Name, Known: true, Execute: read(&m.Execute), Complete: read(&m.Complete)}
	for i := range m.Streams {
		t.Emitted = append(t.Emitted, m.Streams[i].Emitted.Load())
	}
	for i := range m.Inputs {
		t.Executed = append(t.Executed, m.Inputs[i].Executed.Load())
		t.FailedTuples += m.Inputs[i].Failed.Load()
	}
	t.Acked, t.Dead, t.HandedBack, t.Abandoned = m.Acked.Load(), m.Dead.Load(), m.HandedBack.Load(), m.Abandoned.Load()
	t.Open, t.MostOpen = m.Open(), m.MaxPending.Load()
	t.Messages = m.Messages.Load() + m.Untracked.Load()
	t.Failed, t.Lost, t.TimedOut = m.Failed.Load(), m.Lost.Load(), m.TimedOut.Load()
	t.ReplayedFailed, t.ReplayedLost, t.ReplayedTimeout = m.ReplayedFailed.Load(), m.ReplayedLost.Load(), m.ReplayedTimeout.Load()
	t.Queued, t.Held = m.Queued.Load(), m.Held.Load()
	t.Restarts, t.Refused, t.Stuck = m.Restarts.Load(), m.Refused.Load(), m.Stuck.Load()
	t.Throttled = time.Duration(m.Throttled.Load())
	if n := m.WaitsFor.Load(); n > 0 {
		t.WaitsFor = p.TaskName(tuple.TaskID(n - 1))
	}
	for _, x := range m.Own.All() {
		o := Own{Name: x.Name, Help: x.Help, Kind: x.Kind.String()}
		switch x.Kind {
		case metrics.CounterKind:
			o.Value = Number(x.Counter.Load())
		case metrics.GaugeKind:
			o.Value = Number(x.Gauge.Load())
		default:
			o.Histogram = read(x.Histogram)
		}
		t.Own = append(t.Own, o)
	}
	return t
}

// ReadBatches returns what the coordinator of an exactly-once topology has done; m is its
// task's.
func ReadBatches(m *metrics.Task) *Batches {
	b, now := &m.Batches, m.Batches.Now.Load()
	if now != nil {
		c := *now
		c.Batches = list(c.Batches)
		now = &c
	}
	return &Batches{
		Last: b.Last.Load(), Committed: b.Committed.Load(), Messages: b.Messages.Load(), Keys: b.Keys.Load(), Failed: b.Failed.Load(), Replayed: b.Replayed.Load(),
		Rounds: b.RoundsBegan(), Latency: metrics.Read(&m.Complete), Now: now,
	}
}

// Streams returns what the components of a plan emit.
func Streams(p *topology.Plan) (all []Stream) {
	for c := range p.Components {
		for _, s := range p.Components[c].Streams {
			all = append(all, Stream{Component: s.Component, Stream: s.Stream, Fields: list(s.Fields), Masked: s.Masked, NoTap: p.NoTaps})
		}
	}
	return all
}
