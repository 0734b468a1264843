package egret

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/topology"
)

// A fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A command whose output cannot be written has failed.
func TestOutputThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	top := []*topology.Topology{greet(io.Discard)}
	code, _, _ := runLine(top, "--state", dir, "--name", "a", "--times", "1", "--fail", "reject")
	require.Equal(t, ExitDead, code)
	for _, line := range []string{
		"topologies", "topologies --json", "graph", "deadletters list --state " + dir, "deadletters list --json --state " + dir,
		"deadletters show 1-1 --state " + dir, "deadletters show 1-1 --json --state " + dir,
	} {
		code, _, errs := runLine(top, strings.Fields(line)...)
		require.Equal(t, ExitDone, code, "%s: %s", line, errs)
		var told strings.Builder
		code = execute(top, strings.Fields(line), strings.NewReader(""), fullDisk{}, &told)
		require.Equal(t, ExitFailed, code, line)
		require.Contains(t, told.String(), "no space left", line)
	}
}

func TestDeadLettersOfOneOfSeveral(t *testing.T) {
	top := []*topology.Topology{greet(io.Discard), topology.New("a", func(*topology.Builder) {}), topology.New("b", func(*topology.Builder) {})}
	code, _, errs := runLine(top, "deadletters", "show", "x", "--state", t.TempDir())
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, `"x" is neither one of the topologies greet, a or b nor the ID of a dead letter`)
	code, _, errs = runLine(top, "run", "greet", "--max-dead-letter-bytes", "0")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--max-dead-letter-bytes is 0: use at least 1")
}
