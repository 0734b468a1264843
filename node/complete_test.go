package node

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// The log has to know what a topology needs of the nodes, beside its tasks.
func TestSpecOfBatches(t *testing.T) {
	spec := func(local bool) *cluster.Spec {
		plan, err := topology.New("top", func(b *topology.Builder) {
			b.Guarantee(topology.ExactlyOnce)
			count := b.Bolt("count", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), b.Spout("in", spout.Slice(1)).Emits("n").By("n")).Stateful().FromHere()
			b.Dropped("gone")
			if local {
				count.Local()
			}
		}).Build(topology.Options{})
		require.NoError(t, err)
		return SpecOf(plan, nil, nil, "")
	}
	require.False(t, spec(false).Local)
	s := spec(true)
	require.True(t, s.Local)
	require.Equal(t, []string{"gone"}, s.Dropped)
	require.Equal(t, []cluster.Component{{Name: "in", Parallel: 1, Spout: true, To: []int{1}}, {Name: "count", Parallel: 1, State: true, FromHere: true}, {Name: "coordinator", Parallel: 1, One: true}}, s.Components)
	_, err := cluster.Resize(s.Components, nil, []cluster.Candidate{{Home: cluster.Home{Node: 1, Boot: 1}}}, map[string]int{"coordinator": 2})
	require.ErrorIs(t, err, cluster.ErrInvalid)
}

// What is submitted is completed, or refused for one reason and left alone.
func TestComplete(t *testing.T) {
	def := topology.New("top", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice(b.Int("n", 1, "a number"))).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle()).Parallel(2)
	})
	plan, err := def.Build(topology.Options{})
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		spec cluster.Spec
		want cluster.Reason
		text string
	}{
		{"as it is", cluster.Spec{Topology: "top"}, "", ""},
		{"the same program", cluster.Spec{Topology: "top", Fingerprint: plan.Fingerprint()}, "", ""},
		{"all of it", cluster.Spec{Topology: "top", Params: map[string][]string{"n": {"3"}}, Parallel: map[string]int{"out": 2}, Guarantee: "at-most-once", Flags: map[string]string{"max-pending": "1"}}, "", ""},
		{"another name", cluster.Spec{Topology: "pot"}, cluster.ErrUnknown, `no topology "pot": it has top`},
		{"another parameter", cluster.Spec{Topology: "top", Params: map[string][]string{"m": {"3"}}}, ErrParameter, `unknown parameter "m" (have n)`},
		{"another kind", cluster.Spec{Topology: "top", Params: map[string][]string{"n": {"x"}}}, ErrParameter, `parameter "n"`},
		{"another guarantee", cluster.Spec{Topology: "top", Guarantee: "never"}, ErrParameter, `no guarantee "never"`},
		{"no tasks", cluster.Spec{Topology: "top", Parallel: map[string]int{"out": 0}}, ErrParameter, "out"},
		{"another component", cluster.Spec{Topology: "top", Parallel: map[string]int{"on": 2}}, ErrComponent, `unknown component "on"`},
		{"another program", cluster.Spec{Topology: "top", Fingerprint: "0123456789abcdef"}, ErrFingerprint, "fingerprints " + plan.Fingerprint() + " and 0123456789abcdef"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.spec
			refused := Complete([]*topology.Topology{def}, &got)
			if tt.want != "" {
				require.NotNil(t, refused)
				require.Equal(t, tt.want, refused.Reason)
				require.Contains(t, refused.Text, tt.text)
				require.Equal(t, tt.spec, got)
				return
			}
			require.Nil(t, refused)
			require.Equal(t, []cluster.Component{{Name: "in", Parallel: 1, Spout: true, To: []int{1}}, {Name: "out", Parallel: 2}}, got.Components)
			require.Len(t, got.Fingerprint, 16)
			require.Equal(t, []any{tt.spec.Params, tt.spec.Parallel, cmp.Or(tt.spec.Guarantee, "at-least-once"), tt.spec.Flags}, []any{got.Params, got.Parallel, got.Guarantee, got.Flags})
		})
	}
}
