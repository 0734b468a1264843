package sim

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Whatever is drawn can be built and is not too large, and what it is to have in it is
// not rarer than it was meant to be.
func TestScenes(t *testing.T) {
	const n = 2000
	components, wide, endless, gated, alone := map[int]int{}, 0, 0, 0, 0
	for seed := range uint64(n) {
		s := draw(seed, &Options{})
		count, spouts, tasks := 0, 0, 0
		for i := range s.parts {
			p := &s.parts[i]
			if p.mourns != nil {
				continue
			}
			count++
			tasks += p.parallel
			require.LessOrEqual(t, p.parallel, 80)
			require.LessOrEqual(t, p.least, p.spend)
			for _, e := range p.inputs {
				require.Less(t, e.from, i, "seed %d: senders come first", seed)
				require.Less(t, e.stream, s.parts[e.from].streams)
			}
			if !p.spout() {
				continue
			}
			spouts++
			require.Len(t, p.gates, len(p.splits))
			for k, gate := range p.gates {
				require.LessOrEqual(t, gate, p.splits[k])
				require.Equal(t, gate == 0, p.splits[k] == 0 || p.splits[k] == 1 && gate == 0, "seed %d: something is read before all is healed", seed)
			}
			require.LessOrEqual(t, s.comes(i), float64(mostComesWide))
		}
		components[count]++
		alone += btoi(count == spouts)
		wide += btoi(tasks > 64)
		endless += btoi(s.endless())
		for i := range s.parts {
			if p := &s.parts[i]; p.spout() && len(p.gates) > 0 && p.gates[0] < p.splits[0] {
				gated++
				break
			}
		}
		rec := newRecord(New(Config{}), s)
		_, err := s.topology(rec).Build(topology.Options{Epoch: 1})
		require.NoError(t, err, "seed %d", seed)
	}
	require.Len(t, components, 6)
	for k := range components {
		require.Greater(t, components[k], n/20, "%d components", k)
	}
	require.Greater(t, wide, n/20)
	require.Greater(t, endless, n/20)
	require.Greater(t, gated, n/2)
	require.Greater(t, alone, n/20)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The hash that the checker of keys has from the documentation is that of the engine.
func TestKeyHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(
			rapid.Just[any](nil), rapid.Just[any](math.Copysign(0, -1)), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return b }),
			rapid.Map(rapid.Int64(), func(n int64) any { return n }), rapid.Map(rapid.Uint64(), func(n uint64) any { return n }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(rapid.Float64Range(-1e15, 1e15), func(f float64) any { return f }), rapid.Map(rapid.Int64Range(0, 1<<33), func(n int64) any { return time.Unix(n, 0).UTC() }),
			rapid.Map(rapid.Int64(), func(n int64) any { return time.Duration(n) }),
		), 1, 3).Draw(t, "values")
		schema, fields := &tuple.Schema{Component: "c", Stream: "s"}, []int{}
		hash := uint64(0)
		for i, v := range values {
			schema.Fields, fields = append(schema.Fields, "f"+strconv.Itoa(i)), append(fields, i)
			hash = keyHash(v, hash)
		}
		var row tuple.Row
		row.Set(schema, values)
		require.Equal(t, tuple.Hash(row.Cells, row.Kinds, fields), hash)
	})
}

// A source that gives nothing any more when everything is healed is found out, and so
// is a message that never comes through.
func TestProgressIsWanted(t *testing.T) {
	for name, edit := range map[string]func(*scene){
		"a source without end":   func(s *scene) { s.parts[0].endless, s.last = true, chaos.Fault{Kind: chaos.Drain} },
		"a source that has ends": func(*scene) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1, func(s *scene) {
				s.parts[0].stall, s.parts[0].stallIn, s.parts[0].gates = 1000*time.Hour, 1, []int{200}
				edit(s)
			})
			s.play()
			require.NotNil(t, s.rec.bad)
			require.Equal(t, chaos.Rest, s.rec.bad.Invariant)
			s = newStage(t, 1, func(s *scene) {
				s.parts[0].gates = []int{200}
				edit(s)
			})
			s.play()
			require.Nil(t, s.rec.bad)
		})
	}
	s := newStage(t, 1, func(s *scene) { s.set.MessageTimeout = time.Hour })
	lost := false
	s.prologue = func() {
		s.with(func(_, to string, msg any) Verdict {
			if _, is := msg.(*tuple.Parcel); is && to == b2a && !lost {
				lost = true
				return Verdict{Drop: true}
			}
			return Verdict{}
		})
	}
	s.play()
	require.NotNil(t, s.rec.bad)
	require.Equal(t, chaos.Rest, s.rec.bad.Invariant)
	require.Contains(t, s.rec.bad.What, "after everything was healed")
}

// A limit that is said once and lost with all that follow is missed at rest, and one
// that promises more than a window at once.
func TestCreditIsWanted(t *testing.T) {
	s := newStage(t, 1, func(s *scene) { s.parts[1].spend, s.parts[1].least = 20*ms, 10*ms })
	s.prologue = func() {
		s.with(func(_, _ string, msg any) Verdict {
			if m, is := msg.(*task.Limit); is {
				m.Total += 100
			}
			return Verdict{}
		})
	}
	s.play()
	require.NotNil(t, s.rec.bad)
	require.Equal(t, chaos.Credit, s.rec.bad.Invariant)
}
