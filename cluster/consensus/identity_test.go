package consensus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	i, err := Identify(dir)
	require.NoError(t, err)
	home := i.Home()
	require.NotZero(t, home.Node)
	require.EqualValues(t, 1, home.Boot)
	require.True(t, i.Keeps())
	require.Empty(t, i.Cluster())

	_, err = Identify(dir)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, fmt.Sprintf("%s is in use by a node in process %d: stop that one, or use another directory", dir, os.Getpid()))

	require.ErrorContains(t, i.Adopt("xyz"), `"xyz" is no id of a cluster`)
	require.NoError(t, i.Adopt("00ff"))
	require.NoError(t, i.Adopt("00ff"), "again")
	require.EqualError(t, i.Adopt("ff00"), fmt.Sprintf("node %v belongs to cluster 00ff, not to ff00: start it with another data directory to have it there", home.Node))
	require.ErrorContains(t, i.Found(), "belongs to cluster 00ff, not to a new one")
	require.NoError(t, i.Close())

	i, err = Identify(dir)
	require.NoError(t, err)
	require.Equal(t, home.Node, i.Home().Node)
	require.EqualValues(t, 2, i.Home().Boot)
	require.Equal(t, "00ff", i.Cluster())
	require.NoError(t, i.Close())
	text, err := os.ReadFile(filepath.Join(dir, identityFile))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`{
  "format": 1,
  "node": "%v",
  "boot": 2,
  "cluster": "00ff"
}
`, home.Node), string(text))

	a, err := Identify("")
	require.NoError(t, err)
	b, err := Identify("")
	require.NoError(t, err)
	require.NotEqual(t, a.Home(), b.Home())
	require.False(t, a.Keeps())
	require.NoError(t, a.Found())
	require.NotEmpty(t, a.Cluster())
	require.NoError(t, a.Close())
}

// A file that cannot be read is left alone, and the directory is free again.
func TestIdentityDamaged(t *testing.T) {
	for _, tt := range []struct {
		text string
		want error
	}{
		{"", ErrCorrupt},
		{"{", ErrCorrupt},
		{"{}", ErrCorrupt},
		{`{"format":1,"node":"zz"}`, ErrCorrupt},
		{`{"format":1,"node":"0000000000000000","boot":1}`, ErrCorrupt},
		{`{"format":1,"node":"0000000000000001","boot":0}`, ErrCorrupt},
		{`{"format":1,"node":"0000000000000001","boot":1,"cluster":"x"}`, ErrCorrupt},
		{`{"format":1,"node":"0000000000000001","boot":1,"founder":true}`, ErrCorrupt},
		{`{"format":2,"node":"0000000000000001","boot":1}`, ErrNewer},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, identityFile)
		require.NoError(t, os.WriteFile(name, []byte(tt.text), 0o600))
		for range 2 {
			_, err := Identify(dir)
			require.ErrorIs(t, err, tt.want, tt.text)
			require.ErrorContains(t, err, name)
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, tt.text, string(b))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, storeFile), []byte("x"), 0o600))
	_, err := Identify(dir)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "nobody knows which node it was")
}

func FuzzIdentity(f *testing.F) {
	f.Add(`{"format":1,"node":"0000000000000001","boot":4294967295,"cluster":"00","founder":true,"log":true}`)
	f.Add(`{"format":1,"node":"0123456789abcdef","boot":7}`)
	f.Fuzz(func(t *testing.T, text string) {
		is, err := decodeIdentity([]byte(strings.Clone(text)))
		if err == nil {
			require.NotZero(t, is.Node)
			require.NotZero(t, is.Boot+1)
		}
	})
}
