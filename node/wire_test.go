package node

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A collector is the actor of a task, or of an agent.
type collector struct{ got func(actor.Context, any) }

func (c collector) Start(actor.Context)                { /* nothing to prepare */ }
func (c collector) Receive(ctx actor.Context, msg any) { c.got(ctx, msg) }
func (c collector) Turn(actor.Context) bool            { return false }
func (c collector) Stopped(actor.Context)              {}

// A socket is a connection of package wire.
type socket struct{ *wire.Conn }

// plugIn gives a link an end of a connection.
func plugIn(h *host.Host, link actor.Ref, c net.Conn) *socket {
	s := &socket{}
	s.Conn = wire.NewConn(c, wire.ConnConfig{
		Arrived: func(frames [][]byte) { h.Send(link, Arrived{s, frames}) },
		Wrote:   func(bytes int) { h.Send(link, Wrote{s, bytes}) },
		Broken:  func(err error) { h.Send(link, Broken{Conn: s, Err: err}) },
		Most:    16 << 20,
	})
	h.Send(link, Connected{s})
	return s
}

// nodes starts two links on a host of their own each. What comes for task 2 of node 2
// goes to got; a's task 1 is who sends it, and gets credit.
func nodes(t testing.TB, got, credit func(actor.Context, any)) (a, b *host.Host, refs [2]actor.Ref, sender actor.Ref) {
	a, b = host.New(host.Config{Seed: 1}), host.New(host.Config{Seed: 2})
	for i, h := range []*host.Host{a, b} {
		self := cluster.Home{Node: cluster.NodeID(i + 1), Boot: 1}
		up := h.Spawn("agent", collector{func(_ actor.Context, msg any) {
			if reset, ok := msg.(LinkReset); ok {
				t.Errorf("nobody has forgotten anything: %s", reset.Why)
			}
		}})
		refs[i] = h.Spawn("link", NewLink(broker.LinkConfig{Self: self, Peer: cluster.Home{Node: cluster.NodeID(2 - i)}}, up))
	}
	b.Send(refs[1], Route{Run: 7, Task: 2, Ref: b.Spawn("task", collector{got})})
	sender = a.Spawn("task", collector{credit})
	a.Send(refs[0], Route{Run: 7, Task: 1, Ref: sender})
	return a, b, refs, sender
}

// On the real host, over connections of package wire that break now and then, everything
// comes once and in order.
func TestLinksOnAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := uint32(1)
		a, b, refs, _ := nodes(t, func(_ actor.Context, msg any) {
			require.Equal(t, next, uint32(msg.(*task.Encoded).From))
			next++
		}, func(actor.Context, any) {})
		const parcels = 1000
		var ends []*socket
		for n := range parcels {
			if n%100 == 0 {
				for _, s := range ends {
					s.Close()
				}
				x, y := net.Pipe()
				ends = append(ends, plugIn(a, refs[0], x), plugIn(b, refs[1], y))
			}
			a.Send(refs[0], &task.Far{Run: 7, Msg: parcel(t, tuple.TaskID(n+1), 2, n)})
			if n%7 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		for _, s := range ends {
			s.Close()
			s.Wait()
		}
		require.Empty(t, a.Close())
		require.Empty(t, b.Close())
		require.Equal(t, uint32(parcels+1), next)
	})
}

