package task

import (
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	protobuf "google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/proto"
	"github.com/egretstream/egret/tuple"
)

// said are messages of all kinds, the last of which say as much as they can.
func said() []any {
	from, to := tuple.NewIncarnation(1, 2), tuple.NewIncarnation(3, 1)
	return []any{
		&acker.Report{},
		&Limit{}, &Ask{}, &End{}, &Dry{}, &Peers{},
		&Limit{From: 1, To: 2, FromLife: from, ToLife: to, Total: 1 << 60, Each: -time.Second},
		&Ask{From: 1, To: 2, FromLife: from, ToLife: to},
		&End{From: 1 << 31, To: 1<<32 - 1, FromLife: 1<<64 - 1, ToLife: 1},
		&Dry{From: 1, To: 2, FromLife: from, ToLife: to, Not: true},
		&Peers{Peers: []Peer{{Task: 1, Life: from}, {Task: 0, Life: 0}, {Task: 2, Life: to}}},
		&acker.Report{From: 1, To: 2, FromLife: from, ToLife: to,
			View:    []acker.Death{{Task: 7, Life: from}, {Task: 8, Life: to}},
			Entries: []acker.Entry{{Seq: 1, Xor: 1<<64 - 1, Mask: 1 << 63}, {}, {Seq: 1<<64 - 1, Xor: 5, Mask: 6}},
			Fails: []acker.Fail{{Seq: 3, Index: 1<<16 - 1, Class: acker.Rejected, Err: "not UTF-8: \xff", Suspects: 2},
				{}, {Seq: 4, Err: strings.Repeat("x", maxErr)}},
			Lost: []uint64{0, 9}, Queued: []uint64{1 << 40},
			Held: []acker.Held{{Seq: 1, Component: 3, Within: true}, {Waits: true}, {Within: true, Waits: true}, {}}},
		&Order{Order: batch.Order{Kind: batch.Settled}},
		&Order{From: 1, To: 2, FromLife: from, ToLife: to, Order: batch.Order{Kind: batch.Join, BatchID: batchID(3, 4, 5),
			View: []tuple.Incarnation{from, to}, Positions: batch.Positions{"a": "1", "\xff": ""}, Last: append(make([]tuple.BatchID, tuple.KeyGroups-1), batchID(8, 9, 7))}},
		&Order{Order: batch.Order{Kind: batch.Begin, Fixed: batch.Ranges{}}},
		&Order{Order: batch.Order{Kind: batch.Begin, Fixed: batch.Ranges{"a": {From: "\xff", To: "2", Messages: 3}, "b": {}}}},
		&Answer{Answer: batch.Answer{Kind: batch.Joined}},
		&Answer{From: 1, To: 2, FromLife: from, ToLife: to, Answer: batch.Answer{Kind: batch.Emitted, BatchID: batchID(3, 4, 5),
			Ranges: batch.Ranges{"a": {To: "2", Messages: 3}}, More: true, Ended: true, Groups: tuple.Groups{5: 1 << 63}, Keys: 6, Took: time.Second, Tuples: 7, Err: "\xff", Broken: true}},
	}
}

func encoded(t require.TestingT, msg any) []byte {
	b, err := AppendMessage(nil, msg)
	require.NoError(t, err)
	return b
}

func TestMessagesTravel(t *testing.T) {
	for _, msg := range said() {
		b := encoded(t, msg)
		got, err := DecodeMessage(b)
		require.NoError(t, err)
		require.Equal(t, msg, got)
		prefix, err := AppendMessage([]byte("before"), msg)
		require.NoError(t, err)
		require.Equal(t, "before"+string(b), string(prefix))
	}
}

