package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"at 5s kill worker", "at 5s kill worker"},
		{"at 5s kill leader worker worker for 3s", "at 5s kill leader worker worker for 3s"},
		{"every 8s kill node/2", "every 8s kill node/2"},
		{"every 8s from 1s restart leader", "every 8s from 1s restart leader"},
		{"at 1s stall node/3 for 1.5s", "at 1s stall node/3 for 1.5s"},
		{"at 0s rebalance pass=5 sink=1", "at 0s rebalance pass=5 sink=1"},
		{"at 2s roll # all", "at 2s roll"},
		{"at 2s drain node/1", "at 2s drain node/1"},
		{"at 2s undrain node/1", "at 2s undrain node/1"},
		{"at 2s cut node/1 node/2 for 5s", "at 2s cut node/1 node/2 for 5s"},
	} {
		all, err := Parse(tt.text)
		require.NoError(t, err, tt.text)
		require.Len(t, all, 1)
		require.Equal(t, tt.want, all[0].String())
	}
	all, err := Parse("at 3s roll; at 1s kill worker\n\nat 2s drain leader;")
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, []time.Duration{all[0].At, all[1].At, all[2].At})
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"kill worker", "say first when"},
		{"at soon kill worker", `"soon" is no time`},
		{"every 0s kill worker", "never end"},
		{"at 1s maim worker", "cannot be done to nodes"},
		{"at 1s kill", "kill whom?"},
		{"at 1s kill node/0", "is nobody"},
		{"at 1s kill pass/1", "is nobody"},
		{"at 1s stall worker", "for how long?"},
		{"at 1s cut worker", "for how long?"},
		{"at 1s drain worker for 3s", "not for a time"},
		{"at 1s roll worker", "for all nodes"},
		{"at 1s rebalance pass", "is no number of tasks"},
		{"at 1s rebalance pass=0", "is no number of tasks"},
		{"at 1s kill worker for 3s now", "nothing was to follow"},
	} {
		_, err := Parse(tt.text)
		require.ErrorContains(t, err, tt.want, tt.text)
	}
	for text, want := range map[string]string{"at 1s kill node/4": "nodes 1 to 3", "at 1s rebalance count=2": "the components are"} {
		all, err := Parse(text)
		require.NoError(t, err)
		require.ErrorContains(t, all[0].Fits(3), want)
	}
}
