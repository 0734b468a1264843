package egret

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// passing emits numbers until it is stopped, on several nodes.
func passing(name string, more func(*topology.Builder)) *topology.Topology {
	return topology.New(name, func(b *topology.Builder) {
		in := b.Spout("in", spout.Source(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }))).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"), "4111")
			return nil
		}), in.By("n")).Emits("n", "card").Mask("card").Parallel(3)
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), pass.Shuffle()).Parallel(2)
		if more != nil {
			more(b)
		}
	})
}

// A tap of a cluster is one of all nodes, and leaves nothing behind on any.
func TestTapOfCluster(t *testing.T) {
	tops := []*topology.Topology{passing("passing", nil), passing("closed", (*topology.Builder).NoTaps)}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	b := startNode(t, tops, "--name", "b", "--join", a.addr)
	c := startNode(t, tops, "--name", "c", "--join", a.addr)
	s := &shell{t, tops, b.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 3 })
	for _, name := range []string{"passing", "closed"} {
		s.is("submit " + name + " --max-pending 1000")
		soon(t, func() bool { d := apiOf(t, c).detail(name); return d.Silent == 0 && d.Counts.Acked > 0 })
	}
	nodes, has := map[string]bool{}, map[string]bool{}
	for _, x := range apiOf(t, c).detail("passing").TasksNow {
		if x.Component == "pass" {
			has[x.Node] = true
		}
	}
	for range 2 * mostTaps {
		var code int
		var out, errs string
		soon(t, func() bool { // the one before ends when the nodes have heard of it
			code, out, errs = s.run("tap passing pass -n 300 --rate 1000 --where n%2==1")
			return code != ExitRefused
		})
		require.Equal(t, ExitDone, code, errs)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 300)
		for _, line := range lines {
			var x struct {
				Task, Node string
				Values     struct {
					N    int64
					Card string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(line), &x))
			require.EqualValues(t, 1, x.Values.N%2)
			require.Equal(t, "•••", x.Values.Card)
			require.Contains(t, []string{"pass/0", "pass/1", "pass/2"}, x.Task)
			nodes[x.Node] = true
		}
	}
	require.Equal(t, has, nodes)
	for _, tt := range []struct {
		line string
		code int
		errs string
	}{
		{"tap closed pass", ExitRefused, "the topology closed forbids taps (NoTaps)"},
		{"tap passing pass --where m>3", ExitUsage, "unknown name m: the fields of pass.default are n"},
		{"tap passing pass --where card==n", ExitUsage, "the field card is masked"},
		{"tap other pass", ExitUnknown, `there is no topology "other"`},
		{"tap passing passes", ExitUnknown, `has no stream "passes"`},
	} {
		code, out, errs := s.run(tt.line)
		require.Equal(t, tt.code, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, tt.errs)
	}
	var e struct{}
	status, refused := apiOf(t, b).do("GET", "/api/v1/topologies/passing/tap?component=passes", nil, &e)
	require.Equal(t, 404, status)
	require.Equal(t, `unknown: there is no component "passes" in the topology passing: it has in, pass, out`, refused)

	// Where the tasks go, the tap goes; it ends with the run.
	done := make(chan struct{})
	var out, errs string
	var code int
	go func() { // waited for below
		defer close(done)
		code, out, errs = s.run("tap passing pass --rate 1000")
	}()
	_, refused = apiOf(t, a).act(view.Action{Do: "drain", Node: "c"})
	require.Empty(t, refused)
	soon(t, func() bool { return apiOf(t, a).overview().Nodes[2].Tasks == 0 })
	s.is("kill passing --wait")
	<-done
	require.Equal(t, ExitDone, code, errs)
	require.NotEmpty(t, out)
}

// A tap says of each node that is gone that it is, once, whatever else it has to say.
func TestTapOfDeadNodes(t *testing.T) {
	b, c := cluster.Home{Node: 2}, cluster.Home{Node: 3}
	k := &clusterTap{from: map[cluster.Home]*tapFrom{b: {}, c: {}}}
	k.take(c, "c", &view.Tapped{Error: "expression"})
	for range 3 { // it is tried again as long as the others think that it lives
		k.over(b, "b", io.ErrUnexpectedEOF)
		k.over(c, "c", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	}
	gone := func(name string) string {
		return "node " + name + " is gone, or cannot be reached any more: the tap goes on with the others, and with its tasks where they begin anew"
	}
	require.Equal(t, gone("b")+"; "+gone("c")+"; expression", k.note().Error)
	require.Empty(t, k.note().Error)
	k = &clusterTap{from: map[cluster.Home]*tapFrom{b: {}}}
	k.over(b, "b", errors.New("it is of another version"))
	require.Equal(t, "node b: it is of another version", k.note().Error)
}

// Who looks at a cluster and is slow all the time has one tuple at a time, and notes between.
func TestSlowTapOfCluster(t *testing.T) {
	k := &clusterTap{each: time.Nanosecond, from: map[cluster.Home]*tapFrom{{}: {}}, some: make(chan struct{}, 1)}
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	for range 3 {
		k.take(cluster.Home{}, "a", &view.Tapped{Values: []json.RawMessage{[]byte("1")}})
	}
	for n := 1; k.ready(); n++ {
		seen := 0
		more, err := k.pass(func(*view.Tapped) bool {
			seen++
			k.take(cluster.Home{}, "a", &view.Tapped{Values: []json.RawMessage{[]byte("2")}})
			return n < 10
		}, next)
		require.NoError(t, err)
		require.Equal(t, 1, seen)
		if n == 10 {
			require.False(t, more)
			break
		}
		<-next.C // it is its turn again at once
	}
}
