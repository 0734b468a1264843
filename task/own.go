package task

import (
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// Messages in one batch of a bolt's own.
const ownBatch = 256

// An ownMessages takes what a bolt emits in Tick or Finish: messages of its own,
// tracked and replayed by its own origin.
type ownMessages struct {
	c     *core
	batch *spout.Batch
}

func newOwnMessages(c *core) *ownMessages {
	o := &ownMessages{c: c}
	o.next()
	return o
}

func (o *ownMessages) next() {
	o.batch = o.c.batches.get()
}

func (o *ownMessages) put(stream int, r *tuple.Row) {
	if r.Direct == 0 {
		o.c.node.Streams[stream].NeedsTask()
	}
	o.batch.Append(stream, r)
	if o.batch.Len() < ownBatch {
		return
	}
	if !o.c.leaveCall() {
		o.c.refused.Add(1)
		o.batch.Reset()
		return
	}
	o.publish()
	o.next()
	o.c.enterCall(o.c.kind)
}

// publish emits what has been taken.
func (o *ownMessages) publish() {
	c, b := o.c, o.batch
	if c.origin == nil {
		for at := 0; at < b.Len(); {
			s, cells, end := b.Run(at)
			c.out.run(s, cells, end-at, nil)
			at = end
		}
		c.m.Untracked.Add(int64(b.Len()))
		c.batches.put(b)
		return
	}
	if b.Len() == 0 {
		c.batches.put(b)
		return
	}
	c.origin.keep(b)
	for at := 0; at < b.Len(); {
		at += c.origin.emit(b, at)
	}
}
