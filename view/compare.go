package view

import (
	"cmp"
	"slices"
	"time"
)

const waits = 0.05 // share of its time from which a component is said to wait for another

// A Comparison is a sample, seen beside an earlier one.
type Comparison struct {
	now    *Sample
	before *Sample
	window time.Duration // 0: there is nothing before
}

// Compare compares two samples of the same cluster or run. Without an earlier one, nil, all
// rates are zero, and the window is too.
func Compare(before, now *Sample) *Comparison {
	c := &Comparison{now: now, before: &Sample{}}
	if before != nil && now.At.After(before.At) {
		c.before, c.window = before, now.At.Sub(before.At)
	}
	return c
}

// rate is by how much a total has grown a second. One that has shrunk belongs to a life
// that began in the window, and all of it is new.
func (c *Comparison) rate(before, now int64) float64 {
	if c.window == 0 {
		return 0
	}
	if now < before {
		before = 0
	}
	return float64(now-before) / c.window.Seconds()
}

// share is how much of the window a time took.
func (c *Comparison) share(before, now time.Duration) float64 {
	return min(1, c.rate(int64(before), int64(now))/float64(time.Second))
}

// Overview is what is there.
func (c *Comparison) Overview() *Overview {
	o := &Overview{At: c.now.At, Window: c.window, Cluster: c.now.Cluster, Quorum: c.now.Quorum, Nodes: []NodeNow{}, Topologies: []Summary{}}
	for _, n := range c.now.Nodes {
		x := NodeNow{Node: n, Has: c.tasksOf(n.Node)}
		if at := slices.IndexFunc(c.before.Nodes, func(b Node) bool { return b.Node == n.Node && b.ID == n.ID }); at >= 0 {
			cores := time.Duration(max(1, n.Cores)) // of which each has the window
			x.Load = c.share(c.before.Nodes[at].CPU/cores, n.CPU/cores)
		}
		o.Nodes = append(o.Nodes, x)
	}
	for i := range c.now.Runs {
		s, _ := c.summary(&c.now.Runs[i])
		o.Topologies = append(o.Topologies, s)
	}
	return o
}

// tasksOf returns the tasks of a node.
func (c *Comparison) tasksOf(node string) []NodeTasks {
	all := []NodeTasks{}
	for i := range c.now.Runs {
		r := &c.now.Runs[i]
		x := NodeTasks{Topology: r.Topology}
		for k := range r.Tasks {
			if r.Tasks[k].Node == node && !r.Ended {
				x.Tasks = append(x.Tasks, r.Tasks[k].Task)
			}
		}
		if len(x.Tasks) > 0 {
			all = append(all, x)
		}
	}
	return all
}

// beside returns the tasks of a run with what they were before.
func (c *Comparison) beside(r *Run) []pair {
	var before []Task
	if run := slices.IndexFunc(c.before.Runs, func(b Run) bool { return b.Topology == r.Topology && b.Run == r.Run }); run >= 0 {
		before = c.before.Runs[run].Tasks
	}
	all := make([]pair, len(r.Tasks))
	for i := range r.Tasks {
		now := &r.Tasks[i]
		all[i] = pair{now: now, before: &Task{}}
		at := slices.IndexFunc(before, func(b Task) bool { return b.Task == now.Task })
		switch {
		case c.window > 0 && len(before) == 0: // the run has begun in the window, or was placed in it
		case at >= 0 && !before[at].Known && before[at].Past == nil && now.Known && c.answered(now.Node): // and its node had not begun it
		case at < 0 || !before[at].Known || !now.Known: // what it has done was not done in the window
			all[i].before = now
		case before[at].Node == now.Node:
			all[i].before = &before[at]
		case before[at].Past != nil: // it may have been here before, and then its totals go on
			all[i].before = now
		}
	}
	return all
}

// answered reports whether a node has said in the earlier sample what it had.
func (c *Comparison) answered(node string) bool {
	return slices.ContainsFunc(c.before.Nodes, func(n Node) bool { return n.Node == node && n.Up > 0 })
}

// A pair is a task at two moments.
type pair struct{ now, before *Task }

