package topology

import (
	"slices"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// What people who look at a run may see of its tuples.

// NoTaps forbids taps: nobody can look at tuples while the topology runs. Without it
// whoever may see the page of a run, or ask its API, may see a sample of them. Messages that
// are open, dead letters, and tuples that errors and logs are about, are then shown without
// their values.
func (b *Builder) NoTaps() { b.noTaps = true }

// Mask says that the values of these fields, of the stream that was declared last, are
// shown to nobody: taps, errors and logs have "•••" instead, and no filter of a tap can
// ask for them. Tasks get them as they are, and so they are stored in the state directory.
// A bolt that emits such a value again masks it there as well.
func (c *Component) Mask(fields ...string) *Component {
	if len(c.streams) == 0 {
		c.masks = append(c.masks, slices.Clone(fields))
		return c
	}
	s := c.streams[len(c.streams)-1]
	for _, f := range fields {
		if !slices.Contains(s.Masked, f) {
			s.Masked = append(s.Masked, f)
		}
	}
	return c
}

// maskBad masks the stream of what a spout cannot read, if one of its others has masks: the
// values of these are in it.
func (c *Component) maskBad() {
	s, ok := c.source.(spout.Sifter)
	if !ok || s.BadStream() == "" {
		return
	}
	masks := slices.ContainsFunc(c.streams, func(x *tuple.Schema) bool { return len(x.Masked) > 0 })
	for _, x := range c.streams {
		if masks && x.Stream == s.BadStream() {
			x.Masked = slices.Clone(x.Fields)
		}
	}
}
