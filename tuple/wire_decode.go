package tuple

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// DecodeParcel fills into with the parcel whose wire form is b, for a stream of
// the given schema. It keeps nothing of b. What into held before is gone; its
// cells are used again, its text never. An error is [ErrCorrupt], says where,
// and leaves into without tuples.
//
// It may be given any bytes: it does not panic (if no codec of an [Any] does)
// and allocates no more than a small multiple of len(b).
func DecodeParcel(b []byte, into *Parcel, schema *Schema) error {
	return decode(b, into, schema, false)
}

// DecodeInPlace is [DecodeParcel], but the text of into stays where it is in b, which
// must never be written to again.
func DecodeInPlace(b []byte, into *Parcel, schema *Schema) error {
	return decode(b, into, schema, true)
}

func decode(b []byte, into *Parcel, schema *Schema, inPlace bool) error {
	into.Reset()
	into.Schema = schema
	d := decoder{b: b, inPlace: inPlace}
	d.parcel(into)
	if d.err == nil {
		return nil
	}
	into.Reset()
	return fmt.Errorf("%w for stream %s.%s: %w", ErrCorrupt, schema.Component, schema.Stream, d.err)
}

// A decoder reads through b. After the first mistake err is set and nothing
// that is read counts.
type decoder struct {
	b   []byte
	o   int // the next byte
	err error

	inPlace bool // text may point into b
}

