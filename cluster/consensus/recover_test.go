package consensus

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// recovered recovers the log in a directory, and returns what it had.
func recovered(t *testing.T, dir string, sure bool) (r Remains, m *tape) {
	id, err := Identify(dir)
	require.NoError(t, err)
	defer id.Close()
	m = &tape{}
	require.NoError(t, Recover(id, m, func(is Remains) bool { r = is; return sure }))
	return r, m
}

// Two of three are lost for ever. The third goes on alone, with all that was agreed on; new
// nodes join. The two come back after all, with their directories: nobody listens to them,
// though they would be the quorum.
func TestRecover(t *testing.T) {
	for _, entries := range []int{10, 2500} { // without and with a snapshot
		bubble(t, func(t *testing.T, n *network) {
			all := n.cluster(t, 3)
			var want []string
			for i := range entries {
				text := fmt.Sprint(i)
				want = append(want, text)
				require.NoError(t, all[0].propose(text))
			}
			time.Sleep(15 * time.Second)
			same(t, want, all...)
			old := all[0].id.Cluster()
			for _, d := range all {
				d.stop()
			}
			last := all[2]

			before := files(t, last.dir)
			r, m := recovered(t, last.dir, false)
			require.Equal(t, want, m.all())
			require.Len(t, r.Servers, 3)
			require.Greater(t, r.Index, uint64(entries))
			for name, b := range files(t, last.dir) {
				if name != "/"+storeFile && name != "/"+markFile { // bbolt has opened them
					require.Equal(t, before[name], b, name)
				}
			}

			again, m := recovered(t, last.dir, true)
			require.Equal(t, r, again)
			require.Equal(t, want, m.all())
			d := n.start(t, last.addr, last.dir, false, nil)
			require.NotEqual(t, old, d.id.Cluster())
			require.Equal(t, d, leader(t, d))
			require.Equal(t, want, d.tape.all())
			require.Equal(t, []cluster.Server{{Node: d.node(), Addr: d.addr, Voter: true}}, d.log.Servers())
			require.NoError(t, d.propose("more"))
			want = append(want, "more")

			// The others are a quorum of the old cluster, and have this node among its servers.
			a, b := n.start(t, all[0].addr, all[0].dir, false, nil), n.start(t, all[1].addr, all[1].dir, false, nil)
			for range 20 {
				if a.leads() || b.leads() {
					break
				}
				time.Sleep(time.Second)
			}
			require.True(t, a.leads() || b.leads())
			time.Sleep(20 * time.Second)
			require.True(t, d.leads())
			require.Equal(t, want, d.tape.all())
			a.stop()
			b.stop()

			fresh := n.start(t, "new:1", t.TempDir(), false, nil)
			require.NoError(t, fresh.id.Adopt(d.id.Cluster()))
			require.NoError(t, d.do(func(done func(error)) { d.log.AddNonvoter(fresh.node(), fresh.addr, done) }))
			require.NoError(t, d.do(func(done func(error)) { d.log.AddVoter(fresh.node(), fresh.addr, done) }))
			require.NoError(t, d.propose("last"))
			same(t, append(want, "last"), d, fresh)
			d.stop()
			fresh.stop()
		})
	}
}

// What has no log, or a damaged one, is not recovered and stays as it is; and so is a node
// that was cut off in the middle of it.
func TestRecoverNot(t *testing.T) {
	id, err := Identify(t.TempDir())
	require.NoError(t, err)
	never := func(Remains) bool { t.Error("asked"); return false }
	require.ErrorContains(t, Recover(id, &tape{}, never), "no log that could be recovered")
	require.NoError(t, id.Close())

	dir := t.TempDir()
	bubble(t, func(t *testing.T, n *network) {
		d := n.start(t, "a:1", dir, true, nil)
		leader(t, d)
		require.NoError(t, d.propose("x"))
		d.stop()
	})
	name := filepath.Join(dir, storeFile)
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(name, 3*4096))
	before := files(t, dir)
	id, err = Identify(dir)
	require.NoError(t, err)
	was := id.Cluster()
	require.ErrorIs(t, Recover(id, &tape{}, never), ErrCorrupt)
	require.True(t, maps.Equal(before, files(t, dir)))
	require.Equal(t, was, id.Cluster())
	require.NoError(t, os.WriteFile(name, good, 0o600))
	require.NoError(t, id.renew(), "the process ends here")
	require.NoError(t, id.Close())
	_, m := recovered(t, dir, true)
	require.Equal(t, []string{"x"}, m.all())
}
