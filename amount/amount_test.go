package amount

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	require.Equal(t, "0 messages", Of(0, "message"))
	require.Equal(t, "1 message", Of(int64(1), "message"))
	require.Equal(t, "-1 messages", Of(-1, "message"))
	require.Equal(t, "1,000 dead letters", Of(1000, "dead letter"))
}

func TestDigits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", -7: "-7", 999: "999", -999: "-999", 1000: "1,000", -1000: "-1,000", 123456: "123,456", 1234567: "1,234,567",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		require.Equal(t, want, Digits(n))
	}
	require.Equal(t, "18,446,744,073,709,551,615", Digits(uint64(math.MaxUint64)))
}
