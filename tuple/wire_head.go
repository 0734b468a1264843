package tuple

import (
	"fmt"
	"math"
)

// A Head is what the wire form of a parcel says before its tuples.
type Head struct {
	From, To         TaskID
	FromLife, ToLife Incarnation
	Plan             uint32
	Input            int // of the receiver
	Tuples           int
}

// HeadOf reads the head of a parcel in wire form, for those who pass it on. An error is
// [ErrCorrupt]; that there is none says nothing of the rest. It allocates little.
func HeadOf(b []byte) (Head, error) {
	d := decoder{b: b}
	var p Parcel
	d.address(&p)
	plan := d.number("plan", math.MaxUint32)
	d.batch(&p)
	d.take(d.number("number of fields", math.MaxInt32)) // their kinds
	n := d.number("number of tuples", MaxParcel)
	if d.err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrCorrupt, d.err)
	}
	return Head{p.From, p.To, p.FromLife, p.ToLife, uint32(plan), p.Input, int(n)}, nil
}
