package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
)

// The fingerprints of a release must be those of the next one, on every machine,
// or its nodes refuse to share a plan.
func TestFingerprintGolden(t *testing.T) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		p, err := New(name, shapes[name]).Build(Options{})
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s %s\n", name, p.Fingerprint())
	}
	golden(t, "fingerprints", b.String())
}

// variant is a topology with one thing changed.
func variant(what string) string {
	pick := func(when, then, otherwise string) string {
		if what == when {
			return then
		}
		return otherwise
	}
	p, err := New(pick("topology", "other", "test"), func(b *Builder) {
		if what == "guarantee" {
			b.Guarantee(AtMostOnce)
		}
		in := b.Spout("in", source{}).Emits("a", pick("field", "c", "b")).EmitsTo(pick("stream", "odd", "late"), "x")
		if what == "parallel" {
			in.Parallel(9)
		}
		if what == "one more stream" {
			in.EmitsTo("more", "x")
		}
		s := in.By("a", "b")
		switch what {
		case "field":
			s = in.By("a", "c")
		case "key":
			s = in.By("b", "a")
		case "grouping":
			s = in.Shuffle()
		case "partial key":
			s = in.PartialBy("a", "b")
		case "custom":
			s = in.Custom("mine", noChooser)
		case "custom's name":
			s = in.Custom("yours", noChooser)
		case "no grouping":
			s = in.None()
		case "input's stream":
			s = in.Stream("late").By("x")
		}
		x := b.Bolt(pick("component", "z", "x"), noBolt, s)
		if what == "ticks" {
			x.Every(time.Second)
		}
		if what == "code" {
			x.factory = func() bolt.Bolt { panic("never called") }
		}
		b.Bolt("y", noBolt, in.All())
		if what == "kind" {
			b.Spout("w", source{}).Emits("x")
		} else {
			b.Bolt("w", noBolt, in.All()).Emits("x")
		}
	}).Build(Options{Epoch: uint32(len(pick("epoch", "x", "")))})
	if err != nil {
		panic(err)
	}
	return p.Fingerprint()
}

func TestFingerprintSaysWhatDiffers(t *testing.T) {
	seen := map[string]string{variant(""): "nothing"}
	for _, what := range []string{
		"topology", "guarantee", "field", "stream", "one more stream", "key", "grouping", "partial key", "custom", "custom's name", "no grouping", "input's stream", "component", "ticks", "kind",
	} {
		f := variant(what)
		require.Len(t, f, 16)
		require.NotContains(t, seen, f, what)
		seen[f] = what
	}
	for _, what := range []string{"parallel", "epoch", "code"} {
		require.Equal(t, "nothing", seen[variant(what)], what)
	}
}
