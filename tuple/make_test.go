package tuple_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

type shape struct{ Sides int }

func init() {
	tuple.RegisterCodec("make_test.shape",
		func(dst []byte, s shape) ([]byte, error) { return append(dst, byte(s.Sides)), nil },
		func(b []byte) (shape, error) { return shape{int(b[0])}, nil })
}

// A value that is made is the one that Emit makes, and has its hash.
func TestMake(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	for _, tt := range []struct {
		made tuple.Value
		from any
	}{
		{tuple.Bool(true), true},
		{tuple.Bool(false), false},
		{tuple.Int64(-3), -3},
		{tuple.Uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{tuple.Float64(2.5), 2.5},
		{tuple.String("egret"), "egret"},
		{tuple.Bytes([]byte("egret")), []byte("egret")},
		{tuple.Time(at), at},
		{tuple.Duration(time.Second), time.Second},
	} {
		want, err := tuple.ValueOf(tt.from)
		require.NoError(t, err)
		require.Equal(t, want.Kind(), tt.made.Kind())
		require.Equal(t, want.Any(), tt.made.Any())
		var row tuple.Row
		row.Set(&tuple.Schema{Fields: []string{"a", "b"}}, []any{tt.from, "b"})
		require.Equal(t, tuple.Hash(row.Cells, row.Kinds, []int{0, 1}), tuple.HashValues([]tuple.Value{tt.made, tuple.String("b")}))
		require.Equal(t, tuple.Hash(row.Cells, row.Kinds, []int{0}), tuple.HashValues([]tuple.Value{tt.made}))
	}
	b := []byte("egret")
	v := tuple.Bytes(b)
	b[0] = 'r'
	require.Equal(t, []byte("egret"), v.Bytes(), "a copy")
	require.ErrorContains(t, misuse(func() { tuple.Time(time.Time{}) }), "outside 1678-2262")
}

func misuse(f func()) (err error) {
	defer func() { err = tuple.Misused(recover()) }()
	f()
	return nil
}

func TestAnyAsBytes(t *testing.T) {
	typ := reflect.TypeFor[shape]()
	require.True(t, tuple.HasCodec(typ))
	require.False(t, tuple.HasCodec(reflect.TypeFor[testing.T]()))
	b, err := tuple.AppendAny([]byte("x"), shape{4})
	require.NoError(t, err)
	require.Equal(t, "x\x04", string(b))
	v, err := tuple.DecodeAny(typ, b[1:])
	require.NoError(t, err)
	require.Equal(t, shape{4}, v)
	_, err = tuple.AppendAny(nil, t)
	require.ErrorContains(t, err, "has no codec")
	_, err = tuple.DecodeAny(reflect.TypeFor[testing.T](), nil)
	require.ErrorContains(t, err, "has no codec")
}

func TestInput(t *testing.T) {
	p := &tuple.Parcel{Input: 3, Schema: &tuple.Schema{Fields: []string{"a"}}}
	p.Begin([]tuple.Kind{tuple.KindNil}, 1)
	p.Append(&tuple.Row{Cells: make([]tuple.Cell, 1), Kinds: []tuple.Kind{tuple.KindNil}})
	require.Equal(t, 3, p.Tuple(0).Input())
}
