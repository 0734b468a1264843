package task

import (
	"errors"
	"fmt"
	"math"
	"time"

	protobuf "google.golang.org/protobuf/proto"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/proto"
	"github.com/egretstream/egret/tuple"
)

// ErrMessage reports bytes that are no message of a task. Decoding them again does
// not help: never retry.
var ErrMessage = errors.New("corrupt message of a task")

// maxErr is how many bytes of a failure's text travel; the end of a longer one is
// cut off.
const maxErr = 8 << 10

// AppendMessage appends the form in which a message travels to another node. The
// message is an *acker.Report, *Limit, *Ask, *End, *Dry, *Peers, *Order or *Answer; parcels have a form
// of their own, see [Encoded]. Empty parcels and Refs stay behind.
func AppendMessage(dst []byte, msg any) ([]byte, error) {
	kind, m := messageProto(msg)
	if m == nil {
		return dst, fmt.Errorf("a %T does not travel between nodes", msg)
	}
	b, err := protobuf.MarshalOptions{}.MarshalAppend(append(dst, byte(kind)), m)
	if err != nil {
		return dst, err
	}
	return b, nil
}

func messageProto(msg any) (proto.Kind, protobuf.Message) {
	switch v := msg.(type) {
	case *acker.Report:
		return proto.Kind_KIND_REPORT, reportProto(v)
	case *Limit:
		return proto.Kind_KIND_LIMIT, &proto.Limit{From: uint32(v.From), To: uint32(v.To), FromLife: uint64(v.FromLife), ToLife: uint64(v.ToLife),
			Total: v.Total, Each: int64(v.Each)}
	case *Ask:
		return proto.Kind_KIND_ASK, &proto.Ask{From: uint32(v.From), To: uint32(v.To), FromLife: uint64(v.FromLife), ToLife: uint64(v.ToLife)}
	case *End:
		return proto.Kind_KIND_END, &proto.End{From: uint32(v.From), To: uint32(v.To), FromLife: uint64(v.FromLife), ToLife: uint64(v.ToLife)}
	case *Dry:
		return proto.Kind_KIND_DRY, &proto.Dry{From: uint32(v.From), To: uint32(v.To), FromLife: uint64(v.FromLife), ToLife: uint64(v.ToLife), Not: v.Not}
	case *Peers:
		p := &proto.Peers{}
		for _, peer := range v.Peers {
			p.Task = append(p.Task, uint32(peer.Task))
			p.Life = append(p.Life, uint64(peer.Life))
		}
		return proto.Kind_KIND_PEERS, p
	case *Order:
		return proto.Kind_KIND_ORDER, orderProto(v)
	case *Answer:
		return proto.Kind_KIND_ANSWER, answerProto(v)
	}
	return 0, nil
}

func reportProto(r *acker.Report) *proto.Report {
	p := &proto.Report{From: uint32(r.From), To: uint32(r.To), FromLife: uint64(r.FromLife), ToLife: uint64(r.ToLife), Lost: r.Lost, Queued: r.Queued}
	if n := len(r.Entries); n > 0 {
		p.EntrySeq, p.EntryXor, p.EntryMask = make([]uint64, n), make([]uint64, n), make([]uint64, n)
		for i, e := range r.Entries {
			p.EntrySeq[i], p.EntryXor[i], p.EntryMask[i] = e.Seq, uint64(e.Xor), e.Mask
		}
	}
	for _, d := range r.View {
		p.DeadTask = append(p.DeadTask, uint32(d.Task))
		p.DeadLife = append(p.DeadLife, uint64(d.Life))
	}
	for _, f := range r.Fails {
		text := f.Err[:min(len(f.Err), maxErr)]
		p.FailSeq = append(p.FailSeq, f.Seq)
		p.FailIndex = append(p.FailIndex, uint32(f.Index))
		p.FailClass = append(p.FailClass, uint32(f.Class))
		p.FailSuspects = append(p.FailSuspects, uint32(f.Suspects))
		p.FailLength = append(p.FailLength, uint32(len(text)))
		p.FailText = append(p.FailText, text...)
	}
	for _, h := range r.Held {
		var flags uint32
		if h.Within {
			flags |= heldWithin
		}
		if h.Waits {
			flags |= heldWaits
		}
		p.HeldSeq = append(p.HeldSeq, h.Seq)
		p.HeldComponent = append(p.HeldComponent, uint32(h.Component))
		p.HeldFlags = append(p.HeldFlags, flags)
	}
	return p
}

// Flags of what is held.
const (
	heldWithin = 1 << iota
	heldWaits
	heldFlags // the first one that has no meaning
)

// DecodeMessage returns the message that AppendMessage made b of, and keeps nothing of
// b. An error is [ErrMessage]. It may be given any bytes: it does not panic, and
// allocates no more than a small multiple of len(b).
func DecodeMessage(b []byte) (any, error) {
	msg, err := decodeMessage(b)
	if err != nil {
		return nil, fmt.Errorf("%w of %d bytes: %w", ErrMessage, len(b), err)
	}
	return msg, nil
}

