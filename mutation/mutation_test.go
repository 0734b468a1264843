package mutation

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutation without a name of its own could not be asked for, and one without a line
// would say nothing in the table.
func TestNames(t *testing.T) {
	all := All()
	require.Len(t, all, int(end)-1)
	known := map[string]bool{}
	for _, m := range all {
		require.Regexp(t, regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), m.String(), "number %d", m)
		require.False(t, known[m.String()], "%v is there twice", m)
		known[m.String()] = true
		require.NotEmpty(t, m.Doc(), "%v", m)
	}
	require.Equal(t, "mutation 0", Mutation(0).String())
	require.Equal(t, "mutation 255", Mutation(255).String())
}

func TestProcess(t *testing.T) {
	require.Positive(t, Process())
	require.Less(t, Process(), 1024)
}
