package egret_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// programEnv makes of the test's binary a program with a topology; its value is
// what hangs there.
const programEnv = "EGRET_TEST_PROGRAM"

func program() {
	what := os.Getenv(programEnv)
	if what == "" {
		return
	}
	begun := func() { os.Stdout.WriteString("begun\n") }
	forever := make(chan struct{})
	egret.Main(topology.New("program", func(b *topology.Builder) {
		source := spout.Source(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }))
		if what == "next" {
			source = &numbers{n: 10, chunk: 1, next: func(_ context.Context, _ string, at int) error {
				if at == 5 {
					begun()
					<-forever
				}
				return nil
			}}
		}
		in := b.Spout("in", source).Emits("n")
		first := true
		b.Bolt("out", factory(func() *made {
			return &made{
				execute: func(tuple.Tuple, *bolt.Collector) error {
					if first && what != "next" {
						begun()
					}
					first = false
					if what == "bolt" {
						<-forever
					}
					return nil
				},
				finish: func(*bolt.Collector) error { os.Stdout.WriteString("finished\n"); return nil },
				close:  func() error { os.Stdout.WriteString("closed\n"); return nil },
			}
		}), in.Shuffle())
	}))
}

// Interrupts of a real process: the first drains, the second stops, the third
// exits, whatever hangs.
func TestInterruptsOfAProcess(t *testing.T) {
	const (
		drains = "interrupted: finishing what is open"
		stops  = "interrupted again: stopping"
	)
	for _, tt := range []struct {
		name, hangs, flags string
		says               []string // after each interrupt but the last one
		code               int
		errs               []string
		out                string
	}{
		{"a drain", "nothing", "", []string{drains}, egret.ExitDone, []string{"all done"}, "begun\nfinished\nclosed\n"},
		{"a drain, and Next hangs", "next", "", []string{drains}, egret.ExitDone,
			[]string{"the source of in ignores its context: Next of split 0 is left behind", "did not come back; its goroutine is left behind", "all done"}, "begun\nfinished\nclosed\n"},
		{"a stop, and Execute hangs", "bolt", "--stuck-after 100ms --stop-timeout 1h", []string{drains, stops}, egret.ExitFailed,
			[]string{"task out/0 did not come back from Execute", "task stuck: out/0"}, "begun\n"},
		{"an exit, and Execute hangs", "bolt", "--stuck-after -1s --stop-timeout 1h", []string{drains, stops, ""}, egret.ExitInterrupted, nil, "begun\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := exec.Command(os.Args[0], strings.Fields(tt.flags)...)
			p.Env = append(os.Environ(), programEnv+"="+tt.hangs)
			stdout, err := p.StdoutPipe()
			require.NoError(t, err)
			stderr, err := p.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, p.Start())
			defer p.Process.Kill()
			out, errs := bufio.NewReader(stdout), bufio.NewReader(stderr)
			said, err := out.ReadString('\n')
			require.NoError(t, err)
			var told strings.Builder
			for _, says := range tt.says {
				require.NoError(t, p.Process.Signal(syscall.SIGINT))
				for says != "" && !strings.Contains(told.String(), says) {
					line, err := errs.ReadString('\n')
					told.WriteString(line)
					require.NoError(t, err, "%s", told.String())
				}
			}
			more, err := io.ReadAll(out)
			require.NoError(t, err)
			last, err := io.ReadAll(errs)
			require.NoError(t, err)
			told.Write(last)
			_ = p.Wait() // the code is what counts
			require.Equal(t, tt.code, p.ProcessState.ExitCode(), "%s", told.String())
			require.Equal(t, tt.out, said+string(more))
			for _, text := range tt.errs {
				require.Contains(t, told.String(), text)
			}
		})
	}
}
