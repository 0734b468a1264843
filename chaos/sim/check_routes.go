package sim

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A routeKey is a key that one input of a part is grouped by.
type routeKey struct {
	part, from, stream int
	key                string
}

// checkRoute compares the task that a tuple has come to with its grouping.
func (b *simBolt) checkRoute(e edge, id uint64) {
	rec := b.rec
	rec.check(chaos.Routing)
	switch e.grouping {
	case topology.Global:
		if b.task != 0 {
			rec.violate(chaos.Routing, "%s gets a tuple that is for the first task", b.name())
		}
	case topology.PartialKey, topology.Fields:
		rec.checkKey(b, e, id)
	}
}

// checkKey checks that a key comes to the one task that its hash says, or to one of
// the two.
func (rec *record) checkKey(b *simBolt, e edge, id uint64) {
	rec.check(chaos.Keys)
	k, hash := rec.scene.keyOn(e, b.part, id)
	tasks := uint64(rec.scene.parts[b.part].parallel)
	first := int(hash % 1024 * tasks / 1024)
	second := first
	if e.grouping == topology.PartialKey && tasks > 1 {
		second = (first + 1 + int((hash>>32)*(tasks-1)>>32)) % int(tasks)
	}
	if b.task != first && b.task != second && rec.twist == nil {
		rec.violate(chaos.Keys, "key %q of %s, whose hash is %x, comes to task %d and not to %d or %d", k.key, rec.scene.parts[b.part].name, hash, b.task, first, second)
	}
	if at := rec.keys[k]; !slices.Contains(at, b.task) {
		rec.keys[k] = append(at, b.task)
	}
}

// keyOn returns the key that a tuple has on an edge, and its hash.
func (s *scene) keyOn(e edge, to int, id uint64) (k routeKey, hash uint64) {
	values := []any{s.key(id)}
	if e.several {
		values = append(values, s.half(id))
	}
	k = routeKey{part: to, from: e.from, stream: e.stream}
	for _, v := range values {
		value, err := tuple.ValueOf(v)
		if err != nil {
			panic(err)
		}
		k.key += value.Kind().String() + " " + value.String() + " "
		hash = keyHash(v, hash)
	}
	return k, hash
}

// keyHash is the hash of a value with that of the fields before it, as it is written
// down: XXH3 of its bytes, a number's as 8 bytes with the lowest first, with a seed
// for each kind. Whole numbers are one kind, also those among the floats. The task of
// a key is its hash modulo 1,024, times the number of tasks, by 1,024.
func keyHash(v any, seed uint64) uint64 {
	const step = 0x9e3779b97f4a7c15
	kind := func(n uint64) uint64 { return seed + n*uint64(step) }
	number := func(n, seed uint64) uint64 {
		return xxh3.HashSeed(binary.LittleEndian.AppendUint64(nil, n), seed)
	}
	whole := func(n int64) uint64 {
		if n < 0 {
			return number(uint64(n), kind(3))
		}
		return number(uint64(n), kind(2))
	}
	switch v := v.(type) {
	case string:
		return xxh3.HashStringSeed(v, seed)
	case []byte:
		return xxh3.HashSeed(v, kind(1))
	case uint64:
		return number(v, kind(2))
	case int64:
		return whole(v)
	case float64:
		if v == math.Trunc(v) {
			return whole(int64(v))
		}
		return number(math.Float64bits(v), kind(4))
	case bool:
		if v {
			return number(1, kind(5))
		}
		return number(0, kind(5))
	case time.Time:
		return number(uint64(v.UnixNano()), kind(7))
	case time.Duration:
		return number(uint64(v), kind(8))
	}
	return number(0, kind(6))
}

// checkOrder compares the numbers that one incarnation has put on its tuples, and
// the places of messages that are emitted for the first time.
func (b *simBolt) checkOrder(e edge, in tuple.Tuple, m *root) {
	by, seq := in.Int64("by"), in.Int64("seq")
	k := lineKey{from: by, stream: e.stream}
	if by == 0 {
		if m == nil || in.Uint64("id") != m.id || m.attempts > 1 || m.reads != 1 || m.owner != nil {
			return // it may be a replay, or comes as it likes
		}
		k.reader, k.split, seq = m.reader, m.split, int64(m.index)
		if m.delivery != nil {
			seq = int64(m.delivery.at0)
		}
		seq++
	}
	b.rec.check(chaos.Order)
	if last := b.last[k]; seq <= last {
		b.rec.violate(chaos.Order, "%s gets number %d of incarnation %d (%s) behind number %d", b.name(), seq, by, m.name, last)
	} else {
		b.last[k] = seq
	}
	if by > 0 {
		line := [2]int64{by, int64(e.stream)}
		b.rec.heard[line] = max(b.rec.heard[line], seq)
	}
}

// A lineKey is what is in order: the tuples of an incarnation on a stream, or a
// reader's messages of a split.
type lineKey struct {
	from   int64
	stream int
	reader *proc
	split  *splitBook
}

// arrivals checks that all that comes of messages that are done has come where its
// groupings send it, and its keys where they belong.
func (rec *record) arrivals() {
	for _, m := range rec.all {
		if !m.acked {
			continue
		}
		for _, e := range m.all {
			rec.twin(chaos.Routing)
			if e.tries == 0 {
				rec.violate(chaos.Routing, "%s is done, and %s", m.name, rec.where(e))
			}
			if g := e.on.grouping; g == topology.Fields || g == topology.PartialKey {
				rec.twin(chaos.Keys)
				if k, _ := rec.scene.keyOn(e.on, e.part, e.id); len(rec.keys[k]) == 0 {
					rec.violate(chaos.Keys, "%s is done, and its key %q has come to no task of %s", m.name, k.key, rec.scene.parts[e.part].name)
				}
			}
		}
	}
}

// ordersAtEnd checks that the last tuple on each line of a run in which nothing went
// wrong has come.
func (rec *record) ordersAtEnd() {
	for _, b := range rec.bolts {
		for stream, n := range b.said {
			if n == 0 || !rec.scene.listensTo(b.part, stream) {
				continue
			}
			rec.twin(chaos.Order)
			if last := rec.heard[[2]int64{b.number, int64(stream)}]; last < n {
				rec.violate(chaos.Order, "%s has put number %d on a tuple of stream %s, and the last to come has number %d", b.name(), n, streamName(stream), last)
			}
		}
	}
}

// listensTo reports whether each tuple of a stream comes to somebody. A custom grouping
// may send it to nobody, or take it from the others by a mistake.
func (s *scene) listensTo(from, stream int) (heard bool) {
	for i := range s.parts {
		for _, e := range s.parts[i].inputs {
			if e.from == from && e.stream == stream {
				if heard = true; e.grouping == topology.Custom {
					return false
				}
			}
		}
	}
	return heard
}
