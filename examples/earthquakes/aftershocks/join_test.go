package aftershocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

const hour = time.Hour

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04") }

var usual = rule{strong: 4.5, within: 100, window: 24 * hour, lateness: 168 * hour}

// A trial is a run of the example's bolts in this process.
type trial struct {
	rule
	lines  []string
	config egret.Config
	wrap   map[string]func(bolt.Factory) bolt.Factory // by component
	fails  bool                                       // each pair, once

	mu    sync.Mutex
	table strings.Builder
	pairs map[string]bool // strong id, blank, aftershock id
	late  map[string]bool // ids
}

func (tr *trial) run(t *testing.T) (s *egret.Stats) {
	tr.pairs, tr.late = map[string]bool{}, map[string]bool{}
	wrapped := func(component string, f bolt.Factory) bolt.Factory {
		if wrap := tr.wrap[component]; wrap != nil {
			return wrap(f)
		}
		return f
	}
	see := func(f func(in tuple.Tuple) error) bolt.Factory {
		return bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			return f(in)
		})
	}
	failed := map[string]bool{}
	file := fstest.MapFS{"f": {Data: []byte(strings.Join(tr.lines, "\n"))}}
	tr.config.Logger = slog.New(slog.DiscardHandler)
	synctest.Test(t, func(t *testing.T) {
		var err error
		s, err = egret.Run(t.Context(), topology.New("trial", func(b *topology.Builder) {
			quakes := b.Spout("quakes", from.JSONLinesFS(file, "f").Int("time").Float("mag", "lat", "lon")).
				Emits("id", "time", "mag", "place", "lat", "lon")
			grid := b.Bolt("grid", wrapped("grid", tr.newGrid), quakes.Shuffle()).
				Emits("cell", "id", "time", "mag", "place", "lat", "lon").
				EmitsTo("strong", "cell", "id", "time", "mag", "place", "lat", "lon")
			pairs := b.Bolt("join", wrapped("join", tr.newJoin), grid.By("cell"), grid.Stream("strong").By("cell")).
				Emits("id", "time", "mag", "place", "aftershock", "size").EmitsTo("late", "id").
				Holds(tr.window + tr.lateness + sweeping)
			table := b.Bolt("table", tr.newTable, pairs.Global(), pairs.Stream("late").Global()).Emits("line")
			b.Bolt("print", see(func(in tuple.Tuple) error {
				fmt.Fprintln(&tr.table, in.String("line"))
				return nil
			}), table.Global())
			b.Bolt("pairs", see(func(in tuple.Tuple) error {
				after := in.Value("aftershock")
				if after.IsNil() {
					return nil
				}
				pair := in.String("id") + " " + after.String()
				if tr.fails && !failed[pair] {
					failed[pair] = true
					return errors.New("not now")
				}
				tr.pairs[pair] = true
				return nil
			}), pairs.Shuffle())
			b.Bolt("late", see(func(in tuple.Tuple) error {
				tr.late[in.String("id")] = true
				return nil
			}), pairs.Stream("late").Shuffle())
		}), tr.config)
		require.NoError(t, err)
	})
	require.Zero(t, s.Dead)
	require.Zero(t, s.TimedOut)
	return s
}

// shuffled returns the lines in another order.
func shuffled(lines []string, seed uint64) []string {
	lines = slices.Clone(lines)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(lines), func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
	return lines
}

// The answer does not depend on the order of the file, nor on how the work is
// divided and what travels how.
func TestAnyOrder(t *testing.T) {
	lines := bundled(t)
	want := plainTable(decode(t, lines), 4.5, 100, 24)
	for seed, config := range []egret.Config{
		{},
		{TreeSize: 1, ParcelSize: 1},
		{AlwaysEncode: true, Parallel: map[string]int{"join": 3, "grid": 2}},
		{TreeSize: 7, ParcelSize: 3, AlwaysEncode: true, Parallel: map[string]int{"join": 5}},
		{MaxPending: 100}, // doubled until all is there that waits for others
	} {
		tr := &trial{rule: usual, lines: shuffled(lines, uint64(seed)), config: config}
		s := tr.run(t)
		require.Equal(t, want, tr.table.String())
		require.Zero(t, s.Replayed)
		require.Empty(t, tr.late)
	}
}

// plainPairs finds the pairs of the usual rule.
func plainPairs(all []plain) map[string]bool {
	pairs := map[string]bool{}
	for _, s := range all {
		for _, q := range all {
			if s.Mag >= 4.5 && q.Time > s.Time && q.Time <= s.Time+24*3.6e6 && arc(s, q) <= 100 {
				pairs[s.ID+" "+q.ID] = true
			}
		}
	}
	return pairs
}

