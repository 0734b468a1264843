package pebble

import (
	"encoding/binary"
	"errors"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// layout is the version of the layout that doc.go describes.
const layout = 2

// The first bytes of keys.
const (
	versionKey = 'm'
	groupKey   = 'g'
	writtenKey = 'w'
	rowKey     = 'r'
)

// errLayout reports bytes that this layout does not have.
var errLayout = errors.New("not as Egret writes it")

func appendKey(b []byte, kind byte, group uint16, key string) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint16(b, group)
	return append(b, key...)
}

const keyHead = 3 // bytes before the key of a row

func appendGroup(b []byte, f tuple.Fence, last tuple.BatchID) []byte {
	b = appendAttempt(b, f.Attempt)
	b = binary.BigEndian.AppendUint64(b, uint64(f.Life))
	b = appendAttempt(b, last.Attempt)
	return binary.BigEndian.AppendUint64(b, uint64(last.Tx))
}

func readGroup(b []byte) (f tuple.Fence, last tuple.BatchID, err error) {
	if len(b) != 32 {
		return f, last, errLayout
	}
	f.Attempt, f.Life = readAttempt(b), tuple.Incarnation(binary.BigEndian.Uint64(b[8:]))
	last.Attempt, last.Tx = readAttempt(b[16:]), tuple.TxID(binary.BigEndian.Uint64(b[24:]))
	return f, last, nil
}

func appendAttempt(b []byte, a tuple.Attempt) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, a.Epoch), a.Round)
}

func readAttempt(b []byte) tuple.Attempt {
	return tuple.Attempt{Epoch: binary.BigEndian.Uint32(b), Round: binary.BigEndian.Uint32(b[4:])}
}

func appendRow(b []byte, tx tuple.TxID, r *state.Row) []byte {
	b = binary.AppendUvarint(b, uint64(tx))
	var flags byte
	if r.Value != nil {
		flags |= 1
	}
	if r.Prev != nil {
		flags |= 2
	}
	b = append(b, flags)
	if flags == 3 {
		b = binary.AppendUvarint(b, uint64(len(r.Value)))
	}
	b = append(b, r.Value...)
	return append(b, r.Prev...)
}

// readRow returns a row, whose bytes are those of b.
func readRow(b []byte) (r state.Row, err error) {
	tx, n := binary.Uvarint(b)
	if n <= 0 || n == len(b) || b[n] > 3 {
		return r, errLayout
	}
	r.Tx = tuple.TxID(tx)
	flags := b[n]
	b = b[n+1:]
	switch flags {
	case 0:
		if len(b) > 0 {
			return state.Row{}, errLayout
		}
	case 1:
		r.Value = b
	case 2:
		r.Prev = b
	case 3:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return state.Row{}, errLayout
		}
		b = b[n:]
		r.Value, r.Prev = b[:size:size], b[size:]
	}
	return r, nil
}

func appendWritten(b []byte, tx tuple.TxID) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(tx))
}

func appendWrittenKey(b []byte, key string) []byte {
	b = binary.AppendUvarint(b, uint64(len(key)))
	return append(b, key...)
}

// readWritten returns the keys that a batch has written, which are parts of b.
func readWritten(b []byte) (tx tuple.TxID, keys [][]byte, err error) {
	if len(b) < 8 {
		return 0, nil, errLayout
	}
	tx = tuple.TxID(binary.BigEndian.Uint64(b))
	for b = b[8:]; len(b) > 0; {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return 0, nil, errLayout
		}
		b = b[n:]
		keys = append(keys, b[:size:size])
		b = b[size:]
	}
	return tx, keys, nil
}
