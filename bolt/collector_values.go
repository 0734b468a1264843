package bolt

import "github.com/egretstream/egret/tuple"

// EmitValues is [Collector.Emit] for values that are values already. It keeps nothing of
// the slice.
func (c *Collector) EmitValues(values []tuple.Value) {
	o := c.output
	if uint(o) >= uint(len(c.schemas)) {
		tuple.Misuse("the component declares no stream: add .Emits(...)")
	}
	c.row.SetValues(c.schemas[o], values)
	c.sink.Put(o, &c.row)
}
