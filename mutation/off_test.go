//go:build !mutation

package mutation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoneIsOn(t *testing.T) {
	for _, m := range All() {
		require.False(t, Is(m), "%v", m)
	}
}
