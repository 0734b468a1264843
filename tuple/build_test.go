package tuple

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// point is a Go value that travels as [Any].
type point struct{ X, Y int32 }

// label is another, of any length, so that a column can hold two codecs.
type label string

// The values of the next types have codecs that do wrong.
type (
	stubborn struct{} // cannot be encoded
	shrunk   struct{} // gives back less than it was given
	oneWay   struct{} // cannot be decoded
)

var (
	errStubborn = errors.New("stubborn is not for export")
	errOneWay   = errors.New("there is no way back")
)

func init() {
	RegisterCodec("point",
		func(dst []byte, p point) ([]byte, error) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(p.X))
			return binary.LittleEndian.AppendUint32(dst, uint32(p.Y)), nil
		},
		func(b []byte) (point, error) {
			if len(b) != 8 {
				return point{}, fmt.Errorf("a point of %d bytes", len(b))
			}
			return point{int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:]))}, nil
		})
	RegisterCodec("label",
		func(dst []byte, l label) ([]byte, error) { return append(dst, l...), nil },
		func(b []byte) (label, error) { return label(b), nil })
	RegisterCodec("stubborn",
		func(dst []byte, _ stubborn) ([]byte, error) { return append(dst, "half"...), errStubborn },
		func([]byte) (stubborn, error) { return stubborn{}, nil })
	RegisterCodec("shrunk",
		func(dst []byte, _ shrunk) ([]byte, error) { return dst[:len(dst)-1], nil },
		func([]byte) (shrunk, error) { return shrunk{}, nil })
	RegisterCodec("one way",
		func(dst []byte, _ oneWay) ([]byte, error) { return dst, nil },
		func([]byte) (oneWay, error) { return oneWay{}, errOneWay })
}

func schemaOf(fields ...string) *Schema {
	return &Schema{Component: "split", Stream: "default", Fields: fields}
}

// parcelOf makes an untracked parcel of rows of the same kinds.
func parcelOf(s *Schema, rows ...[]any) *Parcel {
	p := &Parcel{Schema: s}
	var r Row
	for i, values := range rows {
		r.Set(s, values)
		if i == 0 {
			p.Begin(r.Kinds, len(rows))
		}
		if !p.Fits(&r) {
			panic("the rows are of different kinds")
		}
		p.Append(&r)
	}
	return p
}

// misuseOf runs fn, which must panic with a misuse, and returns what it says.
func misuseOf(t *testing.T, fn func()) (what string) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		require.NotNil(t, r, "no misuse")
		err := Misused(r)
		require.Error(t, err, "a panic, but no misuse: %v", r)
		what = err.Error()
	}()
	fn()
	return ""
}

// golden compares got with a file of testdata, or writes it with UPDATE=1.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