// A task that uses the memory that comes back to it for other parcels, while connections
// break, changes nothing that is on its way.
func TestMemoryIsUsedAgain(t *testing.T) {
	const parcels = 3000
	synctest.Test(t, func(t *testing.T) {
		next, again, sent := int64(0), 0, 0
		given, limit := uint64(0), uint64(1)
		var link actor.Ref
		var free [][]byte
		p := &tuple.Parcel{From: 1, FromLife: tuple.NewIncarnation(1, 1), To: 2, ToLife: tuple.NewIncarnation(1, 1), Schema: &tuple.Schema{Fields: []string{"n", "text"}}}
		var q tuple.Parcel
		a, b, refs, sender := nodes(t, func(_ actor.Context, msg any) {
			require.NoError(t, tuple.DecodeInPlace(msg.(*task.Encoded).Bytes, &q, p.Schema))
			require.Equal(t, next, q.Tuple(0).Int64("n"))
			next++
		}, func(ctx actor.Context, msg any) {
			if c, ok := msg.(task.Credit); ok {
				limit = max(limit, c.Bytes)
				free = append(free, c.Empty...)
			}
			for ; given < limit && sent < parcels; sent++ {
				p.Reset()
				p.Begin([]tuple.Kind{tuple.KindInt64, tuple.KindString}, 1)
				var row tuple.Row
				row.Set(p.Schema, []any{sent, strings.Repeat("x", 2000)})
				p.Append(&row)
				var memory []byte
				if n := len(free); n > 0 {
					memory, free = free[n-1][:0], free[:n-1]
					again++
				}
				bytes, err := tuple.AppendParcel(memory, p)
				require.NoError(t, err)
				given += uint64(len(bytes) + broker.HeaderSize)
				ctx.Send(link, &task.Far{Run: 7, Msg: &task.Encoded{From: 1, To: 2, Tuples: 1, Bytes: bytes}})
			}
		})
		link = refs[0]
		a.Send(sender, "go")
		var ends []*socket
		for n := range 200 {
			for _, s := range ends {
				s.Close()
			}
			x, y := net.Pipe()
			ends = append(ends, plugIn(a, refs[0], x), plugIn(b, refs[1], y))
			time.Sleep(time.Duration(n) * 100 * time.Microsecond)
		}
		time.Sleep(time.Second)
		for _, s := range ends {
			s.Close()
			s.Wait()
		}
		require.Empty(t, a.Close())
		require.Empty(t, b.Close())
		require.EqualValues(t, parcels, next)
		require.Positive(t, again)
	})
}

// BenchmarkLink sends parcels of 256 words, 5 KB in wire form, over a connection of
// loopback, by a task that keeps to its credit.
func BenchmarkLink(b *testing.B) {
	p := &tuple.Parcel{From: 1, FromLife: tuple.NewIncarnation(1, 1), To: 2, ToLife: tuple.NewIncarnation(1, 1), Schema: &tuple.Schema{Fields: []string{"word", "n"}}}
	p.Begin([]tuple.Kind{tuple.KindString, tuple.KindInt64}, 256)
	var row tuple.Row
	row.Set(p.Schema, []any{"captain ahab and whale", 5})
	for range 256 {
		p.Append(&row)
	}
	bytes, err := tuple.AppendParcel(nil, p)
	require.NoError(b, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer listener.Close()
	x, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(b, err)
	y, err := listener.Accept()
	require.NoError(b, err)

	all := make(chan struct{})
	arrived, sent := 0, 0
	given, limit := uint64(0), uint64(1)
	var link actor.Ref
	ha, hb, refs, sender := nodes(b, func(actor.Context, any) {
		if arrived++; arrived == b.N {
			close(all)
		}
	}, func(ctx actor.Context, msg any) {
		if c, ok := msg.(task.Credit); ok {
			limit = max(limit, c.Bytes)
		}
		for ; given < limit && sent < b.N; sent++ {
			given += uint64(len(bytes) + broker.HeaderSize)
			ctx.Send(link, &task.Far{Run: 7, Msg: &task.Encoded{From: 1, To: 2, Tuples: 256, Bytes: bytes}})
		}
	})
	ends := []*socket{plugIn(ha, refs[0], x), plugIn(hb, refs[1], y)}
	b.SetBytes(int64(len(bytes)))
	b.ReportAllocs()
	b.ResetTimer()
	link = refs[0]
	ha.Send(sender, "go")
	<-all
	b.StopTimer()
	for _, s := range ends {
		s.Close()
		s.Wait()
	}
	ha.Close()
	hb.Close()
}
