package egret

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// An api is the API of a node, at its control service.
type api struct {
	*testing.T
	addr   string
	client *http.Client
}

func apiOf(t *testing.T, n *testNode) *api { return apiAt(t, n.addr, "") }

func apiAt(t *testing.T, addr, secret string) *api {
	l := &client{node: addr, secret: secret}
	_, err := l.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(l.close)
	return &api{t, addr, l.http}
}

// metrics asks what Prometheus asks, and says between which moments.
func (a *api) metrics() (text string, before, after time.Time) {
	a.Helper()
	before = time.Now()
	answer, err := a.client.Get("http://" + a.addr + "/metrics")
	require.NoError(a, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(a, err)
	return string(body), before, time.Now()
}

// do asks, and reads the answer if it is one.
func (a *api) do(method, path string, body, into any) (status int, refused string) {
	a.Helper()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(a, err)
		r = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(a.Context(), method, "http://"+a.addr+path, r)
	require.NoError(a, err)
	q.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(q)
	require.NoError(a, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(a, err)
	if answer.StatusCode != http.StatusOK {
		var e struct{ Error web.Error }
		require.NoError(a, json.Unmarshal(text, &e), "%s", text)
		return answer.StatusCode, e.Error.Code + ": " + e.Error.Text
	}
	require.NoError(a, json.Unmarshal(text, into), "%s", text)
	return answer.StatusCode, ""
}

func (a *api) overview() (o view.Overview) {
	a.Helper()
	_, refused := a.do("GET", "/api/v1/overview", nil, &o)
	require.Empty(a, refused)
	return o
}

// detail is that of a topology, or nothing.
func (a *api) detail(topology string) (d view.Detail) {
	a.Helper()
	a.do("GET", "/api/v1/topologies/"+topology, nil, &d)
	return d
}

func (a *api) act(x view.Action) (e view.Effect, refused string) {
	a.Helper()
	_, refused = a.do("POST", "/api/v1/actions", x, &e)
	return e, refused
}

// as runs a command that must be done, and returns what it says.
func (s *shell) as(line string) string {
	s.Helper()
	code, out, errs := s.run(line)
	require.Equal(s, ExitDone, code, "%s: %s", line, errs)
	return out
}

// Any node shows what all of them have, and it adds up to what the sink has counted.
func TestAnyNodeShowsAll(t *testing.T) {
	const messages = 3000
	var counted atomic.Int64
	tops := []*topology.Topology{topology.New("counted", func(b *topology.Builder) {
		var values []int
		for i := range messages {
			values = append(values, i)
		}
		in := b.Spout("in", spout.Slice(values...)).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			if in.Int64("n")%1000 == 7 {
				return fmt.Errorf("no seven")
			}
			out.Emit(in.Int64("n"))
			return nil
		}), in.Shuffle()).Emits("n").Parallel(3)
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
			counted.Add(1)
			return nil
		}), pass.By("n")).Parallel(4)
	})}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a", "--http", "127.0.0.1:0")
	b := startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", a.addr)
	c := startNode(t, tops, "--data", t.TempDir(), "--name", "c", "--join", a.addr)
	s := &shell{t, tops, a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 3 })
	s.is("submit counted --max-replays 1")
	all := []*api{apiOf(t, a), apiOf(t, b), apiOf(t, c)}
	page := regexp.MustCompile(`page: http://(127\.0\.0\.1:\d+)\n`)
	soon(t, func() bool { return page.MatchString(a.screen.String()) })
	all = append(all, &api{t, page.FindStringSubmatch(a.screen.String())[1], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	for _, at := range all {
		var d view.Detail
		soon(t, func() bool { d = at.detail("counted"); return d.Status == "done" })
		require.Equal(t, int64(messages), d.Counts.Messages)
		require.Equal(t, int64(3), d.Counts.Dead)
		require.Equal(t, int64(messages-3), d.Counts.Acked)
		require.Equal(t, counted.Load(), d.Edges[1].Total)
		require.Equal(t, int64(messages+3), d.Edges[0].Total)
		require.Equal(t, []string{"in", "pass", "out"}, []string{d.Components[0].Component, d.Components[1].Component, d.Components[2].Component})
		require.Equal(t, "at-least-once", d.Guarantee)
		require.Equal(t, "1", d.Settings["max-replays"])
		var total int64
		nodes := map[string]int{}
		for _, x := range d.TasksNow {
			require.True(t, x.Known, x.Task)
			nodes[x.Node]++
			total += x.Counts.Acked
		}
		require.Equal(t, int64(messages-3), total)
		require.Len(t, nodes, 3)
		o := at.overview()
		require.True(t, o.Quorum)
		require.Len(t, o.Nodes, 3)
		leads := 0
		for i, n := range o.Nodes {
			require.Equal(t, []string{"a", "b", "c"}[i], n.Node.Node)
			require.Equal(t, []string{a.addr, b.addr, c.addr}[i], n.Addr)
			require.True(t, n.Alive && n.Silent == "" && n.Up > 0 && n.Memory > 0 && n.Cores > 0 && n.Version != "", "%+v", n)
			if n.Leads {
				leads++
			}
		}
		require.Equal(t, 1, leads)

		var errs []view.Error
		_, refused := at.do("GET", "/api/v1/topologies/counted/errors", nil, &errs)
		require.Empty(t, refused)
		var failed int64
		for _, e := range errs {
			require.Contains(t, []string{"a", "b", "c"}, e.Node)
			if e.Kind == "failed" {
				require.Equal(t, "pass", e.Component)
				require.Contains(t, e.Text, "no seven")
				failed += e.Count
			}
		}
		require.NotZero(t, failed)
		status, refused := at.do("GET", "/api/v1/topologies/other/errors", nil, &errs)
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, refused, `unknown: there is no topology "other" in the cluster: it has counted`)
	}
	// And so do commands.
	s.node = c.addr
	require.Regexp(t, `(?m)^counted +done +8 +0 +0 +0 +0 +- +-$`, s.as("top --once"))
	require.Contains(t, s.as("top counted --once"), "COMPONENT")
	require.Regexp(t, `(?m)^counted pass/\d on [abc]: failed, .*\n    .*no seven\n    tuple: \{n: \d*7\}$`, s.as("errors --component pass"))
	// What Prometheus sees of a node is what runs there, and that is nothing any more.
	text, _, _ := all[3].metrics()
	require.Contains(t, text, "process_cpu_seconds_total")
	require.NotContains(t, text, "egret_up")
}

