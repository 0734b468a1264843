package egret

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// Two runs of a topology may have its dead letters for a moment, and when both have
// ended nobody has.
func TestProgramOfANode(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	p := newNodeProgram(nil, dir, slog.New(slog.NewTextHandler(&log, nil)))
	spec := &cluster.Spec{Topology: "top", Flags: map[string]string{"max-pending": "5", "max-replays": "0", "message-timeout": "2s", "on-stuck": "replace"}}
	one, err := p.settings(1, spec)
	require.NoError(t, err)
	require.Equal(t, []any{5, 0, 2 * time.Second, true, 10 * time.Second}, []any{one.MaxPending, one.MaxReplays, one.MessageTimeout, one.Replace, one.StuckAfter})
	require.NotNil(t, one.Store)
	one.Event(&task.Notice{Task: "in/0", Text: "look"})
	require.Contains(t, log.String(), "msg=look topology=top component=in task=0")
	two, err := p.settings(2, &cluster.Spec{Topology: "top"})
	require.NoError(t, err)
	require.Equal(t, []any{65536, 8}, []any{two.MaxPending, two.MaxReplays})
	p.ended(1)
	p.ended(1)
	_, err = two.Store.Bury([]*task.DeadLetter{{Task: "in/0", Component: "in", Stream: "default", Time: time.Unix(0, 0)}})
	require.NoError(t, err)
	_, err = disk.Open(filepath.Join(dir, "state"), "top", disk.Options{})
	require.ErrorIs(t, err, disk.ErrInUse)
	p.ended(2)
	s, err := disk.Open(filepath.Join(dir, "state"), "top", disk.Options{})
	require.NoError(t, err)
	_, err = p.settings(3, spec)
	require.ErrorIs(t, err, ErrState)
	require.NoError(t, s.Close())
	_, err = p.settings(4, spec)
	require.NoError(t, err)
	require.NoError(t, p.close())
	s, err = disk.Open(filepath.Join(dir, "state"), "top", disk.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	for flag, text := range map[string]string{"max-pendings": "--max-pendings, which this program does not know", "max-pending": "max-pending", "stuck-after": "--stuck-after is 1ns"} {
		value := "x"
		if flag == "stuck-after" {
			value = "1ns"
		}
		_, err = p.settings(5, &cluster.Spec{Topology: "top", Flags: map[string]string{flag: value}})
		require.ErrorContains(t, err, "topology top")
		require.ErrorContains(t, err, text)
	}
	free, err := newNodeProgram(nil, "", slog.Default()).settings(1, spec)
	require.NoError(t, err)
	require.Nil(t, free.Store)
}

// Dead letters of a cluster are in the data directories of its nodes.
func TestDeadLettersOfACluster(t *testing.T) {
	tops := []*topology.Topology{greet(io.Discard)}
	dir := t.TempDir()
	n := startNode(t, tops, "--data", dir)
	s := &shell{t, tops, n.addr}
	s.is("submit greet --set fail=reject --set times=2")
	soon(t, func() bool { x := submissionOf(s, "greet"); return x.Status == cluster.Done })
	code, out, errs := runLine(tops, "deadletters", "list", "--state", filepath.Join(dir, "state"))
	require.Equal(t, ExitDone, code, errs)
	require.Equal(t, 3, strings.Count(out, "\n"), out)
	require.Contains(t, out, "bolt out: it was to fail")
}

// A status is shown again and again until it is interrupted, and through times in which
// nobody answers.
func TestStatusWatch(t *testing.T) {
	tops := []*topology.Topology{endless()}
	begin := func(listen string) *process.Process {
		p, err := process.Start(t.Context(), process.Config{Listen: listen, Name: "a", Program: newNodeProgram(tops, "", slog.Default()).program()})
		require.NoError(t, err)
		return p
	}
	addr, err := wire.Spare()
	require.NoError(t, err)
	p := begin(addr)
	out, code := newScreen(), make(chan int, 1)
	go func() { // ends with the command, whose code is waited for
		code <- execute(tops, []string{"status", "--watch", "--node", p.Addr()}, strings.NewReader(""), out, io.Discard)
	}()
	out.waitFor("alive, leads\n")
	require.NoError(t, p.Close())
	out.waitFor("nobody listens there")
	before := strings.Count(out.String(), "no topologies")
	p = begin(addr)
	soon(t, func() bool { return strings.Count(out.String(), "no topologies") > before })
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	require.Equal(t, ExitDone, <-code)
	require.NoError(t, p.Close())

	code2, _, errs := runLine(tops, "status", "--watch", "--node", p.Addr())
	require.Equal(t, ExitUnreachable, code2, errs)
}

// A flag that cannot be is refused when the topology is submitted, also by nodes that
// know fewer than the program that submits.
func TestSubmitWithFlags(t *testing.T) {
	tops := []*topology.Topology{endless()}
	n := startNode(t, tops)
	l := &client{node: n.addr}
	ctx, err := l.open(t.Context())
	require.NoError(t, err)
	defer l.close()
	for flag, text := range map[string]string{"max-pendings": "--max-pendings, which this program does not know", "max-pending": "--max-pending is 0: use at least 1"} {
		_, err = l.ask(ctx, &node.Request{Op: node.OpSubmit, Topology: "endless", Spec: &cluster.Spec{Topology: "endless", Flags: map[string]string{flag: "0"}}})
		require.ErrorContains(t, err, text)
		require.Equal(t, ExitParameter, exitCode(err))
	}
	require.Empty(t, (&shell{t, tops, n.addr}).status("").Topologies)
}

// A picky bolt cannot begin, wherever the file that it wants is missing.
type picky struct{ file string }

func (p picky) Prepare(context.Context, *bolt.Task) error {
	if _, err := os.Stat(p.file); err != nil {
		return bolt.Reject(err)
	}
	return nil
}

func (picky) Execute(tuple.Tuple, *bolt.Collector) error { return nil }

// Who lacks what the others have is named.
func TestFileOnOneNode(t *testing.T) {
	top := func(file string) []*topology.Topology {
		return []*topology.Topology{topology.New("picky", func(b *topology.Builder) {
			in := b.Spout("in", spout.Source(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }))).Emits("n")
			b.Bolt("out", func() bolt.Bolt { return picky{file} }, in.Shuffle()).Parallel(4)
		})}
	}
	here, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	a := startNode(t, top(here), "--name", "a", "--data", t.TempDir())
	startNode(t, top(missing), "--name", "b", "--join", a.addr)
	s := &shell{t, top(here), a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	s.is("submit picky")
	soon(t, func() bool { return submissionOf(s, "picky").Status == cluster.Failed })
	require.Regexp(t, "^node b: .*"+missing, submissionOf(s, "picky").Reason)
}

// A book that was taken over has nothing in common with the one that has taken it.
func TestBooksShareNothing(t *testing.T) {
	died := func(b *book, task string) {
		b.add(view.Error{Component: "in", Task: task, Kind: "died", Text: task, Count: 1})
		b.troubled(trouble{"died", task}, view.Trouble{Task: task})
	}
	var old, next book
	died(&old, "in/0")
	next.take(&old)
	require.Empty(t, old.all())
	require.Empty(t, old.allTroubles())
	died(&old, "in/1")
	require.Len(t, next.all(), 1)
	require.Len(t, next.allTroubles(), 1)
	require.Equal(t, "in/0", next.all()[0].Task)
}
