package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/actor"
)

// Any network, any faults: what one actor hears of another is, in order and
// without a gap, what that one said; all of it if neither was harmed.
func TestOrderUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Int64Range(-1, int64(5*ms))
		w := New(Config{
			Seed: rapid.Uint64().Draw(t, "seed"),
			Cost: time.Duration(duration.Draw(t, "cost")),
			Links: Links{
				Quick:       time.Duration(duration.Draw(t, "quick")),
				Late:        time.Duration(duration.Draw(t, "late")),
				LateEvery:   rapid.IntRange(-1, 5).Draw(t, "late every"),
				Freeze:      time.Duration(duration.Draw(t, "freeze")),
				FreezeEvery: rapid.IntRange(-1, 5).Draw(t, "freeze every"),
			},
		})
		n := rapid.IntRange(2, 5).Draw(t, "actors")
		refs := make([]actor.Ref, n)
		sent := make([][]int, n)  // by sender, how many to each receiver
		heard := make([][]int, n) // by receiver, how many of each sender
		for i := range refs {
			sent[i], heard[i] = make([]int, n), make([]int, n)
			rounds := 0
			refs[i] = w.Spawn("actor", &toy{
				receive: func(_ actor.Context, msg any) {
					m := msg.(said)
					if m.n != heard[i][m.by] {
						t.Fatalf("actor %d hears %v, and should hear number %d", i, m, heard[i][m.by])
					}
					heard[i][m.by]++
				},
				turn: func(ctx actor.Context) bool {
					if rounds == 30 {
						return false
					}
					for range ctx.Rand().IntN(4) {
						to := ctx.Rand().IntN(n)
						w.Spend(time.Duration(ctx.Rand().IntN(100)) * us)
						ctx.Send(refs[to], said{i, sent[i][to]})
						sent[i][to]++
					}
					rounds++
					return rounds < 30
				},
			})
		}
		harmed := make([]bool, n)
		for range rapid.IntRange(0, 6).Draw(t, "faults") {
			victim := rapid.IntRange(0, n-1).Draw(t, "victim")
			d := time.Duration(duration.Draw(t, "for"))
			ref, to := refs[victim], refs[(victim+1)%n]
			fault := rapid.SampledFrom([]string{"kill", "crash", "stop", "freeze", "slow", "link"}).Draw(t, "fault")
			w.At(time.Duration(duration.Draw(t, "at")), fault, func() {
				switch fault {
				case "kill":
					w.Kill(ref)
				case "crash":
					w.Crash(ref)
				case "stop":
					w.Stop(ref)
				case "freeze":
					w.Freeze(ref, d)
				case "slow":
					w.Slow(ref, 7.5)
				case "link":
					w.FreezeLink(ref, to, d)
				}
			})
			if slices.Contains([]string{"kill", "crash", "stop"}, fault) {
				harmed[victim] = true
			}
		}
		require.NoError(t, w.Run(nil, Limit{Events: 1_000_000}))
		require.Equal(t, Left{}, w.Left())
		for by := range n {
			for to := range n {
				require.LessOrEqual(t, heard[to][by], sent[by][to])
				if !harmed[by] && !harmed[to] {
					require.Equal(t, sent[by][to], heard[to][by], "said by %d to %d", by, to)
				}
			}
		}
	})
}

// The heap and the queue against sorted and plain slices.
func TestQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h events
		var q fifo
		var times []time.Duration
		var bodies []any
		for i := range rapid.IntRange(0, 500).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0, 1, 2:
				at := time.Duration(rapid.IntRange(0, 20).Draw(t, "at"))
				h.push(&event{at: at, seq: uint64(i)})
				times = append(times, at*1000+time.Duration(i))
				slices.Sort(times)
			case 3:
				if len(times) > 0 {
					e := h.pop()
					require.Equal(t, times[0], e.at*1000+time.Duration(e.seq))
					times = times[1:]
				}
			case 4, 5, 6:
				q.push(message{body: i})
				bodies = append(bodies, i)
			case 7:
				if len(bodies) > 0 {
					require.Equal(t, bodies[0], q.at(0).body)
					require.Equal(t, bodies[0], q.pop().body)
					bodies = bodies[1:]
				}
			case 8:
				if len(bodies) > 100 {
					n := rapid.IntRange(0, len(bodies)).Draw(t, "keep")
					q.cut(n)
					bodies = bodies[:n]
				}
			}
			require.Len(t, h, len(times))
			require.Equal(t, len(bodies), q.len())
		}
	})
}
