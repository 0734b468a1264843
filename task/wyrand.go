package task

import (
	"math/bits"

	"github.com/egretstream/egret/tuple"
)

// A wyrand makes edge numbers: the generator of Wang Yi's wyhash, 64 bits of
// state, under a nanosecond a number. Its seed comes from the host's generator.
type wyrand uint64

// next returns a number that is not zero.
func (w *wyrand) next() tuple.EdgeID {
	for {
		*w += 0xa0761d6478bd642f
		hi, lo := bits.Mul64(uint64(*w), uint64(*w)^0xe7037ed1a0b428db)
		if x := hi ^ lo; x != 0 {
			return tuple.EdgeID(x)
		}
	}
}