// Both of a pair come again when it fails, though the join has let go of them by
// then; and what has come twice is counted once.
func TestPairsFail(t *testing.T) {
	lines := bundled(t)
	all := decode(t, lines)
	for _, tree := range []int{1, 256} {
		tr := &trial{rule: usual, lines: lines, fails: true, config: egret.Config{TreeSize: tree}}
		s := tr.run(t)
		require.Equal(t, plainPairs(all), tr.pairs)
		require.Equal(t, plainTable(all, 4.5, 100, 24), tr.table.String())
		require.Positive(t, s.Replayed)
	}
}

// A mortal is a bolt whose lives end at some of the tuples that it is given, and
// after its first Flush.
type mortal struct {
	bolt.Bolt
	shared *fate
}

// A fate is what the lives of a mortal have in common.
type fate struct {
	mu       sync.Mutex
	executed int
	ends     []int // numbers of tuples
	flushed  bool
}

func (f *fate) wrap(inner bolt.Factory) bolt.Factory {
	return func() bolt.Bolt { return mortal{inner(), f} }
}

func (m mortal) Prepare(ctx context.Context, task *bolt.Task) error {
	return m.Bolt.(bolt.Preparer).Prepare(ctx, task)
}

func (m mortal) Execute(in tuple.Tuple, out *bolt.Collector) error {
	m.shared.mu.Lock()
	m.shared.executed++
	dies := slices.Contains(m.shared.ends, m.shared.executed)
	m.shared.mu.Unlock()
	err := m.Bolt.Execute(in, out)
	if dies {
		panic("with what it holds")
	}
	return err
}

func (m mortal) Flush(out *bolt.Collector) error {
	err := m.Bolt.(bolt.Flusher).Flush(out)
	m.shared.mu.Lock()
	first := !m.shared.flushed
	m.shared.flushed = true
	m.shared.mu.Unlock()
	if first {
		panic("after it has let go of all")
	}
	return err
}

func (m mortal) Finish(out *bolt.Collector) error {
	if f, is := m.Bolt.(bolt.Finisher); is {
		return f.Finish(out)
	}
	return nil
}

// No pair is missing, and none is counted twice, when tasks die that hold one half of
// it, or both.
func TestDeaths(t *testing.T) {
	lines := bundled(t)
	want := plainTable(decode(t, lines), 4.5, 100, 24)
	for _, config := range []egret.Config{
		{},
		{TreeSize: 1, AlwaysEncode: true, Parallel: map[string]int{"join": 2}},
		{TreeSize: 16, ParcelSize: 8, Parallel: map[string]int{"join": 3, "grid": 2}},
	} {
		grids, joins := &fate{ends: []int{300, 1500}, flushed: true}, &fate{ends: []int{200, 1000, 3000}}
		tr := &trial{rule: usual, lines: lines, config: config, wrap: map[string]func(bolt.Factory) bolt.Factory{
			"grid": grids.wrap, "join": joins.wrap}}
		s := tr.run(t)
		require.Equal(t, want, tr.table.String())
		require.EqualValues(t, 6, s.Restarts)
		require.Positive(t, s.Lost)
		require.True(t, joins.flushed)
	}
}

// A watched join is looked at when its clock has moved.
type watched struct {
	*join
	mu                    *sync.Mutex
	most, flushed, sweeps *int
}

func (w watched) Execute(in tuple.Tuple, out *bolt.Collector) error {
	was, latest := w.swept, w.latest
	err := w.join.Execute(in, out)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.swept.Equal(was) {
		*w.sweeps++
	}
	if w.latest.Equal(latest) {
		return err
	}
	*w.most = max(*w.most, w.held())
	for _, c := range w.cells {
		for _, held := range slices.Concat(c.strong, c.quakes) {
			if over := w.latest.Sub(held.until); over > hour {
				return bolt.Reject(fmt.Errorf("held for %v longer than any other could come", over))
			}
		}
	}
	return err
}

func (w watched) Flush(out *bolt.Collector) error {
	w.mu.Lock()
	*w.flushed += w.held()
	w.mu.Unlock()
	return w.join.Flush(out)
}

func (j *join) held() (n int) {
	for _, c := range j.cells {
		n += len(c.strong) + len(c.quakes)
	}
	return n
}

