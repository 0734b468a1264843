package live

import (
	"encoding/json"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func TestTimeline(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, tt := range []struct {
		plan string
		want []deed
	}{
		{"at 20ms kill a", []deed{{at: ms(20)}}},
		{"at 99ms kill a; at 0s kill b; at 100ms kill c", []deed{{at: 0, fault: 1}, {at: ms(99)}}},
		{"every 30ms kill a", []deed{{at: ms(30)}, {at: ms(60)}, {at: ms(90)}}},
		{"every 30ms from 5ms to 65ms kill a", []deed{{at: ms(5)}, {at: ms(35)}}},
		{"pause a", []deed{{}}},
		{"from 10ms to 20ms pause a; at 20ms kill b", []deed{{at: ms(10)}, {at: ms(20), ends: true}, {at: ms(20), fault: 1}}},
		{"from 10ms to 1s pause a", []deed{{at: ms(10)}}},
		{"every 24h kill a", nil},
	} {
		p, err := chaos.Parse(tt.plan)
		require.NoError(t, err)
		require.Equal(t, tt.want, timeline(p, ms(100)), tt.plan)
	}
}

func TestSpread(t *testing.T) {
	require.Zero(t, spread(nil))
	require.Equal(t, Spread{7, 7, 7, 1}, spread([]time.Duration{7}))
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	require.Equal(t, Spread{101, 199, 200, 200}, spread(all))
}

func TestHistograms(t *testing.T) {
	var f, g Folded
	for _, n := range []uint32{0, 1, 3, 3, 4, math.MaxUint32} {
		f.add(&message{executions: n, attempts: 1, ends: 1})
	}
	g.add(&message{executions: 8, attempts: 300, ends: 2})
	g.plus(&f)
	require.EqualValues(t, 7, g.Messages)
	require.EqualValues(t, 1, g.Replayed)
	require.Equal(t, "6 once, 1 16 times and more", histogram(g.Attempts))
	require.Equal(t, "6 once, 1 twice", histogram(g.Ends))
	require.Equal(t, "1 with 0, 1 with 1, 2 with 2-3, 1 with 4-7, 1 with 8-15, 1 with 2147483648-4294967295", powers(g.Executions))
	require.Equal(t, "none", histogram(nil))
}

// What tasks add to a count in any order comes out the same, also when it is below 0 for
// a while.
func TestCounts(t *testing.T) {
	tr := &tree{}
	tr.counts = make([]atomic.Int64, 2)
	ended := func(i int) [2]any { yes, n := tr.ended(i); return [2]any{yes, n} }
	unit{tr, 1}.add(1) // emitted
	require.Equal(t, [2]any{false, uint32(0)}, ended(1))
	unit{tr, 1}.add(execution - 1) // a copy of what the first one has brought
	unit{tr, 1}.add(execution - 1)
	require.Equal(t, [2]any{false, uint32(2)}, ended(1))
	unit{tr, 1}.add(execution + 2 - 1)
	require.Equal(t, [2]any{true, uint32(3)}, ended(1))
	unit{tr, 1}.fail()
	require.Equal(t, [2]any{false, uint32(3)}, ended(1))
	require.Equal(t, [2]any{true, uint32(0)}, ended(0))
	unit{nil, 0}.add(1) // has ended long ago
	unit{nil, 0}.fail()
}

// A record does not grow with the messages of a run.
func TestFoldedMessages(t *testing.T) {
	r := newRecord()
	b := newBook(r, 0, &topology.Node{Name: "in", Source: spout.Rows()})
	b.name(0, "s")
	for i := range int64(100_000) {
		var batch spout.Batch
		var row tuple.Row
		row.Set(&tuple.Schema{Fields: []string{"n"}}, []any{i})
		batch.Append(0, &row)
		batch.Position = position(i+1, "")
		id := tuple.TreeID{Incarnation: 1, Seq: uint64(i)}
		tr, _ := b.tree(id, &batch, 0, 1, 1)
		unit{tr, 0}.add(execution - 1)
		b.verdict(&task.Verdict{Tree: id, Batch: &batch, N: 1, Outcome: acker.Done})
		if i%100 == 99 {
			b.committed(0, i+1)
		}
	}
	require.Empty(t, b.trees)
	require.Less(t, len(b.splits[0].messages), 2000)
	require.LessOrEqual(t, cap(b.splits[0].messages), 4096)
	b.close(true)
	require.EqualValues(t, 100_000, b.folded.Messages)
	require.Zero(t, b.lost)
	require.Empty(t, r.violations)
}

// Faults that are too close for it to be said which of them has cost what.
func TestTogether(t *testing.T) {
	var all []*harm
	for _, x := range []struct {
		ms   int
		task string
	}{{0, "a/0"}, {10, "a/1"}, {60, "b/0"}, {109, "a/0"}, {200, "a/1"}, {210, "a/0"}, {249, "b/1"}, {400, "b/0"}} {
		all = append(all, &harm{Done: Done{At: time.Duration(x.ms) * time.Millisecond, Fault: chaos.Fault{Kind: chaos.Kill}, Task: x.task}})
	}
	require.Equal(t, []bool{false, false, true, true, true, true, true, false}, together(all))
	require.Equal(t, 3, recoveries(all)[0].Close)
	require.Empty(t, together(nil))
}

// A report says what it has not measured, and not that it was 0.
func TestNotMeasured(t *testing.T) {
	var r, back Report
	r.Rates = Rates{Before: unmeasured, During: 0, After: unmeasured, Least: unmeasured, Good: unmeasured}
	r.Plan = make(chaos.Plan, 0)
	for range 7 {
		r.Plan = append(r.Plan, chaos.Fault{Kind: chaos.Pause, Who: chaos.Who{Component: "in", Task: chaos.One}})
	}
	r.Planned = 90_000
	r.Done = make([]Done, 7116)
	text, err := json.Marshal(r.Rates)
	require.NoError(t, err)
	require.JSONEq(t, `{"before":null,"during":0,"after":null,"least_during":null,"at_80_percent":null,"again_ns":null}`, string(text))
	require.NoError(t, json.Unmarshal(text, &back.Rates))
	require.False(t, back.Rates.Before.Measured())
	require.True(t, back.Rates.During.Measured())
	var b strings.Builder
	r.Print(&b)
	require.Contains(t, b.String(), "before not measured, during 0, after not measured\n")
	require.NotContains(t, b.String(), "NaN")
	require.NotContains(t, b.String(), "%!")
	require.Contains(t, b.String(), "7,116 of 90,000 done: ")
	require.Contains(t, b.String(), "; and 2 more\n")
}

// Of what is not known any more by its place, the values tell which one has died.
func TestOthersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOthers()
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			key := other{tuple.Incarnation(rapid.IntRange(1, 3).Draw(t, "life")), 1, rapid.IntRange(0, 5).Draw(t, "index")}
			text := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				o.message(key, true)
			case 1:
				o.fails(key, text)
			case 2:
				if o.ends(key) {
					o.own.Done++
				}
			case 3:
				o.dies(text)
			case 4:
				o.died(key.life)
			}
			require.Equal(t, o.own.Messages, o.own.ended()+int64(len(o.all)))
			failed := 0
			for text, keys := range o.failed {
				require.NotEmpty(t, keys)
				for _, k := range keys {
					require.Equal(t, text, o.all[k].text)
					failed++
				}
			}
			for _, m := range o.all {
				if m.text != "" {
					failed--
				}
			}
			require.Zero(t, failed)
		}
	})
}

// A message that comes again is the same one by its values; of one life it has to be.
func TestValues(t *testing.T) {
	for _, tt := range []struct {
		life     tuple.Incarnation // of the second emission
		value    int64
		unsteady bool
		wrong    int
	}{{1, 5, false, 0}, {1, 6, false, 1}, {2, 5, false, 0}, {2, 6, true, 0}} {
		r := newRecord()
		b := newBook(r, 0, &topology.Node{Name: "in", Source: spout.Rows()})
		b.name(0, "s")
		emit := func(life tuple.Incarnation, seq uint64, value int64) {
			var batch spout.Batch
			var row tuple.Row
			row.Set(&tuple.Schema{Fields: []string{"n"}}, []any{value})
			batch.Append(0, &row)
			batch.Position = position(1, "")
			b.tree(tuple.TreeID{Incarnation: life, Seq: seq}, &batch, 0, 1, 1)
		}
		emit(1, 1, 5)
		if tt.life > 1 {
			b.died(1)
		}
		emit(tt.life, 2, tt.value)
		require.Equal(t, tt.unsteady, b.splits[0].unsteady, "%+v", tt)
		require.Len(t, r.violations, tt.wrong)
	}
}
