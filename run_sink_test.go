package egret_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// linesOf returns the lines of a file and how often each is in it. The last one may
// be torn if the file is not finished, and is not counted.
func linesOf(t *testing.T, path string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	all := map[string]int{}
	for line := range strings.Lines(string(b)) {
		text, whole := strings.CutSuffix(line, "\n")
		require.True(t, whole || strings.HasSuffix(path, ".partial"), "%q", line)
		if whole {
			all[text]++
		}
	}
	return all
}

// toFile writes n numbers of each of two splits to a file.
func toFile(n int, path string) *topology.Topology {
	return topology.New("to-file", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{splits: 2, n: n, chunk: 10}).Emits("n")
		b.Bolt("out", to.Lines(path), in.Shuffle())
	})
}

// The output goes on where the input does: with the lines of the runs before, and
// anew when the input begins anew.
func TestOutputGoesOnWithTheInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir, state := t.TempDir(), t.TempDir()
		path := filepath.Join(dir, "out.txt")
		require.NoError(t, os.WriteFile(path, []byte("of another run\n"), 0o600))
		want := map[string]int{}
		for _, n := range []int{30, 30, 50, 50, 90} {
			for i := range n {
				want[strconv.Itoa(i)], want["1:"+strconv.Itoa(i)] = 1, 1
			}
			_, err := run(t, toFile(n, path), egret.Config{StateDir: state})
			require.NoError(t, err)
			require.Equal(t, want, linesOf(t, path))
		}
		for _, c := range []egret.Config{{StateDir: state, Reset: true}, {}, {StateDir: t.TempDir()}} {
			for line := range want {
				delete(want, line)
			}
			for i := range 20 {
				want[strconv.Itoa(i)], want["1:"+strconv.Itoa(i)] = 1, 1
			}
			_, err := run(t, toFile(20, path), c)
			require.NoError(t, err)
			require.Equal(t, want, linesOf(t, path))
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}

// Bolts are told whether the run goes on. A queue has no positions and goes on in
// every run that keeps anything.
func TestContinued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spool := t.TempDir()
		var told []bool
		note := factory(func() *made {
			return &made{prepare: func(_ context.Context, task *bolt.Task) error {
				told = append(told, task.Continued)
				return nil
			}}
		})
		source := topology.New("source", func(b *topology.Builder) {
			b.Bolt("out", note, b.Spout("in", &numbers{n: 3}).Emits("n").Shuffle())
		})
		queue := topology.New("queue", func(b *topology.Builder) {
			b.Bolt("out", note, b.Queue("in", from.Spool(spool, from.SpoolOptions{UntilEmpty: true})).Emits("name", "content").Shuffle())
		})
		for _, top := range []*topology.Topology{source, queue} {
			told = nil
			state := t.TempDir()
			for _, c := range []egret.Config{{StateDir: state}, {StateDir: state}, {}, {StateDir: state}, {StateDir: state, Reset: true}, {StateDir: state}} {
				_, err := run(t, top, c)
				require.NoError(t, err)
			}
			require.Equal(t, []bool{false, true, false, true, false, true}, told, top.Name())
		}
	})
}

// Two components with one path never get through, and the second never writes.
func TestTwoComponentsWithOnePath(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.txt")
			top := topology.New("twice", func(b *topology.Builder) {
				// Neither waits for the other's end.
				b.Bolt("first", to.Lines(path), b.Spout("one", &numbers{n: 5}).Emits("n").Shuffle())
				b.Bolt("second", to.JSONLines(path), b.Spout("two", &numbers{n: 5}).Emits("n").Shuffle())
			})
			_, err := run(t, top, egret.Config{})
			require.ErrorContains(t, err, path+" is being written by component ")
			require.ErrorContains(t, err, "component first of topology twice")
			require.ErrorContains(t, err, "component second of topology twice")
		})
	}
}

const (
	sinkVariable = "EGRET_TEST_SINK" // the directory of a process that is made to be killed
	sinkNumbers  = "EGRET_TEST_SINK_NUMBERS"
)

