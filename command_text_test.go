package egret

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Where there is no terminal a long run says every 30 s how far it is, and a short
// one nothing.
func TestProgressWithoutTerminal(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines bool
		want  string
	}{
		{"lines", true, `slow: 30s  30 messages  1/s  0 open  0 failed
slow: 1m0s  60 messages  1/s  0 open  0 failed
slow: 1m30s  90 messages  1/s  0 open  1 failed  1 dead
`},
		{"JSON is asked for", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				top := topology.New("slow", func(b *topology.Builder) {
					n, pause := 0, 500*time.Millisecond
					in := b.Spout("in", spout.Func(func(ctx context.Context, out *spout.Out) error {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(pause):
						}
						pause = time.Second
						n++
						out.Emit(n)
						return nil
					})).Emits("n")
					b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
						if in.Int64("n") == 70 {
							return bolt.Reject(errors.New("not this one"))
						}
						return nil
					}), in.Shuffle())
				})
				r, err := Start(t.Context(), top, Config{Logger: slog.New(slog.DiscardHandler)})
				require.NoError(t, err)
				show := newProgress(&out)
				show.lines = tt.lines
				for range 5 * 119 {
					time.Sleep(200 * time.Millisecond)
					show.line(r)
				}
				r.Drain()
				_, err = r.Wait()
				require.ErrorIs(t, err, ErrDead)
				require.Equal(t, tt.want, out.String())
			})
		})
	}
}

func TestVersion(t *testing.T) {
	const egret = "github.com/egretstream/egret"
	for _, tt := range []struct {
		want string
		info debug.BuildInfo
	}{
		{"example.com/wc v1.2.3, egret v0.4.0, go1.26.1", debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Path: "example.com/wc", Version: "v1.2.3"},
			Deps: []*debug.Module{{Path: "example.com/egret", Version: "v9.9.9"}, {Path: egret, Version: "v0.4.0"}}}},
		{"example.com/wc (devel), revision 0123456789ab with changes, egret (devel), go1.26.1", debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Path: "example.com/wc", Version: "(devel)"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
			Deps:     []*debug.Module{{Path: egret, Version: "v0.0.0", Replace: &debug.Module{Path: "../egret", Version: "(devel)"}}}}},
		{egret + " v0.4.0, go1.26.1", debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Path: egret, Version: "v0.4.0"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "012"}, {Key: "vcs.modified", Value: "false"}}}},
		{"without a module, go1.26.1", debug.BuildInfo{GoVersion: "go1.26.1"}},
	} {
		require.Equal(t, tt.want, version(&tt.info))
	}
	// A parameter may have the name.
	mine := topology.New("mine", func(b *topology.Builder) {
		of := b.String("version", "2", "of the texts")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), b.Spout("in", spout.Slice(of)).Emits("n").Shuffle())
	})
	code, out, errs := runLine([]*topology.Topology{mine}, "--version", "3")
	require.Equal(t, ExitDone, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "mine: 1 message in")
	for _, all := range [][]*topology.Topology{{greet(io.Discard)}, {greet(io.Discard), mine}} {
		code, out, errs = runLine(all, "--version")
		require.Equal(t, ExitDone, code)
		require.Empty(t, errs)
		require.Contains(t, out, program()+" "+egret+" ")
	}
}

func TestTasksValue(t *testing.T) {
	var v tasksValue
	require.Equal(t, "", v.String())
	require.NoError(t, v.Set("b=2, a=1"))
	require.NoError(t, v.Set("b=3"))
	require.Equal(t, "a=1,b=3", v.String())
	for _, s := range []string{"", "a", "=2", "a=", "a=x", "a=1,", "a=1.5"} {
		require.ErrorContains(t, v.Set(s), "is no component and its number of tasks, as in count=4", s)
	}
	code, out, _ := runLine([]*topology.Topology{greet(io.Discard)}, "--help")
	require.Equal(t, ExitDone, code)
	require.Contains(t, out, "--parallel component=n,...")
	require.NotContains(t, out, "[]")
}

// What is left out is said: attempts of a letter beyond those that are kept.
func TestLettersSayWhatIsCut(t *testing.T) {
	shown := func(failures int, history ...string) string {
		var out bytes.Buffer
		showLetter(&out, &entryOf{Entry: disk.Entry{DeadLetter: &task.DeadLetter{ID: "1-1", Failures: failures, Deaths: 1, History: history}}})
		return out.String()
	}
	require.Contains(t, shown(9, "a", "b", "c", "d"), "\nhistory    a\n           b\n           c\n           d\n           (the last 4 of 9 attempts)\n")
	require.Contains(t, shown(7, "a", "b", "replayed", "d"), "\n           (the last 3 of 7 attempts)\n")
	require.NotContains(t, shown(3, "a", "b", "replayed", "d"), "attempts)")
}

// Who sees a dead node hears what can be done about it.
func TestMembersSayWhatToDo(t *testing.T) {
	var out bytes.Buffer
	printMembers(&out, []memberJSON{{Name: "a", State: alive}, {Name: "b", State: left}})
	require.NotContains(t, out.String(), "forget")
	printMembers(&out, []memberJSON{{Name: "a", State: alive}, {Name: "b", State: dead}})
	require.Contains(t, out.String(), "\nA dead node that will not come back can be forgotten: egret forget NODE\n")
}

// A node of dev that could not start ends all, with its code and what it has said last; one
// that was up has not.
func TestChildThatCannotStart(t *testing.T) {
	err := exec.Command(os.Args[0], "-no-such-flag").Run()
	n := child{name: "n1", last: "greet: http: address already in use", err: err, member: make(chan struct{})}
	require.EqualError(t, n.failed(), "node n1 could not start: greet: http: address already in use")
	require.Equal(t, 2, exitCode(n.failed()))
	close(n.member)
	require.NoError(t, n.failed())
	require.NoError(t, (&child{member: make(chan struct{}), err: errors.New("exit status 0")}).failed())
}
