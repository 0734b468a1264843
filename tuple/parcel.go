package tuple

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/egretstream/egret/amount"
)

const (
	// MaxParcel is the most tuples a parcel can hold.
	MaxParcel = 1024
	// MaxAnchors is the most messages that one tuple can be anchored to.
	MaxAnchors = 4096
	// MaxSlots is the most slots a parcel can have.
	MaxSlots = 1<<16 - 1
	// Several is the Slot in the Ref of a tuple with several anchors: its Index is
	// then the place of their Refs in the parcel's Lists.
	Several = MaxSlots
)

// A Schema is what one stream of one component looks like.
type Schema struct {
	Component, Stream string
	Fields            []string
	// Direct is how many tasks an emitter chooses from with EmitDirect: those of the
	// one component that subscribes with Direct. 0: the stream is not direct.
	Direct int
	// Masked are the fields whose values are shown to nobody; see topology.Component.Mask.
	Masked []string
}

// Mask is what is shown instead of the value of a masked field.
const Mask = "•••"

// Masks reports whether the values at position i are shown to nobody.
func (s *Schema) Masks(i int) bool {
	return len(s.Masked) > 0 && slices.Contains(s.Masked, s.Fields[i])
}

// Index returns the position of a field, or -1.
func (s *Schema) Index(field string) int {
	// A name written in the program is mostly the same text in memory as where the
	// stream was declared, which is found without looking at the bytes.
	for i := range s.Fields {
		f := s.Fields[i]
		if len(f) == len(field) && unsafe.StringData(f) == unsafe.StringData(field) {
			return i
		}
	}
	return s.search(field)
}

func (s *Schema) search(field string) int { return slices.Index(s.Fields, field) }

// A Slot is one tree's part in a parcel, which is one edge of the tree.
type Slot struct {
	Tree  TreeID
	Edge  EdgeID
	Count uint32 // messages of the tree that the tuples of the parcel come of, each tuple's own counted
}

// A Ref says which message of which tree a tuple came of.
type Ref struct {
	Slot  uint16 // in the parcel's Slots, or Several
	Index uint16 // of the message in its tree, or in the parcel's Lists
}

// A Parcel is the tuples that one task sends another in one go. All are of one
// stream and have the same kinds of values, which stand once in the header.
//
// Owner: the sender until it is sent, then the receiver until it is given back
// empty. The cells are used again; the text they point at never is.
type Parcel struct {
	From, To TaskID
	FromLife Incarnation
	ToLife   Incarnation // the parcel is for this life of the receiver and no other
	Plan     uint32      // epoch of the plan that the sender had when it sent it
	Input    int         // which of the receiver's inputs
	Stream   int         // which of the sender's streams; it does not travel
	Schema   *Schema
	Opened   time.Duration // when the first tuple was put in, by the sender's host; it does not travel
	Kinds    []Kind        // one per field
	Cells    []Cell        // len(Kinds) per tuple
	Slots    []Slot        // tracked parcels only
	Refs     []Ref         // one per tuple; tracked parcels only
	Lists    [][]Ref       // of the tuples with several anchors, in the order of the tuples
	n        int
	text     int    // bytes of text that the cells point at
	gen      uint32 // counts the uses, so that an old Tuple is found out
	shape    shape  // of Kinds

	// Batch is what the tuples are of in an exactly-once topology. A Marker has no tuples,
	// and says that all of the batch that its sender had for its receiver was before it.
	Batch  BatchID
	Marker bool

	kinds [mostShape]Kind // room for Kinds
	_     [7]byte         // fills 256 bytes: a parcel shares no cache line with another
}

// Len returns the number of tuples in p.
func (p *Parcel) Len() int { return p.n }

// Text returns the bytes of text in p's tuples.
func (p *Parcel) Text() int { return p.text }

// Tuple returns the i-th tuple of p, good until p is reset.
func (p *Parcel) Tuple(i int) Tuple { return Tuple{p: p, row: int32(i), gen: p.gen} }

// Expire ends the life of every Tuple on p, whose use is then found out.
func (p *Parcel) Expire() { p.gen++ }

// Reset empties p for its next use and ends the life of every Tuple on it. A
// parcel that points at much text lets go of it now; so does one with values of
// kind any, whose size nobody knows.
func (p *Parcel) Reset() {
	if p.text > 64<<10 || slices.Contains(p.Kinds, KindAny) {
		clear(p.Cells[:cap(p.Cells)])
	}
	p.gen++
	p.n, p.text, p.Batch, p.Marker = 0, 0, BatchID{}, false
	p.Kinds, p.Cells, p.shape = p.Kinds[:0], p.Cells[:0], 0
	p.Slots, p.Refs = p.Slots[:0], p.Refs[:0]
	if p.Lists != nil {
		clear(p.Lists)
		p.Lists = p.Lists[:0]
	}
}

