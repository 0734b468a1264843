package sim

import (
	"cmp"
	gocontext "context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/egretstream/egret/task"
)

// Cluster runs a cluster of nodes, the code that ships from the agents up, on a log, a
// membership and connections that are models, with topologies, faults and orders that
// are drawn from a seed. It checks what came of each message, and that all nodes are of
// one mind in the end. The rest is as with [Seed].
func Cluster(seed uint64, o ClusterOptions) (Report, error) {
	report, bad := playCluster(seed, &o)
	if bad == nil {
		return report, nil
	}
	deeds := drawCluster(seed, &o).deeds
	f := &Failure{Seed: seed, Violation: *bad, Drawn: len(deeds), nodes: cmp.Or(o.Nodes, -1)}
	if o.Log == nil && !o.Unshrunk && bad.Invariant != repeatable {
		deeds = shrinkDeeds(seed, o, deeds, f)
	}
	if len(deeds) > 0 {
		f.What += "; deeds: " + deedsText(deeds)
	}
	return report, f
}

// ClusterSeeds is [Seeds] for clusters.
func ClusterSeeds(ctx gocontext.Context, first uint64, n int, o ClusterOptions, progress func(*Summary)) *Summary {
	players := runtime.GOMAXPROCS(0)
	if o.Log != nil {
		players = 1
	}
	return playAll(ctx, first, n, players, func(seed uint64) (Report, error) { return Cluster(seed, o) }, progress)
}

// playCluster runs a seed, and unless it is to be run once, again to see that it is the
// same.
func playCluster(seed uint64, o *ClusterOptions) (Report, *Violation) {
	c := newCluster(drawCluster(seed, o), o.Log)
	c.play()
	report, bad := c.report(), c.book.bad
	if o.Log != nil {
		_, _ = fmt.Fprintf(o.Log, "%d events, hash %016x\n", report.Events, report.Hash)
	}
	if bad != nil || o.Once {
		return report, bad
	}
	again := newCluster(drawCluster(seed, o), nil)
	again.play()
	report.Checks[repeatable] = report.Events
	if r := again.report(); r.Hash != report.Hash || r.Events != report.Events {
		return report, &Violation{repeatable, fmt.Sprintf("a run has %d events, and another one of the same seed has %d. %s", report.Events, r.Events, cause), 0}
	}
	return report, nil
}

// shrinkDeeds leaves out deeds as long as the same invariant does not hold.
func shrinkDeeds(seed uint64, o ClusterOptions, deeds []clusterDeed, f *Failure) []clusterDeed {
	o.Once, o.only, o.Log = true, true, io.Writer(nil)
	for i := len(deeds) - 1; i >= 0; i-- {
		o.deeds = slices.Delete(slices.Clone(deeds), i, i+1)
		c := newCluster(drawCluster(seed, &o), nil)
		c.play()
		if bad := c.book.bad; bad != nil && bad.Invariant == f.Invariant {
			deeds, f.Violation = o.deeds, *bad
		}
	}
	return deeds
}

// describeFar is describe for what travels between nodes as well.
func describeFar(msg any) string {
	switch m := msg.(type) {
	case *task.Far:
		return fmt.Sprintf("run %d %T %s", m.Run, m.Msg, describe(m.Msg))
	case *task.Lives:
		s := ""
		for _, p := range m.Peers {
			s += fmt.Sprintf(" %d.%v", p.Task, p.Life)
		}
		return s
	case *task.Elsewhere:
		s := ""
		for _, p := range m.Peers {
			s += fmt.Sprintf(" %d.%v", p.Task, p.Life)
		}
		return s
	case *task.Encoded:
		return fmt.Sprintf("%d.%v->%d %d tuples", m.From, m.FromLife, m.To, m.Tuples)
	case task.Halt:
		return fmt.Sprint(m.N)
	case fmt.Stringer:
		return m.String()
	}
	if s := describe(msg); s != "" {
		return s
	}
	switch fmt.Sprintf("%T", msg) {
	case "node.LinkReset", "node.LinkUp", "node.LinkDown", "node.Members", "node.Leads", "node.Proposed", "task.AtRest", "task.Ended":
		return fmt.Sprintf("%+v", msg)
	}
	return ""
}
