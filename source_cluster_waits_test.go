package egret

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// Any node says of a task on any node for whom it waits, and that it does no more.
func TestAnyNodeSaysWhoWaits(t *testing.T) {
	gate := make(chan struct{})
	tops := []*topology.Topology{topology.New("gated", func(b *topology.Builder) {
		in := b.Spout("in", spout.Source(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }))).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error { out.Emit(in.Int64("n")); return nil }), in.Shuffle()).Emits("n").Parallel(3)
		b.Bolt("slow", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { <-gate; return nil }), pass.Shuffle())
	})}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	b := startNode(t, tops, "--name", "b", "--join", a.addr)
	s := &shell{t, tops, b.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	s.is("submit gated")
	waits := func(at *testNode) map[string]string {
		all := map[string]string{}
		for _, x := range apiOf(t, at).detail("gated").TasksNow {
			if x.WaitsFor != "" {
				all[x.Component] = x.WaitsFor
			}
		}
		return all
	}
	for _, at := range []*testNode{a, b} {
		soon(t, func() bool { w := waits(at); return w["pass"] == "slow/0" && w["in"] != "" })
		require.Contains(t, []string{"pass/0", "pass/1", "pass/2"}, waits(at)["in"])
	}
	close(gate)
	soon(t, func() bool { return waits(a)["pass"] == "" || waits(b)["pass"] == "" })
	_, refused := apiOf(t, a).act(view.Action{Do: "kill", Topology: "gated"})
	require.Empty(t, refused)
	for _, at := range []*testNode{a, b} {
		soon(t, func() bool { d := apiOf(t, at).detail("gated"); return d.Status != "running" && len(waits(at)) == 0 })
	}
}
