package tuple

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Parcels of 256 bytes lie at multiples of 256, so none shares a cache line with
// another, which a sender may be filling while this one is read.
func TestParcelSize(t *testing.T) {
	require.Equal(t, 256, int(unsafe.Sizeof(Parcel{})))
}
