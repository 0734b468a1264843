//go:build mutation

package trident_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/mutation"
)

// The tests in which states are told to do what they must not forget.
const hunters = "^(TestMatrix|TestMatrixStorm|TestVersions|TestEngine|TestTransactionalBatchComesAgain|TestRandomPrograms|TestWordcount)$"

// A process of these tests has the bug that the variable names.
func init() {
	for _, m := range mutation.All() {
		if m.States() && m.String() == os.Getenv("EGRET_MUTATION") {
			mutation.Set(m, func() {})
		}
	}
}

// Every bug that states are given on purpose is noticed by a test that passes without it.
func TestMutations(t *testing.T) {
	run := func(name string) ([]byte, error) {
		p := exec.Command(os.Args[0], "-test.run="+hunters, "-test.count=1", "-test.failfast")
		p.Env = append(os.Environ(), "EGRET_MUTATION="+name)
		return p.CombinedOutput()
	}
	out, err := run("")
	require.NoError(t, err, "%s", out)
	table := ""
	for _, m := range mutation.All() {
		if !m.States() {
			continue
		}
		out, err := run(m.String())
		require.Error(t, err, "%v is not noticed: %s", m, m.Doc())
		require.Contains(t, string(out), "--- FAIL: Test", "%v", m)
		table += fmt.Sprintf("| `%v` | %s |\n", m, m.Doc())
	}
	t.Logf("\n| mutation | what it does |\n|---|---|\n%s", table)
}
