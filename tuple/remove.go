package tuple

import "slices"

// Remove takes the i-th tuple out of p. Of each message that the tuple comes of, gone
// is told the slot, as it was, the message's index in its tree, and whether the slot
// has no other tuple: then it leaves p as well, and its edge is nobody else's. It is
// slow, and for parcels that are in trouble.
func (p *Parcel) Remove(i int, gone func(s Slot, index uint16, last bool)) {
	w := len(p.Kinds)
	p.text -= TextOf(p.Row(i), p.Kinds)
	p.Cells = slices.Delete(p.Cells, i*w, (i+1)*w)
	p.n--
	if len(p.Refs) == 0 {
		return
	}
	refs := []Ref{p.Refs[i]}
	if p.Refs[i].Slot == Several {
		k := p.Refs[i].Index
		refs = p.Lists[k]
		p.Lists = slices.Delete(p.Lists, int(k), int(k)+1)
		for j := range p.Refs {
			if r := &p.Refs[j]; r.Slot == Several && r.Index > k {
				r.Index--
			}
		}
	}
	p.Refs = slices.Delete(p.Refs, i, i+1)
	var empty []uint16
	for _, r := range refs {
		s := &p.Slots[r.Slot]
		s.Count--
		if s.Count == 0 {
			empty = append(empty, r.Slot)
		}
		gone(*s, r.Index, s.Count == 0)
	}
	slices.Sort(empty)
	for _, k := range slices.Backward(empty) {
		p.Slots = slices.Delete(p.Slots, int(k), int(k)+1)
		closeGap := func(refs []Ref) {
			for j := range refs {
				if r := &refs[j]; r.Slot != Several && r.Slot > k {
					r.Slot--
				}
			}
		}
		closeGap(p.Refs)
		for _, list := range p.Lists {
			closeGap(list)
		}
	}
}
