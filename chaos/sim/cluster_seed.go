package sim

import (
	"cmp"
	gocontext "context"
	"fmt"
	"io"
	"runtime"

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
		o.only = true
		deeds = fewerDeeds(deeds, f, func(deeds []clusterDeed) playable {
			o.deeds = deeds
			return newCluster(drawCluster(seed, &o), nil)
		})
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

// playCluster runs a seed, as [playTwice].
func playCluster(seed uint64, o *ClusterOptions) (Report, *Violation) {
	return playTwice(o.Log, o.Once, func(log io.Writer) playable { return newCluster(drawCluster(seed, o), log) })
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
