package egret_test

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/tuple"
)

const (
	killVariable = "EGRET_TEST_KILL" // the state directory of a process that is made to be killed
	killSplits   = 3
	killMessages = 500 // of each split
)

func dies(n int) bool { return n%50 == 7 }

// victim runs a topology that writes a line for each message that it executes, with
// one write each, so that what is written when the process is killed was executed.
func victim(dir string) {
	top := straight(&numbers{splits: killSplits, n: killMessages, chunk: 20}, func(in tuple.Tuple, _ *bolt.Collector) error {
		text := in.String("n")
		if _, err := os.Stdout.WriteString(text + "\n"); err != nil {
			os.Exit(9)
		}
		if _, n := messageOf(text); dies(n) {
			return bolt.Reject(errors.New("it was to die"))
		}
		return nil
	})
	_, err := egret.Run(context.Background(), top, quiet(egret.Config{StateDir: dir, MaxPending: 100, Parallel: map[string]int{"in": 2}}))
	if !errors.Is(err, egret.ErrDead) && err != nil {
		os.Exit(8)
	}
	os.Exit(0)
}

// messageOf returns the split and the number of what a source of numbers emits.
func messageOf(text string) (split string, n int) {
	split, number, found := strings.Cut(text, ":")
	if !found {
		split, number = "0", text
	}
	n, _ = strconv.Atoi(number)
	return split, n
}

// Processes are killed at any moment, one after another with the same directory.
// Nothing before a committed position is executed again, nothing is left out, and
// what is dead is stored before its position is.
func TestKilledProcesses(t *testing.T) {
	if dir := os.Getenv(killVariable); dir != "" {
		victim(dir)
	}
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	executed := map[string]int{}
	at := map[string]int{} // committed, by split
	for kills := 0; ; kills++ {
		require.Less(t, kills, 200)
		c := exec.Command(os.Args[0], "-test.run=^TestKilledProcesses$")
		c.Env = append(os.Environ(), killVariable+"="+dir)
		pipe, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		left := 1 + random.IntN(1500)
		for lines := bufio.NewScanner(pipe); lines.Scan(); left-- {
			split, n := messageOf(lines.Text())
			require.GreaterOrEqual(t, n, at[split], "message %d of split %s is executed again, and %d is committed", n, split, at[split])
			executed[lines.Text()]++
			if left == 0 {
				require.NoError(t, c.Process.Kill()) // kill -9
			}
		}
		ended := c.Wait()

		s, err := disk.Open(dir, "straight", disk.Options{})
		require.NoError(t, err)
		for split, position := range s.Positions()["in"] {
			n, err := strconv.Atoi(position)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, at[split], "a position goes back")
			at[split] = n
		}
		require.NoError(t, s.Close())
		stored := map[string]bool{}
		for _, l := range letters(t, dir, "straight") {
			stored[l.Values[0].String()] = true
		}
		for split, end := range at {
			for n := range end {
				text := strconv.Itoa(n)
				if split != "0" {
					text = split + ":" + text
				}
				require.Positive(t, executed[text], "message %s is before a committed position", text)
				require.Equal(t, dies(n), stored[text], "letter of %s", text)
			}
		}
		if ended == nil {
			t.Logf("%d processes were killed", kills)
			break
		}
		require.Equal(t, -1, c.ProcessState.ExitCode(), "killed, and nothing else")
	}
	for split := range killSplits {
		require.Equal(t, killMessages, at[strconv.Itoa(split)])
	}
	require.Len(t, executed, killSplits*killMessages)
}
