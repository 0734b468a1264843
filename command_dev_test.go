package egret_test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// A cluster to try things: it says how to talk to it, does so when a node ends, and
// leaves nothing behind.
func TestDev(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	program := func(args ...string) *exec.Cmd {
		p := exec.Command(os.Args[0], args...)
		p.Env = append(os.Environ(), programEnv+"=readme", "TMPDIR="+temp)
		return p
	}
	p := program("dev", "--nodes", "2")
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	defer p.Process.Kill()
	errs := bufio.NewReader(stderr)
	var told strings.Builder
	until := func(says string) []string {
		is := regexp.MustCompile(says)
		for {
			if m := is.FindStringSubmatch(told.String()); m != nil {
				return m
			}
			line, err := errs.ReadString('\n')
			told.WriteString(line)
			require.NoError(t, err, "%s", told.String())
		}
	}
	addr := until(`export EGRET_NODE=(127\.0\.0\.1:\d+)\n`)[1]
	until(`(?m)^n1  node 127.*: founded$`)
	until(`(?m)^n2  node 127.*: joined ` + addr + `$`)
	until("submit wordcount\n")
	data, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Len(t, data, 1)

	out, err := program("leave", "n2", "--node", addr).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "node n2 has left\n", string(out))
	until(`(?m)^n2  the node has ended$`)
	until(`(?m)^node n2 has ended \(exit status 0\); 1 node left$`)

	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	until("interrupted: ending all nodes\n")
	until(`(?m)^n1  the node has ended$`)
	require.NoError(t, p.Wait(), "%s", told.String())
	require.Equal(t, egret.ExitDone, p.ProcessState.ExitCode())
	data, err = os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, data)
}
