package egret

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/state/pebble"
	"github.com/egretstream/egret/state/postgres"
	"github.com/egretstream/egret/topology"
)

// A topology that is submitted again after it was killed has another record: on the states
// that it has left it fails at once, and says what to do.
func TestSubmitOnForeignStates(t *testing.T) {
	tops := []*topology.Topology{digits("again", memory.New())}
	a := startNode(t, tops, "--name", "a")
	s := &shell{t, tops, a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum })
	s.is("submit again")
	soon(t, func() bool {
		all := s.status("again").Topologies
		return len(all) > 0 && all[0].Batches != nil && all[0].Batches.Last >= 3
	})
	s.is("kill again --wait")
	s.is("submit again")
	soon(t, func() bool { return submissionOf(s, "again").Status == cluster.Failed })
	text := s.is("status again")
	require.Contains(t, text, "the state does not fit the record")
	require.Contains(t, text, "state again/counts in memory")
	require.Contains(t, text, "\nbatches: 0 committed last\n")
	require.Contains(t, text, "give the topology another memory.New()")
}

// One that was stopped goes on with its states, by another version of the program as well.
func TestSubmitOnOwnStates(t *testing.T) {
	back := memory.New()
	a := startNode(t, []*topology.Topology{digits("again", back)}, "--name", "a")
	s := &shell{t, []*topology.Topology{digits("again", back)}, a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum })
	require.Equal(t, "topology again is submitted, as run 1\n", s.is("submit again"))
	last := func() int64 {
		all := s.status("again").Topologies
		if len(all) == 0 || all[0].Batches == nil {
			return 0
		}
		return all[0].Batches.Last
	}
	was := int64(0)
	for _, run := range []string{"3", "5"} {
		soon(t, func() bool { return last() >= was+3 })
		require.Equal(t, "topology again has ended\n", s.is("stop again --wait"))
		require.Contains(t, s.is("list"), "stopped")
		was = last()
		require.GreaterOrEqual(t, was, int64(3))
		require.Regexp(t, `^topology again is submitted, as run `+run+`, and goes on where run \d was\n$`, s.is("submit again"))
	}
	soon(t, func() bool { return last() >= was+3 })
	require.Equal(t, cluster.Active, submissionOf(s, "again").Status)
	require.Equal(t, "topology again is being stopped\n", s.is("stop again"))
	require.Equal(t, "topology again has ended\n", s.is("kill again --wait"))
}

// A reset would leave states without their record: it is refused, and nothing is forgotten.
func TestResetOfFilledStates(t *testing.T) {
	dir := t.TempDir()
	back := pebble.Dir(dir + "/states")
	config := Config{StateDir: dir, Logger: slog.New(slog.DiscardHandler)}
	reset := config
	reset.Reset = true
	_, err := Run(t.Context(), visited(back), reset)
	require.NoError(t, err, "there is nothing yet")
	_, err = Run(t.Context(), visited(back), reset)
	require.ErrorIs(t, err, ErrState)
	require.ErrorContains(t, err, "state names in "+dir+"/states: it has values: delete the states where they are")
	s, err := Run(t.Context(), visited(back), config)
	require.NoError(t, err)
	require.Zero(t, s.Batches.Messages, "it goes on, and has nothing to do")
	require.NoError(t, os.RemoveAll(dir+"/states"))
	s, err = Run(t.Context(), visited(back), reset)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Batches.Messages)
	require.Nil(t, s.Batches.Now, "nothing is under way when it is over")
}

// away is a place that nobody answers at.
type away struct{ state.Backend }

func (away) Find(context.Context, state.Name) (state.Store, error) {
	return nil, errors.New("state visits/names in nowhere: nobody answers")
}

// A state that cannot be reached when a run starts is said once, and nothing is tried again.
func TestStartWithoutStates(t *testing.T) {
	for _, tt := range []struct {
		back state.Backend
		want string
	}{
		{away{memory.New()}, "state visits/names in nowhere: nobody answers"},
		{pebble.Dir(""), "state visits/names: the directory of pebble.Dir has no name"},
		{postgres.URL("postgres://ann:secret@127.0.0.1:1/db"), "state visits/names in PostgreSQL database db on 127.0.0.1:1 as user ann: (?s:.*connection refused.*)"},
		{postgres.URL("postgres://ann:secret@127.0.0.1:x/db"), "state visits/names in PostgreSQL, with a URL that cannot be read: the URL of the database cannot be read .*"},
	} {
		dir := t.TempDir()
		code, out, errs := runLine([]*topology.Topology{visited(tt.back)}, "--state", dir+"/runs")
		require.Equal(t, ExitFailed, code)
		require.Empty(t, out)
		require.Regexp(t, `^\S+:\s+topology visits: `+tt.want+`\n$`, errs)
		require.NotContains(t, errs, "secret")
		require.NoDirExists(t, dir+"/runs")
	}
}
