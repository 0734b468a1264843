package task

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/proto"
	"github.com/egretstream/egret/tuple"
)

// How orders and answers of the coordinator of batches travel. Splits and positions are
// any bytes.

func orderProto(m *Order) *proto.Order {
	p := &proto.Order{
		From: uint32(m.From), To: uint32(m.To), FromLife: uint64(m.FromLife), ToLife: uint64(m.ToLife),
		Order: uint32(m.Kind), Epoch: m.Epoch, Round: m.Round, Tx: uint64(m.Tx),
		Fixed: m.Fixed != nil, Ranges: rangesProto(m.Fixed),
	}
	for _, life := range m.View {
		p.View = append(p.View, uint64(life))
	}
	for _, split := range slices.Sorted(maps.Keys(m.Positions)) {
		p.Split, p.Position = append(p.Split, []byte(split)), append(p.Position, []byte(m.Positions[split]))
	}
	for _, stamp := range m.Last {
		p.Last, p.LastEpoch, p.LastRound = append(p.Last, uint64(stamp.Tx)), append(p.LastEpoch, stamp.Epoch), append(p.LastRound, stamp.Round)
	}
	return p
}

func orderOf(p *proto.Order) (*Order, error) {
	m := &Order{
		From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife),
		Order: batch.Order{Kind: batch.OrderKind(p.Order), BatchID: batchID(p.Epoch, p.Round, p.Tx)},
	}
	switch {
	case p.Order < uint32(batch.Join) || p.Order > uint32(batch.Finish):
		return nil, fmt.Errorf("an order of kind %d", p.Order)
	case len(p.Split) != len(p.Position):
		return nil, fmt.Errorf("%d positions of %d splits", len(p.Position), len(p.Split))
	case len(p.Last) != 0 && len(p.Last) != tuple.KeyGroups:
		return nil, fmt.Errorf("the last batches of %d key groups, and not of %d", len(p.Last), tuple.KeyGroups)
	case len(p.LastEpoch) != len(p.Last) || len(p.LastRound) != len(p.Last):
		return nil, fmt.Errorf("the last batches of %d key groups with %d epochs and %d rounds", len(p.Last), len(p.LastEpoch), len(p.LastRound))
	}
	for _, life := range p.View {
		m.View = append(m.View, tuple.Incarnation(life))
	}
	if len(p.Split) > 0 {
		m.Positions = make(batch.Positions, len(p.Split))
	}
	for i, split := range p.Split {
		m.Positions[string(split)] = string(p.Position[i])
	}
	for g, tx := range p.Last {
		m.Last = append(m.Last, batchID(p.LastEpoch[g], p.LastRound[g], tx))
	}
	ranges, err := rangesOf(p.Ranges)
	if p.Fixed {
		m.Fixed = batch.Ranges{}
		maps.Copy(m.Fixed, ranges)
	}
	return m, err
}

func answerProto(m *Answer) *proto.Answer {
	p := &proto.Answer{
		From: uint32(m.From), To: uint32(m.To), FromLife: uint64(m.FromLife), ToLife: uint64(m.ToLife),
		Answer: uint32(m.Kind), Epoch: m.Epoch, Round: m.Round, Tx: uint64(m.Tx),
		Ranges: rangesProto(m.Ranges), More: m.More, Ended: m.Ended,
		Keys: int64(m.Keys), Took: int64(m.Took), Tuples: int64(m.Tuples),
		Err: []byte(m.Err[:min(len(m.Err), maxErr)]), Broken: m.Broken, Fence: m.Fence,
	}
	if !m.Groups.Empty() {
		p.Groups = m.Groups[:]
	}
	return p
}

func answerOf(p *proto.Answer) (*Answer, error) {
	m := &Answer{
		From: tuple.TaskID(p.From), To: tuple.TaskID(p.To), FromLife: tuple.Incarnation(p.FromLife), ToLife: tuple.Incarnation(p.ToLife),
		Answer: batch.Answer{
			Kind: batch.AnswerKind(p.Answer), BatchID: batchID(p.Epoch, p.Round, p.Tx), More: p.More, Ended: p.Ended,
			Keys: int(p.Keys), Took: time.Duration(p.Took), Tuples: int(p.Tuples), Err: string(p.Err), Broken: p.Broken, Fence: p.Fence,
		},
	}
	switch {
	case p.Answer < uint32(batch.Joined) || p.Answer > uint32(batch.Fenced):
		return nil, fmt.Errorf("an answer of kind %d", p.Answer)
	case len(p.Groups) != 0 && len(p.Groups) != len(m.Groups):
		return nil, fmt.Errorf("%d words of key groups, and not %d", len(p.Groups), len(m.Groups))
	case p.Keys < 0 || p.Tuples < 0:
		return nil, fmt.Errorf("an answer with %d keys and %d tuples", p.Keys, p.Tuples)
	}
	copy(m.Groups[:], p.Groups)
	var err error
	m.Ranges, err = rangesOf(p.Ranges)
	return m, err
}

func batchID(epoch, round uint32, tx uint64) tuple.BatchID {
	return tuple.BatchID{Attempt: tuple.Attempt{Epoch: epoch, Round: round}, Tx: tuple.TxID(tx)}
}

func rangesProto(ranges batch.Ranges) *proto.Ranges {
	if len(ranges) == 0 {
		return nil
	}
	p := &proto.Ranges{}
	for _, split := range slices.Sorted(maps.Keys(ranges)) {
		r := ranges[split]
		p.Split, p.Begin, p.End = append(p.Split, []byte(split)), append(p.Begin, []byte(r.From)), append(p.End, []byte(r.To))
		p.Messages = append(p.Messages, int64(r.Messages))
	}
	return p
}

func rangesOf(p *proto.Ranges) (batch.Ranges, error) {
	if p == nil {
		return nil, nil
	}
	n := len(p.Split)
	if len(p.Begin) != n || len(p.End) != n || len(p.Messages) != n {
		return nil, fmt.Errorf("%d ranges with %d beginnings, %d ends and %d numbers of messages", n, len(p.Begin), len(p.End), len(p.Messages))
	}
	ranges := make(batch.Ranges, n)
	for i, split := range p.Split {
		if p.Messages[i] < 0 {
			return nil, fmt.Errorf("a range of %d messages", p.Messages[i])
		}
		ranges[string(split)] = batch.Range{From: string(p.Begin[i]), To: string(p.End[i]), Messages: int(p.Messages[i])}
	}
	return ranges, nil
}
