package statetest

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A model is a state, and the record that belongs to it, in the slowest way.
type model struct {
	groups map[uint16]*modelGroup
	// committed and last are the record's.
	committed tuple.TxID
	last      map[uint16]tuple.TxID
}

type modelGroup struct {
	fence  tuple.Fence
	last   tuple.TxID
	rows   map[string]state.Row
	before map[string]state.Row // all rows before the batch last; nil: nothing to undo
}

var (
	modelTasks = [][]uint16{{1, 2}, {700, 1023}} // and the groups that each has
	modelKeys  = []string{"", "a", "b", "\x00\xff"}
)

func newModel() *model {
	m := &model{groups: map[uint16]*modelGroup{}, last: map[uint16]tuple.TxID{}}
	for _, groups := range modelTasks {
		for _, g := range groups {
			m.groups[g] = &modelGroup{rows: map[string]state.Row{}}
		}
	}
	return m
}

func (m *model) join(f tuple.Fence, groups []uint16, undo bool) error {
	for _, g := range groups {
		if f.Less(m.groups[g].fence) {
			return state.ErrFenced
		}
	}
	for _, g := range groups {
		group := m.groups[g]
		group.fence = f
		if undo && group.last == m.committed+1 {
			for key, row := range group.rows {
				switch was := group.before[key]; {
				case row.Tx != group.last:
				case was.Value == nil:
					delete(group.rows, key)
				default:
					group.rows[key] = state.Row{Tx: m.last[g], Value: was.Value}
				}
			}
			group.last, group.before = m.last[g], nil
		}
	}
	return nil
}

func (m *model) write(w *state.Write) error {
	for _, c := range w.Rows {
		g := m.groups[c.Group]
		if g.fence != w.Fence || g.fence == (tuple.Fence{}) || g.last > w.Tx || g.last == w.Tx && !w.Again {
			return state.ErrFenced
		}
	}
	for _, c := range w.Rows {
		g := m.groups[c.Group]
		if g.last != w.Tx {
			g.last, g.before = w.Tx, maps.Clone(g.rows)
		}
		c.Tx = w.Tx
		g.rows[c.Bytes] = c.Row
	}
	return nil
}

// commit makes the next batch committed, whoever has written it.
func (m *model) commit() {
	m.committed++
	for n, g := range m.groups {
		if g.last == m.committed {
			m.last[n] = m.committed
		}
	}
}

// property plays the same to a store and to the model.
func property(b *bench) {
	run := 0
	topology := b.name.Topology
	rapid.Check(b.T, func(rt *rapid.T) {
		run++
		b.name.Topology = fmt.Sprint(topology, run)
		b.reopen()
		m := newModel()
		undo := rapid.Bool().Draw(rt, "undo")
		drawFence := func() tuple.Fence {
			return fence(rapid.Uint32Range(1, 2).Draw(rt, "epoch"), rapid.Uint32Range(0, 2).Draw(rt, "round"), tuple.Incarnation(rapid.IntRange(1, 2).Draw(rt, "life")))
		}
		compare := func(err, want error) {
			if want == nil {
				require.NoError(rt, err)
			} else {
				require.ErrorIs(rt, err, want)
			}
		}
		record := func(groups []uint16) *state.Join {
			j := &state.Join{Fence: drawFence(), Groups: set(groups...), Committed: m.committed, Last: make([]tuple.TxID, tuple.KeyGroups), Undo: undo}
			for g, tx := range m.last {
				j.Last[g] = tx
			}
			return j
		}
		rt.Repeat(map[string]func(*rapid.T){
			"join": func(rt *rapid.T) {
				groups := rapid.SampledFrom(modelTasks).Draw(rt, "task")
				j := record(groups)
				compare(b.store.Join(b.ctx, j), m.join(j.Fence, groups, undo))
			},
			"joinWithAnotherRecord": func(rt *rapid.T) {
				g := rapid.SampledFrom(slices.Concat(modelTasks...)).Draw(rt, "group")
				j := record([]uint16{g})
				if j.Fence.Less(m.groups[g].fence) {
					rt.Skip()
				}
				if rapid.Bool().Draw(rt, "later") || m.groups[g].last < 2 {
					j.Committed = m.groups[g].last + 3
					j.Last[g] = j.Committed
				} else {
					j.Committed, j.Last = 0, nil
				}
				compare(b.store.Join(b.ctx, j), state.ErrLost)
			},
			"write": func(rt *rapid.T) {
				groups := slices.Clone(rapid.SampledFrom(modelTasks).Draw(rt, "task"))
				if rapid.IntRange(0, 9).Draw(rt, "foreign") == 0 {
					groups = slices.Concat(modelTasks...)
				}
				w := &state.Write{Fence: m.groups[groups[0]].fence, Tx: m.committed + 1, Again: !undo && rapid.Bool().Draw(rt, "again")}
				if rapid.IntRange(0, 4).Draw(rt, "zombie") == 0 {
					w.Fence = drawFence()
				}
				if m.committed > 0 && rapid.IntRange(0, 9).Draw(rt, "old") == 0 {
					w.Tx-- // a batch that is committed, so nobody could write it who has not
					for _, g := range groups {
						if m.groups[g].last < w.Tx {
							rt.Skip()
						}
					}
				}
				for _, g := range groups {
					for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(modelKeys), 0, -1, rapid.ID).Draw(rt, "keys") {
						c := state.Change{Key: state.Key{Group: g, Bytes: key}}
						if rapid.IntRange(0, 4).Draw(rt, "delete") != 0 {
							c.Value = []byte(rapid.StringN(0, 3, -1).Draw(rt, "value"))
						}
						if was := m.groups[g].rows[key]; undo && was.Tx == w.Tx {
							c.Prev = was.Prev
						} else if undo {
							c.Prev = was.Value
						}
						w.Rows = append(w.Rows, c)
					}
				}
				compare(b.store.Write(b.ctx, w), m.write(w))
			},
			"commit": func(*rapid.T) { m.commit() },
			"reopen": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "closed") > 0 {
					rt.Skip() // it takes long
				}
				b.reopen()
			},
			"": func(rt *rapid.T) {
				var keys []state.Key
				for g := range m.groups {
					for _, key := range modelKeys {
						keys = append(keys, state.Key{Group: g, Bytes: key})
					}
				}
				rows, err := b.store.Get(b.ctx, keys)
				require.NoError(rt, err)
				seen := b.scan(slices.Concat(modelTasks...)...)
				n := 0
				for i, k := range keys {
					want, ok := m.groups[k.Group].rows[k.Bytes]
					require.True(rt, same(want, rows[i]), "%v: %s, want %s", k, show(rows[i]), show(want))
					require.True(rt, same(want, seen[k]), "%v: a scan says %s, want %s", k, show(seen[k]), show(want))
					if ok {
						n++
					}
				}
				require.Len(rt, seen, n)
			},
		})
	})
}
