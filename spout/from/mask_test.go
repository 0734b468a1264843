package from

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
)

const secret = "4111-SECRET"

// What is masked is in no error of a source, however wrong the record is that it is in. What
// is not masked is told as ever.
func TestMaskedRecords(t *testing.T) {
	long := strings.Repeat("9", 30) // it fits in nothing
	for _, tt := range []struct {
		name, text string
		source     func(fsys fstest.MapFS) *RecordSource
		want       string
	}{
		{"int", "id,card\n1,SECRET\n", csvOf(func(s *RecordSource) { s.Int("card") }), `column "card" is •••, not a whole number`},
		{"int that is too large", "id,card\n1,SECRET" + long + "\n", csvOf(func(s *RecordSource) { s.Int("card") }), `column "card" is •••`},
		{"float", "id,card\n1,SECRET\n", csvOf(func(s *RecordSource) { s.Float("card") }), `column "card" is •••, not a number`},
		{"bool", "id,card\n1,SECRET\n", csvOf(func(s *RecordSource) { s.Bool("card") }), `column "card" is •••, neither true nor false`},
		{"time", "id,card\n1,SECRET\n", csvOf(func(s *RecordSource) { s.Time("2006", "card") }), `column "card" is •••, not a time like "2006"`},
		{"time that no tuple has", "id,card\n1,7777\n", csvOf(func(s *RecordSource) { s.Time("2006", "card") }), `column "card" is •••, a time that no tuple can hold`},
		{"another column", "id,card\nseven,SECRET\n", csvOf(func(s *RecordSource) { s.Int("id") }), `column "id" is "seven", not a whole number`},
		{"too many cells", "id,card\n1,SECRET,2\n", csvOf(nil), "3 cells where the first line names 2 columns"},
		{"too few", "id,card\nSECRET\n", csvOf(nil), "1 cell where the first line names 2 columns"},
		{"a quote", "id,card\n1,SECRET\"\n", csvOf(nil), `bare "`},
		{"no names", "1,SECRET\n2,SECRET\n", csvOf(nil), `there is no column "id"; the columns are those 2 of the first line`},
		{"no names and a quote", "1,SECRET\"\n", csvOf(nil), "the first line, which names the columns"},
		{"JSON", `{"id":1,"card":"SECRET"}`, jsonOf(func(s *RecordSource) { s.Int("card") }), `field "card" is •••, not a whole number`},
		{"JSON number", `{"id":1,"card":` + long + `}`, jsonOf(nil), `field "card" is •••, which does not fit in 64 bits`},
		{"JSON float", `{"id":1,"card":` + long + `e999}`, jsonOf(nil), `field "card" is •••, which does not fit in a float64`},
		{"JSON object", `{"id":1,"card":{"a":"SECRET"}}`, jsonOf(func(s *RecordSource) { s.Int("card") }), `field "card" is an object`},
		{"JSON syntax", `{"id":1,"card":{"SECRET":1,"SECRET":2}}`, jsonOf(nil), "duplicate"},
		{"JSON text", `{"id":"seven","card":"SECRET"}`, jsonOf(func(s *RecordSource) { s.Int("id") }), `field "id" is "seven", not a whole number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.ReplaceAll(tt.text, "SECRET", secret)
			fsys := fstest.MapFS{"f": {Data: []byte(text + "\n")}}
			streams := declared("id", "card")
			streams[0].Masked = []string{"card"}
			check := func(text string) {
				require.Contains(t, text, tt.want)
				for _, s := range []string{secret, "SECRET", "7777", long} {
					require.NotContains(t, text, s)
				}
			}
			_, err := rowsOf(tt.source(fsys), streams, 10)
			require.Error(t, err)
			check(err.Error())
			rows, err := rowsOf(tt.source(fsys).BadTo("bad"), streams, 10)
			for _, row := range rows {
				check(fmt.Sprint(row[1])) // the error; the record is masked by its stream
				require.NotEmpty(t, row[2])
			}
			require.NotEqual(t, err == nil, len(rows) == 0, err)
		})
	}

	// What is in a masked value is masked, too.
	streams := declared("all", "id", "card.number", "card")
	for _, masked := range []string{"all", "card"} {
		streams[0].Masked = []string{masked}
		fsys := fstest.MapFS{"f": {Data: []byte(`{"id":1,"card":{"number":"` + secret + `"}}` + "\n")}}
		_, err := rowsOf(JSONLinesFS(fsys, "f").Whole("all").Int("card.number"), streams, 10)
		require.ErrorContains(t, err, `field "card.number" is •••, not a whole number`)
	}
	require.Equal(t, "bad", Paced(CSV("f").BadTo("bad"), 1).(spout.Sifter).BadStream())
	require.Empty(t, Paced(Lines("f"), 1).(spout.Sifter).BadStream())
}

func csvOf(set func(*RecordSource)) func(fstest.MapFS) *RecordSource {
	return func(fsys fstest.MapFS) *RecordSource { return with(CSVFS(fsys, "f"), set) }
}

func jsonOf(set func(*RecordSource)) func(fstest.MapFS) *RecordSource {
	return func(fsys fstest.MapFS) *RecordSource { return with(JSONLinesFS(fsys, "f"), set) }
}

func with(s *RecordSource, set func(*RecordSource)) *RecordSource {
	if set != nil {
		set(s)
	}
	return s
}
