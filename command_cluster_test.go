package egret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/examples/wordcount/counting"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// A testNode is the command "node", until it has ended.
type testNode struct {
	addr   string
	screen *screen
	ended  chan struct{}
	code   int
}

var nodeLine = regexp.MustCompile(`node (127\.0\.0\.1:\d+) \(id [0-9a-f]{16}, boot \d+\) of cluster [0-9a-f]{16}: .*\n`)

// startNode starts a node in this process. Its pace is calm: several of them share a busy
// processor, and one that waits for it would be taken for dead, and its tasks begin anew.
func startNode(t *testing.T, tops []*topology.Topology, args ...string) *testNode {
	t.Helper()
	n := &testNode{screen: newScreen(), ended: make(chan struct{})}
	args = append([]string{"node", "--listen", "127.0.0.1:0", "--stop-timeout", "5s"}, args...)
	go func() { // ends with the node, which the cleanup waits for
		defer close(n.ended)
		n.code = execute(tops, args, strings.NewReader(""), io.Discard, n.screen)
	}()
	soon(t, func() bool {
		select {
		case <-n.ended:
			require.Fail(t, n.screen.String())
		default:
		}
		m := nodeLine.FindStringSubmatch(n.screen.String())
		if m != nil {
			n.addr = m[1]
		}
		return m != nil
	})
	t.Cleanup(func() {
		select {
		case <-n.ended:
		default:
			l := &client{node: n.addr}
			ctx, err := l.open(context.Background())
			require.NoError(t, err)
			defer l.close()
			_, err = l.askOnce(ctx, n.addr, &node.Request{Op: node.OpLeave})
			if _, ends := errors.AsType[*dialError](err); !ends { // one that the test has told to leave may not have ended yet
				require.NoError(t, err)
			}
		}
		<-n.ended
	})
	return n
}

// soon waits until something is so.
func soon(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "it never is")
	}
}

// A shell runs commands that talk to one node.
type shell struct {
	*testing.T
	tops []*topology.Topology
	node string
}

func (s *shell) run(line string) (code int, out, errs string) {
	s.Helper()
	return runLine(s.tops, append(strings.Fields(line), "--node", s.node)...)
}

