package bolt_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// A taken row is what a sink was given.
type taken struct {
	stream int
	values []any
	text   int
}

type recorder struct{ rows []taken }

func (r *recorder) Put(stream int, row *tuple.Row) {
	t := taken{stream: stream, text: row.Text}
	for _, v := range tuple.CloneRow(row.Cells, row.Kinds) {
		t.values = append(t.values, v.Any())
	}
	r.rows = append(r.rows, t)
}

var outputs = []*tuple.Schema{
	{Component: "count", Stream: "default", Fields: []string{"word", "count"}},
	{Component: "count", Stream: "late", Fields: []string{"at"}},
}

func TestEmit(t *testing.T) {
	var r recorder
	out := bolt.NewCollector(t.Context(), outputs, &r)
	out.Emit("the", 1)
	out.To(1).Emit(time.Minute)
	out.Emit([]byte("whale"), nil) // To is for one Emit
	require.Equal(t, []taken{
		{0, []any{"the", int64(1)}, 3},
		{1, []any{time.Minute}, 0},
		{0, []any{[]byte("whale"), nil}, 5},
	}, r.rows)
	require.Equal(t, t.Context(), out.Context())
}

// A wrong Emit reaches no sink, and the next Emit goes where it says.
func TestEmitMisuse(t *testing.T) {
	type word string
	var r recorder
	out := bolt.NewCollector(t.Context(), outputs, &r)
	none := bolt.NewCollector(t.Context(), nil, &r)
	for _, tt := range []struct {
		emit func()
		want string
	}{
		{func() { out.Emit("the") }, `stream count.default has 2 fields ("word", "count"), but got 1 value`},
		{func() { out.To(1).Emit("the", 1) }, `stream count.late has 1 field ("at"), but got 2 values`},
		{func() { out.Emit("the", word("w")) }, `field "count" of stream count.default: a bolt_test.word is no value: use a built-in integer, float, bool, string, []byte, time.Time or time.Duration, or tuple.Any with a registered codec`},
		{func() { out.To(1).Emit(time.Time{}) }, `field "at" of stream count.late: time with Unix second -62135596800 is outside 1678-2262, which nanoseconds since 1970 can hold`},
		{func() { none.Emit("the") }, "the component declares no stream: add .Emits(...)"},
	} {
		func() {
			defer func() { require.EqualError(t, tuple.Misused(recover()), tt.want) }()
			tt.emit()
		}()
		require.Empty(t, r.rows)
	}
	out.Emit("whale", 1)
	require.Equal(t, []taken{{0, []any{"whale", int64(1)}, 5}}, r.rows)
}

type counter struct{ n, text int }

func (c *counter) Put(_ int, row *tuple.Row) { c.n, c.text = c.n+1, c.text+row.Text }

var (
	word  = "whale" // variables: constants never need a box
	count = 1234567
)

// The values given to Emit stay on the stack of the bolt that calls it.
func TestEmitAllocatesNothing(t *testing.T) {
	var c counter
	out := bolt.NewCollector(context.Background(), outputs, &c)
	out.Emit(word, count) // makes the collector's row
	require.Zero(t, testing.AllocsPerRun(100, func() { out.Emit(word, count) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { out.To(1).Emit(time.Duration(count)) }))
	require.Equal(t, 203, c.n)
}

func BenchmarkEmit(b *testing.B) {
	b.Run("fields=2", func(b *testing.B) {
		var c counter
		out := bolt.NewCollector(context.Background(), outputs, &c)
		b.ReportAllocs()
		for b.Loop() {
			out.Emit(word, count)
		}
	})
}

// Values are emitted as what Emit makes of them, and their slice may be used again.
func TestEmitValues(t *testing.T) {
	var r recorder
	out := bolt.NewCollector(t.Context(), outputs, &r)
	values := []tuple.Value{tuple.String("the"), tuple.Int64(1)}
	out.EmitValues(values)
	values[0] = tuple.String("cow")
	out.EmitValues(values)
	out.To(1).EmitValues([]tuple.Value{tuple.Duration(time.Minute)})
	require.Equal(t, []taken{
		{0, []any{"the", int64(1)}, 3},
		{0, []any{"cow", int64(1)}, 3},
		{1, []any{time.Minute}, 0},
	}, r.rows)
	misused := func() (err error) {
		defer func() { err = tuple.Misused(recover()) }()
		bolt.NewCollector(t.Context(), nil, &r).EmitValues(values)
		return nil
	}()
	require.ErrorContains(t, misused, "declares no stream")
}
