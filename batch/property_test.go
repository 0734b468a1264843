package batch

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// Whatever happens, batches are committed in their order and once, nothing begins or is
// written too early, the record takes what its coordinator wants, and when nothing more
// happens everything is committed.
func TestWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		require.NoError(t, w.play(rapid.IntRange(0, 600).Draw(t, "steps")))
	})
}

// The same from seeds, of which there are more in the same time.
func TestSeeds(t *testing.T) {
	seeds := uint64(300)
	if os.Getenv("EGRET_LONG") != "" {
		seeds = 20000
	}
	for seed := range seeds {
		require.NoError(t, playSeed(seed), "seed %d", seed)
	}
}

func playSeed(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	return newWorld(r.IntN).play(200 + r.IntN(800))
}

// What was given away with an order does not change when batches are committed: tasks
// read it meanwhile.
func TestOrdersStay(t *testing.T) {
	c := NewCoordinator([]Role{{Component: "in", Kind: Spout}, {Component: "sum", Kind: Stateful}}, Settings{})
	c.Lives(0, []tuple.Incarnation{1, 1})
	c.Recovered(0, &Record{Epoch: 1, Positions: map[string]Positions{"in": {"a": "5"}},
		Last: map[string][]tuple.TxID{"sum": make([]tuple.TxID, tuple.KeyGroups)}}, nil)
	joins := c.Take().Orders
	say := func(from tuple.TaskID, a Answer) {
		a.Attempt = tuple.Attempt{Epoch: 1, Round: 1}
		c.Answer(0, from, 1, &a)
	}
	say(0, Answer{Kind: Joined})
	say(1, Answer{Kind: Joined})
	say(0, Answer{Kind: Input, More: true})
	id := tuple.BatchID{Tx: 1}
	say(0, Answer{Kind: Emitted, BatchID: id, Ranges: Ranges{"a": {To: "7"}}})
	say(1, Answer{Kind: Ready, BatchID: id})
	say(1, Answer{Kind: Wrote, BatchID: id, Groups: tuple.Groups{1}})
	e := c.Take().Request.Append
	text, err := json.Marshal(e)
	require.NoError(t, err)
	c.Appended(0, nil)
	require.Equal(t, tuple.TxID(1), c.Status().Committed)
	require.Equal(t, Positions{"a": "5"}, joins[0].Order.Positions)
	require.Zero(t, joins[1].Order.Last[0].Tx)
	again, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}

// Whoever says the lives of other tasks than there are has another plan.
func TestOtherPlan(t *testing.T) {
	c := NewCoordinator(make([]Role, 2), Settings{})
	require.PanicsWithValue(t, "batch: 3 lives of 2 tasks", func() { c.Lives(0, make([]tuple.Incarnation, 3)) })
}
