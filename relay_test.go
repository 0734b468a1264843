package egret

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
)

// startProcess starts a command of a program that is another process, and returns what
// the first line matches that does. It is killed with the test.
func startProcess(t *testing.T, until string, args ...string) (*exec.Cmd, *screen, []string) {
	t.Helper()
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), "EGRET_TEST_PROGRAM=nothing")
	errs := newScreen()
	p.Stderr = errs
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	is := regexp.MustCompile(until)
	var found []string
	soon(t, func() bool { found = is.FindStringSubmatch(errs.String()); return found != nil })
	return p, errs, found
}

// A page by a node that is stopped goes on by another one, also what goes on while it is
// looked at; without any node it says so.
func TestUI(t *testing.T) {
	a := startNode(t, []*topology.Topology{endless()}, "--data", t.TempDir(), "--name", "a")
	z, _, found := startProcess(t, nodeLine.String(), "node", "--listen", "127.0.0.1:0", "--name", "z", "--join", a.addr)
	y, errs, page := startProcess(t, `page: http://(\S+) \(of cluster [0-9a-f]{16}, by node `+regexp.QuoteMeta(found[1])+`\)\n`, "ui", "--http", "127.0.0.1:0", "--node", found[1])
	at := &api{t, page[1], &http.Client{Timeout: 30 * time.Second}}
	defer at.client.CloseIdleConnections()
	soon(t, func() bool { return len(at.overview().Nodes) == 2 })
	answer, err := at.client.Get("http://" + page[1] + "/")
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Len(t, answer.Header.Values("Content-Security-Policy"), 1)

	live, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + page[1] + "/api/v1/live")
	require.NoError(t, err)
	defer live.Body.Close()
	require.Equal(t, "text/event-stream", live.Header.Get("Content-Type"))
	require.Len(t, live.Header.Values("Cache-Control"), 1)
	lines := bufio.NewReader(live.Body)
	for said := ""; !strings.HasPrefix(said, "event: overview"); {
		said, err = lines.ReadString('\n')
		require.NoError(t, err)
	}

	require.NoError(t, z.Process.Signal(syscall.SIGSTOP))
	for err == nil { // it ends, and a browser asks again
		_, err = lines.ReadString('\n')
	}
	var o view.Overview
	soon(t, func() bool { o = at.overview(); return o.Nodes[1].Silent != "" })
	require.Equal(t, "a", o.Nodes[0].Node.Node)
	require.Empty(t, o.Nodes[0].Silent)
	_, refused := at.act(view.Action{Do: "kill", Topology: "other"})
	require.Contains(t, refused, "unknown: ")

	code, _, said := runLine([]*topology.Topology{endless()}, "leave", "--node", a.addr)
	require.Equal(t, ExitDone, code, said)
	<-a.ended
	soon(t, func() bool { _, refused := at.do("GET", "/api/v1/overview", nil, &o); return refused != "" })
	_, refused = at.do("GET", "/api/v1/overview", nil, &o)
	require.Contains(t, refused, "broken: no node of the cluster answers: ")

	require.NoError(t, y.Process.Signal(os.Interrupt))
	require.NoError(t, y.Wait(), "%s", errs)

	for _, tt := range []struct {
		args string
		code int
		errs string
	}{
		{"--node " + a.addr, ExitUnreachable, "nobody listens there"},
		{"--node x", ExitUsage, "--node is \"x\""},
		{"--http 0.0.0.0:1 --node " + a.addr, ExitUnreachable, ""},
		{"--http=", ExitUsage, "--http is empty"},
	} {
		code, _, errs := runLine([]*topology.Topology{endless()}, append([]string{"ui"}, strings.Fields(tt.args)...)...)
		require.Equal(t, tt.code, code, "%s", errs)
		require.Contains(t, errs, tt.errs)
	}
}

// Browsers may ask while the page ends: what they have asked ends, and what they ask then
// as well.
func TestRelayEnds(t *testing.T) {
	l := &client{node: "127.0.0.1:1"}
	_, err := l.open(t.Context())
	require.NoError(t, err)
	defer l.close()
	y := newRelay(l, &node.View{Members: []node.MemberView{{Member: cluster.Member{Home: cluster.Home{Node: 2}, Addr: "127.0.0.1:2", Alive: true}}}})
	interrupted, over := make(chan int), make(chan struct{})
	go func() {
		defer close(over)
		y.watch(interrupted)
	}()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				addr, _ := y.asked()
				y.next(addr)
			}
		})
	}
	close(interrupted)
	<-over
	wait.Wait()
	y.next(y.nodes[0])
	_, life := y.asked()
	require.Error(t, life.Err(), "nobody is asked any more")
}
