package pebble

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// What was written is read as it was; what was not is an error, and never a panic.
func FuzzLayout(f *testing.F) {
	f.Add([]byte{}, uint64(0), []byte{}, []byte{}, byte(0))
	f.Add([]byte{1, 3, 200, 1, 7, 7}, uint64(1<<63), []byte("value"), []byte("before"), byte(3))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 9, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0}, uint64(9), []byte{0}, []byte{}, byte(1))
	f.Add(bytes.Repeat([]byte{1}, 32), uint64(300), []byte(nil), []byte("x"), byte(2))
	f.Fuzz(func(t *testing.T, hostile []byte, tx uint64, a, b []byte, has byte) {
		if r, err := readRow(hostile); err != nil {
			require.ErrorIs(t, err, errLayout)
		} else {
			again, err := readRow(appendRow(nil, r.Tx, &r))
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
		if n, keys, err := readWritten(hostile); err != nil {
			require.ErrorIs(t, err, errLayout)
		} else {
			out := appendWritten(nil, n)
			for _, k := range keys {
				out = appendWrittenKey(out, string(k))
			}
			m, again, err := readWritten(out)
			require.NoError(t, err)
			require.Equal(t, n, m)
			require.Equal(t, keys, again)
		}
		if fence, last, err := readGroup(hostile); err == nil {
			require.Equal(t, hostile, appendGroup(nil, fence, last))
		}
		if g, err := groupOf(hostile); err == nil {
			require.Less(t, int(g), tuple.KeyGroups)
		}

		r := state.Row{Tx: tuple.TxID(tx)}
		if has&1 != 0 {
			r.Value = append([]byte{}, a...)
		}
		if has&2 != 0 {
			r.Prev = append([]byte{}, b...)
		}
		got, err := readRow(appendRow(nil, r.Tx, &r))
		require.NoError(t, err)
		require.Equal(t, r, got)
		n, keys, err := readWritten(appendWrittenKey(appendWrittenKey(appendWritten(nil, r.Tx), string(a)), string(b)))
		require.NoError(t, err)
		require.Equal(t, r.Tx, n)
		require.Equal(t, []string{string(a), string(b)}, []string{string(keys[0]), string(keys[1])})
	})
}

// Files of today are read by later versions, or refused.
func TestLayoutIsAsDocumented(t *testing.T) {
	fence := tuple.Fence{Attempt: tuple.Attempt{Epoch: 1, Round: 2}, Life: 3}
	require.Equal(t, []byte("\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06"),
		appendGroup(nil, fence, tuple.BatchID{Attempt: tuple.Attempt{Epoch: 4, Round: 5}, Tx: 6}))
	require.Equal(t, []byte("\xac\x02\x03\x02v1v0"), appendRow(nil, 300, &state.Row{Value: []byte("v1"), Prev: []byte("v0")}))
	require.Equal(t, []byte("\x05\x01v1"), appendRow(nil, 5, &state.Row{Value: []byte("v1")}))
	require.Equal(t, []byte("\x05\x02v0"), appendRow(nil, 5, &state.Row{Prev: []byte("v0")}))
	require.Equal(t, []byte("r\x03\xffword"), appendKey(nil, rowKey, 1023, "word"))
	require.Equal(t, []byte("\x00\x00\x00\x00\x00\x00\x00\x07\x01a\x00\x02bc"),
		appendWrittenKey(appendWrittenKey(appendWrittenKey(appendWritten(nil, 7), "a"), ""), "bc"))
}
