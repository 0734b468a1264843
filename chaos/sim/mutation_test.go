//go:build mutation

package sim

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/mutation"
)

// mostSeeds is after how many seeds a mutation counts as not noticed.
const mostSeeds = 1000

// plans are the faults with which mutations are hunted that need a rare accident. All
// others are hunted with what the seeds draw.
var plans = map[mutation.Mutation]string{
	mutation.ViewNotLearned: "at message 300 kill *; at message 900 kill *; reorder peers 0..200ms 60%",

	mutation.NoLostReport:    "at message 300 kill *; at message 900 kill *",
	mutation.ReaddressParcel: "at message 300 kill *; at message 900 kill *",
	mutation.ForgetLateFail:  "poison * 3%; reorder report 0..10ms 60%",
	mutation.LimitOfAnyLife:  "at message 300 kill *; at message 900 kill *; reorder limit 0..200ms 60%",
	mutation.NoGrace:         "every 5s stall s0/* for 3s",
	mutation.StaleSave:       "delay save 200ms..1s; lose save 50%",
	mutation.ZombieSends:     "hang * 1% for 1s",
	mutation.Careless:        "hang * 2% for 1s",
}

// clusterPlans is the same for clusters.
var clusterPlans = map[mutation.Mutation][]clusterDeed{
	mutation.ResetIgnored:    partings,
	mutation.ResetKeepsEpoch: partings,
	mutation.UnhaltedLife: {
		{kind: "deactivate", at: 1500 * time.Millisecond, lasts: 10 * time.Second},
		{kind: "kill", at: 2 * time.Second, lasts: 100 * time.Millisecond},
		{kind: "kill", at: 4 * time.Second, lasts: 100 * time.Millisecond, a: 1},
		{kind: "kill", at: 6 * time.Second, lasts: 100 * time.Millisecond, a: 2},
	},
}

// batchPlans is the same for exactly-once topologies.
var batchPlans = map[mutation.Mutation][]batchDeed{
	mutation.FenceUncompared: { // writes that are made when the next life is at work
		{kind: "linger", class: "state", n: 3}, {kind: "linger", class: "state", n: 7}, {kind: "linger", class: "state", n: 11}, {kind: "linger", class: "state", n: 15},
		{kind: "linger", class: "state", n: 19}, {kind: "linger", class: "state", n: 23}, {kind: "linger", class: "state", n: 27}, {kind: "linger", class: "state", n: 31},
	},
}

var partings = []clusterDeed{
	{kind: "isolate", at: 2 * time.Second, lasts: 2500 * time.Millisecond},
	{kind: "rebalance", at: 2500 * time.Millisecond, n: 43},
	{kind: "hang", at: 5 * time.Second, lasts: 2 * time.Second, a: 1},
	{kind: "drain", at: 5100 * time.Millisecond, lasts: time.Second, a: 2},
	{kind: "single", at: 8 * time.Second, lasts: 3 * time.Second, b: 1},
}

// A catch is what the simulator has found of one mutation.
type catch struct {
	mutation mutation.Mutation
	reached  int64    // how often the engine came to its hooks
	failure  *Failure // of the first seed that fails; nil: none does
	took     time.Duration
}

// Every bug that the engine is given on purpose is noticed, within a few seeds. The
// table is that of docs/found-by-simulation.md.
func TestMutations(t *testing.T) {
	all := slices.DeleteFunc(mutation.All(), func(m mutation.Mutation) bool { return m.Batches() || m.States() }) // packages batch and trident hunt those
	if name := os.Getenv("EGRET_MUTATION"); name != "" {
		all = slices.DeleteFunc(all, func(m mutation.Mutation) bool { return m.String() != name })
	}
	var seeds []int
	var table strings.Builder
	for _, m := range all {
		c := hunt(t, m)
		switch {
		case c.reached == 0:
			t.Errorf("%v: no seed has come to a hook of it", m)
		case c.failure == nil:
			t.Errorf("%v is not noticed in %d seeds, which came to its hooks %d times: %s", m, mostSeeds, c.reached, m.Doc())
		default:
			seeds = append(seeds, int(c.failure.Seed))
			how := ""
			if plans[m] != "" {
				how = ", of `" + plans[m] + "`"
			}
			fmt.Fprintf(&table, "| `%v` | %s | %d%s | %s |\n", m, m.Doc(), c.failure.Seed, how, c.failure.Invariant)
			t.Logf("%v: seed %d, in %v, %d times reached: %v", m, c.failure.Seed, c.took.Round(time.Millisecond), c.reached, &c.failure.Violation)
		}
	}
	slices.Sort(seeds)
	if len(seeds) > 0 {
		t.Logf("\n| mutation | what it does | seeds to detection | noticed by |\n|---|---|---|---|\n%smedian of %d: %d seeds, at most %d", table.String(), len(seeds), seeds[len(seeds)/2], seeds[len(seeds)-1])
	}
}

// hunt runs seeds with a mutation until one fails: the first one that does, for a
// seed is only begun when all before it are.
func hunt(t *testing.T, m mutation.Mutation) catch {
	c, began := catch{mutation: m}, time.Now()
	var reached atomic.Int64
	mutation.Set(m, func() { reached.Add(1) })
	defer mutation.Set(0, func() {})
	o := Options{Once: true}
	one := func(seed uint64) error {
		_, err := Seed(seed, o)
		return err
	}
	if m.Exact() {
		one = func(seed uint64) error {
			_, err := Batches(seed, BatchOptions{Once: true, Unshrunk: true, deeds: batchPlans[m], only: batchPlans[m] != nil})
			return err
		}
	}
	if m.Nodes() {
		one = func(seed uint64) error {
			c := ClusterOptions{Once: true, Unshrunk: true, deeds: clusterPlans[m], only: clusterPlans[m] != nil}
			if s := drawCluster(seed, &c); c.only && (s.exact() || s.mood == "breaking") {
				return nil // they do not fit its scene
			}
			_, err := Cluster(seed, c)
			return err
		}
	}
	if text := plans[m]; text != "" {
		p, err := chaos.Parse(text)
		require.NoError(t, err)
		o.Plan = &p
	}
	var next atomic.Uint64
	var mu sync.Mutex // failure
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed := next.Add(1)
				mu.Lock()
				over := c.failure != nil
				mu.Unlock()
				if over || seed > mostSeeds {
					return
				}
				if o.Check(seed) != nil {
					continue // the plan does not fit its scene
				}
				err := one(seed)
				if err == nil {
					continue
				}
				mu.Lock()
				if f := err.(*Failure); c.failure == nil || f.Seed < c.failure.Seed {
					c.failure = f
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	c.reached, c.took = reached.Load(), time.Since(began)
	mutation.Set(0, func() {})
	if c.failure != nil {
		err := one(c.failure.Seed)
		assert.NoError(t, err, "without %v", m)
	}
	return c
}

// Without a mutation the code with the hooks is the engine that ships.
func TestNoMutation(t *testing.T) {
	s := Seeds(t.Context(), 1, 20, Options{Once: true}, nil)
	require.Empty(t, s.Failures)
}