// What nodes of different versions say to each other is fixed: a message that looks
// otherwise in testdata/wire.txt is not understood by programs that run already.
func TestWireIsFixed(t *testing.T) {
	var out strings.Builder
	for _, msg := range said() {
		if r, ok := msg.(*acker.Report); ok && len(r.Fails) > 0 {
			r.Fails[2].Err = "short"
		}
		fmt.Fprintf(&out, "%s %s\n", Class(msg), hex.EncodeToString(encoded(t, msg)))
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("testdata/wire.txt", []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/wire.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// Refs and empty parcels stay; an endless text is cut, and what is no message is refused.
func TestWhatDoesNotTravel(t *testing.T) {
	got, err := DecodeMessage(encoded(t, &Limit{From: 1, Parcels: []*tuple.Parcel{{}}}))
	require.NoError(t, err)
	require.Equal(t, &Limit{From: 1}, got)
	got, err = DecodeMessage(encoded(t, &Peers{Peers: []Peer{{Task: 1, Life: 2, Ref: "here"}}}))
	require.NoError(t, err)
	require.Equal(t, &Peers{Peers: []Peer{{Task: 1, Life: 2}}}, got)
	got, err = DecodeMessage(encoded(t, &acker.Report{Fails: []acker.Fail{{Err: strings.Repeat("x", maxErr) + "y"}}}))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", maxErr), got.(*acker.Report).Fails[0].Err)
	b, err := AppendMessage([]byte("kept"), Drain{})
	require.EqualError(t, err, "a task.Drain does not travel between nodes")
	require.Equal(t, "kept", string(b))
}

func TestCorruptMessages(t *testing.T) {
	report := func(r *proto.Report) []byte {
		b, err := protobuf.Marshal(r)
		require.NoError(t, err)
		return append([]byte{byte(proto.Kind_KIND_REPORT)}, b...)
	}
	ask := encoded(t, &Ask{From: 1})
	one := []uint32{1}
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"nothing", nil, "no kind"},
		{"cut", ask[:len(ask)-1], "proto"},
		{"a kind of a later version", []byte{99}, "no message of kind 99"},
		{"noise", []byte{byte(proto.Kind_KIND_REPORT), 0xff, 0xff}, "proto"},
		{"fewer edges", report(&proto.Report{EntrySeq: []uint64{1}, EntryMask: []uint64{1}}), "1 trees with 0 edges and 1 masks"},
		{"fewer masks", report(&proto.Report{EntrySeq: []uint64{1}, EntryXor: []uint64{1}}), "1 trees with 1 edges and 0 masks"},
		{"more lives", report(&proto.Report{DeadLife: []uint64{1}}), "1 lives of 0 dead tasks"},
		{"a fail without", report(&proto.Report{FailSeq: []uint64{1}}), "1 fails with 0 indices"},
		{"index", report(&proto.Report{FailSeq: []uint64{1}, FailIndex: []uint32{1 << 16}, FailClass: one, FailSuspects: one, FailLength: []uint32{0}}), "message 65536"},
		{"class", report(&proto.Report{FailSeq: []uint64{1}, FailIndex: one, FailClass: []uint32{4}, FailSuspects: one, FailLength: []uint32{0}}), "class 4"},
		{"suspects", report(&proto.Report{FailSeq: []uint64{1}, FailIndex: one, FailClass: one, FailSuspects: []uint32{1 << 31}, FailLength: []uint32{0}}), "suspects"},
		{"text that is not there", report(&proto.Report{FailSeq: []uint64{1}, FailIndex: one, FailClass: one, FailSuspects: one, FailLength: one}), "0 are left"},
		{"text of nobody", report(&proto.Report{FailText: []byte("x")}), "belong to no fail"},
		{"order", append([]byte{byte(proto.Kind_KIND_ORDER)}, 5<<3, 6), "an order of kind 6"},
		{"positions", append([]byte{byte(proto.Kind_KIND_ORDER)}, 5<<3, 1, 10<<3|2, 0), "0 positions of 1 splits"},
		{"key groups", append([]byte{byte(proto.Kind_KIND_ORDER)}, 5<<3, 1, 12<<3|2, 1, 0), "the last batches of 1 key groups"},
		{"stamps", append([]byte{byte(proto.Kind_KIND_ORDER), 5 << 3, 1, 12<<3 | 2, 0x80, 8}, make([]byte, tuple.KeyGroups)...), "the last batches of 1024 key groups with 0 epochs and 0 rounds"},
		{"ranges", append([]byte{byte(proto.Kind_KIND_ORDER)}, 5<<3, 1, 14<<3|2, 2, 1<<3|2, 0), "1 ranges with 0 beginnings"},
		{"answer", append([]byte{byte(proto.Kind_KIND_ANSWER)}, 5<<3, 0), "an answer of kind 0"},
		{"words", append([]byte{byte(proto.Kind_KIND_ANSWER)}, 5<<3, 1, 12<<3|2, 8, 0, 0, 0, 0, 0, 0, 0, 0), "1 words of key groups"},
		{"held", report(&proto.Report{HeldSeq: []uint64{1}}), "1 held trees"},
		{"flags", report(&proto.Report{HeldSeq: []uint64{1}, HeldComponent: one, HeldFlags: []uint32{4}}), "flags 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeMessage(tt.b)
			require.ErrorIs(t, err, ErrMessage)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAnyReportTravels(t *testing.T) {
	number := rapid.Uint64()
	report := rapid.Custom(func(t *rapid.T) *acker.Report {
		r := &acker.Report{From: tuple.TaskID(rapid.Uint32().Draw(t, "from")), ToLife: tuple.Incarnation(number.Draw(t, "to"))}
		for range rapid.IntRange(0, 9).Draw(t, "entries") {
			r.Entries = append(r.Entries, acker.Entry{Seq: number.Draw(t, "seq"), Xor: tuple.EdgeID(number.Draw(t, "xor")), Mask: number.Draw(t, "mask")})
		}
		for range rapid.IntRange(0, 9).Draw(t, "fails") {
			r.Fails = append(r.Fails, acker.Fail{Seq: number.Draw(t, "seq"), Index: rapid.Uint16().Draw(t, "index"),
				Class: acker.FailClass(rapid.IntRange(0, int(acker.Rejected)).Draw(t, "class")), Err: rapid.String().Draw(t, "err")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "held") {
			r.Held = append(r.Held, acker.Held{Seq: number.Draw(t, "seq"), Component: int(rapid.Int32Range(0, 99).Draw(t, "by")), Waits: rapid.Bool().Draw(t, "waits")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "dead") {
			r.View = append(r.View, acker.Death{Task: tuple.TaskID(rapid.Uint32().Draw(t, "task")), Life: tuple.Incarnation(number.Draw(t, "life"))})
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		r := report.Draw(t, "report")
		got, err := DecodeMessage(encoded(t, r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	})
}

// Any bytes: no panic, no more memory than a small multiple, and what is understood
// is understood as the same again.
func FuzzDecodeMessage(f *testing.F) {
	for _, msg := range said() {
		f.Add(encoded(f, msg))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		msg, err := DecodeMessage(b)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<16+64*len(b)); got > most {
			t.Fatalf("%d bytes for %d", got, len(b))
		}
		if err != nil {
			require.ErrorIs(t, err, ErrMessage)
			return
		}
		again, err := DecodeMessage(encoded(t, msg))
		require.NoError(t, err)
		require.Equal(t, msg, again)
	})
}

func BenchmarkMessage(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		r := &acker.Report{From: 3, To: 1, FromLife: tuple.NewIncarnation(1, 1), ToLife: tuple.NewIncarnation(1, 1)}
		for i := range n {
			r.Entries = append(r.Entries, acker.Entry{Seq: uint64(100_000 + i), Xor: tuple.EdgeID(uint64(i) * 0x9e3779b97f4a7c15), Mask: 3})
		}
		buf := encoded(b, r)
		b.Run(fmt.Sprintf("encode/entries=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = AppendMessage(buf[:0], r)
			}
		})
		b.Run(fmt.Sprintf("decode/entries=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = DecodeMessage(buf)
			}
		})
	}
}
