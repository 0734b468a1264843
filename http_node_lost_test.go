package egret

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
)

// A node that dies is an error of each topology that has lost tasks with it, and the verdict
// is not that all is well.
func TestErrorsOfADeadNode(t *testing.T) {
	tops := []*topology.Topology{endless()}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	b, err := process.Start(t.Context(), process.Config{
		Listen: "127.0.0.1:0", Data: t.TempDir(), Name: "b", Join: []string{a.addr}, Program: newNodeProgram(tops, "", slog.New(slog.DiscardHandler)).program(),
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	s := &shell{t, tops, a.addr}
	s.is("submit endless --parallel out=4")
	at := apiOf(t, a)
	lost := map[string]bool{}
	soon(t, func() bool {
		clear(lost)
		outs := 0
		for _, x := range at.detail("endless").TasksNow {
			if x.Node == "b" {
				lost[x.Task] = true
				if x.Component == "out" {
					outs++
				}
			}
		}
		return outs == 2 // and nothing more is moved to make it even
	})
	errorsOf := func() (all []view.Error) {
		_, refused := at.do("GET", "/api/v1/topologies/endless/errors", nil, &all)
		require.Empty(t, refused)
		return all
	}
	require.Empty(t, errorsOf())
	require.NoError(t, b.Close())
	soon(t, func() bool { return len(errorsOf()) > 0 })
	for _, e := range errorsOf() {
		require.Equal(t, []string{"died", "b", "endless"}, []string{e.Kind, e.Node, e.Topology})
		require.True(t, lost[e.Task], e.Task)
		require.Regexp(t, `^the process of node b is gone: (in/0 begins|out/\d begins|out/\d(, out/\d)* begin) anew on a$`, e.Text)
		for task := range lost {
			if strings.HasPrefix(task, e.Component+"/") {
				require.Contains(t, e.Text, task)
			}
		}
	}
	soon(t, func() bool { d := at.detail("endless"); return d.Verdict.Tone == "bad" && d.Silent == 0 })
	d := at.detail("endless")
	require.Regexp(t, "^Tasks of (in|out|in and out) have begun anew: the process of node b is gone.$", d.Verdict.Text)
	require.NotEmpty(t, d.Troubles)
	out := s.as("errors endless --node " + a.addr)
	require.Regexp(t, `endless (in|out)/\d on b: died, \d+s ago\n    the process of node b is gone: `, out)
	s.is("kill endless --wait")
}

// What is lost elsewhere is kept where nothing of the topology is, and when something of it
// comes; that of another run is forgotten.
func TestLossesWithoutTasks(t *testing.T) {
	p := newNodeProgram(nil, "", slog.New(slog.DiscardHandler))
	lose := func(run cluster.Run, tasks ...string) {
		p.lost(&node.Loss{Topology: "top", Run: run, Component: "in", Tasks: tasks, Node: "b", Why: "it is gone"})
	}
	texts := func() (all []string) {
		for _, e := range p.errors("top") {
			all = append(all, e.Task+" "+e.Text)
		}
		return all
	}
	lose(2, "in/0", "in/1")
	want := []string{"in/0 it is gone: in/0, in/1 begin anew on "}
	require.Equal(t, want, texts())
	require.Equal(t, "2", p.troubles()[0].Run)
	lose(1, "in/7") // it was late
	require.Equal(t, want, texts())
	_, err := p.settings(2, &cluster.Spec{Topology: "top"})
	require.NoError(t, err)
	require.Equal(t, want, texts(), "there are tasks here now")
	require.Len(t, p.troubles(), 1)
	p.ended(2)
	require.Empty(t, p.troubles())
	require.Equal(t, want, texts(), "those of the last run are kept")
	_, err = p.settings(3, &cluster.Spec{Topology: "top"})
	require.NoError(t, err)
	require.Empty(t, texts())
	require.Empty(t, p.troubles())
}
