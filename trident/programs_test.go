package trident_test

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// unzipped opens a file of the examples.
func unzipped(t *testing.T, name string) *gzip.Reader {
	f, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	return z
}

// first writes the first lines of a file of the examples to a file of its own.
func first(t *testing.T, name, to string, lines int) string {
	var text strings.Builder
	s := bufio.NewScanner(unzipped(t, name))
	s.Buffer(nil, 16<<20)
	for i := 0; i < lines && s.Scan(); i++ {
		text.WriteString(s.Text() + "\n")
	}
	path := t.TempDir() + "/" + to
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

type flight struct {
	Scheduled time.Time
	Origin    string
	DelayMin  *int64 // nil: it did not fly
}

type airportDay struct {
	Day    string
	Origin string
}

type traffic struct{ Flights, Cancelled int64 }

func (t traffic) plus(o traffic) traffic {
	return traffic{t.Flights + o.Flights, t.Cancelled + o.Cancelled}
}

type busiest struct {
	Origin    string
	Flights   int64
	Cancelled int64
}

func (b busiest) or(o busiest) busiest {
	if o.Flights > b.Flights || o.Flights == b.Flights && (o.Origin < b.Origin || o.Origin == b.Origin && o.Cancelled > b.Cancelled) {
		return o
	}
	return b
}

// The busiest airport of each day, with what was cancelled there: two aggregates of a
// batch are joined, their sum is a state, and behind that is another one.
func TestBusiestAirports(t *testing.T) {
	path := first(t, "../examples/flights/delays/flights.csv.gz", "flights.csv", 6000)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	records, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	sums, want := map[airportDay]traffic{}, map[string]busiest{}
	for _, r := range records[1:] {
		k := airportDay{r[0][:10], r[3]}
		s := traffic{Flights: 1}
		if r[1] == "" {
			s.Cancelled = 1
		}
		sums[k] = sums[k].plus(s)
	}
	for k, s := range sums {
		want[k.Day] = busiest{k.Origin, s.Flights, s.Cancelled}.or(want[k.Day])
	}
	require.NotEmpty(t, want)

	back := memory.New()
	traffics := trident.StateOf[airportDay, traffic]("traffic", back, trident.Opaque).Cached(100)
	best := trident.StateOf[string, busiest]("busiest", back, trident.Opaque)
	top := trident.New("flights", func(b *trident.Builder) {
		source := from.CSV(path).Time("2006-01-02T15:04", "scheduled").Int("delay_min")
		flights := trident.From[flight](b, "flights", source)
		where := func(f flight) airportDay { return airportDay{f.Scheduled.Format(time.DateOnly), f.Origin} }
		all := trident.Aggregate(trident.GroupBy(flights, where), trident.Count[flight]()).Name("departures")
		off := trident.Aggregate(trident.GroupBy(flights.Filter(func(f flight) bool { return f.DelayMin == nil }), where), trident.Count[flight]()).Name("cancelled")
		type count = trident.Pair[airportDay, int64]
		key := func(c count) airportDay { return c.Key }
		both := trident.LeftJoin(trident.GroupBy(all, key), trident.GroupBy(off, key),
			func(k airportDay, all, off count, _ bool) trident.Pair[airportDay, traffic] {
				return trident.Pair[airportDay, traffic]{Key: k, Value: traffic{all.Value, off.Value}}
			}).Parallel(2)
		changed := trident.PersistentAggregate(
			trident.GroupBy(both, func(p trident.Pair[airportDay, traffic]) airportDay { return p.Key }), traffics,
			trident.Combiner[trident.Pair[airportDay, traffic], traffic]{
				Init:    func(p trident.Pair[airportDay, traffic]) traffic { return p.Value },
				Combine: traffic.plus,
			}).Parallel(3)
		trident.PersistentAggregate(
			trident.GroupBy(changed, func(p trident.Pair[airportDay, traffic]) string { return p.Key.Day }), best,
			trident.Combiner[trident.Pair[airportDay, traffic], busiest]{
				Init: func(p trident.Pair[airportDay, traffic]) busiest {
					return busiest{p.Key.Origin, p.Value.Flights, p.Value.Cancelled}
				},
				Combine: busiest.or,
			})
	})
	d := newDrive(t, 5, top, topology.Options{})
	d.size, d.trouble = 400, 4000
	d.run()
	require.Equal(t, sums, contents(t, traffics, "flights"))
	require.Equal(t, want, contents(t, best, "flights"))
	t.Logf("%d batches, %d rounds", d.done, d.rounds)
}

type speech struct {
	Speaker string
	Text    string
}

type vote struct {
	Speaker string
	Points  int
}

// good and bad are words that a speaker gets a point for, or loses one.
func points(list string, n int) func(speech, func(vote)) {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		words[w] = true
	}
	return func(s speech, emit func(vote)) {
		for w := range strings.FieldsSeq(strings.ToLower(s.Text)) {
			if words[strings.Trim(w, ".,;:")] {
				emit(vote{s.Speaker, n})
			}
		}
	}
}

// The net score of each speaker: two streams are merged and folded.
func TestNetScores(t *testing.T) {
	path := first(t, "../examples/speeches/portraits/speeches.ndjson.gz", "speeches.ndjson", 20)
	praise, blame := points("peace hope freedom good great", 1), points("war fear crisis bad debt", -1)
	want := map[string]int64{}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var s speech
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		add := func(v vote) { want[v.Speaker] += int64(v.Points) }
		praise(s, add)
		blame(s, add)
	}
	require.Greater(t, len(want), 2)

	scores := trident.StateOf[string, int64]("scores", memory.New(), trident.Opaque)
	top := trident.New("speeches", func(b *trident.Builder) {
		speeches := trident.From[speech](b, "speeches", from.JSONLines(path))
		votes := trident.Merge(
			trident.FlatMap(speeches, praise).Name("praise"),
			trident.FlatMap(speeches.Shuffle(), blame).Name("blame").Parallel(2))
		trident.PersistentReduce(trident.GroupBy(votes, func(v vote) string { return v.Speaker }), scores, trident.Reducer[vote, int64]{
			Zero:   func() int64 { return 0 },
			Reduce: func(n int64, v vote) int64 { return n + int64(v.Points) },
		}).Parallel(2)
	})
	d := newDrive(t, 3, top, topology.Options{})
	d.size, d.trouble = 5, 3000
	d.run()
	require.Equal(t, want, contents(t, scores, "speeches"))
	t.Logf("%d batches, %d rounds", d.done, d.rounds)
}

// A commit runs beside the tuples of later batches, which the race detector looks at.
func TestCommitsRunBeside(t *testing.T) {
	lines := bookLines(t, 600)
	for seed := range uint64(3) {
		counts := trident.StateOf[string, int64]("counts", memory.New(), trident.Opaque).Cached(200)
		d := newDrive(t, seed, wordcount(lines, counts, trident.Opaque, true), topology.Options{})
		d.size, d.trouble, d.beside = 30, 5000, true
		d.run()
		require.Equal(t, plainCount(lines), contents(t, counts, "wordcount"))
	}
}
