package postgres_test

import (
	"context"
	"log/slog"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/postgres"
	"github.com/egretstream/egret/state/postgres/postgrestest"
	"github.com/egretstream/egret/trident"
)

type place struct {
	Airport string
	Gate    int64
}

type every struct {
	No, Yes    bool
	Least      int64
	Most       uint64
	Text       string
	Bytes      []byte
	At, Before time.Time
	Took       time.Duration
	None       *int64
}

// What a state has written is read by the SQL that the documentation shows.
func TestReadBySQL(t *testing.T) {
	url := postgrestest.Start(t)
	back := postgres.URL(url)
	long := strings.Repeat("é", 100) // two bytes of length
	all := every{false, true, math.MinInt64, math.MaxUint64, "a 'b' \\ {é}", []byte{0, 255},
		time.Date(2026, 11, 30, 7, 0, 0, 123456789, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC), -time.Second, nil}
	floats := []float64{0, 1.5, -0.1, math.MaxFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022, math.Inf(-1), math.NaN()}
	_, err := egret.Run(t.Context(), trident.New("wordcount", func(b *trident.Builder) {
		in := trident.From[string](b, "in", spout.Slice("whale", "ship", "whale", long))
		trident.PersistentAggregate(trident.GroupBy(in, trident.Identity), trident.StateOf[string, int64]("counts", back, trident.Opaque), trident.Count[string]())
		trident.PersistentAggregate(trident.GroupBy(in, func(s string) place { return place{"VIE", int64(len(s)) - 17} }),
			trident.StateOf[place, int64]("places", back, trident.Opaque), trident.Count[string]())
		trident.Update(in.GroupAll(), trident.StateOf[struct{}, every]("every", back, trident.Opaque),
			func(struct{}, every, bool, []string) every { return all })
		n := trident.From[int64](b, "n", spout.Generate(int64(len(floats)), func(i int64, out *spout.Out) { out.Emit(i) }))
		trident.Update(trident.GroupBy(n, trident.Identity), trident.StateOf[int64, float64]("floats", back, trident.Opaque),
			func(i int64, _ float64, _ bool, _ []int64) float64 { return floats[i] })
	}), egret.Config{StateDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	text := func(sql string, args ...any) (s string) {
		t.Helper()
		require.NoError(t, c.QueryRow(t.Context(), sql, args...).Scan(&s), sql)
		return s
	}

	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?m)^//\tSELECT .*\n(//\t.*\n)*`).FindAllString(string(doc), -1)
	require.Len(t, shown, 2)
	for i, want := range [][]any{{"whale", int64(2)}, {"VIE", int64(-12), int64(2)}} {
		rows, err := c.Query(t.Context(), strings.ReplaceAll(shown[i], "//\t", ""))
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
		require.NoError(t, err)
		require.Equal(t, [][]any{want}, got)
	}
	require.Equal(t, "1", text("SELECT (egret.fields(value))[1] FROM egret.committed WHERE state = 'counts' AND key = egret.text_key($1)", long))
	require.Equal(t, long, text("SELECT (egret.fields(egret.text_key($1)))[1]", long))
	var fields []*string
	require.NoError(t, c.QueryRow(t.Context(), "SELECT egret.fields(value) FROM egret.committed WHERE state = 'every'").Scan(&fields))
	var got []string
	for _, f := range fields[:9] {
		got = append(got, *f)
	}
	require.Equal(t, []string{"false", "true", "-9223372036854775808", "18446744073709551615", all.Text, "00ff",
		"2026-11-30T07:00:00.123456789Z", "1969-12-31T23:59:59.999999999Z", "-1000000000"}, got)
	require.Len(t, fields, 10)
	require.Nil(t, fields[9])
	for i, want := range floats {
		var got float64
		require.NoError(t, c.QueryRow(t.Context(), "SELECT (egret.fields(value))[1]::float8 FROM egret.committed WHERE state = 'floats' AND key = egret.int_key($1)", i).Scan(&got))
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got))
		} else {
			require.Equal(t, want, got)
		}
	}
	for _, n := range []int64{math.MinInt64, -64, 63, 64, math.MaxInt64} {
		var back int64
		require.NoError(t, c.QueryRow(t.Context(), "SELECT (egret.fields(egret.int_key($1)))[1]::bigint", n).Scan(&back))
		require.Equal(t, n, back)
	}
	for sql, want := range map[string]string{`\x0a00`: "kind 10", `\x05056162`: "cut off"} {
		_, err := c.Exec(t.Context(), "SELECT egret.fields($1::text::bytea)", sql)
		require.ErrorContains(t, err, want)
	}
}