// What is asked for by the API is done, after it was said what that is.
func TestActionsOfCluster(t *testing.T) {
	tops := []*topology.Topology{endless()}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	b := startNode(t, tops, "--name", "b", "--join", a.addr)
	s := &shell{t, tops, a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	s.is("submit endless")
	at := apiOf(t, b) // it does not lead
	soon(t, func() bool { d := at.detail("endless"); return d.Counts.Acked > 0 && d.Rate > 0 && d.Silent == 0 })
	require.Equal(t, "running", at.detail("endless").Status)
	require.Regexp(t, `^\d+\.1$`, at.detail("endless").TasksNow[0].Life)

	e, refused := at.act(view.Action{Do: "deactivate", Topology: "endless", Preview: true})
	require.Empty(t, refused)
	require.Equal(t, view.Effect{Text: "endless: its spouts emit nothing for now; what is open is finished"}, e)
	e, refused = at.act(view.Action{Do: "deactivate", Topology: "endless"})
	require.Empty(t, refused)
	require.True(t, e.Done)
	soon(t, func() bool { return at.detail("endless").Status == "inactive" })
	_, refused = at.act(view.Action{Do: "activate", Topology: "endless"})
	require.Empty(t, refused)
	soon(t, func() bool { return at.detail("endless").Status == "running" })

	e, refused = at.act(view.Action{Do: "rebalance", Topology: "endless", Parallel: map[string]int{"out": 4}, Preview: true})
	require.Empty(t, refused)
	require.False(t, e.Done)
	require.Contains(t, e.Text, "tasks are new")
	require.GreaterOrEqual(t, len(e.Moves), 2)
	e, refused = at.act(view.Action{Do: "rebalance", Topology: "endless", Parallel: map[string]int{"out": 4}})
	require.Empty(t, refused)
	require.True(t, e.Done)
	soon(t, func() bool { d := at.detail("endless"); return d.Tasks == 5 && d.Silent == 0 && d.Status == "running" })

	var on int
	for _, n := range at.overview().Nodes {
		if n.Node.Node == "b" {
			on = n.Tasks
		}
	}
	e, refused = at.act(view.Action{Do: "drain", Node: "b", Preview: true})
	require.Empty(t, refused)
	require.Len(t, e.Moves, on)
	require.Equal(t, "b", e.Moves[0].From)
	require.Equal(t, "a", e.Moves[0].To)
	before := at.detail("endless").Counts.Acked
	e, refused = at.act(view.Action{Do: "drain", Node: "b"})
	require.Empty(t, refused)
	require.Contains(t, e.Text, "b: ")
	soon(t, func() bool { n := at.overview().Nodes[1]; return n.Tasks == 0 && n.Draining })
	soon(t, func() bool { d := at.detail("endless"); return d.Status == "running" && d.Silent == 0 })
	require.GreaterOrEqual(t, at.detail("endless").Counts.Acked, before, "what was done elsewhere is done")
	_, refused = at.act(view.Action{Do: "undrain", Node: "b"})
	require.Empty(t, refused)
	soon(t, func() bool { return !at.overview().Nodes[1].Draining })

	for _, tt := range []struct {
		a    view.Action
		want string
	}{
		{view.Action{Do: "kill", Topology: "other"}, `unknown: there is no topology "other"`},
		{view.Action{Do: "drain", Node: "z"}, `unknown: there is no node "z": the cluster has a, b`},
		{view.Action{Do: "rebalance", Topology: "endless", Parallel: map[string]int{"on": 3}}, "unknown: "},
		{view.Action{Do: "rebalance", Topology: "endless", Parallel: map[string]int{"out": 1_000_000}}, "invalid: "},
	} {
		_, refused := at.act(tt.a)
		require.Contains(t, refused, tt.want)
	}

	const open = `^endless: its spouts emit nothing more, (and )?what is open \(\d+ messages?\) is finished within 30s`
	e, refused = at.act(view.Action{Do: "stop", Topology: "endless", Preview: true})
	require.Empty(t, refused)
	require.Regexp(t, open+`; its positions are kept, and it goes on from there when it is submitted again$`, e.Text)
	require.Equal(t, "running", at.detail("endless").Status, "nothing was done")
	_, refused = at.act(view.Action{Do: "stop", Topology: "endless"})
	require.Empty(t, refused)
	soon(t, func() bool { return at.detail("endless").Status == "stopped" })
	require.Equal(t, "It has been stopped: submit it, and it goes on. These are its last numbers.", at.detail("endless").Verdict.Text)
	_, refused = at.act(view.Action{Do: "activate", Topology: "endless"})
	require.Contains(t, refused, "topology endless is stopped: submit it again")
	(&shell{t, tops, a.addr}).is("submit endless")
	soon(t, func() bool { return at.detail("endless").Status == "running" })

	e, refused = at.act(view.Action{Do: "kill", Topology: "endless", Preview: true})
	require.Empty(t, refused)
	require.Regexp(t, open+`, and then it is forgotten with its positions$`, e.Text)
	require.Equal(t, "running", at.detail("endless").Status, "nothing was done")
	_, refused = at.act(view.Action{Do: "kill", Topology: "endless"})
	require.Empty(t, refused)
	soon(t, func() bool { return len(at.overview().Topologies) == 0 })
}

// Without a quorum what runs is shown, and that nothing can be changed.
func TestAPIWithoutQuorum(t *testing.T) {
	tops := []*topology.Topology{endless()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	only, err := process.Start(ctx, process.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Name: "a", Program: newNodeProgram(tops, "", slog.Default()).program()})
	require.NoError(t, err)
	b := startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", only.Addr()) // it will vote, but not yet
	s := &shell{t, tops, b.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	s.is("submit endless --parallel out=4")
	at := apiOf(t, b)
	soon(t, func() bool { d := at.detail("endless"); return d.Tasks == 5 && d.Silent < 5 && d.Graph != nil })
	require.NotZero(t, at.detail("endless").Silent, "a gives no answer to what nodes ask: it is of another version")
	require.NoError(t, only.Close())
	soon(t, func() bool { return !at.overview().Quorum })
	soon(t, func() bool { return !at.overview().Nodes[0].Alive })
	d := at.detail("endless")
	require.False(t, d.Quorum)
	require.NotNil(t, d.Graph)
	require.Equal(t, 5, d.Tasks)
	require.NotZero(t, d.Silent)
	require.NotEmpty(t, at.overview().Nodes[0].Silent)
	known := 0
	for _, x := range d.TasksNow {
		if x.Known {
			require.Equal(t, "b", x.Node)
			known++
		}
	}
	require.Equal(t, d.Tasks-d.Silent, known)
	status, refused := at.do("POST", "/api/v1/actions", view.Action{Do: "kill", Topology: "endless"}, nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, refused, "no-quorum: ")
}

// A node that is stopped is silent, and what the others have is shown all the same.
func TestAPIWithFrozenNode(t *testing.T) {
	tops := []*topology.Topology{endless()}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	p, _, _ := startProcess(t, nodeLine.String(), "node", "--listen", "127.0.0.1:0", "--name", "z", "--join", a.addr)
	at := apiOf(t, a)
	soon(t, func() bool { o := at.overview(); return len(o.Nodes) == 2 && o.Nodes[1].Up > 0 })
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	soon(t, func() bool { return at.overview().Nodes[1].Silent != "" })
	o := at.overview()
	require.Equal(t, "no answer within 1s", o.Nodes[1].Silent)
	require.True(t, o.Nodes[1].Alive, "nobody takes it for dead yet")
	require.Empty(t, o.Nodes[0].Silent)
	require.NotZero(t, o.Nodes[0].Up)
	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	soon(t, func() bool { return at.overview().Nodes[1].Silent == "" })
}

// A stranger who reaches the port of a node reads nothing.
func TestAPIWithSecret(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	right, wrong := file("of sixteen bytes, or more"), file("another of as many bytes")
	n := startNode(t, []*topology.Topology{endless()}, "--secret-file", right)
	for _, path := range []string{"/api/v1/overview", "/node/v1/sample"} {
		for _, secret := range []string{"", wrong} {
			_, err := apiAt(t, n.addr, secret).client.Get("http://" + n.addr + path)
			require.ErrorContains(t, err, "secret")
		}
		answer, err := http.Get("http://" + n.addr + path) // not even in Egret's words
		if err == nil {
			answer.Body.Close()
			require.Fail(t, answer.Status)
		}
		var x map[string]any
		status, _ := apiAt(t, n.addr, right).do("GET", path, nil, &x)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, x, "at")
	}
	c, err := net.Dial("tcp", n.addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "\xe3GET /api/v1/overview HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	got, _ := io.ReadAll(c)
	require.False(t, strings.Contains(string(got), "HTTP"), "%q", got)
	code, _, errs := runLine([]*topology.Topology{endless()}, "leave", "--node", n.addr, "--secret-file", right)
	require.Equal(t, ExitDone, code, errs)
	<-n.ended
}

// What is wrong with --http of a node is said before it starts.
func TestNodeWithBadHTTP(t *testing.T) {
	tops := []*topology.Topology{endless()}
	for flags, want := range map[string]string{
		"--http 0.0.0.0:0":             "beyond this machine's loopback",
		"--http x:y":                   "is no address to serve a page at",
		"--http-cert some":             "say where with --http",
		"--http 127.0.0.1:0 --pace up": "--pace",
	} {
		code, _, errs := runLine(tops, append([]string{"node", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		require.Equal(t, ExitUsage, code, flags)
		require.Contains(t, errs, want)
	}
}
