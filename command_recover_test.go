package egret

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/topology"
)

// Two of three voters are lost for ever, with their disks. The third is recovered and has
// the topology; others join with empty directories.
func TestRecover(t *testing.T) {
	t.Parallel() // nodes get their votes after ten seconds
	tops := []*topology.Topology{endless()}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var nodes []*process.Process
	var first []string
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, dir := range dirs {
		p, err := process.Start(ctx, process.Config{Listen: "127.0.0.1:0", Data: dir, Join: first, Program: newNodeProgram(tops, "", slog.New(slog.DiscardHandler)).program()})
		require.NoError(t, err)
		nodes = append(nodes, p)
		first = []string{nodes[0].Addr()}
	}
	s := &shell{t, tops, nodes[2].Addr()}
	soon(t, func() bool {
		voters := 0
		for _, n := range s.status("").Nodes {
			if n.Votes {
				voters++
			}
		}
		return voters == 3
	})
	s.is("submit endless")
	soon(t, func() bool { x := s.status(""); return len(x.Topologies) == 1 && x.Topologies[0].Status == "active" })
	code, _, errs := runLine(tops, "recover", "--data", dirs[2])
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "is in use by a node")
	for _, p := range nodes {
		require.NoError(t, p.Close())
	}
	require.NoError(t, os.RemoveAll(dirs[0]))
	require.NoError(t, os.RemoveAll(dirs[1]))

	code, out, errs := runLine(tops, "recover", "--data", dirs[2])
	require.Equal(t, ExitDone, code, errs)
	require.Regexp(t, `^node [0-9a-f]{16} of cluster `+nodes[0].Cluster()+`: its log ends with term \d+, entry \d+\n`, out)
	require.Len(t, regexp.MustCompile(`(?m)^  [0-9a-f]{16} 127\.0\.0\.1:\d+: votes(, this one)?$`).FindAllString(out, -1), 3, out)
	require.Contains(t, out, "topology endless (run 1): active")
	require.Contains(t, out, "Nothing was changed")
	code, again, errs := runLine(tops, "recover", "--data", dirs[2], "--yes")
	require.Equal(t, ExitDone, code, errs)
	require.Contains(t, again, "It is the only node of a new cluster now")
	require.NotContains(t, again, "the only node of a new cluster now, "+nodes[0].Cluster())

	back := startNode(t, tops, "--data", dirs[2])
	for range 2 {
		startNode(t, tops, "--data", t.TempDir(), "--join", back.addr)
	}
	s = &shell{t, tops, back.addr}
	soon(t, func() bool {
		x := s.status("")
		alive := 0
		for _, n := range x.Nodes {
			if n.State == "alive" {
				alive++
			}
		}
		return x.Quorum && alive == 3 && len(x.Topologies) == 1 && x.Topologies[0].Status == "active"
	})
	require.Greater(t, s.status("").Topologies[0].Run, cluster.Run(0))
	s.is("kill endless --wait")
}

// What is no node's directory is left alone.
func TestRecoverNothing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"recover"}, ExitUsage, "--data DIR"},
		{[]string{"recover", "--data", none, "--yes"}, ExitFailed, none + " is not the directory of a node"},
	} {
		code, _, errs := runLine([]*topology.Topology{endless()}, tt.args...)
		require.Equal(t, tt.code, code)
		require.Contains(t, errs, tt.want)
	}
	require.NoDirExists(t, none)
}
