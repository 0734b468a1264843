package broker

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func frames() []Frame {
	return []Frame{
		{Kind: Hello, Payload: []byte("{}")},
		{Kind: Ack, Epoch: 1, Acked: 7},
		{Lane: Data, Kind: Parcel, Run: 3, Epoch: 1, Seq: 2, Acked: 3, Payload: []byte("tuples")},
		{Kind: Task, Run: 1 << 31, Epoch: 1 << 40, Seq: 1, Payload: []byte{}},
		{Lane: Data, Kind: Task, Run: math.MaxUint32, Epoch: math.MaxUint64, Seq: math.MaxUint64, Acked: math.MaxUint64, Payload: []byte{0, 255}},
		{Kind: Note, Epoch: 1, Seq: 9, Payload: []byte(strings.Repeat("x", 300))},
	}
}

func TestFrames(t *testing.T) {
	for _, f := range frames() {
		b := AppendFrame([]byte("before"), &f)[len("before"):]
		require.Len(t, b, f.Size())
		got, err := ParseFrame(b)
		require.NoError(t, err)
		if f.Payload == nil {
			f.Payload = []byte{}
		}
		require.Equal(t, f, got)
	}
}

// Nodes of different versions say these bytes to each other: a change of
// testdata/frames.txt needs a new version.
func TestFramesAreFixed(t *testing.T) {
	var out strings.Builder
	for _, f := range frames() {
		fmt.Fprintf(&out, "%v %s\n", f.Kind, hex.EncodeToString(AppendFrame(nil, &f)))
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("testdata/frames.txt", []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/frames.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// A single bit that has changed is noticed, wherever it is.
func TestEveryBitCounts(t *testing.T) {
	for _, f := range frames() {
		b := AppendFrame(nil, &f)
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			_, err := ParseFrame(b)
			require.ErrorIs(t, err, ErrFrame, "bit %d of %v", i, f.Kind)
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

func TestBadFrames(t *testing.T) {
	good := AppendFrame(nil, &Frame{Kind: Note, Seq: 1, Payload: []byte("note")})
	with := func(change func(b []byte)) []byte {
		b := append([]byte(nil), good...)
		change(b)
		binary.LittleEndian.PutUint32(b[4:], sum(b[8:HeaderSize], b[HeaderSize:]))
		return b
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"nothing", nil, "0 bytes, and its header has 38"},
		{"cut", good[:len(good)-1], "it says 38 bytes and has 37"},
		{"more", append(good[:len(good):len(good)], 0), "it says 38 bytes and has 39"},
		{"version", with(func(b []byte) { b[8] = 2 }), "version 2, and this program knows 1"},
		{"kind", with(func(b []byte) { b[9] = 99 }), "knows no frame of kind 99"},
		{"no kind", with(func(b []byte) { b[9] = 0 }), "knows no frame of nothing"},
		{"no number", with(func(b []byte) { b[22] = 0 }), "a note with number 0"},
		{"an ack with a number", with(func(b []byte) { b[9] = byte(Ack) }), "a ack with number 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseFrame(tt.b)
			require.ErrorIs(t, err, ErrFrame)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// Any bytes: no panic, and what is a frame is the same frame again.
func FuzzParseFrame(f *testing.F) {
	for _, frame := range frames() {
		f.Add(AppendFrame(nil, &frame), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, right bool) {
		if right && len(b) >= HeaderSize { // or nothing but checksums would be looked at
			binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
			binary.LittleEndian.PutUint32(b[4:], sum(b[8:HeaderSize], b[HeaderSize:]))
		}
		frame, err := ParseFrame(b)
		if err != nil {
			require.ErrorIs(t, err, ErrFrame)
			return
		}
		require.Equal(t, b, AppendFrame(nil, &frame))
	})
}
