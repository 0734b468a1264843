package tuple

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/zeebo/xxh3"

	"github.com/egretstream/egret/mutation"
)

// KeyGroups is the number of shares that the key space is cut into. A change of
// parallelism moves whole groups, never single keys.
const KeyGroups = 1024

// The seeds keep apart keys whose bytes are the same but whose kinds are not.
// They decide which task owns a key on every node and in every version, so they
// never change. A text has seed 0: alone it hashes to plain XXH3 of its bytes.
const (
	seedStep     = 0x9e3779b97f4a7c15 // odd, so the multiples differ
	seedBytes    = 1 * seedStep & math.MaxUint64
	seedNatural  = 2 * seedStep & math.MaxUint64 // whole numbers from 0 to 2^64-1
	seedNegative = 3 * seedStep & math.MaxUint64 // whole numbers from -2^63 to -1
	seedFloat    = 4 * seedStep & math.MaxUint64 // all other floats
	seedBool     = 5 * seedStep & math.MaxUint64
	seedNil      = 6 * seedStep & math.MaxUint64
	seedTime     = 7 * seedStep & math.MaxUint64
	seedDuration = 8 * seedStep & math.MaxUint64
	seedAny      = 9 * seedStep & math.MaxUint64
)

// canonicalNaN stands for every NaN.
const canonicalNaN = 0x7ff8000000000001

// Hash returns the hash of a key: the cells at the given positions, in this
// order. It is the same in every process and on every architecture. Numbers of
// the same exact value have the same hash, whether int64, uint64 or float64; -0
// is 0, and all NaN are one. Values of other kinds are equal only within their
// kind. Without fields the hash is constant.
//
// The hash of a field is the seed of the next, so that ("ab", "c") and ("a",
// "bc") are two keys. A value of kind any whose codec fails is a misuse.
func Hash(cells []Cell, kinds []Kind, fields []int) uint64 {
	if len(fields) == 1 && kinds[fields[0]] == KindString { // most keys are one text
		return xxh3.HashString(cells[fields[0]].text())
	}
	h := uint64(0)
	for _, f := range fields {
		if kinds[f] == KindString {
			h = xxh3.HashStringSeed(cells[f].text(), h)
		} else {
			h = hashCell(cells[f], kinds[f], h)
		}
	}
	return h
}

// KeyGroup returns the group of the key that r has at the given positions.
func (r *Row) KeyGroup(fields []int) int {
	if mutation.Is(mutation.HashByProcess) {
		return (KeyGroup(Hash(r.Cells, r.Kinds, fields)) + mutation.Process()) % KeyGroups
	}
	if len(fields) == 1 && r.Kinds[fields[0]] == KindString { // most keys are one text
		return int(xxh3.HashString(r.Cells[fields[0]].text()) % KeyGroups)
	}
	return KeyGroup(Hash(r.Cells, r.Kinds, fields))
}

// KeyGroup returns the group of a key with the given hash, from 0 to
// KeyGroups-1.
func KeyGroup(hash uint64) int { return int(hash % KeyGroups) }

// Owner returns which of a component's tasks, counted from 0, owns a key group.
// Each task owns a contiguous range; with more than KeyGroups tasks some own
// none.
func Owner(group, tasks int) int { return group * tasks / KeyGroups }

// Owners returns the two of a component's tasks, counted from 0, that share a key
// with the given hash when it is grouped by a partial key. The first is the owner
// of its group. They are two, unless there is only one task, and like Owner they
// are the same everywhere and never change.
func Owners(hash uint64, tasks int) (first, second int) {
	first = Owner(KeyGroup(hash), tasks)
	if tasks < 2 {
		return first, first
	}
	// The group is of the low bits, so the high ones say how far away.
	return first, (first + 1 + int((hash>>32)*uint64(tasks-1)>>32)) % tasks
}

func hashCell(c Cell, k Kind, h uint64) uint64 {
	switch k {
	case KindString:
		return xxh3.HashStringSeed(c.text(), h)
	case KindBytes:
		return xxh3.HashStringSeed(c.text(), h+seedBytes)
	case KindInt64:
		if int64(c.num) < 0 {
			return hashNum(c.num, h+seedNegative)
		}
		return hashNum(c.num, h+seedNatural)
	case KindUint64:
		return hashNum(c.num, h+seedNatural)
	case KindFloat64:
		return hashFloat(math.Float64frombits(c.num), h)
	case KindBool:
		return hashNum(c.num, h+seedBool)
	case KindNil:
		return hashNum(0, h+seedNil)
	case KindTime:
		return hashNum(c.num, h+seedTime)
	case KindDuration:
		return hashNum(c.num, h+seedDuration)
	default:
		return hashAny(*(*any)(c.ptr), h+seedAny)
	}
}

func hashNum(n, seed uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return xxh3.HashSeed(b[:], seed)
}

// hashFloat hashes a whole number as the integer that it equals, if there is
// one: 2^64 and 1e300 are whole too, but equal no integer of 64 bits.
func hashFloat(f float64, h uint64) uint64 {
	switch {
	case f != f:
		return hashNum(canonicalNaN, h+seedFloat)
	case f != math.Trunc(f) || f < -1<<63 || f >= 1<<64:
		return hashNum(math.Float64bits(f), h+seedFloat)
	case f < 0:
		return hashNum(uint64(int64(f)), h+seedNegative)
	default:
		return hashNum(uint64(f), h+seedNatural)
	}
}

func hashAny(v any, seed uint64) uint64 {
	c := codecs.byType[reflect.TypeOf(v)]
	b, err := c.append(nil, v)
	if err != nil {
		panic(misuse{fmt.Sprintf("codec %q cannot encode a key: %v", c.name, err)})
	}
	return xxh3.HashSeed(b, seed)
}
