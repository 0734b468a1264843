package tuple

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What Remove leaves is what would be there without the tuple, and what it tells is what
// is missing.
func TestRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := &Schema{Fields: []string{"s", "n"}}
		type message struct {
			slot  int
			index uint16
		}
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) message {
			return message{rapid.IntRange(0, 3).Draw(t, "slot"), uint16(rapid.IntRange(0, 9).Draw(t, "index"))}
		}), 1, 3), 1, 8).Draw(t, "rows")
		gone := rapid.IntRange(0, len(rows)-1).Draw(t, "gone")
		// build makes a parcel without one of the rows. Its slots are in the order of their
		// first use by any row.
		build := func(without int) *Parcel {
			p := &Parcel{Schema: schema}
			p.Begin([]Kind{KindString, KindInt64}, len(rows))
			at := map[int]uint16{}
			for _, r := range rows {
				for _, m := range r {
					if _, known := at[m.slot]; !known {
						at[m.slot] = uint16(len(p.Slots))
						p.Slots = append(p.Slots, Slot{Tree: TreeID{Seq: uint64(m.slot)}, Edge: EdgeID(100 + m.slot)})
					}
				}
			}
			for i, r := range rows {
				if i == without {
					continue
				}
				var row Row
				row.Set(schema, []any{string(make([]byte, i)), i})
				p.Append(&row)
				refs := make([]Ref, len(r))
				for k, m := range r {
					refs[k] = Ref{at[m.slot], m.index}
					p.Slots[at[m.slot]].Count++
				}
				if len(refs) == 1 {
					p.Refs = append(p.Refs, refs[0])
				} else {
					p.Refs = append(p.Refs, Ref{Several, uint16(len(p.Lists))})
					p.Lists = append(p.Lists, refs)
				}
			}
			return p
		}
		// tuples says of each tuple what it is and comes of, whatever the slots' places.
		tuples := func(p *Parcel) (all []any) {
			for i := range p.Len() {
				refs := []Ref{p.Refs[i]}
				if refs[0].Slot == Several {
					refs = p.Lists[refs[0].Index]
				}
				var of []message
				for _, r := range refs {
					of = append(of, message{int(p.Slots[r.Slot].Tree.Seq), r.Index})
				}
				all = append(all, p.Tuple(i).Int64("n"), of)
			}
			return all
		}
		p, want := build(-1), build(gone)
		var told []message
		left := map[int]bool{}
		p.Remove(gone, func(s Slot, index uint16, last bool) {
			require.Equal(t, EdgeID(100+int(s.Tree.Seq)), s.Edge)
			told = append(told, message{int(s.Tree.Seq), index})
			if last {
				require.False(t, left[int(s.Tree.Seq)], "an edge is consumed once")
				left[int(s.Tree.Seq)] = true
			}
		})
		require.Equal(t, rows[gone], told)
		require.Equal(t, tuples(want), tuples(p))
		require.Equal(t, want.Text(), p.Text())
		for _, s := range want.Slots {
			i := 0
			for i < len(p.Slots) && p.Slots[i].Tree != s.Tree {
				i++
			}
			if s.Count == 0 {
				require.Equal(t, len(p.Slots), i, "a slot without tuples leaves")
				require.True(t, left[int(s.Tree.Seq)])
				continue
			}
			require.Equal(t, s, p.Slots[i])
			require.False(t, left[int(s.Tree.Seq)])
		}
		if p.Len() > 0 { // and it can travel
			b, err := AppendParcel(nil, p)
			require.NoError(t, err)
			require.NoError(t, DecodeParcel(b, new(Parcel), schema))
		}
	})
}
