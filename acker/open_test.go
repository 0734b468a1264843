package acker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Open trees are told of from the oldest on, wherever the ledger keeps them, with when
// something was last said of each.
func TestTrees(t *testing.T) {
	l := open(mostLines + 10)
	seen := func() (all []Open[int]) {
		l.Trees(func(x Open[int]) { all = append(all, x) })
		return all
	}
	all := seen()
	require.Len(t, all, mostLines+10)
	for i, x := range all {
		require.Equal(t, Open[int]{Seq: uint64(i + 1), Mask: Bit(1), Message: i}, x)
	}
	r := consume(1)
	r.Queued = []uint64{2}
	r.Held = []Held{{Seq: 4, Component: 1}, {Seq: 5, Component: 1, Within: true}}
	r.Entries = append(r.Entries, Entry{Seq: 3, Xor: 1 << 40, Mask: Bit(2)})
	l.Report(time.Second, r)
	l.check(t)
	all = seen()[:5]
	require.Equal(t, Open[int]{Seq: 2, Mask: Bit(1), Heard: time.Second, Message: 1}, all[0])
	require.Equal(t, Open[int]{Seq: 3, Mask: Bit(1) | Bit(2), Heard: time.Second, Message: 2}, all[1])
	require.Zero(t, all[2].Heard, "to be held for ever is no news")
	require.Equal(t, time.Second, all[3].Heard)
	require.Zero(t, all[4].Heard)
}
