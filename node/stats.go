package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// countEvery is how often a node tells who leads what its tasks have done.
const countEvery = time.Second

// counts are what the tasks of a node have done.
type counts struct {
	At   time.Duration `json:"at"` // by the node's clock
	Runs []runCounts   `json:"runs"`

	before *counts // the ones before, for rates
}

type runCounts struct {
	Run   cluster.Run `json:"run"`
	Tasks []TaskCount `json:"tasks"`
}

// A TaskCount is what a task has done on a node: totals, but for what is open, queued.
type TaskCount struct {
	Task      tuple.TaskID      `json:"task_id"`
	Life      tuple.Incarnation `json:"life"`
	Messages  int64             `json:"messages"` // of its own
	Emitted   int64             `json:"emitted"`
	Executed  int64             `json:"executed"`
	Acked     int64             `json:"acked"`
	Failed    int64             `json:"failed"` // executions, and attempts of its own messages
	Lost      int64             `json:"lost"`
	TimedOut  int64             `json:"timed_out"`
	Replayed  int64             `json:"replayed"`
	Dead      int64             `json:"dead"`
	Open      int64             `json:"open"`
	Queued    int64             `json:"queued"`
	Refused   int64             `json:"refused"` // parcels, reports and limits of or for the dead
	Stale     int64             `json:"stale"`
	Restarts  int64             `json:"restarts"`
	Throttled time.Duration     `json:"throttled_ns"`
	Batches   *view.Batches     `json:"batches,omitempty"` // of the coordinator of an exactly-once topology
}

// Stats are what the tasks of a run do, on all nodes, as who leads has heard a moment
// ago.
type Stats struct {
	Tasks []TaskStats `json:"tasks"`
}

// TaskStats are about one task where it is now.
type TaskStats struct {
	Name      string       `json:"task"` // "count/2"
	Component string       `json:"component"`
	Home      cluster.Home `json:"home"`
	Known     bool         `json:"known"` // false: its node has said nothing yet
	Rate      float64      `json:"rate"`  // tuples executed, or messages emitted, a second, over the last second or so
	Throttle  float64      `json:"throttle"`
	By        string       `json:"throttled_by,omitempty"` // the task that it mostly waits for, of those it sends to
	TaskCount
}

func count(id tuple.TaskID, m *metrics.Task) TaskCount {
	c := TaskCount{
		Task: id, Messages: m.Messages.Load() + m.Untracked.Load(), Acked: m.Acked.Load(), Failed: m.Failed.Load(), Lost: m.Lost.Load(), TimedOut: m.TimedOut.Load(),
		Dead: m.Dead.Load(), Open: m.Open(), Queued: m.Queued.Load(), Refused: m.Refused.Load(), Stale: m.Stale.Load(),
		Replayed: m.ReplayedFailed.Load() + m.ReplayedLost.Load() + m.ReplayedTimeout.Load(),
		Restarts: m.Restarts.Load(), Throttled: time.Duration(m.Throttled.Load()),
	}
	if m.Batches.Now.Load() != nil {
		c.Batches = view.ReadBatches(m)
	}
	for i := range m.Streams {
		c.Emitted += m.Streams[i].Emitted.Load()
	}
	for i := range m.Inputs {
		c.Executed += m.Inputs[i].Executed.Load()
		c.Failed += m.Inputs[i].Failed.Load()
	}
	return c
}

// tellCounts tells who leads what the tasks here have done.
func (a *Agent) tellCounts() {
	c := &counts{At: a.ctx.Now()}
	for _, run := range slices.Sorted(maps.Keys(a.parts)) {
		p := a.parts[run]
		if p.placed == nil {
			continue
		}
		r := runCounts{Run: run}
		for id, m := range p.metrics {
			if id < len(p.placed.Tasks) && p.placed.Tasks[id].Home == a.Self.Home {
				t := count(tuple.TaskID(id), m)
				t.Life = p.own[t.Task].Life
				r.Tasks = append(r.Tasks, t)
			}
		}
		c.Runs = append(c.Runs, r)
	}
	if a.lead != nil {
		a.lead.count(a.Self.Home, c)
	} else if a.leads.Node != 0 {
		a.note(a.leads.Node, &note{Counts: c})
	}
}

// count takes in what the tasks of a node have done.
func (l *lead) count(from cluster.Home, c *counts) {
	if before := l.counts[from]; before != nil && before.At < c.At {
		before.before = nil
		c.before = before
	}
	l.counts[from] = c
}

func (c *counts) of(run cluster.Run, id tuple.TaskID) (TaskCount, bool) {
	for i := range c.Runs {
		if c.Runs[i].Run != run {
			continue
		}
		tasks := c.Runs[i].Tasks // in their order
		if at, known := slices.BinarySearchFunc(tasks, id, func(t TaskCount, id tuple.TaskID) int { return cmp.Compare(t.Task, id) }); known {
			return tasks[at], true
		}
	}
	return TaskCount{}, false
}

// stats puts together what is known of a run's tasks.
func (l *lead) stats(sub *cluster.Submission) *Stats {
	s := &Stats{}
	if sub.Plan == nil {
		return s
	}
	for i, t := range sub.Plan.Tasks {
		if t.Home.Node == 0 {
			continue
		}
		c := sub.Components[t.Component]
		x := TaskStats{Name: fmt.Sprintf("%s/%d", c.Name, t.Index), Component: c.Name, Home: t.Home}
		if all := l.counts[t.Home]; all != nil {
			x.TaskCount, x.Known = all.of(sub.Run, tuple.TaskID(i))
			if all.before != nil {
				if before, known := all.before.of(sub.Run, tuple.TaskID(i)); known {
					d := (all.At - all.before.At).Seconds()
					n := x.Executed - before.Executed
					if c.Spout {
						n = x.Messages - before.Messages
					}
					x.Rate = float64(n) / d
					x.Throttle = (x.Throttled - before.Throttled).Seconds() / d
				}
			}
		}
		s.Tasks = append(s.Tasks, x)
	}
	// Who waits, waits mostly for the fullest queue.
	for i := range s.Tasks {
		x := &s.Tasks[i]
		if x.Throttle < 0.05 {
			continue
		}
		from := slices.IndexFunc(sub.Components, func(c cluster.Component) bool { return c.Name == x.Component })
		most := int64(0)
		for _, y := range s.Tasks {
			to := slices.IndexFunc(sub.Components, func(c cluster.Component) bool { return c.Name == y.Component })
			if y.Queued > most && slices.Contains(sub.Components[from].To, to) {
				most, x.By = y.Queued, y.Name
			}
		}
	}
	return s
}