// Fits reports whether r may join the tuples of p: it has the same kinds.
func (p *Parcel) Fits(r *Row) bool {
	return p.shape == r.shape && (p.shape != 0 || slices.Equal(p.Kinds, r.Kinds))
}

// Begin sets the kinds of an empty parcel and makes room for size tuples.
func (p *Parcel) Begin(kinds []Kind, size int) {
	if p.Kinds == nil {
		p.Kinds = p.kinds[:0]
	}
	p.Kinds = append(p.Kinds[:0], kinds...)
	p.shape = shapeOf(kinds)
	if n := size * len(kinds); cap(p.Cells) < n {
		p.Cells = make([]Cell, 0, n)
	}
}

// Append puts a row behind p's tuples, without Ref. The row must fit, and there
// must be room for it: at most the size given to Begin. It returns how many there
// are now.
func (p *Parcel) Append(r *Row) (tuples int) {
	o := len(p.Cells)
	p.Cells = p.Cells[:o+len(r.Cells)]
	d, c := p.Cells[o:], r.Cells
	for i := range d { // not copy: its call costs more than a few cells
		d[i] = c[i]
	}
	p.n++
	p.text += r.Text
	return p.n
}

// A Tuple is one row on a stream: a cheap view on its parcel, valid until
// Execute returns. Strings read from it are ordinary strings and stay valid;
// but they share memory with their parcel, so what is kept for long is cloned.
//
// Reading a field that the stream does not have, or one of another kind,
// rejects the tuple: Execute stops there, and the message is dead.
type Tuple struct {
	p   *Parcel
	row int32
	gen uint32
}

// Len returns the number of fields.
func (t Tuple) Len() int { return len(t.parcel().Kinds) }

// Fields returns the names of the fields, which must not be changed.
func (t Tuple) Fields() []string { return t.parcel().Schema.Fields }

// Masked reports whether the value of field i is shown to nobody.
func (t Tuple) Masked(i int) bool { return t.parcel().Schema.Masks(i) }

// Component returns the name of the component that emitted t.
func (t Tuple) Component() string { return t.parcel().Schema.Component }

// Stream returns the name of the stream that t came on.
func (t Tuple) Stream() string { return t.parcel().Schema.Stream }

// At returns the value at position i, counted from 0.
func (t Tuple) At(i int) Value {
	p := t.parcel()
	if uint(i) >= uint(len(p.Kinds)) {
		panic(misuse{fmt.Sprintf("stream %s.%s has no position %d (it has %s)", p.Schema.Component, p.Schema.Stream, i, amount.Of(len(p.Kinds), "field"))})
	}
	return Value{p.Cells[int(t.row)*len(p.Kinds)+i], p.Kinds[i]}
}

// Value returns the value of a field, of whatever kind.
func (t Tuple) Value(field string) Value {
	p := t.parcel()
	i := p.Schema.Index(field)
	if i < 0 {
		t.noField(field)
	}
	return Value{p.Cells[int(t.row)*len(p.Kinds)+i], p.Kinds[i]}
}

// String returns the text of a field of kind string. The methods below do the
// same for the other kinds.
func (t Tuple) String(field string) string { return t.cell(field, KindString).text() }

func (t Tuple) Int64(field string) int64   { return int64(t.cell(field, KindInt64).num) }
func (t Tuple) Uint64(field string) uint64 { return t.cell(field, KindUint64).num }
func (t Tuple) Bool(field string) bool     { return t.cell(field, KindBool).num != 0 }
func (t Tuple) Float64(field string) float64 {
	return Value{t.cell(field, KindFloat64), KindFloat64}.Float64()
}

// Bytes returns shared bytes, which must not be written.
func (t Tuple) Bytes(field string) []byte { return t.cell(field, KindBytes).bytes() }

// Time returns a time in UTC.
func (t Tuple) Time(field string) time.Time { return Value{t.cell(field, KindTime), KindTime}.Time() }

func (t Tuple) Duration(field string) time.Duration {
	return time.Duration(t.cell(field, KindDuration).num)
}

func (t Tuple) parcel() *Parcel {
	if t.p == nil || t.p.gen != t.gen {
		panic(misuse{"tuple used after Execute has returned: copy what you keep"})
	}
	return t.p
}

