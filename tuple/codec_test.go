package tuple

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnyWithoutCodec(t *testing.T) {
	type nobody struct{}
	require.Equal(t, "type tuple.nobody has no codec: register one with tuple.RegisterCodec before the topology runs",
		misuseOf(t, func() { Any(nobody{}) }))
	require.Equal(t, "type *tuple.point has no codec: register one with tuple.RegisterCodec before the topology runs",
		misuseOf(t, func() { Any(&point{}) }))
	require.Contains(t, misuseOf(t, func() { Any(nil) }), "has no codec")
}

func TestRegisterCodecRefuses(t *testing.T) {
	type other struct{}
	require.PanicsWithValue(t, `tuple: a codec for tuple.point or with the name "point 2" is registered already`,
		func() { registerNothing[point]("point 2") })
	require.PanicsWithValue(t, `tuple: a codec for tuple.other or with the name "point" is registered already`,
		func() { registerNothing[other]("point") })
	require.PanicsWithValue(t, `tuple: fmt.Stringer is an interface: register a codec for each type that implements it`,
		func() { registerNothing[fmt.Stringer]("stringer") })
	require.Contains(t, misuseOf(t, func() { Any(other{}) }), "has no codec", "a refused codec was registered")
}

func registerNothing[T any](name string) {
	RegisterCodec(name,
		func(dst []byte, _ T) ([]byte, error) { return dst, nil },
		func([]byte) (v T, err error) { return v, nil })
}

func TestMisused(t *testing.T) {
	require.EqualError(t, Misused(misuse{"wrong"}), "wrong")
	for _, r := range []any{nil, "wrong", errors.New("wrong"), 1} {
		require.NoError(t, Misused(r), "%v is no misuse", r)
	}
	require.Equal(t, "wrong", misuseOf(t, func() { Misuse("wrong") }))
	require.EqualError(t, misuse{"wrong"}, "wrong", "a misuse that nobody recovers must still say what it is")
}
