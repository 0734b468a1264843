package exact

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// asProgram makes the test's program the example itself.
const asProgram = "EGRET_WORDCOUNT_EXACT_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		egret.Main(Topology())
	}
	os.Exit(m.Run())
}

// What README.md says of it: a run counts into a directory, another one has nothing to do,
// and what was counted is asked for with the same parameter.
func TestRunAndQuery(t *testing.T) {
	t.Chdir(t.TempDir())
	program, err := os.Executable()
	require.NoError(t, err)
	line := func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), program, args...)
		c.Env = append(os.Environ(), asProgram+"=1")
		out, err := c.Output()
		return string(out), err
	}
	for range 2 {
		_, err = line("--state", "runs", "--counts", "counts")
		require.NoError(t, err)
	}
	out, err := line("query", "wordcount-exact", "counts", "whale", "--state", "runs", "--set", "counts=counts")
	require.NoError(t, err)
	require.Equal(t, "whale  1150\n", out)
	_, err = line("query", "wordcount-exact", "counts", "whale", "--state", "runs")
	require.Error(t, err, "they are not in memory")
}