func (d *decoder) corrupt(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// left returns how many bytes are still to be read.
func (d *decoder) left() int { return len(d.b) - d.o }

// number reads an unsigned number that is at most max.
func (d *decoder) number(what string, max uint64) uint64 {
	if d.err != nil {
		return 0
	}
	n, o := uvarint(d.b, d.o)
	if o < 0 {
		d.corrupt("no %s at byte %d", what, d.o)
		return 0
	}
	if n > max {
		d.corrupt("%s %d at byte %d, more than %d", what, n, d.o, max)
		return 0
	}
	d.o = o
	return n
}

func (d *decoder) address(p *Parcel) {
	if len(d.b) == 0 || d.b[0] != wireVersion && d.b[0] != wireBatch {
		d.corrupt("it does not begin with the version, %d or %d", wireVersion, wireBatch)
	}
	d.o = 1
	p.From = TaskID(d.number("sender", math.MaxUint32))
	p.To = TaskID(d.number("receiver", math.MaxUint32))
	p.FromLife = Incarnation(d.number("life of the sender", math.MaxUint64))
	p.ToLife = Incarnation(d.number("life of the receiver", math.MaxUint64))
	p.Input = int(d.number("input", math.MaxInt32))
}

func (d *decoder) parcel(p *Parcel) {
	d.address(p)
	p.Plan = uint32(d.number("plan", math.MaxUint32))
	d.batch(p)
	d.kinds(p)
	n := int(d.number("number of tuples", MaxParcel))
	if p.Marker && n > 0 {
		d.corrupt("%d tuples in a marker", n)
	}
	d.slots(p, n)
	text := d.number("length of text", uint64(d.left()))
	w := len(p.Kinds)
	if d.err == nil && n*w > d.left()-int(text) {
		d.corrupt("%d tuples of %d fields at byte %d in %d bytes", n, w, d.o, d.left()-int(text))
	}
	if d.err != nil {
		return
	}
	p.Begin(p.Kinds, n)
	p.n, p.Cells = n, p.Cells[:n*w]
	d.columns(p, int(text))
}

func (d *decoder) batch(p *Parcel) {
	if d.err != nil || d.b[0] != wireBatch {
		return
	}
	if p.Batch.Tx = TxID(d.number("batch", math.MaxUint64)); p.Batch.Tx == 0 {
		d.corrupt("batch 0 before byte %d", d.o)
	}
	p.Batch.Epoch = uint32(d.number("epoch of the batch", math.MaxUint32))
	p.Batch.Round = uint32(d.number("round of the batch", math.MaxUint32))
	p.Marker = d.number("marker", 1) == 1
}

func (d *decoder) kinds(p *Parcel) {
	n := d.number("number of fields", math.MaxInt32)
	if d.err == nil && int(n) != len(p.Schema.Fields) {
		d.corrupt("%d fields at byte %d, but the stream has %d", n, d.o, len(p.Schema.Fields))
	}
	if d.err == nil && int(n) > d.left() {
		d.corrupt("%d fields at byte %d in %d bytes", n, d.o, d.left())
	}
	if d.err != nil {
		return
	}
	for i, k := range d.b[d.o : d.o+int(n)] {
		if Kind(k) >= kinds {
			d.corrupt("kind %d at byte %d", k, d.o+i)
			return
		}
		p.Kinds = append(p.Kinds, Kind(k))
	}
	d.o += int(n)
}

// slots reads the slots and refs of n tuples. A slot without tuples, or one that
// counts more or fewer than refer to it, would leave its tree open for ever.
func (d *decoder) slots(p *Parcel, n int) {
	k := int(d.number("number of slots", MaxSlots))
	if k > 0 && k*minSlot+refSize*n > d.left() {
		d.corrupt("%d slots for %d tuples at byte %d in %d bytes", k, n, d.o, d.left())
	}
	if d.err == nil && k > 0 && n == 0 {
		d.corrupt("%d slots for no tuples at byte %d", k, d.o)
	}
	if d.err != nil || k == 0 {
		return
	}
	p.Slots = slices.Grow(p.Slots, k)
	for range k {
		p.Slots = append(p.Slots, Slot{
			Tree: TreeID{
				Task:        TaskID(d.number("task of a tree", math.MaxUint32)),
				Incarnation: Incarnation(d.number("life of a tree", math.MaxUint64)),
				Seq:         d.number("number of a tree", math.MaxUint64),
			},
			Edge:  d.edge(),
			Count: uint32(d.number("tuples of a slot", MaxParcel*MaxAnchors)),
		})
	}
	seen := make([]uint32, k) // refs to each slot
	p.Refs = d.refs(slices.Grow(p.Refs, n), n)
	for i, r := range p.Refs {
		switch {
		case int(r.Slot) < k:
			seen[r.Slot]++
		case r.Slot != Several:
			d.corrupt("tuple %d is of slot %d of %d", i, r.Slot, k)
		case int(r.Index) != len(p.Lists):
			d.corrupt("tuple %d has list %d, and %d is next", i, r.Index, len(p.Lists))
		default:
			d.list(p, seen)
		}
		if d.err != nil {
			return
		}
	}
	for i := range p.Slots {
		if seen[i] == 0 || p.Slots[i].Count != seen[i] {
			d.corrupt("slot %d counts %d tuples and %d refer to it", i, p.Slots[i].Count, seen[i])
		}
	}
}

// refs appends the next n refs.
func (d *decoder) refs(dst []Ref, n int) []Ref {
	if d.err == nil && d.left() < refSize*n {
		d.corrupt("no refs of %d tuples at byte %d", n, d.o)
	}
	if d.err != nil {
		return dst
	}
	for range n {
		x := binary.LittleEndian.Uint32(d.b[d.o:])
		dst = append(dst, Ref{Slot: uint16(x), Index: uint16(x >> 16)})
		d.o += refSize
	}
	return dst
}

// list reads the refs of a tuple with several anchors.
func (d *decoder) list(p *Parcel, seen []uint32) {
	n := int(d.number("number of anchors", MaxAnchors))
	if d.err == nil && n*refSize > d.left() {
		d.corrupt("%d anchors at byte %d in %d bytes", n, d.o, d.left())
	}
	if d.err == nil && n == 0 {
		d.corrupt("no anchors at byte %d", d.o)
	}
	if d.err != nil {
		return
	}
	refs := d.refs(make([]Ref, 0, n), n)
	for _, r := range refs {
		if int(r.Slot) >= len(seen) {
			d.corrupt("an anchor is of slot %d of %d", r.Slot, len(seen))
			return
		}
		seen[r.Slot]++
	}
	p.Lists = append(p.Lists, refs)
}

func (d *decoder) edge() EdgeID {
	if d.left() < 8 {
		d.corrupt("no edge at byte %d", d.o)
		return 0
	}
	e := binary.LittleEndian.Uint64(d.b[d.o:])
	d.o += 8
	return EdgeID(e)
}

// columns reads the cells of p, which are there and hold anything, and copies
// their text, of which the last n bytes of the frame are made.
func (d *decoder) columns(p *Parcel, n int) {
	end := len(d.b) - n
	var text string
	if d.inPlace {
		text = unsafe.String(unsafe.SliceData(d.b[end:]), n)
	} else {
		text = string(d.b[end:]) // the one copy: b is the caller's
	}
	p.text = n
	d.b = d.b[:end]
	used := 0 // of text
	for c, k := range p.Kinds {
		switch k {
		case KindNil, KindBool:
			d.flags(p, c)
		case KindInt64, KindDuration:
			d.numbers(p, c)
			for i := c; i < len(p.Cells); i += len(p.Kinds) {
				p.Cells[i].num = uint64(unzigzag(p.Cells[i].num))
			}
		case KindUint64:
			d.numbers(p, c)
		case KindFloat64, KindTime:
			d.words(p, c)
		case KindString, KindBytes:
			start := d.o
			d.numbers(p, c)
			if d.err == nil {
				used = d.texts(p, c, text, used, start)
			}
		default:
			d.anys(p, c)
		}
		if d.err != nil {
			return
		}
	}
	if d.left() > 0 {
		d.corrupt("%d bytes too many at byte %d", d.left(), d.o)
	} else if used < n {
		d.corrupt("%d bytes of text too many", n-used)
	}
}

// texts points the cells of a column, which hold their lengths, into text from
// used on, and returns how much of it is used then. The column began at start.
func (d *decoder) texts(p *Parcel, c int, text string, used, start int) int {
	base := unsafe.Pointer(unsafe.StringData(text))
	cells, w := p.Cells, len(p.Kinds)
	for i := c; i < len(cells); i += w {
		n := cells[i].num
		if n > uint64(len(text)-used) {
			d.badCell(p, i, start)
			return used
		}
		if n > 0 { // an empty text has no pointer: it could lie behind the buffer
			cells[i].ptr = unsafe.Add(base, used)
			used += int(n)
		}
	}
	return used
}

// numbers reads a column of varints.
func (d *decoder) numbers(p *Parcel, c int) {
	b, o, cells, w := d.b, d.o, p.Cells, len(p.Kinds)
	for i := c; i < len(cells); i += w {
		if o < len(b) && b[o] < 0x80 { // most are small
			cells[i] = Cell{num: uint64(b[o])}
			o++
			continue
		}
		n, next := uvarint(b, o)
		if next < 0 {
			d.badCell(p, i, o)
			return
		}
		cells[i] = Cell{num: n}
		o = next
	}
	d.o = o
}

// flags reads a column of nil or bool. Nil is kind 0 and always 0, bool is kind
// 1 and at most 1.
func (d *decoder) flags(p *Parcel, c int) {
	w, most := len(p.Kinds), byte(p.Kinds[c])
	for i := c; i < len(p.Cells); i += w {
		if d.left() == 0 || d.b[d.o] > most {
			d.badCell(p, i, d.o)
			return
		}
		p.Cells[i] = Cell{num: uint64(d.b[d.o])}
		d.o++
	}
}

// words reads a column of 8 bytes each.
func (d *decoder) words(p *Parcel, c int) {
	for i := c; i < len(p.Cells); i += len(p.Kinds) {
		if d.left() < 8 {
			d.badCell(p, i, d.o)
			return
		}
		p.Cells[i] = Cell{num: binary.LittleEndian.Uint64(d.b[d.o:])}
		d.o += 8
	}
}

func (d *decoder) anys(p *Parcel, c int) {
	var used []*anyCodec
	w := len(p.Kinds)
	for i := c; i < len(p.Cells); i += w {
		n := d.number("number of a codec", uint64(len(used)))
		if d.err == nil && n == uint64(len(used)) {
			name := d.take(d.number("length of a codec's name", uint64(d.left())))
			codec := codecs.byName[string(name)]
			if codec == nil {
				d.corrupt("no codec %q is registered here (byte %d)", name, d.o)
			}
			used = append(used, codec)
		}
		if d.err == nil && d.left() < 4 {
			d.corrupt("no length of a value at byte %d", d.o)
		}
		if d.err != nil {
			return
		}
		size := binary.LittleEndian.Uint32(d.b[d.o:])
		d.o += 4
		value := d.take(uint64(size))
		if d.err != nil {
			return
		}
		v, err := used[n].decode(value)
		if err != nil {
			d.corrupt("codec %q, tuple %d, field %q: %w", used[n].name, i/w, p.Schema.Fields[c], err)
			return
		}
		p.Cells[i] = Cell{ptr: unsafe.Pointer(&v)}
	}
}

// take returns the next n bytes.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(d.left()) {
		d.corrupt("%d bytes at byte %d, and %d are left", n, d.o, d.left())
	}
	if d.err != nil {
		return nil
	}
	b := d.b[d.o : d.o+int(n) : d.o+int(n)]
	d.o += int(n)
	return b
}

// badCell reports cell i of p, which is at byte o or in a column that begins
// there.
func (d *decoder) badCell(p *Parcel, i, o int) {
	w := len(p.Kinds)
	d.corrupt("tuple %d, field %q: no %v at byte %d", i/w, p.Schema.Fields[i%w], p.Kinds[i%w], o)
}

// uvarint reads an unsigned number at b[o:] and returns it with the offset
// behind it, or -1 if there is none.
func uvarint(b []byte, o int) (uint64, int) {
	n, k := binary.Uvarint(b[o:])
	if k <= 0 {
		return 0, -1
	}
	return n, o + k
}

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }
