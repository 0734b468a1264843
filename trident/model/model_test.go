package model

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	seed     = flag.Uint64("seed", 1, "of TestStory")
	leaveOut = flag.String("off", "", "row of TestRules that TestStory is of")
)

// With all rules nothing is lost, doubled or stuck, and nothing stops without a reason.
func TestModel(t *testing.T) {
	n := uint64(2000)
	if os.Getenv("EGRET_LONG") != "" {
		n = 100_000
	}
	outcomes, saw, steps := map[string]int{}, map[string]int{}, 0
	for s := uint64(1); s <= n; s++ {
		w := newWorld(draw(s, 0), nil)
		r := w.run()
		outcomes[r.outcome]++
		steps += r.steps
		for k := range w.saw {
			saw[k]++
		}
		if !r.good() && outcomes[r.outcome] < 10 {
			t.Errorf("seed %d: %s, %s; its story: go test ./trident/model -run TestStory -seed %d -v", s, r.outcome, r.detail, s)
		}
	}
	t.Logf("%v, %d steps, seeds with: %v", outcomes, steps, saw)
	// The twin of all that: it was worth looking.
	require.Equal(t, []string{"a death", "a store that lost", "backstop", "blocked", "moved", "refused by a store", "refused by the record",
		"skipped", "stale", "unanswered", "undone", "waited for a split"}, slices.Sorted(maps.Keys(saw)))
	require.Greater(t, outcomes[fine]*10, int(n)*8)
}

// A record that is lost, and states that are not: the run ends at once and says so, and
// nobody who has been replaced can end it so.
func TestLostRecord(t *testing.T) {
	lost, halts := 0, 0
	for s := uint64(1); s <= 2000; s++ {
		c := draw(s, 0)
		resets(replacing)(&c)
		w := newWorld(c, nil)
		r := w.run()
		require.True(t, r.good(), "seed %d: %s, %s", s, r.outcome, r.detail)
		lost += w.saw["a lost record"]
		if r.outcome == halted && r.record.stopped == "store" {
			halts++
		}
	}
	t.Logf("%d records were lost, %d runs have stopped", lost, halts)
	require.Greater(t, halts*3, lost) // in many nothing was written before, or all is read after
}

// The same with the ranges of a batch that a store has already.
func TestLostFix(t *testing.T) {
	lost, halts := 0, 0
	for s := uint64(1); s <= 2000; s++ {
		c := draw(s, 0)
		unfixing(&c)
		w := newWorld(c, nil)
		r := w.run()
		require.True(t, r.good(), "seed %d: %s, %s", s, r.outcome, r.detail)
		lost += w.saw["a lost fix"]
		if r.outcome == halted && r.record.stopped == "store" {
			halts++
		}
	}
	t.Logf("%d records were put back, %d runs have stopped", lost, halts)
	require.Greater(t, halts*10, lost) // in most nothing of the batch was written
}

// A seed is the whole of a run.
func TestSeedIsARun(t *testing.T) {
	for s := uint64(1); s <= 50; s++ {
		var one, two strings.Builder
		newWorld(draw(s, 0), &one).run()
		newWorld(draw(s, 0), &two).run()
		require.Equal(t, one.String(), two.String(), "seed %d", s)
	}
}

// TestStory tells what happens in a seed, with the rules of a row left out if one is named.
func TestStory(t *testing.T) {
	r := row{}
	if *leaveOut != "" {
		i := slices.IndexFunc(rows, func(r row) bool { return r.off.String() == *leaveOut })
		require.GreaterOrEqual(t, i, 0, "no row is called %s", *leaveOut)
		r = rows[i]
	}
	c := r.config(*seed, r.off)
	t.Logf("%+v", c)
	newWorld(c, t.Output()).run()
}
