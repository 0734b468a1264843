package tuple

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHead(t *testing.T) {
	p := full()
	b := encode(t, p)
	h, err := HeadOf(b)
	require.NoError(t, err)
	require.Equal(t, Head{p.From, p.To, p.FromLife, p.ToLife, p.Plan, p.Input, p.Len()}, h)
	h, err = HeadOf(encode(t, batched(words(2, false))))
	require.NoError(t, err)
	require.Equal(t, 2, h.Tuples)
	var none Parcel
	h, err = HeadOf(encode(t, &none))
	require.NoError(t, err)
	require.Equal(t, Head{}, h)
}

// Any bytes: no panic, and what is a parcel has the head that it is decoded with.
func FuzzHead(f *testing.F) {
	f.Add(encode(f, full()))
	f.Add(encode(f, marker()))
	f.Add([]byte{wireVersion, 1, 2, 3, 4, 5, 6, 250, 250, 250, 250, 250, 250, 250, 250, 250, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := HeadOf(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
		var p Parcel
		if DecodeParcel(b, &p, full().Schema) == nil {
			require.NoError(t, err)
			require.Equal(t, Head{p.From, p.To, p.FromLife, p.ToLife, p.Plan, p.Input, p.Len()}, h)
		}
	})
}
