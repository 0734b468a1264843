package task

import "github.com/egretstream/egret/spout"

// Batches kept for their next use.
const freeBatches = 1024

// A batchPool keeps empty batches.
type batchPool struct {
	free   []*spout.Batch
	number uint64
}

// get returns an empty batch with a number of its own.
func (p *batchPool) get() *spout.Batch {
	p.number++
	var b *spout.Batch
	if k := len(p.free) - 1; k >= 0 {
		b, p.free = p.free[k], p.free[:k]
	} else {
		b = new(spout.Batch)
	}
	b.Number = p.number
	return b
}

// put takes back a batch that its task has done with.
func (p *batchPool) put(b *spout.Batch) {
	b.Reset()
	if len(p.free) < freeBatches {
		p.free = append(p.free, b)
	}
}