// sinkVictim writes numbers to two files, and each to its standard output as well
// when it has been read.
func sinkVictim(dir string) {
	n, _ := strconv.Atoi(os.Getenv(sinkNumbers))
	top := topology.New("sink", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{splits: killSplits, n: n, chunk: 20}).Emits("n")
		said := b.Bolt("say", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			text := in.String("n")
			if _, err := os.Stdout.WriteString(text + "\n"); err != nil {
				os.Exit(9)
			}
			out.Emit(text)
			return nil
		}), in.Shuffle()).Emits("n")
		b.Bolt("out", to.Lines(filepath.Join(dir, "out-{task}")), said.Shuffle()).Parallel(2)
	})
	if _, err := egret.Run(context.Background(), top, quiet(egret.Config{StateDir: filepath.Join(dir, "state"), MaxPending: 100})); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(8)
	}
	os.Exit(0)
}

// Processes are killed at any moment, and after some that came to their end there is
// more to read. What is before a committed position is always in a file, and no line
// is torn.
func TestFilesOfKilledProcesses(t *testing.T) {
	if dir := os.Getenv(sinkVariable); dir != "" {
		sinkVictim(dir)
	}
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for _, n := range []int{150, 300, 450} {
		for ended := false; !ended; {
			require.Less(t, kills, 200)
			c := exec.Command(os.Args[0], "-test.run=^TestFilesOfKilledProcesses$")
			c.Env = append(os.Environ(), sinkVariable+"="+dir, sinkNumbers+"="+strconv.Itoa(n))
			pipe, err := c.StdoutPipe()
			require.NoError(t, err)
			var said strings.Builder
			c.Stderr = &said
			require.NoError(t, c.Start())
			left := 1 + random.IntN(5*n)
			for lines := bufio.NewScanner(pipe); lines.Scan(); left-- {
				if left == 0 {
					require.NoError(t, c.Process.Kill()) // kill -9
				}
			}
			if ended = c.Wait() == nil; !ended {
				require.Equal(t, -1, c.ProcessState.ExitCode(), "killed, and nothing else: %s", said.String())
				kills++
			}
			written := map[string]int{}
			for task := range 2 {
				path := filepath.Join(dir, fmt.Sprint("out-", task))
				at := path
				if _, err := os.Stat(path + ".partial"); err == nil {
					at += ".partial"
				} else if _, err := os.Stat(path); err != nil {
					continue // nothing was written yet
				}
				for line, times := range linesOf(t, at) {
					written[line] += times
				}
				if !ended && random.IntN(2) == 0 && at != path { // as if killed in the middle of a write
					f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
					require.NoError(t, err)
					_, err = f.WriteString("torn")
					require.NoError(t, err)
					require.NoError(t, f.Close())
				}
			}
			s, err := disk.Open(filepath.Join(dir, "state"), "sink", disk.Options{})
			require.NoError(t, err)
			positions := s.Positions()["in"]
			require.NoError(t, s.Close())
			for split := range killSplits {
				end, _ := strconv.Atoi(positions[strconv.Itoa(split)])
				if ended {
					require.Equal(t, n, end)
				}
				for i := range end {
					text := strconv.Itoa(i)
					if split > 0 {
						text = fmt.Sprint(split, ":", i)
					}
					require.Positive(t, written[text], "message %s is before a committed position, after %d kills", text, kills)
				}
			}
			for line := range written {
				_, i := messageOf(line)
				require.Less(t, i, n, "%q", line)
			}
			if ended {
				require.Len(t, written, killSplits*n)
			}
		}
	}
	t.Logf("%d processes were killed", kills)
}

// A mistake that no other try would mend ends the run at its first one.
func TestNoDirectoryToWriteTo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "gone")
		s, err := run(t, toFile(3, filepath.Join(dir, "out.txt")), egret.Config{})
		require.ErrorContains(t, err, "there is no directory "+dir+": make it first")
		for i := range s.Tasks {
			require.Zero(t, s.Tasks[i].Restarts)
		}
	})
}
