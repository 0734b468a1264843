package trident_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

type payment struct {
	ID   int
	Card struct{ Number, Holder string }
	Cent int
}

// A field is masked in every stream that has it, also as a part of another element.
func TestMask(t *testing.T) {
	for _, tt := range []struct {
		mask []string
		want map[string][]string // by component
	}{
		{nil, map[string][]string{"in": nil, "spread": nil}},
		{[]string{"card"}, map[string][]string{"in": {"card.number", "card.holder"}, "spread": {"value.card.number", "value.card.holder"}}},
		{[]string{"number", "cent"}, map[string][]string{"in": {"card.number", "cent"}, "spread": {"value.card.number", "value.cent"}}},
		{[]string{"card.holder"}, map[string][]string{"in": {"card.holder"}, "spread": {"value.card.holder"}}},
		{[]string{"value.id"}, map[string][]string{"in": nil, "spread": {"value.id"}}},
		{[]string{"key"}, map[string][]string{"in": nil, "spread": {"key"}}},
		{[]string{"id"}, map[string][]string{"in": {"id"}, "spread": {"value.id"}}},
	} {
		top := trident.New("masked", func(b *trident.Builder) {
			b.Mask(tt.mask...)
			in := trident.From[payment](b, "in", spout.Slice(1)).Filter(func(payment) bool { return true }).Name("spread")
			trident.By(in, func(p payment) string { return p.Card.Number }).Peek(func(payment) {}).Name("out")
		})
		plan, err := top.Build(topology.Options{})
		require.NoError(t, err)
		got := map[string][]string{}
		for i := range plan.Components {
			for _, s := range plan.Components[i].Streams {
				if name := plan.Components[i].Name; name == "in" || name == "spread" {
					got[name] = append(got[name], s.Masked...)
				}
			}
		}
		for name, want := range tt.want {
			require.Equal(t, want, got[name], "%s with %q", name, tt.mask)
		}
	}
}