// With little lateness little is held; nothing is missing of what comes in time,
// and of each pair that is missing one has been called late.
func TestLateness(t *testing.T) {
	lines := bundled(t)
	all := decode(t, lines)
	byTime := slices.Clone(lines)
	at := map[string]int64{}
	for i, q := range all {
		at[lines[i]] = q.Time
	}
	slices.SortStableFunc(byTime, func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	right := plainPairs(all)
	require.Len(t, right, 105)
	for _, tt := range []struct {
		name     string
		lines    []string
		lateness time.Duration
		inTime   bool // all quakes come in time
		mostHeld int
	}{
		{"in order", byTime, 0, true, 300},
		{"as they came", lines, 160 * hour, true, 3000}, // the latest is 159.8 h behind
		{"somewhat late", lines, 24 * hour, false, 1000},
		{"all are late", shuffled(lines, 1), 0, false, 3000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var most, flushed, sweeps int
			r := usual
			r.lateness = tt.lateness
			// Parcels of one tuple keep the order of the two streams between two tasks.
			tr := &trial{rule: r, lines: tt.lines, config: egret.Config{ParcelSize: 1}, wrap: map[string]func(bolt.Factory) bolt.Factory{
				"join": func(f bolt.Factory) bolt.Factory {
					return func() bolt.Bolt { return watched{f().(*join), &mu, &most, &flushed, &sweeps} }
				}}}
			tr.run(t)
			most = max(most, flushed)
			t.Logf("%d pairs, %d late, at most %d held, %d when nothing more came, %d sweeps", len(tr.pairs), len(tr.late), most, flushed, sweeps)
			require.LessOrEqual(t, most, tt.mostHeld)
			require.Positive(t, sweeps)
			require.Subset(t, right, tr.pairs)
			came, latest := map[string]int64{}, int64(0) // the latest when each came
			order := map[string]int{}
			for i, q := range decode(t, tt.lines) {
				latest = max(latest, q.Time)
				came[q.ID], order[q.ID] = latest, i
			}
			for pair := range right {
				if tr.pairs[pair] {
					continue
				}
				s, q, _ := strings.Cut(pair, " ")
				first, second, held := q, s, tt.lateness
				if order[s] < order[q] {
					first, second, held = s, q, held+24*hour
				}
				require.True(t, tr.late[second], "%s is missing, and %s was not late", pair, second)
				require.Greater(t, came[second]-came[first], held.Milliseconds(), "%s should have been held until %s came", first, second)
			}
			if tt.inTime {
				require.Equal(t, right, tr.pairs)
				require.Empty(t, tr.late)
				require.Equal(t, plainTable(all, 4.5, 100, 24), tr.table.String())
			} else {
				require.NotEmpty(t, tr.late)
				require.Contains(t, tr.table.String(), fmt.Sprintf("\n%d quakes came later than %v hours behind", len(tr.late), tt.lateness.Hours()))
			}
		})
	}
}

// Quakes within the distance of each other share exactly one cell.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rule{within: rapid.OneOf(rapid.Float64Range(0.1, 500), rapid.Float64Range(500, halfway)).Draw(t, "within")}
		g := r.newGrid().(*grid)
		lat := rapid.OneOf(rapid.Float64Range(-90, 90), rapid.SampledFrom([]float64{-90, 90, 0, 89.5, -89.5, 45}))
		lon := rapid.OneOf(rapid.Float64Range(-180, 180), rapid.SampledFrom([]float64{-180, 180, 0, 179.9, -179.9}))
		if top := 90 - r.within/degree; top > 0 { // circles that touch a pole, or almost
			lat = rapid.OneOf(lat, rapid.SampledFrom([]float64{top, -top, top - 1e-9, 1e-9 - top, top - 2e-9, 2e-9 - top}))
		}
		s := plain{Lat: lat.Draw(t, "lat"), Lon: lon.Draw(t, "lon")}
		q := plain{Lat: lat.Draw(t, "lat"), Lon: lon.Draw(t, "lon")}
		if rapid.Bool().Draw(t, "near") {
			reach := r.within / degree * 1.1
			q.Lat = min(90, max(-90, s.Lat+reach*rapid.Float64Range(-1, 1).Draw(t, "north")))
			q.Lon = s.Lon + min(180, reach*20)*rapid.Float64Range(-1, 1).Draw(t, "east")
			if q.Lon > 180 {
				q.Lon -= 360
			} else if q.Lon < -180 {
				q.Lon += 360
			}
		}
		cells := g.around(s.Lat, s.Lon)
		slices.Sort(cells)
		if twice := slices.Clone(cells); len(slices.Compact(twice)) != len(cells) {
			t.Fatalf("%v: a cell is there twice in %v", s, cells)
		}
		if _, found := slices.BinarySearch(cells, g.cell(g.row(q.Lat), g.column(q.Lon))); !found && arc(s, q) <= r.within {
			t.Fatalf("%v and %v are %v km apart and share no cell", s, q, arc(s, q))
		}
	})
	// Away from the poles there are few cells.
	require.LessOrEqual(t, len(usual.newGrid().(*grid).around(24, 121)), 9)
	require.LessOrEqual(t, len(usual.newGrid().(*grid).around(-90, 0)), 2*360)
}
