package task

import (
	"encoding/binary"
	"encoding/json"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// AppendContent appends what a message says, beside its class, in a form that two
// messages share if they say the same. It is for who compares runs: neither a wire
// format nor for people. It keeps nothing of the message and changes nothing. Values
// of kind any are part of it in parcels, where their codec is at hand.
func AppendContent(dst []byte, msg any) []byte {
	c := content(dst)
	switch m := msg.(type) {
	case *tuple.Parcel:
		return appendParcel(dst, m)
	case *acker.Report:
		c.report(m)
	case *Limit:
		c.pair(m.From, m.FromLife, m.To, m.ToLife)
		c.numbers(m.Total, uint64(m.Each), uint64(len(m.Parcels)))
	case *Ask:
		c.pair(m.From, m.FromLife, m.To, m.ToLife)
	case *End:
		c.pair(m.From, m.FromLife, m.To, m.ToLife)
	case *Dry:
		c.pair(m.From, m.FromLife, m.To, m.ToLife)
		c.yes(m.Not)
	case *Order:
		c.pair(m.From, m.FromLife, m.To, m.ToLife)
		c.words(&m.Order)
	case *Answer:
		c.pair(m.From, m.FromLife, m.To, m.ToLife)
		c.words(&m.Answer)
	case joinDone:
		c.text(m.at.String())
		c.err(m.err)
	case settleDone:
		c.err(m.err)
	case writeDone:
		c.text(m.id.String())
		c.err(m.err)
	case *Peers:
		for i := range m.Peers {
			c.numbers(uint64(m.Peers[i].Task), uint64(m.Peers[i].Life))
			c.yes(m.Peers[i].Ref != nil)
		}
	case *Letters:
		for _, l := range m.Letters {
			c.text(l.ID)
		}
		c.yes(m.Last)
	case Taps:
		for _, t := range m {
			c.text(t.Component)
			c.text(t.Stream)
		}
	case *openAsked:
		c.numbers(m.number, uint64(m.n), uint64(len(m.of)))
	case openSaid:
		c.numbers(uint64(m.task), uint64(m.life), m.number, uint64(len(m.trees)), uint64(len(m.places)))
	case actor.Terminated:
		c.err(m.Err)
	case ended:
		c.numbers(uint64(m.task), uint64(m.life))
	case failed:
		c.numbers(uint64(m.task), uint64(m.life))
		c.err(m.err)
		c.yes(m.fatal)
		c.yes(m.own)
	case committed:
		c.numbers(uint64(m.task), uint64(m.life), uint64(m.index))
		c.text(m.split)
		c.text(m.position)
	case kept:
		c.numbers(uint64(m.index))
		c.text(m.position)
	case replayed:
		c.numbers(uint64(m.task), uint64(m.life))
		c.text(m.id)
	case quiet:
		c.numbers(m.arrived)
	case replay:
		c.numbers(uint64(m.at))
	case reopen:
		if m.r != nil { // or it is a queue's
			c.numbers(uint64(m.r.index))
		}
	case splitsRead:
		for _, s := range m.splits {
			c.text(string(s))
		}
		c.err(m.err)
	case splitOpened:
		c.err(m.err)
	case nextDone:
		c.batch(m.batch)
		c.text(m.position)
		c.err(m.err)
	case queueBack:
		c.batch(m.call.batch)
		c.err(m.call.err)
	case closeDone:
		c.err(m.err)
	case commitDone:
		c.text(m.position)
		c.err(m.err)
	case saved:
		c.numbers(uint64(m.refused))
		c.err(m.err)
	case replaysRead:
		for _, l := range m.letters {
			c.text(l.ID)
		}
		c.yes(m.more)
		c.err(m.err)
	case buried:
		c.numbers(uint64(m.stored))
		c.err(m.err)
	}
	return c
}

// content is what a message says, as far as it is written.
type content []byte

func (c *content) numbers(ns ...uint64) {
	for _, n := range ns {
		*c = binary.LittleEndian.AppendUint64(*c, n)
	}
}

func (c *content) text(s string) {
	*c = binary.AppendUvarint(*c, uint64(len(s)))
	*c = append(*c, s...)
}

// words is for structs of plain values.
func (c *content) words(v any) {
	b, err := json.Marshal(v)
	c.text(string(b))
	c.err(err)
}

func (c *content) yes(b bool) {
	if b {
		*c = append(*c, 1)
	} else {
		*c = append(*c, 0)
	}
}

func (c *content) err(err error) {
	if err == nil {
		*c = append(*c, 0)
	} else {
		c.text(errorText(err))
	}
}

func (c *content) pair(from tuple.TaskID, fromLife tuple.Incarnation, to tuple.TaskID, toLife tuple.Incarnation) {
	c.numbers(uint64(from)|uint64(to)<<32, uint64(fromLife), uint64(toLife))
}

func (c *content) report(m *acker.Report) {
	c.pair(m.From, m.FromLife, m.To, m.ToLife)
	c.numbers(uint64(len(m.View)), uint64(len(m.Entries)), uint64(len(m.Fails)), uint64(len(m.Lost)), uint64(len(m.Queued)))
	for _, d := range m.View {
		c.numbers(uint64(d.Task), uint64(d.Life))
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		c.numbers(e.Seq, uint64(e.Xor), e.Mask)
	}
	for i := range m.Fails {
		f := &m.Fails[i]
		c.numbers(f.Seq, uint64(f.Index)<<8|uint64(f.Class), uint64(f.Suspects))
		c.text(f.Err)
	}
	c.numbers(m.Lost...)
	c.numbers(m.Queued...)
	for _, h := range m.Held {
		c.numbers(h.Seq, uint64(h.Component))
		c.yes(h.Within)
		c.yes(h.Waits)
	}
}

func (c *content) batch(b *spout.Batch) {
	c.numbers(uint64(b.Len()))
	var fields [16]int
	var at *spout.Segment
	plain := fields[:0]
	for i := range b.Len() {
		s, cells := b.Message(i)
		if s != at {
			at, plain = s, plain[:0]
			for k, kind := range s.Kinds {
				if kind != tuple.KindAny {
					plain = append(plain, k)
				}
			}
			c.numbers(uint64(s.Stream), uint64(s.Direct))
		}
		c.numbers(tuple.Hash(cells, s.Kinds, plain))
	}
}

func appendParcel(dst []byte, p *tuple.Parcel) []byte {
	dst, err := tuple.AppendParcel(dst, p)
	c := content(dst)
	c.numbers(uint64(p.Stream), uint64(p.Opened))
	c.err(err)
	return c
}
