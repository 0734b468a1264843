package task

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A toLink keeps what is said to a link.
type toLink struct {
	*loop
	encoded []*Encoded
}

func (l *toLink) Send(to actor.Ref, msg any) {
	if far, ok := msg.(*Far); ok && to == "link" {
		if e, ok := far.Msg.(*Encoded); ok {
			l.encoded = append(l.encoded, e)
		}
	}
}

// A task gives a link no more than it has been told, one parcel excepted, and takes no
// further input meanwhile. Tasks elsewhere are not concerned.
func TestCreditOfALink(t *testing.T) {
	task, l, plan := startBolt(t, topology.AtMostOnce, func(in tuple.Tuple, out *bolt.Collector) error {
		out.Emit(in.String("line"))
		return nil
	}, (*topology.Component).All)
	task.set.Share = &Share{Run: 7, First: 1, MaxParcel: 1 << 20}
	task.set.ParcelSize, task.out.size = 1, 1
	for i := range task.out.streams[0].routes[0].lanes {
		task.out.streams[0].routes[0].lanes[i].size = 1
	}
	life := tuple.NewIncarnation(1, 1)
	link := &toLink{loop: l}
	task.Receive(link, &Peers{Peers: []Peer{{Task: 2, Life: life + 1, Ref: "link", Far: true}, {Task: 3, Life: life + 1, Ref: "another link", Far: true}}})
	lines := func(n int) {
		p := &tuple.Parcel{From: 0, FromLife: life, To: 1, ToLife: life, Schema: plan.Components[0].Streams[0]}
		p.Begin([]tuple.Kind{tuple.KindString}, n)
		var row tuple.Row
		row.Set(p.Schema, []any{"a line"})
		for range n {
			p.Append(&row)
		}
		task.Receive(link, p)
		for task.Turn(link) {
		}
	}
	lines(3)
	require.Len(t, link.encoded, 3, "nothing was said of bytes yet")
	each := uint64(len(link.encoded[0].Bytes) + broker.HeaderSize)

	task.Receive(link, Credit{Link: "link", Life: life, Bytes: 4*each + each/2})
	lines(5)
	require.Len(t, link.encoded, 5, "one parcel may be too much")
	require.Equal(t, 2, task.queued, "it executes nothing until there is room")

	for name, c := range map[string]Credit{
		"late": {Link: "link", Life: life, Bytes: 1, Empty: [][]byte{make([]byte, 9)}}, "the same": {Link: "link", Life: life, Bytes: 4*each + each/2},
		"another life": {Link: "link", Life: life + 9, Bytes: 1 << 40}, "another link": {Link: "another link", Life: life, Bytes: 1 << 40}, "no link": {Link: "what?", Life: life, Bytes: 1 << 40},
	} {
		task.Receive(link, c)
		require.Len(t, link.encoded, 5, name)
		require.Empty(t, task.out.empty, name)
	}
	memory := make([]byte, 200)
	task.Receive(link, Credit{Link: "link", Life: life, Bytes: 1 << 40, Empty: [][]byte{make([]byte, mostEmpty+1), memory}})
	task.Receive(link, Credit{Link: "link", Life: life, Bytes: 1 << 40, Empty: [][]byte{memory}})
	for task.Turn(link) {
	}
	require.Len(t, link.encoded, 8)
	used := 0
	for _, e := range link.encoded {
		if unsafe.SliceData(e.Bytes) == unsafe.SliceData(memory) {
			used++
		}
	}
	require.Equal(t, 1, used, "memory that has come back is used again, by one parcel")
	task.Receive(link, Credit{Link: "link", Life: life, Bytes: 1})
	lines(1)
	require.Len(t, link.encoded, 9, "a limit never falls")
	require.Zero(t, task.out.kept)
}
