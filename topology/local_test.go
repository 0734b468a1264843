package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where states are makes another topology, and is for states only.
func TestLocal(t *testing.T) {
	build := func(local, stateful bool, g Guarantee) (*Plan, error) {
		return New("x", func(b *Builder) {
			b.Guarantee(g)
			c := b.Bolt("count", noBolt, lines(b).By("line"))
			if stateful {
				c.Stateful()
			}
			if local {
				c.Local()
			}
		}).Build(Options{})
	}
	anywhere, err := build(false, true, ExactlyOnce)
	require.NoError(t, err)
	here, err := build(true, true, ExactlyOnce)
	require.NoError(t, err)
	require.True(t, here.Components[1].Local)
	require.False(t, anywhere.Components[1].Local)
	require.NotEqual(t, anywhere.Fingerprint(), here.Fingerprint())
	_, err = build(true, false, ExactlyOnce)
	require.EqualError(t, err, "bolt count: Local is for bolts that are Stateful")
	_, err = build(true, false, AtLeastOnce)
	require.EqualError(t, err, "bolt count: Local is for topologies that are exactly-once, and this one is at-least-once")
}
