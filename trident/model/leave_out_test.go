package model

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row leaves out rules, and says within how many seeds that is noticed.
type row struct {
	off    set
	set    func(*config) // what the seeds have in common, nil for nothing
	within uint64
	silent string // why nobody notices it, "" for rules that must be noticed
}

func likely(h harm) func(*config) {
	return func(c *config) { c.likely, c.faults = h, 8 }
}

func ageingStores(c *config) {
	c.likely, c.faults, c.stores, c.fixed, c.memory = crashing, 8, true, false, false
}

func fixedRanges(h harm) func(*config) {
	return func(c *config) { c.fixed, c.shape, c.likely, c.faults = true, plain, h, 8 }
}

func peaceful(c *config) { c.faults, c.poison, c.shape = 0, -1, reads }

var rows = []row{
	{without(roundOnly), likely(replacing), 2000, ""},
	{without(readBeforeEpoch), likely(replacing), 3000, ""},
	{without(failAtOnce), nil, 2000, ""},
	{without(roundDuringAppend), nil, 2000, ""},
	{without(unknownIsRefused), nil, 2000, ""},
	{without(noBarrier), nil, 2000, ""},
	{without(noView), likely(killing), 10000, ""},
	{without(noSender), likely(killing), 300, "joined and the view say it already: a zombie sends to lives of its own round"},
	{without(noOrder), nil, 2000, ""},
	{without(markerWhereTuples), nil, 2000, ""},
	{without(firstMarker), nil, 2000, ""},
	{without(dropSilently), likely(corrupting), 2000, ""},
	{without(noBackstop), nil, 2000, ""},
	{without(staleKeepsCredit), nil, 2000, ""},
	{without(keepTotal), nil, 2000, ""},
	{without(heldKeepsCredit), peaceful, 2000, ""},
	{without(markerNotInOrder), nil, 2000, ""},
	{without(noEpoch), likely(replacing), 2000, ""},
	{without(noTxid), likely(replacing), 5000, ""},
	{without(recordFirst), nil, 2000, ""},
	{without(wroteBeforeDurable), likely(crashing), 2000, ""},
	{without(commitAhead), nil, 2000, ""},
	{without(noReady), nil, 300, "a state writes only what is complete, and what is written too early is undone"},
	{without(noFence), nil, 2000, ""},
	{without(fenceOutside), likely(killing), 5000, ""},
	{without(fenceOutside, noCheck), likely(killing), 5000, ""},
	{without(fenceNoIncarnation), likely(killing), 300, "a round names one incarnation of each task"},
	{without(joinedEarly), likely(crashing), 300, "a fence that is lost takes all later writes with it"},
	{without(noChecksum), likely(crashing), 2000, ""},
	{without(anyOlder), ageingStores, 5000, ""},
	{without(noUndo, noCheck), nil, 2000, ""},
	{without(noUndo), nil, 2000, ""},
	{without(undoToTxid), nil, 2000, ""},
	{without(noFix), fixedRanges(killing), 2000, ""},
	{without(fixChanges), fixedRanges(killing), 2000, ""},
	{without(fixNotKept), fixedRanges(killing), 2000, ""},
	{without(readNewest), func(c *config) { c.shape, c.likely, c.faults = reads, killing, 8 }, 5000, ""},
	{without(fixedGoesOn), fixedRanges(unreading), 5000, ""},
	{without(dirtyPositions), nil, 2000, ""},
	{without(forgetVanished), likely(unlisting), 2000, ""},
	{without(positionsFirst), nil, 2000, ""},
	{without(noCheck), ageingStores, 2000, ""},
	{without(noCheck), func(c *config) { c.memory, c.stores, c.likely, c.faults = true, false, killing, 8 }, 2000, ""},
	{without(txidOnly), ageingStores, 10000, ""},
	{without(idleSilent), nil, 2000, ""},
	{without(equalsBefore), nil, 2000, ""},
	{without(readAhead), nil, 2000, ""},
	{without(liveUncommitted), nil, 2000, ""},
	{without(moveBusy), likely(moving), 300, "the plan's entry is refused when something was committed meanwhile"},
	{without(moveUnconditional), likely(moving), 5000, ""},
	{without(moveBusy, moveUnconditional), likely(moving), 2000, ""},
	{without(openAnyCopy), likely(moving), 2000, ""},
	{without(openAnyCopy, noCheck), likely(moving), 2000, ""},
	{without(openAnyCopy, txidOnly), likely(moving), 10000, ""},
	{without(viewBehindPlan), likely(moving), 10000, ""},
	{without(viewBehindPlan, noCheck), likely(moving), 10000, ""},
	{without(countDeaths), likely(killing), 2000, ""},
}

func (r row) config(seed uint64, off set) config {
	c := draw(seed, off)
	if r.set != nil {
		r.set(&c)
	}
	return c
}

// Each rule is left out, and somebody notices. With EGRET_LONG=1 all rows go on
// to the end, for the figures of docs/trident-rules.md.
func TestRules(t *testing.T) {
	long := os.Getenv("EGRET_LONG") != ""
	var seen set
	for i, r := range rows {
		seen |= r.off
		t.Run(fmt.Sprint(i, "/", r.off), func(t *testing.T) {
			count := map[string]int{}
			bad, first := 0, uint64(0)
			n := r.within
			if long {
				n = max(n, 2000)
				if r.silent != "" {
					n = 10_000
				}
			}
			for s := uint64(1); s <= n; s++ {
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
				if !long {
					break
				}
			}
			if r.silent != "" {
				return
			}
			require.NotZero(t, bad, "nobody has noticed")
			require.LessOrEqual(t, first, r.within)
			t.Logf("first seed %d, %d of %d: %v", first, bad, n, count)
		})
	}
	for r := range rules {
		require.True(t, seen.has(r), "%v is in no row", r)
	}
}