func (t Tuple) cell(field string, k Kind) Cell {
	p := t.parcel()
	i := p.Schema.Index(field)
	if i < 0 {
		t.noField(field)
	}
	if p.Kinds[i] != k {
		t.wrongKind(i, k)
	}
	return p.Cells[int(t.row)*len(p.Kinds)+i]
}

func (t Tuple) noField(field string) {
	s := t.p.Schema
	panic(misuse{fmt.Sprintf("stream %s.%s has no field %q (it has %s)", s.Component, s.Stream, field, quoted(s.Fields))})
}

func (t Tuple) wrongKind(i int, k Kind) {
	s := t.p.Schema
	panic(misuse{fmt.Sprintf("field %q of stream %s.%s is %v, not %v", s.Fields[i], s.Component, s.Stream, t.p.Kinds[i], k)})
}

// AppendValues appends the values of t to dst.
func (t Tuple) AppendValues(dst []Value) []Value {
	for i := range t.Len() {
		dst = append(dst, t.At(i))
	}
	return dst
}

// Clone returns a tuple with the values of t that stays valid and shares no memory
// with t.
func (t Tuple) Clone() Tuple {
	var p Parcel
	return t.CloneInto(&p)
}

// CloneInto is Clone with the memory of an empty parcel, which must not be used
// for anything else.
func (t Tuple) CloneInto(p *Parcel) Tuple {
	from := t.parcel()
	p.Schema = from.Schema
	p.Begin(from.Kinds, 1)
	p.Cells = append(p.Cells, from.Row(int(t.row))...)
	p.n, p.text = 1, TextOf(p.Cells, p.Kinds)
	text := make([]byte, 0, p.text)
	for i, k := range p.Kinds {
		if k != KindString && k != KindBytes || p.Cells[i].num == 0 {
			continue
		}
		o := len(text)
		text = append(text, p.Cells[i].bytes()...)
		p.Cells[i].ptr = unsafe.Pointer(&text[o])
	}
	return p.Tuple(0)
}

// Trees calls f for the tree of each message that the i-th tuple of p, which is
// tracked, comes of.
func (p *Parcel) Trees(i int, f func(TreeID)) {
	r := p.Refs[i]
	if r.Slot != Several {
		f(p.Slots[r.Slot].Tree)
		return
	}
	for _, r := range p.Lists[r.Index] {
		f(p.Slots[r.Slot].Tree)
	}
}

// In reports whether t is the i-th tuple of p.
func (t Tuple) In(p *Parcel, i int) bool { return t.p == p && int(t.row) == i && t.gen == p.gen }

// Row returns the cells of the i-th tuple, shared with the parcel.
func (p *Parcel) Row(i int) []Cell {
	n := len(p.Kinds)
	return p.Cells[i*n : i*n+n : i*n+n]
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	s := ""
	for i, n := range names {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%q", n)
	}
	return s
}

// AppendRun puts rows rows behind p's tuples, whose cells lie one after another.
// They must fit and there must be room for them, as for Append.
func (p *Parcel) AppendRun(cells []Cell, rows int) {
	o := len(p.Cells)
	p.Cells = p.Cells[:o+len(cells)]
	d := p.Cells[o:]
	for i := range d {
		d[i] = cells[i]
	}
	p.n += rows
	p.text += TextOf(cells, p.Kinds)
}

// AppendRefs says of the last rows tuples, which have no Ref yet, that they come
// of messages of one slot with consecutive indices.
func (p *Parcel) AppendRefs(slot, index uint16, rows int) {
	for range rows {
		p.Refs = append(p.Refs, Ref{slot, index})
		index++
	}
}

// TextOf returns the bytes of text that the cells of any number of rows of these
// kinds point at.
func TextOf(cells []Cell, kinds []Kind) int {
	n := 0
	for c, k := range kinds {
		if k != KindString && k != KindBytes {
			continue
		}
		for i := c; i < len(cells); i += len(kinds) {
			n += int(cells[i].num)
		}
	}
	return n
}

// CloneRow returns the values of one row with text of their own.
func CloneRow(cells []Cell, kinds []Kind) []Value {
	vs := make([]Value, len(cells))
	for i, c := range cells {
		switch kinds[i] {
		case KindString:
			c = textCell(strings.Clone(c.text()))
		case KindBytes:
			c = bytesCell(append([]byte(nil), c.bytes()...))
		}
		vs[i] = Value{c, kinds[i]}
	}
	return vs
}
