//go:build mutation

package mutation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneIsOn(t *testing.T) {
	reached := 0
	defer Set(0, func() {})
	for _, on := range All() {
		Set(on, func() { reached++ })
		for _, m := range All() {
			require.Equal(t, m == on, Is(m), "%v, and %v is on", m, on)
		}
	}
	require.Len(t, All(), reached, "the hook hears of each place that is reached")
	Set(0, nil)
	require.False(t, Is(DropAnchor))
}