// doing adds up what tasks do.
func (c *Comparison) doing(tasks []pair) (d Doing) {
	var execute, complete Histogram
	for _, t := range tasks {
		ran := c.ran(t)
		if len(t.now.Executed) > 0 {
			d.Rate += c.rate(sum(t.before.Executed), sum(t.now.Executed))
		} else {
			d.Rate += c.rate(t.before.Messages, t.now.Messages)
		}
		d.FailedRate += c.rate(t.before.lapses(), t.now.lapses())
		d.Load += ran / float64(len(tasks))
		d.Throttled += c.share(t.before.Throttled, t.now.Throttled) / float64(len(tasks))
		execute.merge(t.now.Execute, 1)
		execute.merge(t.before.Execute, -1)
		complete.merge(t.now.Complete, 1)
		complete.merge(t.before.Complete, -1)
		d.Counts.add(&t.now.Counts)
		if p := t.now.Past; p != nil {
			d.Counts.add(&p.Counts)
		}
	}
	d.Execute, d.Complete = execute.Latency(), complete.Latency()
	return d
}

// ran is the share of the window that a task was in the user's code.
func (c *Comparison) ran(t pair) float64 {
	of := func(h *Histogram) time.Duration {
		if h == nil {
			return 0
		}
		return time.Duration(h.Sum)
	}
	return c.share(of(t.before.Execute), of(t.now.Execute))
}

func (t *Task) lapses() int64 { return t.FailedTuples + t.Failed + t.Lost + t.TimedOut }

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

func (s *Counts) add(o *Counts) {
	s.Messages += o.Messages
	s.Acked += o.Acked
	s.Dead += o.Dead
	s.HandedBack += o.HandedBack
	s.Abandoned += o.Abandoned
	s.Open += o.Open
	s.Failed += o.Failed
	s.Lost += o.Lost
	s.TimedOut += o.TimedOut
	s.ReplayedFailed += o.ReplayedFailed
	s.ReplayedLost += o.ReplayedLost
	s.ReplayedTimeout += o.ReplayedTimeout
	s.FailedTuples += o.FailedTuples
	s.Queued += o.Queued
	s.Held += o.Held
	s.Restarts += o.Restarts
	s.Refused += o.Refused
	s.Stuck += o.Stuck
}

// reads reports whether messages come in by a component.
func (r *Run) reads(component string) bool {
	if r.Graph == nil {
		return false
	}
	for _, b := range r.Graph.Components {
		if b.Component == component {
			return b.Kind == "spout" || b.Kind == "queue"
		}
	}
	return false
}

// coordinator returns the task that commits batches, of all.
func (r *Run) coordinator(tasks []pair) (all []pair) {
	if r.Graph == nil {
		return nil
	}
	for _, b := range r.Graph.Components {
		for _, t := range tasks {
			if b.Kind == "coordinator" && t.now.Component == b.Component {
				all = append(all, t)
			}
		}
	}
	return all
}

func (c *Comparison) summary(r *Run) (Summary, []pair) {
	tasks := c.beside(r)
	all := c.doing(tasks)
	s := Summary{
		Topology: r.Topology, Run: r.Run, Guarantee: r.Guarantee, Status: r.Status, Reason: r.Reason, Began: r.Began, Ended: r.Ended,
		Tasks: len(r.Tasks), Complete: all.Complete, Counts: all.Counts,
	}
	for _, t := range tasks {
		if !t.now.Known {
			s.Silent++
		}
		s.FailedRate += c.rate(t.before.Failed+t.before.Lost+t.before.TimedOut, t.now.Failed+t.now.Lost+t.now.TimedOut)
		s.DoneRate += c.rate(t.before.Acked, t.now.Acked)
		if r.reads(t.now.Component) {
			s.Rate += c.rate(t.before.Messages, t.now.Messages)
		}
	}
	if r.Batches != nil {
		s.DoneRate = 0
		counted := func(b *Batches) bool { return b != nil && b.Now != nil } // else the last one alone is known
		if at := slices.IndexFunc(c.before.Runs, func(b Run) bool { return b.Topology == r.Topology && b.Run == r.Run && counted(b.Batches) }); at >= 0 && counted(r.Batches) {
			s.DoneRate = c.rate(c.before.Runs[at].Batches.Messages, r.Batches.Messages)
		}
	}
	return s, tasks
}

