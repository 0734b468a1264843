package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMasks(t *testing.T) {
	build := func(define func(b *Builder, in *Component)) *Plan {
		p, err := New("test", func(b *Builder) {
			in := b.Spout("in", source{}).Emits("card", "amount").Mask("card", "card").EmitsTo("late", "x", "password").Mask("password").EmitsTo("open", "y")
			if define != nil {
				define(b, in)
			}
			b.Bolt("out", noBolt, in.Shuffle(), in.DeadLetters().Shuffle())
			b.Bolt("other", noBolt, in.Shuffle()).Emits("z")
		}).Build(Options{})
		require.NoError(t, err)
		return p
	}
	p := build(nil)
	streams := p.Components[0].Streams
	require.Equal(t, []string{"card"}, streams[0].Masked)
	require.True(t, streams[0].Masks(0))
	require.False(t, streams[0].Masks(1))
	require.Equal(t, []string{"password"}, streams[1].Masked)
	require.Empty(t, streams[2].Masked)
	require.Equal(t, []string{"values"}, streams[3].Masked, "a dead letter has them too")
	require.False(t, p.NoTaps)

	// Nodes that do not agree on what is shown run no plan together.
	require.True(t, build(func(b *Builder, _ *Component) { b.NoTaps() }).NoTaps)
	require.NotEqual(t, p.Fingerprint(), build(func(b *Builder, _ *Component) { b.NoTaps() }).Fingerprint())
	require.NotEqual(t, p.Fingerprint(), build(func(_ *Builder, in *Component) { in.Mask("y") }).Fingerprint())
}

// sifter is a source that sets records aside on the stream bad.
type sifter struct{ source }

func (sifter) BadStream() string { return "bad" }

// What a source cannot read has all values in it: it is masked as soon as one of them is.
func TestMasksOfBadRecords(t *testing.T) {
	for _, masked := range []bool{true, false} {
		p, err := New("test", func(b *Builder) {
			in := b.Spout("in", sifter{}).Emits("card")
			if masked {
				in.Mask("card")
			}
			in.EmitsTo("bad", "error", "record").EmitsTo("open", "y")
			b.Bolt("out", noBolt, in.Shuffle())
		}).Build(Options{})
		require.NoError(t, err)
		bad, open := p.Components[0].Streams[1], p.Components[0].Streams[2]
		require.Equal(t, masked, bad.Masks(0))
		require.Equal(t, masked, bad.Masks(1))
		require.Empty(t, open.Masked)
	}
}