func decodeMessage(b []byte) (any, error) {
	if len(b) == 0 {
		return nil, errors.New("it has no kind")
	}
	switch kind := proto.Kind(b[0]); kind {
	case proto.Kind_KIND_REPORT:
		var p proto.Report
		if err := parse(b, &p); err != nil {
			return nil, err
		}
		return reportOf(&p)
	case proto.Kind_KIND_LIMIT:
		var p proto.Limit
		err := parse(b, &p)
		return &Limit{From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife), Total: p.Total, Each: time.Duration(p.Each)}, err
	case proto.Kind_KIND_ASK:
		var p proto.Ask
		err := parse(b, &p)
		return &Ask{From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife)}, err
	case proto.Kind_KIND_END:
		var p proto.End
		err := parse(b, &p)
		return &End{From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife)}, err
	case proto.Kind_KIND_DRY:
		var p proto.Dry
		err := parse(b, &p)
		return &Dry{From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife), Not: p.Not}, err
	case proto.Kind_KIND_PEERS:
		var p proto.Peers
		if err := parse(b, &p); err != nil {
			return nil, err
		}
		return peersOf(&p)
	case proto.Kind_KIND_ORDER:
		var p proto.Order
		if err := parse(b, &p); err != nil {
			return nil, err
		}
		return orderOf(&p)
	case proto.Kind_KIND_ANSWER:
		var p proto.Answer
		if err := parse(b, &p); err != nil {
			return nil, err
		}
		return answerOf(&p)
	default:
		return nil, fmt.Errorf("this program knows no message of kind %d", kind)
	}
}

// parse reads what stands behind the kind. Fields of later versions are passed over.
func parse(b []byte, m protobuf.Message) error {
	return protobuf.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b[1:], m)
}

func peersOf(p *proto.Peers) (*Peers, error) {
	if len(p.Task) != len(p.Life) {
		return nil, fmt.Errorf("%d lives of %d tasks", len(p.Life), len(p.Task))
	}
	peers := &Peers{}
	if len(p.Task) > 0 {
		peers.Peers = make([]Peer, len(p.Task))
	}
	for i, id := range p.Task {
		peers.Peers[i] = Peer{Task: tuple.TaskID(id), Life: tuple.Incarnation(p.Life[i])}
	}
	return peers, nil
}

func reportOf(p *proto.Report) (*acker.Report, error) {
	r := &acker.Report{From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife),
		Lost: p.Lost, Queued: p.Queued}
	seq, xor, mask := p.EntrySeq, p.EntryXor, p.EntryMask
	if len(xor) != len(seq) || len(mask) != len(seq) {
		return nil, fmt.Errorf("%d trees with %d edges and %d masks", len(seq), len(xor), len(mask))
	}
	if len(seq) > 0 {
		r.Entries = make([]acker.Entry, len(seq))
		for i := range seq {
			r.Entries[i] = acker.Entry{Seq: seq[i], Xor: tuple.EdgeID(xor[i]), Mask: mask[i]}
		}
	}
	dead, life := p.DeadTask, p.DeadLife
	if len(dead) != len(life) {
		return nil, fmt.Errorf("%d lives of %d dead tasks", len(life), len(dead))
	}
	if len(dead) > 0 {
		r.View = make([]acker.Death, len(dead))
		for i := range dead {
			r.View[i] = acker.Death{Task: tuple.TaskID(dead[i]), Life: tuple.Incarnation(life[i])}
		}
	}
	var err error
	if r.Fails, err = failsOf(p); err != nil {
		return nil, err
	}
	r.Held, err = heldOf(p)
	return r, err
}

func failsOf(p *proto.Report) ([]acker.Fail, error) {
	seq, index, class, suspects, length := p.FailSeq, p.FailIndex, p.FailClass, p.FailSuspects, p.FailLength
	n := len(seq)
	if len(index) != n || len(class) != n || len(suspects) != n || len(length) != n {
		return nil, fmt.Errorf("%d fails with %d indices, %d classes, %d numbers of suspects and %d lengths", n, len(index), len(class), len(suspects), len(length))
	}
	text := string(p.FailText)
	if n == 0 && text == "" {
		return nil, nil
	}
	fails := make([]acker.Fail, n)
	for i := range fails {
		switch {
		case index[i] > math.MaxUint16:
			return nil, fmt.Errorf("a fail of message %d, more than %d", index[i], math.MaxUint16)
		case class[i] > uint32(acker.Rejected):
			return nil, fmt.Errorf("a fail of class %d, more than %d", class[i], acker.Rejected)
		case suspects[i] > math.MaxInt32:
			return nil, fmt.Errorf("a fail with %d suspects, more than %d", suspects[i], math.MaxInt32)
		case length[i] > maxErr || int(length[i]) > len(text):
			return nil, fmt.Errorf("a fail with a text of %d bytes: %d are left, and %d are the most", length[i], len(text), maxErr)
		}
		fails[i] = acker.Fail{Seq: seq[i], Index: uint16(index[i]), Class: acker.FailClass(class[i]), Suspects: int(suspects[i]), Err: text[:length[i]]}
		text = text[length[i]:]
	}
	if text != "" {
		return nil, fmt.Errorf("%d bytes of text belong to no fail", len(text))
	}
	return fails, nil
}

func heldOf(p *proto.Report) ([]acker.Held, error) {
	seq, component, flags := p.HeldSeq, p.HeldComponent, p.HeldFlags
	n := len(seq)
	if len(component) != n || len(flags) != n {
		return nil, fmt.Errorf("%d held trees with %d components and %d flags", n, len(component), len(flags))
	}
	if n == 0 {
		return nil, nil
	}
	held := make([]acker.Held, n)
	for i := range held {
		if component[i] > math.MaxInt32 || flags[i] >= heldFlags {
			return nil, fmt.Errorf("a held tree of component %d with flags %d", component[i], flags[i])
		}
		held[i] = acker.Held{Seq: seq[i], Component: int(component[i]), Within: flags[i]&heldWithin != 0, Waits: flags[i]&heldWaits != 0}
	}
	return held, nil
}