// Detail looks closely at a topology; nil: there is none of that name.
func (c *Comparison) Detail(topology string) *Detail {
	at := slices.IndexFunc(c.now.Runs, func(r Run) bool { return r.Topology == topology })
	if at < 0 {
		return nil
	}
	r := &c.now.Runs[at]
	d := &Detail{
		At: c.now.At, Window: c.window, Cluster: c.now.Cluster, Quorum: c.now.Quorum, Settings: r.Settings, Graph: r.Graph, Batches: r.Batches, Troubles: r.Troubles,
		Streams: list(r.Streams), Components: []ComponentNow{}, Edges: []EdgeNow{}, TasksNow: []TaskNow{},
	}
	var tasks []pair
	d.Summary, tasks = c.summary(r)
	if r.Batches != nil {
		b := *r.Batches
		b.InWindow = c.doing(r.coordinator(tasks)).Complete
		d.Batches = &b
	}
	for i, t := range tasks {
		d.TasksNow = append(d.TasksNow, TaskNow{
			Task: t.now.Task, Component: t.now.Component, Node: t.now.Node, Life: t.now.Life, Known: t.now.Known, WaitsFor: t.now.WaitsFor,
			Doing: c.doing(tasks[i : i+1]),
		})
	}
	if r.Graph == nil {
		d.Verdict = c.verdict(d, r, tasks)
		return d
	}
	for _, b := range r.Graph.Components {
		mine := slices.DeleteFunc(slices.Clone(tasks), func(t pair) bool { return t.now.Component != b.Component })
		x := ComponentNow{Component: b.Component, Kind: b.Kind, Tasks: len(mine), Doing: c.doing(mine)}
		for _, t := range mine {
			x.Busiest = max(x.Busiest, c.ran(t))
			for i := range t.now.Own {
				x.Own = added(x.Own, &t.now.Own[i])
			}
			if p := t.now.Past; p != nil {
				for i := range p.Own {
					x.Own = added(x.Own, &p.Own[i])
				}
			}
			if !t.now.Known {
				x.Silent++
			}
		}
		d.Components = append(d.Components, x)
	}
	for _, e := range r.Graph.Edges {
		x := EdgeNow{From: e.From, Stream: e.Stream, To: e.To, Input: e.Input}
		for _, t := range tasks {
			if t.now.Component == e.To && e.Input < len(t.now.Executed) {
				x.Total += t.now.Executed[e.Input]
				var before int64
				if e.Input < len(t.before.Executed) {
					before = t.before.Executed[e.Input]
				}
				x.Rate += c.rate(before, t.now.Executed[e.Input])
			}
			if p := t.now.Past; p != nil && t.now.Component == e.To && e.Input < len(p.Executed) {
				x.Total += p.Executed[e.Input]
			}
		}
		d.Edges = append(d.Edges, x)
	}
	d.causes(tasks)
	d.Verdict = c.verdict(d, r, tasks)
	return d
}

// list returns all, and never nil: in JSON that is no list.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// added adds what a bolt counts for itself to what others do. Of gauges the sum is shown too.
func added(all []Own, o *Own) []Own {
	at := slices.IndexFunc(all, func(y Own) bool { return y.Name == o.Name })
	if at < 0 {
		at = len(all)
		all = append(all, Own{Name: o.Name, Help: o.Help, Kind: o.Kind})
	}
	y := &all[at]
	y.Value += o.Value
	if o.Histogram != nil {
		if y.Histogram == nil {
			y.Histogram = &Histogram{}
		}
		y.Histogram.merge(o.Histogram, 1)
	}
	return all
}

// causes says who waits for whom. A component that waits does so for the one below it with
// the fullest queues, of those that it sends to; if that waits too, for what that waits for.
func (d *Detail) causes(tasks []pair) {
	next := map[string]string{}
	for i := range d.Components {
		x := &d.Components[i]
		if x.Throttled < waits {
			continue
		}
		var below []*ComponentNow
		for _, e := range d.Edges {
			if at := d.component(e.To); e.From == x.Component && at != nil {
				below = append(below, at)
			}
		}
		if len(below) == 0 {
			continue
		}
		fullest := slices.MaxFunc(below, func(a, b *ComponentNow) int { return cmp.Compare(a.Counts.Queued, b.Counts.Queued) })
		for _, t := range tasks { // a task that knows for whom it waits is better
			if at := d.taskComponent(t.now.WaitsFor); t.now.Component == x.Component && at != "" {
				fullest = d.component(at)
				break
			}
		}
		next[x.Component] = fullest.Component
	}
	for i := range d.Components {
		x := &d.Components[i]
		for to := next[x.Component]; to != ""; to = next[to] { // the graph has no cycle
			x.Cause = to
		}
	}
	for i := range d.Edges {
		e := &d.Edges[i]
		e.Full = next[e.From] == e.To
	}
}

func (d *Detail) component(name string) *ComponentNow {
	for i := range d.Components {
		if d.Components[i].Component == name {
			return &d.Components[i]
		}
	}
	return nil
}

func (d *Detail) taskComponent(task string) string {
	for i := range d.TasksNow {
		if d.TasksNow[i].Task == task {
			return d.TasksNow[i].Component
		}
	}
	return ""
}
