package spout

import "github.com/egretstream/egret/tuple"

// Streams returns the streams that the spout declares, for a reader that does
// what they ask for. They must not be changed.
func (o *Out) Streams() []*tuple.Schema { return o.schemas }

// EmitValues is [Out.Emit] for values that are in a slice, without a box for each.
// The slice may be used again.
func (o *Out) EmitValues(values []tuple.Value) {
	if len(o.schemas) == 0 {
		tuple.Misuse("the spout declares no stream: add .Emits(...)")
	}
	o.row.SetValues(o.schemas[0], values)
	o.batch.Append(0, &o.row)
}
