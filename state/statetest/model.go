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
	last      map[uint16]tuple.BatchID
	left      map[uint16]tuple.BatchID // what the tasks have left or found
}

type modelGroup struct {
	fence  tuple.Fence
	last   tuple.BatchID
	rows   map[string]state.Row
	before map[string]state.Row // all rows before the batch last; nil: nothing to undo
}

var (
	modelTasks = [][]uint16{{1, 2}, {700, 1023}} // and the groups that each has
	modelKeys  = []string{"", "a", "b", "\x00\xff"}
)

func newModel() *model {
	m := &model{groups: map[uint16]*modelGroup{}, last: map[uint16]tuple.BatchID{}, left: map[uint16]tuple.BatchID{}}
	for _, groups := range modelTasks {
		for _, g := range groups {
			m.groups[g] = &modelGroup{rows: map[string]state.Row{}}
		}
	}
	return m
}

func (m *model) join(f tuple.Fence, groups []uint16, undo, fixed bool) (ahead tuple.Groups, err error) {
	for _, g := range groups {
		if f.Less(m.groups[g].fence) {
			return ahead, state.ErrFenced
		}
	}
	for _, g := range groups {
		if m.groups[g].last.Tx == m.committed+1 && !undo && !fixed {
			return ahead, state.ErrLost
		}
	}
	for _, g := range groups {
		group := m.groups[g]
		group.fence = f
		is := group.last.Tx == m.committed+1
		if is && !undo {
			group.last = tuple.BatchID{Attempt: f.Attempt, Tx: m.committed + 1}
			ahead.Add(g)
		}
		if is && undo {
			for key, row := range group.rows {
				switch was := group.before[key]; {
				case row.Tx != group.last.Tx:
				case was.Value == nil:
					delete(group.rows, key)
				default:
					group.rows[key] = state.Row{Tx: m.last[g].Tx, Value: was.Value}
				}
			}
			group.last, group.before = m.last[g], nil
		}
		m.left[g] = group.last
	}
	return ahead, nil
}

func (m *model) write(w *state.Write) error {
	for _, c := range w.Rows {
		g := m.groups[c.Group]
		switch {
		case g.fence != w.Fence || g.fence == (tuple.Fence{}):
			return state.ErrFenced
		case g.last != w.Last[c.Group]:
			return state.ErrLost
		case g.last.Tx > w.Tx || g.last.Tx == w.Tx && !w.Again:
			return state.ErrFenced
		}
	}
	for _, c := range w.Rows {
		g := m.groups[c.Group]
		if g.last.Tx != w.Tx {
			g.before = maps.Clone(g.rows)
		}
		g.last = tuple.BatchID{Attempt: w.Fence.Attempt, Tx: w.Tx}
		m.left[c.Group] = g.last
		c.Tx = w.Tx
		g.rows[c.Bytes] = c.Row
	}
	return nil
}

// commit makes the next batch committed, whoever has written it.
func (m *model) commit() {
	m.committed++
	for n, g := range m.groups {
		if g.last.Tx == m.committed {
			m.last[n] = g.last
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
			j := &state.Join{Fence: drawFence(), Groups: set(groups...), Committed: m.committed, Last: make([]tuple.BatchID, tuple.KeyGroups), Undo: undo, Fixed: !undo && rapid.IntRange(0, 4).Draw(rt, "fixed") > 0}
			for g, stamp := range m.last {
				j.Last[g] = stamp
			}
			return j
		}
		rt.Repeat(map[string]func(*rapid.T){
			"join": func(rt *rapid.T) {
				groups := rapid.SampledFrom(modelTasks).Draw(rt, "task")
				j := record(groups)
				want, refused := m.join(j.Fence, groups, undo, j.Fixed)
				ahead, err := b.store.Join(b.ctx, j)
				compare(err, refused)
				require.Equal(rt, want, ahead)
			},
			"joinWithAnotherRecord": func(rt *rapid.T) {
				g := rapid.SampledFrom(slices.Concat(modelTasks...)).Draw(rt, "group")
				j := record([]uint16{g})
				if j.Fence.Less(m.groups[g].fence) {
					rt.Skip()
				}
				switch has := m.groups[g].last; {
				case rapid.Bool().Draw(rt, "later") || has.Tx < 2:
					j.Committed = has.Tx + 3
					j.Last[g].Tx = j.Committed
				case rapid.Bool().Draw(rt, "attempt"):
					j.Committed, j.Last[g] = has.Tx, has
					j.Last[g].Round++
				default:
					j.Committed, j.Last = 0, nil
				}
				_, err := b.store.Join(b.ctx, j)
				compare(err, state.ErrLost)
			},
			"write": func(rt *rapid.T) {
				groups := slices.Clone(rapid.SampledFrom(modelTasks).Draw(rt, "task"))
				if rapid.IntRange(0, 9).Draw(rt, "foreign") == 0 {
					groups = slices.Concat(modelTasks...)
				}
				w := &state.Write{Fence: m.groups[groups[0]].fence, Tx: m.committed + 1, Last: make([]tuple.BatchID, tuple.KeyGroups), Again: !undo && rapid.Bool().Draw(rt, "again")}
				if rapid.IntRange(0, 4).Draw(rt, "zombie") == 0 {
					w.Fence = drawFence()
				}
				for g, stamp := range m.left {
					w.Last[g] = stamp
				}
				if rapid.IntRange(0, 9).Draw(rt, "lost") == 0 {
					w.Last[rapid.SampledFrom(groups).Draw(rt, "of")].Round++
				}
				if m.committed > 0 && rapid.IntRange(0, 9).Draw(rt, "old") == 0 {
					w.Tx-- // a batch that is committed, so nobody could write it who has not
					for _, g := range groups {
						if m.groups[g].last.Tx < w.Tx {
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
