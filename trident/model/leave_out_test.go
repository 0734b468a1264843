package model

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row leaves out rules, and says which seed is the first to notice.
type row struct {
	off    set
	set    func(*config) // what the seeds have in common, nil for nothing
	first  uint64
	silent string // why nobody notices it, "" for rules that must be noticed
}

func likely(h harm) func(*config) {
	return func(c *config) { c.likely, c.faults = h, 8 }
}

// honest stores lose nothing: what goes wrong is not what T15 is there for.
func honest(h harm) func(*config) {
	return func(c *config) { c.likely, c.faults, c.stores, c.memory = h, 8, false, false }
}

func ageingStores(c *config) {
	c.likely, c.faults, c.stores, c.fixed, c.memory = crashing, 8, true, false, false
}

func fixedRanges(h harm) func(*config) {
	return func(c *config) { c.fixed, c.shape, c.likely, c.faults = true, plain, h, 8 }
}

// resets is a record that is lost, on states of stores that lose nothing.
func resets(h harm) func(*config) {
	return func(c *config) {
		c.likely, c.faults, c.stores, c.memory, c.fixed, c.resets = h, 8, false, false, false, true
	}
}

// unfixing is a record that is put back as it was before it had ranges.
func unfixing(c *config) {
	c.fixed, c.shape, c.likely, c.faults, c.stores, c.memory, c.unfix = true, plain, killing, 8, false, false, true
}

func peaceful(c *config) { c.faults, c.poison, c.shape = 0, -1, reads }

var rows = []row{
	{without(roundOnly), likely(replacing), 27, ""},
	{without(readBeforeEpoch), likely(replacing), 9, ""},
	{without(failAtOnce), nil, 101, ""},
	{without(roundDuringAppend), nil, 78, ""},
	{without(unknownIsRefused), nil, 10, ""},
	{without(noBarrier), nil, 8, ""},
	{without(noView), likely(killing), 4387, ""},
	{without(noSender), likely(killing), 1, "joined and the view say it already: a zombie sends to lives of its own round"},
	{without(noOrder), nil, 1, ""},
	{without(markerWhereTuples), nil, 1, ""},
	{without(firstMarker), nil, 1, ""},
	{without(dropSilently), likely(corrupting), 2, ""},
	{without(noBackstop), nil, 3, ""},
	{without(staleKeepsCredit), nil, 27, ""},
	{without(keepTotal), nil, 90, ""},
	{without(heldKeepsCredit), peaceful, 3, ""},
	{without(markerNotInOrder), nil, 6, ""},
	{without(noEpoch), likely(replacing), 10, ""},
	{without(noTxid), likely(replacing), 150, ""},
	{without(recordFirst), nil, 1, ""},
	{without(wroteBeforeDurable), likely(crashing), 9, ""},
	{without(commitAhead), nil, 51, ""},
	{without(noReady), nil, 1, "a state writes only what is complete, and what is written too early is undone"},
	{without(noFence), nil, 235, ""},
	{without(fenceOutside), likely(killing), 87, ""},
	{without(fenceOutside, noCheck), honest(killing), 87, ""},
	{without(fenceNoIncarnation), likely(killing), 1, "a round names one incarnation of each task"},
	{without(joinedEarly), likely(crashing), 2883, ""},
	{without(joinedEarly, noCheck), honest(crashing), 2883, ""},
	{without(noChecksum), likely(crashing), 16, ""},
	{without(anyOlder), ageingStores, 47, ""},
	{without(noUndo, noCheck), honest(killing), 10, ""},
	{without(noUndo), honest(killing), 10, ""},
	{without(undoToTxid), nil, 47, ""},
	{without(noFix), fixedRanges(killing), 16, ""},
	{without(noFix, aheadUnfixed), fixedRanges(killing), 16, ""},
	{without(fixChanges), fixedRanges(killing), 17, ""},
	{without(fixNotKept), fixedRanges(killing), 17, ""},
	{without(readNewest), func(c *config) { c.shape, c.likely, c.faults = reads, killing, 8 }, 21, ""},
	{without(aheadUnfixed), unfixing, 11, ""},
	{without(fixedGoesOn), fixedRanges(unreading), 6, ""},
	{without(dirtyPositions), nil, 1, ""},
	{without(forgetVanished), likely(unlisting), 9, ""},
	{without(positionsFirst), nil, 1, ""},
	{without(noCheck), ageingStores, 6, ""},
	{without(noCheck), func(c *config) { c.memory, c.stores, c.likely, c.faults = true, false, killing, 8 }, 10, ""},
	{without(txidOnly), ageingStores, 624, ""},
	{without(fencedWaits), resets(killing), 2, ""},
	{without(fencedStops), resets(replacing), 1, "to stop is an entry, too, and that of who was replaced is refused"},
	{without(idleSilent), nil, 1, ""},
	{without(equalsBefore), nil, 1, ""},
	{without(readAhead), nil, 1, ""},
	{without(liveUncommitted), nil, 17, ""},
	{without(moveBusy), likely(moving), 1, "the plan's entry is refused when something was committed meanwhile"},
	{without(moveUnconditional), likely(moving), 926, ""},
	{without(moveBusy, moveUnconditional), likely(moving), 362, ""},
	{without(openAnyCopy), likely(moving), 10, ""},
	{without(openAnyCopy, noCheck), honest(moving), 10, ""},
	{without(openAnyCopy, txidOnly), likely(moving), 10, ""},
	{without(viewBehindPlan), likely(moving), 10, ""},
	{without(viewBehindPlan, noCheck), honest(moving), 14, ""},
	{without(countDeaths), likely(killing), 1, ""},
}

func (r row) config(seed uint64, off set) config {
	c := draw(seed, off)
	if r.set != nil {
		r.set(&c)
	}
	return c
}

// Each rule is left out, and somebody notices: at once, if the table is up to date,
// and in no more than 5,000 seeds else. With EGRET_LONG=1 all rows are played to
// their end, for the figures of docs/trident-rules.md.
func TestRules(t *testing.T) {
	long := os.Getenv("EGRET_LONG") != ""
	var seen set
	for i, r := range rows {
		seen |= r.off
		t.Run(fmt.Sprint(i, "/", r.off), func(t *testing.T) {
			first, last := r.first, r.first+5000
			switch {
			case long && (r.first > 100 || r.silent != ""):
				first, last = 1, 10_000
			case long:
				first, last = 1, 2000
			case r.silent != "":
				last = 200
			}
			bad, count := 0, map[string]int{}
			for s := first; s <= last && (long || bad == 0); s++ {
				res := newWorld(r.config(s, r.off), nil).run()
				if res.good() {
					continue
				}
				require.Empty(t, r.silent, "seed %d: %s, %s", s, res.outcome, res.detail)
				if bad++; bad == 1 {
					first = s
					with := newWorld(r.config(s, 0), nil).run()
					require.True(t, with.good(), "seed %d goes wrong with all rules: %s", s, with.outcome)
				}
				count[res.outcome]++
			}
			if r.silent != "" {
				return
			}
			require.NotZero(t, bad, "nobody has noticed")
			if long {
				require.Equal(t, r.first, first, "the first one")
				t.Logf("first seed %d, %d of %d: %v", first, bad, last, count)
			}
		})
	}
	for r := range rules {
		require.True(t, seen.has(r), "%v is in no row", r)
	}
}
