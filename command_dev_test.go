package egret_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// A devRun is the command "dev" with two nodes, as a process.
type devRun struct {
	*testing.T
	*exec.Cmd
	temp string // all that it writes
	errs *bufio.Reader
	told strings.Builder
	addr string // of the first node
}

// program is another command of the same program.
func (d *devRun) program(args ...string) *exec.Cmd {
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), programEnv+"=readme", "TMPDIR="+d.temp)
	return p
}

// until reads what it says until it is something.
func (d *devRun) until(says string) []string {
	d.Helper()
	is := regexp.MustCompile(says)
	for {
		if m := is.FindStringSubmatch(d.told.String()); m != nil {
			return m
		}
		line, err := d.errs.ReadString('\n')
		d.told.WriteString(line)
		require.NoError(d, err, "%s", d.told.String())
	}
}

func startDev(t *testing.T) *devRun {
	d := &devRun{T: t, temp: t.TempDir()}
	d.Cmd = d.program("dev", "--nodes", "2")
	stderr, err := d.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, d.Start())
	t.Cleanup(func() { _ = d.Process.Kill() })
	d.errs = bufio.NewReader(stderr)
	d.addr = d.until(`export EGRET_NODE=(127\.0\.0\.1:\d+)\n`)[1]
	d.until(`(?m)^n1  node 127.*: founded$`)
	d.until(`(?m)^n2  node 127.*: joined ` + d.addr + `$`)
	d.until("submit wordcount\n")
	return d
}

// ends interrupts it, and reads what it still says.
func (d *devRun) ends() {
	d.Helper()
	require.NoError(d, d.Process.Signal(syscall.SIGINT))
	rest, err := io.ReadAll(d.errs)
	require.NoError(d, err)
	d.told.Write(rest)
	require.NoError(d, d.Wait(), "%s", d.told.String())
	require.Equal(d, egret.ExitDone, d.ProcessState.ExitCode())
	require.Contains(d, d.told.String(), "interrupted: ending all nodes\n")
	data, err := os.ReadDir(d.temp)
	require.NoError(d, err)
	require.Empty(d, data)
}

// A cluster to try things: it says how to talk to it, does so when a node ends, and
// leaves nothing behind.
func TestDev(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	data, err := os.ReadDir(d.temp)
	require.NoError(t, err)
	require.Len(t, data, 1)

	out, err := d.program("leave", "n2", "--node", d.addr).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "node n2 has left\n", string(out))
	d.until(`(?m)^n2  the node has ended$`)
	d.until(`(?m)^node n2 has ended \(exit status 0\); 1 node left$`)
	d.ends()
	require.Regexp(t, `(?m)^n1  the node has ended$`, d.told.String())
}

// One interrupt ends all nodes, and none complains that the others go as well.
func TestDevEnds(t *testing.T) { // not beside TestDev: each looks for free ports before it listens there
	d := startDev(t)
	d.ends()
	for _, name := range []string{"n1", "n2"} {
		require.Regexp(t, `(?m)^`+name+`  the node has ended$`, d.told.String())
	}
	require.NotContains(t, d.told.String(), "interrupted again")
	require.NotContains(t, d.told.String(), "egret: ")
}