// is runs a command that must be done, and returns what it says without what differs
// from run to run.
func (s *shell) is(line string) string {
	s.Helper()
	code, out, errs := s.run(line)
	require.Equal(s, ExitDone, code, "%s: %s", line, errs)
	require.Empty(s, errs)
	for _, r := range []struct{ is, becomes string }{
		{`127\.0\.0\.1:\d+`, "ADDR"}, {`[0-9a-f]{16}`, "ID"}, {`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "TIME"}, {` {2,}`, "  "},
	} {
		out = regexp.MustCompile(r.is).ReplaceAllString(out, r.becomes)
	}
	return out
}

func (s *shell) status(line string) (x statusJSON) {
	s.Helper()
	code, out, errs := s.run("status --json " + line)
	require.Equal(s, ExitDone, code, errs)
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(s, d.Decode(&x))
	return x
}

// endless emits numbers until it is stopped.
func endless(components ...string) *topology.Topology {
	return topology.New("endless", func(b *topology.Builder) {
		every := b.Int("every", 1, "ms between two numbers")
		in := b.Spout("in", spout.Func(func(ctx context.Context, out *spout.Out) error {
			if every < 0 {
				return spout.Fatal(errors.New("every is too small"))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(every) * time.Millisecond):
			}
			out.Emit(1)
			return nil
		})).Emits("n")
		for _, name := range append(components, "out") {
			b.Bolt(name, bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle()).Parallel(2)
		}
	})
}

// All commands on one node.
func TestClusterOfOne(t *testing.T) {
	tops := []*topology.Topology{counting.Topology(), endless()}
	dir := t.TempDir()
	n := startNode(t, tops, "--data", dir, "--name", "a")
	require.Contains(t, n.screen.String(), ": founded\n")
	s := &shell{t, tops, n.addr}
	soon(t, func() bool { return s.status("").Quorum })
	require.Equal(t, "no topologies\n\nNODE  ADDRESS  ID  BOOT  VOTES  TASKS  STATE\na  ADDR  ID  1  yes  0  alive, leads\n", s.is("status"))

	require.Equal(t, "topology wordcount is submitted, as run 1\n", s.is("submit wordcount --set top=1 --parallel count=3 --max-pending 5000"))
	soon(t, func() bool { return s.status("wordcount").Topologies[0].Status == cluster.Done })
	require.Equal(t, "TOPOLOGY  RUN  GUARANTEE  STATUS  SINCE  TASKS  NODES  CHANGE\nwordcount  1  at-least-once  done  TIME  0  0  -\n\nNODE  ADDRESS  ID  BOOT  VOTES  TASKS  STATE\na  ADDR  ID  1  yes  0  alive, leads\n", s.is("status"))
	require.Equal(t, "wordcount (run 1): done\n\nNODE  ADDRESS  ID  BOOT  VOTES  TASKS  STATE\na  ADDR  ID  1  yes  0  alive, leads\n", s.is("status wordcount -v"))
	require.DirExists(t, filepath.Join(dir, "state", "wordcount"))

	require.Equal(t, `{"run":3,"topology":"endless"}`+"\n", s.is("submit endless --json --set every=2"))
	soon(t, func() bool {
		x := s.status("endless -v").Topologies[0]
		return x.Placed && x.Components[0].Acked > 0 && x.Components[0].Rate > 0 && len(x.PerTask) == 3 && x.PerTask[0].Life == "4.1"
	})
	require.Regexp(t, `^endless \(run 3\): active, 3 tasks on 1 node; rates of the last second

COMPONENT  TASKS  RATE/S  QUEUED  OPEN  ACKED  FAILED  LOST  REPLAYED  DEAD  THROTTLED BY
in  1  \d+  0  \d+  \d+  0  0  0  0  -
out  2  \d+  \d+  0  0  0  0  0  0  -

TASK  NODE  LIFE  RATE/S  QUEUED  OPEN  ACKED  FAILED  LOST  REPLAYED  DEAD  THROTTLED BY
in/0  a  4.1  \d+  0  \d+  \d+  0  0  0  0  -
out/0  a  4.1  .*
out/1  a  4.1  .*

NODE`, s.is("status endless -v"))
	for _, line := range []string{"list --json", "status --json"} { // a topology that moves must not look like one that stands still
		require.Contains(t, s.is(line), `"components":[{"component":"in","tasks":1},{"component":"out","tasks":2}]`, line)
	}
	require.Regexp(t, `"components":\[{"component":"in","tasks":1,"rate":[^}]*"acked":[1-9]\d*,`, s.is("status endless --json"))
	require.Equal(t, "topology endless is inactive\n", s.is("deactivate endless"))
	require.Contains(t, s.is("status"), "endless  3  at-least-once  inactive  TIME  3  1  -\n")
	require.Equal(t, "topology endless is active\n", s.is("activate endless"))
	require.Equal(t, "nothing to move: topology endless is as it should be\n", s.is("rebalance endless"))
	const grows = "3 tasks are new: out/0 on a, out/1 on a, out/2 on a\n2 tasks end: out/0 on a, out/1 on a\n"
	require.Equal(t, grows+"nothing was done\n", s.is("rebalance endless --parallel out=3 --preview"))
	require.Regexp(t, `^{"moves":\[{.*}\]}\n$`, s.is("rebalance endless --parallel out=3 --preview --json"))
	require.Equal(t, "nothing to move: topology endless is as it should be\n", s.is("rebalance endless --preview"))
	require.Equal(t, 3, s.status("endless").Topologies[0].Tasks)
	require.Empty(t, s.status("endless").Topologies[0].Waiting)
	require.Equal(t, "1 task is new: out/2 on a\n", regexp.MustCompile(`.*out/2.*\n`).FindString(strings.ReplaceAll(s.is("rebalance endless --parallel out=3"), "3 tasks are new: out/0 on a, out/1 on a, out/2 on a\n", "1 task is new: out/2 on a\n")))
	soon(t, func() bool { x := s.status("endless").Topologies[0]; return x.Waiting == "" && x.Tasks == 4 })

	for _, tt := range []struct {
		line string
		code int
		errs string
	}{
		{"status nothing", ExitUnknown, `there is no topology "nothing" in the cluster: it has endless, wordcount`},
		{"submit nothing", ExitUnknown, `the program of this node has no topology "nothing": it has wordcount, endless`},
		{"kill nothing", ExitUnknown, `there is no topology "nothing"`},
		{"activate nothing", ExitUnknown, "egret list shows those that there are"},
		{"rebalance endless --parallel on=3", ExitUnknown, "on"},
		{"drain other", ExitUnknown, `there is no node "other": the cluster has a`},
		{"submit endless --set evry=3", ExitParameter, `unknown parameter "evry" (have every)`},
		{"submit endless --set every=x", ExitParameter, `parameter "every"`},
		{"submit endless --parallel out=0", ExitParameter, "out"},
		{"submit endless --parallel on=1", ExitUnknown, `unknown component "on"`},
		{"submit endless --guarantee never", ExitUsage, "--guarantee"},
		{"submit endless --max-pending 0", ExitUsage, "--max-pending is 0"},
		{"submit endless --every 3", ExitUsage, "here it is --set every=VALUE"},
		{"submit endless --set every", ExitUsage, "write --set every=VALUE"},
		{"submit", ExitUsage, "accepts 1 arg"},
		{"submit endless", ExitRefused, `topology "endless" runs already, as run 3`},
		{"rebalance wordcount", ExitRefused, `topology "wordcount" is done and has no tasks`},
		{"activate wordcount", ExitRefused, "done"},
		{"forget a", ExitRefused, "node a is alive"},
		{"rebalance endless --cancel --preview", ExitUsage, "give one of the two"},
		{"drain a --off --preview", ExitUsage, "give one of them"},
		{"drain a --wait --preview", ExitUsage, "give one of them"},
		{"status --timeout -1s", ExitUsage, "--timeout is -1s"},
	} {
		code, out, errs := s.run(tt.line)
		require.Equal(t, tt.code, code, "%s: %s", tt.line, errs)
		require.Empty(t, out, tt.line)
		require.Contains(t, errs, tt.errs, tt.line)
	}
	require.Equal(t, "topology wordcount is being killed\n", s.is("kill wordcount"))
	require.Equal(t, "topology endless has ended\n", s.is("kill endless --wait"))
	require.Empty(t, s.status("").Topologies)

	require.Equal(t, "topology endless is submitted, as run 6\n", s.is("submit endless --set every=-1"))
	soon(t, func() bool { return s.status("endless").Topologies[0].Status == cluster.Failed })
	require.Contains(t, s.is("status"), "endless  6  at-least-once  failed: ")
	require.Contains(t, s.status("endless").Topologies[0].Reason, "every is too small")

	// Another program.
	other := &shell{t, []*topology.Topology{endless("more")}, n.addr}
	code, _, errs := other.run("submit endless")
	require.Equal(t, ExitFingerprint, code)
	require.Contains(t, errs, "run the same program on all nodes")
	require.Equal(t, "topology wordcount is submitted, as run 8\n", other.is("submit wordcount --set top=1"), "it need not have the topology")

	require.Equal(t, "node a has left\n", s.is("leave"))
	<-n.ended
	require.Equal(t, ExitDone, n.code, n.screen.String())
	code, _, errs = s.run("status")
	require.Equal(t, ExitUnreachable, code)
	require.Contains(t, errs, "connect to "+n.addr+" (control): nobody listens there")

	// What the log has is there again.
	n = startNode(t, tops, "--data", dir, "--name", "a")
	require.Contains(t, n.screen.String(), ": is back\n")
	s.node = n.addr
	soon(t, func() bool { return s.status("").Quorum })
	soon(t, func() bool { x := submissionOf(s, "wordcount"); return x.Run == 8 && x.Status == cluster.Done })
}

func submissionOf(s *shell, name string) topologyJSON {
	for _, x := range s.status("").Topologies {
		if x.Topology == name {
			return x
		}
	}
	return topologyJSON{}
}

// Nodes come and go, and take their tasks along.
func TestClusterOfTwo(t *testing.T) {
	tops := []*topology.Topology{endless()}
	dir := t.TempDir()
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	at, err := wire.Spare()
	require.NoError(t, err)
	b := startNode(t, tops, "--listen", at, "--data", dir, "--name", "b", "--join", a.addr)
	require.Contains(t, b.screen.String(), ": joined "+a.addr+"\n")
	s := &shell{t, tops, a.addr}
	alive := func(n int) func() bool {
		return func() bool {
			x := s.status("")
			count := 0
			for _, m := range x.Nodes {
				if m.State == alive {
					count++
				}
			}
			return x.Quorum && count == n
		}
	}
	tasks := func(node string) (n int) {
		for _, m := range s.status("").Nodes {
			if m.Name == node {
				n += m.Tasks
			}
		}
		return n
	}
	soon(t, alive(2))
	s.is("submit endless")
	soon(t, func() bool { return tasks("a") > 0 && tasks("b") > 0 })
	drains := func() bool { return regexp.MustCompile(`\n?b .*draining`).MatchString(s.is("members")) }
	soon(t, func() bool { return submissionOf(s, "endless").Waiting == "" })
	had := tasks("b")
	require.Regexp(t, "^[12] tasks? moves?: (in/0|out/[01]) from b to a.*\nnothing was done\n$", s.is("drain b --preview"))
	require.False(t, drains())
	require.Equal(t, had, tasks("b"))
	told := ""
	require.Equal(t, ExitDone, execute(tops, []string{"drain", "b", "--wait", "--node", s.node}, strings.NewReader(""), seer(func(text string) {
		if told == "" {
			require.False(t, drains(), "it is said before it is done")
		}
		told += text
	}), io.Discard))
	require.Regexp(t, "^[12] tasks? moves?: (in/0|out/[01]) from b to a.*\nnode b has no tasks\n$", told)
	require.Zero(t, tasks("b"))
	require.True(t, drains())
	code, _, errs := s.run("leave a")
	require.Equal(t, ExitRefused, code)
	require.Contains(t, errs, "no other node can take the tasks of node a, so it does not leave")
	require.Contains(t, s.is("members"), "  0  alive, draining\n")
	require.Equal(t, "node b is draining\n", strings.Replace(s.is("drain b"), "node b has no tasks\n", "node b is draining\n", 1))
	require.Equal(t, "node b may have tasks again\n", s.is("drain b --off"))
	var out string
	code, out, errs = s.run("drain a --json --wait")
	require.Equal(t, ExitDone, code, errs)
	var m movesJSON
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.Zero(t, tasks("a"))
	s.is("drain a --off")

	// The other one leaves, with all tasks, and comes back to have some.
	require.Contains(t, s.is("leave b"), "node b has left\n")
	l, err := net.Listen("tcp", b.addr)
	require.NoError(t, err, "its process still listens")
	require.NoError(t, l.Close())
	<-b.ended
	require.Equal(t, ExitDone, b.code, b.screen.String())
	require.Contains(t, b.screen.String(), "asked to leave: ")
	require.Equal(t, 3, tasks("a"))
	require.Regexp(t, `b  ADDR  ID  1  \w+  0  left`, s.is("members"))
	code, _, errs = s.run("leave b")
	require.Equal(t, ExitRefused, code)
	require.Contains(t, errs, "node b is left: it has no process")
	b = startNode(t, tops, "--data", dir, "--name", "b", "--join", a.addr)
	require.Contains(t, b.screen.String(), ": is back\n", "it has joined before")
	soon(t, alive(2))
	soon(t, func() bool {
		return regexp.MustCompile(`b  ADDR  ID  2  \w+  \d  alive\n`).MatchString(s.is("members"))
	})
	soon(t, func() bool { _, err := os.Stat(filepath.Join(dir, "leaving")); return os.IsNotExist(err) })
	s.is("leave b")
	<-b.ended
	require.Equal(t, "node b is forgotten\n", s.is("forget b"))
	s.is("kill endless --wait")
}

// A seer is shown what is written.
type seer func(text string)

func (see seer) Write(b []byte) (int, error) {
	see(string(b))
	return len(b), nil
}

// What is moved is said in a line for each kind, of which some are named.
func TestMoves(t *testing.T) {
	v := &node.View{Members: []node.MemberView{
		{Member: cluster.Member{Home: cluster.Home{Node: 1, Boot: 1}, Name: "a"}}, {Member: cluster.Member{Home: cluster.Home{Node: 2, Boot: 1}, Name: "b"}},
	}}
	a, b, c := cluster.Home{Node: 1, Boot: 1}, cluster.Home{Node: 2, Boot: 1}, cluster.Home{Node: 3, Boot: 1}
	require.Empty(t, moves(v, nil))
	require.Equal(t, "1 task moves: in/0 from a to b\n2 tasks are new: out/2 on a, out/3 on 0000000000000003\n1 task ends: out/0 on b\n",
		moves(v, []node.Move{{Task: "in/0", From: a, To: b}, {Task: "out/2", To: a}, {Task: "out/0", From: b}, {Task: "out/3", To: c}}))
	var many []node.Move
	for range 12 {
		many = append(many, node.Move{Task: "x", To: a})
	}
	require.Contains(t, moves(v, many), ", x on a and 2 more\n")
}

// A node is meant by its name, its address, its id or the beginning of one.
func TestFind(t *testing.T) {
	is := func(id cluster.NodeID, name string, alive bool) node.MemberView {
		return node.MemberView{Member: cluster.Member{Home: cluster.Home{Node: id, Boot: 1}, Name: name, Addr: "127.0.0.1:" + name, Alive: alive}}
	}
	v := &node.View{
		Members: []node.MemberView{is(0xab<<56, "a", true), is(0xac<<56, "b", true), is(0xb<<60, "c", true), is(1, "c", false), is(2, "d", true), is(3, "d", true)},
		Nodes:   []cluster.Node{{ID: 4, Name: "gone"}, {ID: 2, Name: "d"}},
	}
	for name, want := range map[string]any{
		"a": cluster.NodeID(0xab << 56), "127.0.0.1:b": cluster.NodeID(0xac << 56), "0000000000000001": cluster.NodeID(1), "ab": cluster.NodeID(0xab << 56),
		"c": cluster.NodeID(0xb << 60), "gone": cluster.NodeID(4), "b0": cluster.NodeID(0xb << 60),
		"000": "may be any of the nodes", "d": "0000000000000002 and 0000000000000003", "": "there is no node", "e": `there is no node "e": the cluster has a, b, c, c, d, d, gone`,
	} {
		m, err := find(v, name)
		if text, is := want.(string); is {
			require.ErrorContains(t, err, text, name)
			require.Equal(t, ExitUnknown, exitCode(err))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, m.ID, name)
	}
}

// Without the secret nobody gets an answer.
func TestClusterWithSecret(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	tops := []*topology.Topology{endless()}
	right, wrong := file("of sixteen bytes, or more"), file("another of as many bytes")
	n := startNode(t, tops, "--secret-file", right)
	s := &shell{t, tops, n.addr}
	for _, tt := range []struct {
		line string
		code int
		errs string
	}{
		{"status", ExitUnreachable, "the node has one, and there is none here: set EGRET_SECRET"},
		{"status --secret-file " + wrong, ExitUnreachable, "the node has another one"},
		{"status --secret-file " + file("short"), ExitUsage, "at least 16"},
		{"status --secret-file " + right, ExitDone, ""},
		{"leave --secret-file " + right, ExitDone, ""},
	} {
		code, _, errs := s.run(tt.line)
		require.Equal(t, tt.code, code, "%s: %s", tt.line, errs)
		require.Contains(t, errs, tt.errs)
	}
	<-n.ended
}

// While a leader is chosen it is not said that voters are lost.
func TestNoQuorumText(t *testing.T) {
	member := func(votes bool, state string) memberJSON { return memberJSON{Votes: votes, State: state} }
	require.Contains(t, noQuorum([]memberJSON{member(true, alive), member(true, dead), member(true, alive), member(false, alive)}),
		"NO QUORUM: no node leads at the moment: 2 of 3 voters can be reached, and choose one.")
	for _, all := range [][]memberJSON{nil, {member(true, alive), member(true, dead)}, {member(true, alive), member(true, dead), member(true, left)}} {
		require.Contains(t, noQuorum(all), "more than half of the voters cannot be reached")
	}
}

// Where nobody leads that is said loudly, and nothing is changed.
func TestClusterWithoutQuorum(t *testing.T) {
	tops := []*topology.Topology{endless()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	only, err := process.Start(ctx, process.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Name: "a", Program: newNodeProgram(tops, "", slog.Default()).program()})
	require.NoError(t, err)
	b := startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", only.Addr()) // it will vote, but not yet
	s := &shell{t, tops, b.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	require.NoError(t, only.Close())
	soon(t, func() bool { return !s.status("").Quorum })
	require.Contains(t, s.is("status"), "NO QUORUM: no node leads")
	require.Contains(t, s.is("members"), "NO QUORUM: no node leads")
	soon(t, func() bool { return !strings.Contains(s.is("members"), "a  ADDR  ID  1  yes  0  alive") })
	for _, line := range []string{"submit endless", "drain b", "leave", "leave b"} {
		code, out, errs := s.run(line + " --timeout 500ms")
		require.Equal(t, ExitNoQuorum, code, "%s: %s", line, errs)
		require.Empty(t, out, line)
		require.Contains(t, errs, "nothing can be changed", line)
	}
	require.Contains(t, s.is("members"), "b  ADDR", "nothing has ended")
	require.NotContains(t, b.screen.String(), "asked to leave")
}

// What listens and says nothing, or something else, is no node.
func TestNoNode(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s := &shell{t, []*topology.Topology{endless()}, l.Addr().String()}
	code, _, errs := s.run("status --timeout 50ms")
	require.Equal(t, ExitUnreachable, code)
	require.Contains(t, errs, "no answer within 50ms")
	t.Setenv(nodeVariable, l.Addr().String())
	t.Setenv(wire.SecretVariable, "short")
	code, _, errs = runLine(s.tops, "members")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "variable EGRET_SECRET")
}

// An address that is taken is refused, and a lonely node is told what is missing.
func TestNodeThatCannotStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	tops := []*topology.Topology{endless()}
	code, _, errs := runLine(tops, "node", "--listen", l.Addr().String())
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "address already in use")
	require.NotContains(t, errs, "Try:")
	code, _, errs = runLine(tops, "node", "--listen", "0.0.0.0:0")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--insecure")
	code, _, errs = runLine(tops, "dev", "--http", l.Addr().String())
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "address already in use")
	require.NotContains(t, errs, "in another terminal", "no node is started")
	code, _, errs = runLine(tops, "dev", "--http", "0.0.0.0:0")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "beyond this machine's loopback")
	code, _, errs = runLine(tops, "dev", "--nodes", "0")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--nodes is 0: use 1 to 9")
	code, _, errs = runLine(tops, "node", "--listen", "x", "--join", "y", "--pace", "fast", "--stop-timeout", "0s", "--advertise", "z")
	require.Equal(t, ExitUsage, code)
	for _, text := range []string{`--listen is "x": use host:port`, `--join is "y"`, `--advertise is "z"`, `--pace is "fast": use calm or quick`, "--stop-timeout is 0s"} {
		require.Contains(t, errs, text)
	}
}

// A change that waits can be taken back, and keeps out others until then.
func TestRebalanceThatWaits(t *testing.T) {
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	begun := make(chan struct{}, 1)
	tops := []*topology.Topology{topology.New("gated", func(b *topology.Builder) {
		in := b.Spout("in", spout.Source(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }))).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
			select {
			case begun <- struct{}{}:
			default:
			}
			<-gate
			return nil
		}), in.Shuffle())
	})}
	n := startNode(t, tops, "--data", t.TempDir(), "--name", "a", "--http", "127.0.0.1:0")
	t.Cleanup(open) // before the node ends
	s := &shell{t, tops, n.addr}
	soon(t, func() bool { return s.status("").Quorum })
	s.is("submit gated")
	require.Equal(t, "nothing to move: topology gated is as it should be\n", s.is("rebalance gated"), "it waits until the tasks are placed")
	<-begun
	require.Equal(t, "2 tasks are new: out/0 on a, out/1 on a\n1 task ends: out/0 on a\ntopology gated is being changed\n", s.is("rebalance gated --parallel out=2"))
	for _, line := range []string{"rebalance gated --parallel out=3", "rebalance gated"} {
		code, out, errs := s.run(line)
		require.Equal(t, ExitRefused, code)
		require.Empty(t, out, "nothing is said to move")
		require.Contains(t, errs, `topology "gated" is being changed already (rebalance), when nothing is open: wait for it; it can be dropped by egret rebalance gated --cancel`)
	}
	at := apiOf(t, n)
	soon(t, func() bool { return at.detail("gated").Status == "changing" })
	began := at.detail("gated").Began
	require.Contains(t, at.detail("gated").Reason, "rebalance waits until nothing is open")
	for _, preview := range []bool{true, false} {
		e, refused := at.act(view.Action{Do: "cancel", Topology: "gated", Preview: preview})
		require.Empty(t, refused)
		require.Equal(t, view.Effect{Done: !preview, Text: "gated: it stays as it is: the change that waits until nothing is open is dropped (3 tasks)"}, e)
	}
	soon(t, func() bool { return at.detail("gated").Status == "running" })
	_, refused := at.act(view.Action{Do: "cancel", Topology: "gated"})
	require.Contains(t, refused, `refused: topology "gated" is not being changed`)
	s.is("rebalance gated --parallel out=2")
	require.Equal(t, "topology gated stays as it is\n", s.is("rebalance gated --cancel"))
	require.Equal(t, 2, s.status("gated").Topologies[0].Tasks)
	require.Empty(t, s.status("gated").Topologies[0].Waiting)
	for line, want := range map[string]struct {
		code int
		errs string
	}{
		"rebalance gated --cancel":                  {ExitRefused, `topology "gated" is not being changed`},
		"rebalance other --cancel":                  {ExitUnknown, `there is no topology "other"`},
		"rebalance gated --cancel --parallel out=2": {ExitUsage, "give one of the two"},
	} {
		code, _, errs := s.run(line)
		require.Equal(t, want.code, code)
		require.Contains(t, errs, want.errs)
	}
	page := regexp.MustCompile(`page: http://(\S+)\n`)
	soon(t, func() bool { return page.MatchString(n.screen.String()) })
	text, before, after := (&api{t, page.FindStringSubmatch(n.screen.String())[1], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}).metrics()
	uptime, err := strconv.ParseFloat(regexp.MustCompile(`(?m)^egret_uptime_seconds\{topology="gated"\} (\S+)$`).FindStringSubmatch(text)[1], 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, uptime, before.Sub(began).Seconds())
	require.LessOrEqual(t, uptime, after.Sub(began).Seconds())
	s.is("deactivate gated")
	soon(t, func() bool { return at.detail("gated").Status == "inactive" })
	require.Equal(t, began, at.detail("gated").Began, "it has begun when it was submitted, whatever became of it")
	s.is("kill gated")
	soon(t, func() bool { return at.detail("gated").Status == "ending" })
	require.Equal(t, began, at.detail("gated").Began)
	open()
	soon(t, func() bool { return len(at.overview().Topologies) == 0 })
}

// A node of one cluster joins no other one, and says so.
func TestJoinAnotherCluster(t *testing.T) {
	tops := []*topology.Topology{endless()}
	dir := t.TempDir()
	own := startNode(t, tops, "--data", dir)
	(&shell{t, tops, own.addr}).is("leave")
	<-own.ended
	id := regexp.MustCompile(`of cluster ([0-9a-f]{16})`).FindStringSubmatch(own.screen.String())[1]
	n := startNode(t, tops)
	other := regexp.MustCompile(`of cluster ([0-9a-f]{16})`).FindStringSubmatch(n.screen.String())[1]
	code, out, errs := runLine(tops, "node", "--listen", "127.0.0.1:0", "--data", dir, "--join", n.addr)
	require.Equal(t, ExitRefused, code, errs)
	require.Empty(t, out)
	for _, text := range []string{"data directory " + dir + " belongs to cluster " + id + ", and the node to join to cluster " + other + ": give an empty --data to join that, or no --join"} {
		require.Contains(t, errs, text)
	}
	require.NotContains(t, errs, ": joined")
	require.NotContains(t, errs, ": is back")
	own = startNode(t, tops, "--data", dir)
	require.Contains(t, own.screen.String(), "of cluster "+id+": is back\n", "nothing was changed")
}

// A file with addresses that cannot be read is named, and left alone.
func TestDamagedMembers(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "members.json")
	for _, text := range []string{"", "[\"127.0.0.1:7101\"", "{}", "[7101]"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		code, _, errs := runLine([]*topology.Topology{endless()}, "node", "--listen", "127.0.0.1:0", "--data", dir)
		require.Equal(t, ExitFailed, code)
		require.Contains(t, errs, name+", which says where the other nodes were, is damaged: delete it, and start with --join")
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
}

// Lines of several writers are not mixed, and each says whose it is.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := &lines{w: &out}
	var seen []string
	l.copy("a  ", strings.NewReader("one\ntwo"), func(line string) { seen = append(seen, line) })
	l.print("three\n")
	require.Equal(t, "a  one\na  two\nthree\n", out.String())
	require.Equal(t, []string{"one\n", "two"}, seen)
}

// What may have been done is not asked for again, nor what will not pass.
func TestAskAgain(t *testing.T) {
	for why, again := range map[cluster.Reason]bool{
		node.ErrNoQuorum: true, node.ErrBusy: true, node.ErrNotPlaced: true,
		node.ErrUnsure: false, node.ErrFailed: false, node.ErrParameter: false, cluster.ErrRunning: false, cluster.ErrUnknown: false,
	} {
		require.Equal(t, again, passes(&node.Request{Op: node.OpSubmit}, refusal(&cluster.Refusal{Reason: why})), why)
	}
	for why, code := range map[cluster.Reason]int{node.ErrUnsure: ExitNoQuorum, node.ErrBusy: ExitRefused, node.ErrNotPlaced: ExitRefused, node.ErrFailed: ExitFailed} {
		require.Equal(t, code, exitCode(refusal(&cluster.Refusal{Reason: why})), why)
	}
}
