package trident_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// A version is what a program has in one of the runs that go on from each other.
type version struct {
	n       int64    // numbers of each source
	sources []string // what they give goes into all states
	states  []string
	here    []string // begin in the middle
	dropped []string
	reset   bool
	fresh   bool // states with nothing in them

	err  string // it is refused with
	lost bool   // a store is refused
	want map[string]map[int64]int64
}

// Versions of a program go on from each other with one record: what would be read twice,
// or not by all, is refused when the run starts, and says what to do.
func TestVersions(t *testing.T) {
	all := sumsOf
	twice := func(n int64) map[int64]int64 {
		m := all(n)
		for k := range m {
			m[k] *= 2
		}
		return m
	}
	rest := func(n, from int64) map[int64]int64 { // what a state has that has begun behind from
		m, before := all(n), all(from)
		for k := range m {
			m[k] -= before[k]
		}
		return m
	}
	type sumsBy = map[string]map[int64]int64
	first := version{n: 1000, sources: []string{"in"}, states: []string{"a", "z"}, want: sumsBy{"a": all(1000), "z": all(1000)}}
	for _, tt := range []struct {
		name     string
		versions []version
	}{
		{"the same", []version{first, {n: 2000, sources: []string{"in"}, states: []string{"a", "z"}, want: sumsBy{"a": all(2000), "z": all(2000)}}}},
		{"a source has another name", []version{
			first,
			{n: 1000, sources: []string{"orders"}, states: []string{"a", "z"}, err: `has positions of source "in", which the topology does not have: give it the name that it had; if it was left out on purpose, say Dropped("in")`},
			{n: 2000, sources: []string{"in"}, states: []string{"a", "z"}, want: sumsBy{"a": all(2000), "z": all(2000)}},
		}},
		{"a source is left out, and comes back", []version{
			first,
			{n: 1000, sources: []string{"orders"}, states: []string{"a", "z"}, dropped: []string{"in"}, want: sumsBy{"a": twice(1000), "z": twice(1000)}},
			{n: 2000, sources: []string{"orders", "in"}, states: []string{"a", "z"}, want: sumsBy{"a": twice(2000), "z": twice(2000)}},
		}},
		{"a source more", []version{first, {n: 1000, sources: []string{"in", "more"}, states: []string{"a", "z"}, want: sumsBy{"a": twice(1000), "z": twice(1000)}}}},
		{"a state is left out", []version{
			first,
			{n: 2000, sources: []string{"in"}, states: []string{"a"}, err: `has batches of state "z", which the topology does not have: give it the name that it had; if it was left out on purpose, say Dropped("z")`},
			{n: 3000, sources: []string{"in"}, states: []string{"a", "z"}, want: sumsBy{"a": all(3000), "z": all(3000)}},
		}},
		{"a state is dropped, and put back", []version{
			first,
			{n: 2000, sources: []string{"in"}, states: []string{"a"}, dropped: []string{"z"}, want: sumsBy{"a": all(2000)}},
			{n: 3000, sources: []string{"in"}, states: []string{"a"}, want: sumsBy{"a": all(3000)}},
			{n: 4000, sources: []string{"in"}, states: []string{"a", "z"}, err: `does not know state "z", which the topology has`},
			{n: 4000, sources: []string{"in"}, states: []string{"a", "z"}, here: []string{"z"}, lost: true},
		}},
		{"a state more", []version{
			first,
			{n: 2000, sources: []string{"in"}, states: []string{"a", "new", "z"}, err: `of which 1 is the last one, does not know state "new", which the topology has: give it the name that it had; if it is new, and is to begin in the middle of the input, say FromHere of it; or start over, with --reset`},
			{n: 2000, sources: []string{"in"}, states: []string{"a", "new", "z"}, here: []string{"new"}, want: sumsBy{"a": all(2000), "z": all(2000), "new": rest(2000, 1000)}},
			{n: 3000, sources: []string{"in"}, states: []string{"a", "new", "z"}, want: sumsBy{"a": all(3000), "z": all(3000), "new": rest(3000, 1000)}},
		}},
		{"a state that nothing has come to", []version{
			{n: 1000, sources: []string{"in"}, states: []string{"a", "idle"}, want: sumsBy{"a": all(1000), "idle": {}}},
			{n: 2000, sources: []string{"in"}, states: []string{"a", "idle"}, want: sumsBy{"a": all(2000), "idle": {}}},
			{n: 2000, sources: []string{"in"}, states: []string{"a"}, err: `has batches of state "idle"`},
		}},
		{"anew", []version{
			first,
			{n: 1000, sources: []string{"orders"}, states: []string{"y"}, reset: true, fresh: true, want: sumsBy{"y": all(1000)}},
		}},
		{"dropped, and there", []version{{n: 1, sources: []string{"in"}, states: []string{"a"}, dropped: []string{"a"}, err: "among those that were Dropped"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back, dir := memory.New(), t.TempDir()
				for i, v := range tt.versions {
					if v.fresh {
						back = memory.New()
					}
					states := map[string]*trident.State[int64, int64]{}
					for _, name := range v.states {
						states[name] = trident.StateOf[int64, int64](name, back, trident.Opaque)
					}
					for _, name := range v.here {
						states[name] = states[name].FromHere()
					}
					_, err := egret.Run(t.Context(), v.topology(states), egret.Config{StateDir: dir, Reset: v.reset, BatchSize: 10_000})
					switch {
					case v.err != "":
						require.ErrorContains(t, err, v.err, "version %d", i)
						continue
					case v.lost:
						require.ErrorIs(t, err, state.ErrLost, "version %d", i)
						continue
					}
					require.NoError(t, err, "version %d", i)
					for name, want := range v.want {
						require.Equal(t, want, contents(t, states[name], "versions"), "version %d, state %s", i, name)
					}
				}
			})
		})
	}
}

func (v *version) topology(states map[string]*trident.State[int64, int64]) *topology.Topology {
	return trident.New("versions", func(b *trident.Builder) {
		b.Dropped(v.dropped...)
		var in []*trident.Stream[int64]
		for _, name := range v.sources {
			in = append(in, trident.From[int64](b, name, spout.Generate(v.n, func(i int64, o *spout.Out) { o.Emit(i) })))
		}
		every := trident.Merge(in[0], in[1:]...)
		for _, name := range v.states {
			some := every.Filter(func(int64) bool { return name != "idle" })
			trident.PersistentAggregate(trident.GroupBy(some, digit), states[name], trident.Sum(trident.Identity[int64]))
		}
	})
}
