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

func TestFromHereAndDropped(t *testing.T) {
	define := func(stateful bool, dropped string) func(*Builder) {
		return func(b *Builder) {
			b.Guarantee(ExactlyOnce)
			b.Dropped("gone", dropped)
			in := lines(b)
			c := b.Bolt("count", noBolt, in.By("line")).FromHere()
			if stateful {
				c.Stateful()
			}
		}
	}
	p, err := New("words", define(true, "older")).Build(Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"gone", "older"}, p.Dropped)
	require.True(t, p.Components[1].FromHere)
	_, err = New("words", define(false, "older")).Build(Options{})
	require.EqualError(t, err, "bolt count: FromHere is for bolts that are Stateful")
	_, err = New("words", define(true, "lines")).Build(Options{})
	require.EqualError(t, err, "spout lines: it is there, and among those that were Dropped")
}
