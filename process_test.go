package egret_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// main is that of the program that README.md shows.
func main() { egret.Main(topology.New("wordcount", wordcount)) }

// programEnv makes of the test's binary a program: that of README.md, or one with a
// topology in which something hangs.
const programEnv = "EGRET_TEST_PROGRAM"

func program() {
	what := os.Getenv(programEnv)
	switch what {
	case "":
		return
	case "readme":
		main()
	}
	begun := func() { os.Stdout.WriteString("begun\n") }
	forever := make(chan struct{})
	egret.Main(topology.New("program", func(b *topology.Builder) {
		if b.Bool("hang", false, "the definition hangs") {
			begun()
			<-forever
		}
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
		if what == "commit" {
			source = committing{&numbers{n: 10, commit: func(context.Context, string, int) error {
				begun()
				<-forever
				return nil
			}}}
		}
		in := b.Spout("in", source).Emits("n")
		first := true
		b.Bolt("out", factory(func() *made {
			return &made{
				execute: func(tuple.Tuple, *bolt.Collector) error {
					if first && what != "next" && what != "commit" {
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
		early  = "interrupted: the run has not started yet"
		again  = "interrupted again: the run has not started yet"
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
		{"a drain, and Commit hangs", "commit", "--stuck-after 200ms --stop-timeout 1h", []string{drains}, egret.ExitDone,
			[]string{"task stuck: in/0 does not come back from Commit of split 0", "Commit of split 0 is left behind", "all done"}, "begun\nfinished\nclosed\n"},
		{"a stop, and Commit hangs", "commit", "--stop-timeout 1h", []string{drains, stops}, egret.ExitFailed,
			[]string{"not drained: stopped with 0 messages open; task in/0 was in Commit of split 0 for "}, "begun\nclosed\n"},
		{"an exit, and the definition hangs", "nothing", "--hang", []string{early, again, ""}, egret.ExitInterrupted, nil, "begun\n"},
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

// The program that README.md shows is one, and reads what it is given.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), programEnv+"=readme")
	p.Stdin = strings.NewReader("the cow jumped\nover the moon\n")
	out, err := p.Output()
	require.NoError(t, err)
	require.Equal(t, "the 2\ncow 1\njumped 1\n", string(out))
}

// A seed gives the same run, to the byte of its log, in every process: whatever the
// cores, the garbage collector, the environment and the seeds of Go's maps are there.
func TestSimulationInTwoProcesses(t *testing.T) {
	t.Parallel()
	log := func(seed string, env ...string) string {
		p := exec.Command(os.Args[0], "chaos", "sim", "--seed", seed, "-v")
		p.Env = append(append(os.Environ(), programEnv+"=nothing"), env...)
		p.Dir = t.TempDir()
		var errs strings.Builder
		p.Stderr = &errs
		out, err := p.Output()
		require.NoError(t, err, "%s", &errs)
		require.Empty(t, errs.String())
		return string(out)
	}
	for _, seed := range []string{"13", "16", "27", "29"} { // faults, hangs, losses, lives that end again
		one := log(seed, "GOMAXPROCS=1", "GOGC=off", "TZ=UTC")
		two := log(seed, "GOMAXPROCS=4", "GOGC=5", "TZ=Asia/Tokyo", "LANG=de_DE.UTF-8", "GODEBUG=asyncpreemptoff=1", "EGRET_X="+strings.Repeat("x", 5000))
		require.True(t, strings.HasPrefix(one, "seed "+seed+", "), "only the log is on the output")
		require.Regexp(t, `\n\d+ events, hash [0-9a-f]{16}\n$`, one)
		require.True(t, one == two, "two processes write other logs of seed %s", seed)
	}
}

// A lock that somebody holds by mistake does not hold up a start for ever.
func TestStartWithLockedLetters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "program"), 0o700))
	name := filepath.Join(dir, "program", "letters.lock")
	lock, err := os.Create(name)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	p := exec.Command(os.Args[0], "--state", dir)
	p.Env = append(os.Environ(), programEnv+"=nothing")
	out, _ := p.CombinedOutput() // the code is what counts
	require.Equal(t, egret.ExitFailed, p.ProcessState.ExitCode(), "%s", out)
	require.Contains(t, string(out), name+" has been locked for 2s")
}
