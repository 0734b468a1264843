package egret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/view"
)

// reachable is a backend that all nodes can reach: those of a test are one process.
type reachable struct{ state.Backend }

// digits counts the last digits of endless numbers.
func digits(name string, where state.Backend) *topology.Topology {
	return trident.New(name, func(b *trident.Builder) {
		numbers := trident.From[int64](b, "numbers", from.Paced(spout.GenerateSplits(2, 0, func(_ int, i int64, out *spout.Out) { out.Emit(i) }), 500))
		last := trident.Map(numbers, func(n int64) int64 { return n % 10 }).Name("last").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(last, trident.Identity), trident.StateOf[int64, int64]("counts", where, trident.Opaque), trident.Count[int64]()).Parallel(2)
	})
}

// Exactly-once topologies on a cluster: their batches are shown, and one whose states only
// one node has is on one node.
func TestClusterBatches(t *testing.T) {
	tops := []*topology.Topology{digits("spread", reachable{memory.New()}), digits("local", memory.New())}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", a.addr)
	s := &shell{t, tops, a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	s.is("submit spread")
	soon(t, func() bool { return submissionOf(s, "spread").Nodes == 2 }) // beside local it may be on one: its tasks go where there are fewer
	s.is("submit local")
	batches := func(name string) *view.Batches {
		all := s.status(name).Topologies
		if len(all) == 0 || all[0].Batches == nil {
			return new(view.Batches)
		}
		return all[0].Batches
	}
	for _, name := range []string{"spread", "local"} {
		soon(t, func() bool { b := batches(name); return b.Now != nil && b.Last >= 5 })
		b := batches(name)
		require.NotEmpty(t, b.Rounds)
		require.Zero(t, b.Rounds["death"]+b.Rounds["failure"])
		require.Regexp(t, `^\d+\.\d+$`, b.Now.Attempt)
		require.Positive(t, b.Latency.Count)
	}
	require.Equal(t, 1, submissionOf(s, "local").Nodes)
	require.Regexp(t, `batches: \d+ committed last, attempt \d+\.\d+, running.*\n(  \d+ is .*\n)*committed here: [\d,]+ messages, in p50 \S+, p99 \S+ from the beginning of their batch; rounds: \d+ \S.*\n`, s.is("status spread"))
	code, _, errs := s.run("rebalance spread --parallel coordinator=2")
	require.NotEqual(t, ExitDone, code)
	require.Contains(t, errs, `component "coordinator" has one task, always`)

	s.is("deactivate spread")
	soon(t, func() bool { now := batches("spread").Now; return now != nil && now.Held && len(now.Batches) == 0 })
	require.Contains(t, s.is("status spread"), "running, no batch begins\n")
	s.is("activate spread")
	was := batches("spread").Last
	soon(t, func() bool { return batches("spread").Last > was })
	s.is("rebalance spread --parallel counts=3")
	soon(t, func() bool { b := batches("spread"); return b.Last > was && b.Rounds["moved"] >= 1 })
	tasks := submissionOf(s, "local").Tasks + 1
	s.is("rebalance local --parallel counts=3")
	soon(t, func() bool { x := submissionOf(s, "local"); return x.Waiting == "" && x.Tasks == tasks })
	was = batches("local").Last
	soon(t, func() bool { return batches("local").Last > was })
	require.Equal(t, 1, submissionOf(s, "local").Nodes)
	require.Regexp(t, `\n(counts +\d+ +[\d,]+ +[\d,]+ +- +- +0 +- +- +- +\S+\n)`, s.is("status spread"), "what it does not have is not 0")
	require.Regexp(t, `\nspread +\d+ +exactly-once +active `, s.is("list"))

	// Where the states are, its tasks stay.
	seat := s.status("local -v").Topologies[0].PerTask[0].Node
	stay := fmt.Sprintf("%d tasks of local stay: their states are here alone", tasks)
	at := apiOf(t, a)
	e, refused := at.act(view.Action{Do: "drain", Node: seat, Preview: true})
	require.Empty(t, refused)
	// It may have none of spread any more, since the other node has fewer tasks.
	require.Regexp(t, "^"+seat+": (.* to other nodes, when nothing is open, and it gets no others|it gets no other tasks); "+stay+"$", e.Text)
	code, out, errs := s.run("drain --wait " + seat)
	require.Equal(t, ExitDone, code, errs)
	require.Contains(t, out, "node "+seat+" has no tasks but those that stay\n")
	require.Equal(t, stay+"\n", errs)
	require.Equal(t, 1, submissionOf(s, "spread").Nodes)
	e, refused = at.act(view.Action{Do: "drain", Node: seat, Preview: true})
	require.Empty(t, refused)
	require.Equal(t, seat+": it gets no other tasks; "+stay, e.Text)
	s.is("kill spread --wait")
	s.is("kill local --wait")
}

// A node that alone has the states of a topology leaves at once: its tasks cannot move, and
// the vote is handed over.
func TestLeaveWithStates(t *testing.T) {
	tops := []*topology.Topology{digits("local", memory.New())}
	nodes := map[string]*testNode{"a": startNode(t, tops, "--data", t.TempDir(), "--name", "a")}
	nodes["b"] = startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", nodes["a"].addr)
	s := &shell{t, tops, nodes["a"].addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	s.is("submit local")
	soon(t, func() bool { x := s.status("local").Topologies[0]; return x.Batches != nil && x.Batches.Last > 0 })
	seat := s.status("local -v").Topologies[0].PerTask[0].Node
	other := map[string]string{"a": "b", "b": "a"}[seat]
	s.node = nodes[other].addr
	code, out, errs := s.run("leave " + seat)
	require.Equal(t, ExitDone, code, errs)
	require.Equal(t, "node "+seat+" has left\n", out)
	require.Regexp(t, `^\d+ tasks of local stay: their states are here alone; they end with it, and begin again when it is back\n$`, errs)
	<-nodes[seat].ended
	require.Equal(t, ExitDone, nodes[seat].code, nodes[seat].screen)
	soon(t, func() bool { return s.status("local").Topologies[0].Lacks == seat })
	require.True(t, s.status("").Quorum)
	code, _, errs = s.run("query local counts 1")
	require.Equal(t, ExitRefused, code)
	require.Contains(t, errs, "on the disk of node "+seat+", which is not there")
	s.is("stop local --wait")
	s.is("submit local")
	soon(t, func() bool { return s.status("local").Topologies[0].Lacks == seat })
	require.Contains(t, s.is("list"), "active, waits for "+seat+", which has its states")
	s.is("kill local --wait")
}

// What is said of batches, for people.
func TestStatusOfBatches(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    view.Batches
		want string
	}{
		{"nothing yet", view.Batches{Now: &metrics.BatchesNow{Attempt: "0.0", Phase: "recovering", Record: true}}, `batches: 0 committed last, attempt 0.0, recovering, waits for the record
committed here: 0 messages
`},
		{"under way", view.Batches{
			Last: 1234, Messages: 1, Failed: 2, Replayed: 3, Rounds: map[string]int64{"unknown entry": 1, "start": 1, "death": 1000}, Latency: metrics.Latency{Count: 1, P50: 152_345_678, P99: 1_310_000_000}, InWindow: metrics.Latency{Count: 1, P50: 7_000_000, P99: 9_000_000},
			Now: &metrics.BatchesNow{Attempt: "3.2", Phase: "running", Missing: []string{"count/0", "count/1"}, Batches: []metrics.BatchInfo{
				{Tx: 1235, Stage: "writing", Messages: 50_000, Age: 123 * time.Millisecond}, {Tx: 1236, Stage: "failed", Messages: 1, Age: 7 * time.Millisecond},
			}},
		}, `batches: 1,234 committed last, attempt 3.2, running, waits for count/0, count/1
  1,235 is writing: 50,000 messages in 123ms
  1,236 is one that has failed: 1 message in 7ms
committed here: 1 message, in p50 152ms, p99 1.31s from the beginning of their batch; now p50 7ms, p99 9ms; rounds: 1 start, 1,000 death, 1 unknown entry; begun again: 3; failed: 2
`},
	} {
		var out bytes.Buffer
		printBatches(&out, &tt.b)
		require.Equal(t, tt.want, out.String(), tt.name)
	}
}

// A topology waits for the node that has its states, and says so.
func TestStatusOfWhatWaits(t *testing.T) {
	sub := &cluster.Submission{Spec: cluster.Spec{Topology: "x", Local: true}, Status: cluster.Active, Plan: &cluster.Plan{Tasks: []cluster.Task{{}, {Home: cluster.Home{Node: 7, Boot: 1}}}}}
	v := &node.View{Nodes: []cluster.Node{{ID: 7, Name: "seven"}}, Members: []node.MemberView{{Member: cluster.Member{Home: cluster.Home{Node: 7, Boot: 1}}}}}
	x := topologyOf(sub)
	x.Lacks = lacks(v, sub)
	require.Equal(t, "active, waits for seven, which has its states", x.state(200))
	text, err := json.Marshal(x)
	require.NoError(t, err)
	require.True(t, strings.Contains(string(text), `"lacks":"seven"`))
	again := topologyOf(&cluster.Submission{Spec: sub.Spec, Status: cluster.Active, Stays: 7}) // it was stopped, and is not placed yet
	again.Lacks = lacks(v, &cluster.Submission{Spec: sub.Spec, Status: cluster.Active, Stays: 7})
	require.Equal(t, x.state(200), again.state(200))
	v.Members[0].Alive = true
	require.Empty(t, lacks(v, sub))
	sub.Local = false
	v.Members = nil
	require.Empty(t, lacks(v, sub))
}
