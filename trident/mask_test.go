package trident_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
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

// damaged is a backend and a store whose values nobody can read.
type damaged struct{}

func (damaged) String() string                                          { return "damaged" }
func (d damaged) Open(context.Context, state.Name) (state.Store, error) { return d, nil }
func (d damaged) Find(context.Context, state.Name) (state.Store, error) { return d, nil }
func (damaged) Write(context.Context, *state.Write) error               { return nil }
func (damaged) Close() error                                            { return nil }
func (damaged) Join(context.Context, *state.Join) (g tuple.Groups, err error) {
	return g, nil
}
func (damaged) Scan(context.Context, *tuple.Groups, func(state.Key, state.Row) bool) error {
	return nil
}
func (damaged) Get(_ context.Context, keys []state.Key) ([]state.Row, error) {
	rows := make([]state.Row, len(keys))
	for i := range rows {
		rows[i].Value = []byte{0xff}
	}
	return rows, nil
}

// The key of a row that is damaged is in no error of a topology with masks, whether the state
// is changed or only read.
func TestMaskedKeys(t *testing.T) {
	st := trident.StateOf[string, int64]("counts", damaged{}, trident.Opaque)
	count := func(in *trident.Stream[string]) {
		trident.PersistentAggregate(trident.GroupBy(in, trident.Identity), st, trident.Count[string]())
	}
	for name, use := range map[string]func(*trident.Stream[string]){
		"changed": count,
		"read": func(in *trident.Stream[string]) {
			count(in.Filter(func(string) bool { return false }))
			trident.StateQuery(trident.GroupBy(in, trident.Identity), st, func(string, int64, bool, func(string)) {})
		},
	} {
		for _, mask := range [][]string{nil, {"key"}} {
			_, err := egret.Run(t.Context(), trident.New("masked", func(b *trident.Builder) {
				b.Mask(mask...)
				use(trident.From[string](b, "in", spout.Slice("4111-22")))
			}), egret.Config{MaxReplays: egret.NoReplays})
			require.ErrorContains(t, err, map[bool]string{true: "key 4111-22: ", false: "key •••: "}[mask == nil], name)
			if mask != nil {
				require.NotContains(t, err.Error(), "4111", name)
			}
		}
	}
}
