package egret_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// lettered is a topology whose messages 3 and 5 are rejected until they are good.
func lettered(n int, good *atomic.Bool, more func(b *topology.Builder, in *topology.Component)) *topology.Topology {
	return topology.New("lettered", func(b *topology.Builder) {
		in := b.Spout("in", slow(n, time.Second)).Emits("n")
		if more != nil {
			more(b, in)
		}
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			if x := in.String("n"); (x == "3" || x == "5") && !good.Load() {
				return bolt.Reject(errors.New("not " + x))
			}
			return nil
		}), in.Shuffle())
	})
}

// Dead letters of a run are seen while it goes on, and what is asked for it does.
func TestLettersOfARun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var good atomic.Bool
		r := started(t, lettered(30, &good, nil), quiet(egret.Config{StateDir: t.TempDir()}))
		began := time.Now()
		source := egret.SourceOf(r)
		list := func(component string, n int) []view.Letter {
			all, err := source.Letters(t.Context(), "lettered", component, n)
			require.NoError(t, err)
			return all
		}
		require.Equal(t, []view.Letter{}, list("", 10))
		time.Sleep(10 * time.Second)
		all := list("", 10)
		require.Len(t, all, 2)
		require.Equal(t, view.Letter{
			ID: "1-2", Node: "local", Component: "in", Task: "in/0", Stream: "default", Fields: []string{"n"}, Values: []json.RawMessage{[]byte(`"5"`)},
			Error: "bolt out: not 5", History: []string{"rejected: bolt out: not 5"}, Failures: 1, Died: began.Add(6 * time.Second).UTC(),
		}, all[0])
		require.Equal(t, "1-1", all[1].ID)
		require.Equal(t, all[:1], list("in", 1))
		require.Empty(t, list("out", 10))
		_, err := source.Letters(t.Context(), "lettered", "none", 10)
		refused(t, err, web.Unknown)
		_, err = source.Letters(t.Context(), "other", "", 10)
		refused(t, err, web.Unknown)
		for _, ids := range [][]string{{"x"}, {"1-1", "../1-2"}} {
			_, err = source.Settle(t.Context(), "lettered", ids, false)
			refused(t, err, web.Invalid)
		}
		_, err = source.Settle(t.Context(), "other", []string{"1-1"}, false)
		refused(t, err, web.Unknown)
		_, err = source.Settle(t.Context(), "lettered", []string{"1-7"}, true)
		require.ErrorContains(t, refused(t, err, web.Refused), "there is no dead letter 1-7")
		require.Len(t, list("", 10), 2, "nothing has happened")

		// In vain: it dies again.
		e, err := source.Settle(t.Context(), "lettered", []string{"1-1"}, true)
		require.NoError(t, err)
		require.Equal(t, &view.Effect{Done: true, Text: "1 dead letter will be replayed within about a second, or by the next run if the input has ended"}, e)
		require.True(t, list("", 10)[1].Waiting)
		time.Sleep(2 * time.Second)
		all = list("", 10)
		require.Equal(t, []string{"1-1", "1-2"}, []string{all[0].ID, all[1].ID}, "the latest death is first")
		require.Equal(t, 1, all[0].Replayed)
		require.False(t, all[0].Waiting)

		good.Store(true)
		e, err = source.Settle(t.Context(), "lettered", []string{"1-1", "1-9"}, true)
		require.NoError(t, err)
		require.Equal(t, "1 dead letter will be replayed within about a second, or by the next run if the input has ended; but there is no dead letter 1-9", e.Text)
		time.Sleep(2 * time.Second)
		require.Len(t, list("", 10), 1)
		e, err = source.Settle(t.Context(), "lettered", []string{"1-2"}, false)
		require.NoError(t, err)
		require.Equal(t, "1 dead letter dropped", e.Text)
		require.Empty(t, list("", 10))
		s, err := r.Wait()
		require.ErrorIs(t, err, egret.ErrDead)
		settled(t, s, err)
		require.EqualValues(t, 2+1, s.Dead)
		require.EqualValues(t, 29, s.Acked)
	})
}

// What is masked is masked in letters as well, also when there is another program now.
func TestLettersAreMasked(t *testing.T) {
	dir := t.TempDir()
	shown := func(more func(*topology.Builder, *topology.Component), c egret.Config) (values []string) {
		bubble(t, func(t *testing.T) {
			var good atomic.Bool
			r := started(t, lettered(7, &good, more), quiet(c))
			time.Sleep(6500 * time.Millisecond)
			all, err := egret.SourceOf(r).Letters(t.Context(), "lettered", "", 2)
			require.NoError(t, err)
			for _, l := range all {
				require.Len(t, l.Values, 1)
				values = append(values, string(l.Values[0]))
			}
			slices.Sort(values)
			_, err = r.Wait()
			require.ErrorIs(t, err, egret.ErrDead)
		})
		return values
	}
	c := egret.Config{StateDir: dir, Reset: true}
	require.Equal(t, []string{`"3"`, `"5"`}, shown(nil, c))
	mask := []string{`"•••"`, `"•••"`}
	require.Equal(t, mask, shown(func(_ *topology.Builder, in *topology.Component) { in.Mask("n") }, c))
	require.Equal(t, mask, shown(func(b *topology.Builder, _ *topology.Component) { b.NoTaps() }, c))
}

// Where there can be no letters, it is said why.
func TestNoLetters(t *testing.T) {
	atMostOnce := topology.AtMostOnce
	for _, tt := range []struct {
		c    egret.Config
		want string
	}{
		{egret.Config{}, "give run a --state directory"},
		{egret.Config{Guarantee: &atMostOnce}, "only at-least-once topologies have dead letters"},
	} {
		bubble(t, func(t *testing.T) {
			var good atomic.Bool
			r := started(t, lettered(1, &good, nil), quiet(tt.c))
			_, err := egret.SourceOf(r).Letters(t.Context(), "lettered", "", 2)
			require.ErrorContains(t, refused(t, err, web.NotHere), tt.want)
			_, err = egret.SourceOf(r).Settle(t.Context(), "lettered", []string{"1-1"}, true)
			require.ErrorContains(t, refused(t, err, web.NotHere), tt.want)
			ended(t, r)
		})
	}
}
