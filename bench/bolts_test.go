package bench

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// input makes a tuple of the stream that s sends.
func input(s stamps, what string, values ...any) tuple.Tuple {
	schema := &tuple.Schema{Component: "lines", Stream: "default", Fields: s.fields(what)}
	var row tuple.Row
	row.Set(schema, values)
	p := &tuple.Parcel{Schema: schema}
	p.Begin(row.Kinds, 1)
	p.Append(&row)
	return p.Tuple(0)
}

func collector(t *testing.T, s stamps, what string, sink bolt.Sink) *bolt.Collector {
	return bolt.NewCollector(t.Context(), []*tuple.Schema{{Component: "x", Stream: "default", Fields: s.fields(what)}}, sink)
}

var passing = []struct {
	name   string
	bolt   each
	stamps stamps
	out    string // what it emits
	in     []any
	want   [][]string
}{
	{"identity", identity, emitted, "line", []any{"a b", 7}, [][]string{{"a b", "7"}}},
	{"identity due", identityDue, emittedDue, "line", []any{"a b", 7, 5}, [][]string{{"a b", "7", "5"}}},
	{"split", split, noStamp, "word", []any{"a b a"}, [][]string{{"a"}, {"b"}, {"a"}}},
	{"split emitted", splitEmitted, emitted, "word", []any{"a b", 7}, [][]string{{"a", "7"}, {"b", "7"}}},
	{"split due", splitDue, emittedDue, "word", []any{"a b", 7, 5}, [][]string{{"a", "7", "5"}, {"b", "7", "5"}}},
}

func TestBoltsPassOn(t *testing.T) {
	for _, tt := range passing {
		t.Run(tt.name, func(t *testing.T) {
			var got rows
			require.NoError(t, tt.bolt.Execute(input(tt.stamps, "line", tt.in...), collector(t, tt.stamps, tt.out, &got)))
			require.Equal(t, tt.want, got.got)
		})
	}
}

type discard struct{}

func (discard) Put(int, *tuple.Row) {}

// The bench has to show what the engine allocates, and so allocates nothing.
func TestBoltsAllocateNothing(t *testing.T) {
	for _, tt := range passing {
		in, out := input(tt.stamps, "line", tt.in...), collector(t, tt.stamps, tt.out, discard{})
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = tt.bolt.Execute(in, out) }), tt.name)
	}
	p := newProbe()
	p.begin()
	word := input(emittedDue, "word", "a", p.clock.now(), 1)
	b := &countBolt{p.counter(), p.sink(emittedDue)}
	require.NoError(t, b.Execute(word, nil)) // the first sight of a word
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Execute(word, nil) }))
}

func TestCountBoltKeepsItsWords(t *testing.T) {
	p := newProbe()
	b := &countBolt{p.counter(), p.sink(noStamp)}
	text := []byte("abc")
	require.NoError(t, b.Execute(input(noStamp, "word", unsafe.String(&text[0], 3)), nil))
	copy(text, "xyz") // as if the parcel's text were gone
	require.NoError(t, b.Execute(input(noStamp, "word", "abc"), nil))
	require.Equal(t, int64(2), *b.counts["abc"])
	require.Equal(t, digest([]counts{b.counts}), p.digest())
}

func TestProbeCountsTheTimedPhase(t *testing.T) {
	p := newProbe()
	b := &nullBolt{p.sink(emitted)}
	see := func(at int64) { require.NoError(t, b.Execute(input(emitted, "line", "x", at), nil)) }
	count := func() int64 {
		if l, _ := p.latencies(); l != nil {
			return l.Count
		}
		return 0
	}
	warm := p.clock.now()
	see(warm)
	require.Zero(t, count(), "before the phase")
	p.begin()
	see(warm)
	see(0)
	require.Zero(t, count(), "emitted before it, or not stamped")
	in := p.clock.now()
	see(in)
	require.EqualValues(t, 1, count())
	p.finish()
	see(in)
	require.EqualValues(t, 2, count(), "under way when it ended")
	see(p.clock.now())
	require.EqualValues(t, 2, count(), "emitted after it")
}

func TestProbeTellsBothLatencies(t *testing.T) {
	p := newProbe()
	p.clock.start = time.Now().Add(-time.Hour)
	p.from.Store(1)
	b := &nullBolt{p.sink(emittedDue)}
	now := p.clock.now()
	require.NoError(t, b.Execute(input(emittedDue, "line", "x", now-int64(time.Minute), now-int64(2*time.Minute)), nil))
	e, d := p.latencies()
	require.Greater(t, e.P50, 60e6)
	require.Less(t, e.P50, 120e6)
	require.Greater(t, d.P50, 120e6)
}
