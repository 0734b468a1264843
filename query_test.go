package egret

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// typedQueries asks a cluster that has the states of visited, all of it committed.
func typedQueries(t *testing.T, c Cluster) {
	ctx := t.Context()
	names := trident.StateOf[string, int64]("names", nil, trident.Opaque)
	got, err := trident.Query(ctx, c.Query, "visits", names, "ann", "eve", "bob")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"ann": 2, "bob": 1}, got)

	rooms, err := trident.Query(ctx, c.Query, "visits", trident.StateOf[visit, stay]("rooms", nil, trident.Opaque), visit{"Monday", 1}, visit{"Sunday", 1})
	require.NoError(t, err)
	require.Equal(t, map[visit]stay{{"Monday", 1}: {2, "Monday"}}, rooms)

	lengths, err := trident.Query(ctx, c.Query, "visits", trident.StateOf[time.Duration, time.Duration]("lengths", nil, trident.Opaque), 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, map[time.Duration]time.Duration{5 * time.Second: 3 * time.Minute}, lengths)

	nothing, err := trident.Query(ctx, c.Query, "visits", trident.StateOf[struct{}, *float64]("nothing", nil, trident.Opaque), struct{}{})
	require.NoError(t, err)
	require.Equal(t, map[struct{}]*float64{{}: nil}, nothing, "a value that is nil is a value")

	_, err = trident.Query(ctx, nil, "visits", names, "ann")
	require.ErrorContains(t, err, "nobody is asked for state names of topology visits")
	_, err = trident.Query(ctx, c.Query, "visits", trident.StateOf[string, string]("names", nil, trident.Opaque), "ann")
	require.ErrorContains(t, err, "state names of topology visits: a stored value for its value of type string: it is int64, not string")
	_, err = trident.Query(ctx, c.Query, "visits", trident.StateOf[int, int64]("names", nil, trident.Opaque), 1)
	require.ErrorContains(t, err, "state names: bad key: a stored value for its value of type string: it is int64, not string")
	_, err = trident.Query(ctx, c.Query, "visits", trident.StateOf[string, int64]("name", nil, trident.Opaque), "ann")
	require.ErrorContains(t, err, `topology visits has no state "name": it has names, `)
	_, err = trident.Query(ctx, c.Query, "visit", names, "ann")
	require.ErrorContains(t, err, `there is no topology "visit"`)
}

// Who asks has what commands have: an address, and the secret of the cluster.
func TestQueryWithASecret(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("of the nodes, and long enough"), 0o600))
	n := startNode(t, []*topology.Topology{greet(nil)}, "--secret-file", secret)
	defer func() {
		code, _, errs := runLine([]*topology.Topology{greet(nil)}, "leave", "--node", n.addr, "--secret-file", secret)
		require.Equal(t, ExitDone, code, errs)
		<-n.ended
	}()
	names := trident.StateOf[string, int64]("names", nil, trident.Opaque)
	for _, tt := range []struct {
		c    Cluster
		errs string
	}{
		{Cluster{Node: n.addr, SecretFile: secret}, `there is no topology "visits"`},
		{Cluster{Node: n.addr}, "secret"},
		{Cluster{Node: n.addr, SecretFile: secret + "2"}, "no such file"},
		{Cluster{Node: "here"}, `the node of a Cluster is "here": use host:port`},
		{Cluster{Node: n.addr, Timeout: -1}, "the timeout of a Cluster is below 0"},
	} {
		_, err := trident.Query(t.Context(), tt.c.Query, "visits", names, "ann")
		require.ErrorContains(t, err, tt.errs)
	}
	t.Setenv(nodeVariable, n.addr)
	_, err := trident.Query(t.Context(), Cluster{SecretFile: secret}.Query, "visits", names, "ann")
	require.ErrorContains(t, err, `there is no topology "visits"`)
}
