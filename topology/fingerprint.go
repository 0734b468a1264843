package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Fingerprint returns 16 hexadecimal digits that are the same for plans that can
// run together: it covers the topology's name and guarantee, its components in
// their order with streams, masks, inputs, groupings and tick intervals. It leaves out
// code, parallelism, the epoch and the values of parameters, and is the same in
// every process and build.
func (p *Plan) Fingerprint() string {
	h := sha256.New()
	p.describe(h)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// describe writes what the fingerprint covers. The first line is the version of
// the form; whoever changes the form changes the fingerprint of every topology,
// so that nodes of two versions refuse to share a plan.
func (p *Plan) describe(w io.Writer) {
	fmt.Fprintf(w, "egret plan 1\ntopology %q %v\n", p.Topology, p.Guarantee)
	if p.NoTaps {
		fmt.Fprintln(w, "no taps")
	}
	for i := range p.Components {
		n := &p.Components[i]
		fmt.Fprintf(w, "%s %q every %d\n", n.kind(), n.Name, n.Every)
		if n.Holds > 0 {
			fmt.Fprintf(w, "holds %d\n", n.Holds)
		}
		if n.Stateful || n.Batches != Opaque {
			fmt.Fprintf(w, "stateful %v batches %v\n", n.Stateful, n.Batches)
		}
		if n.Local {
			fmt.Fprintln(w, "local")
		}
		for _, s := range n.Streams {
			fmt.Fprintf(w, " stream %q%s\n", s.Stream, quotedEach(s.Fields))
			if len(s.Masked) > 0 {
				fmt.Fprintf(w, " masked%s\n", quotedEach(slices.Sorted(slices.Values(s.Masked))))
			}
		}
		for k, in := range n.Inputs {
			g, key := p.grouping(i, k)
			fmt.Fprintf(w, " input %q %q %v%s\n", p.Components[in.From].Name, in.Stream.Stream, g, quotedEach(key))
			if in.Settled {
				fmt.Fprintln(w, " settled")
			}
		}
	}
}

func quotedEach(names []string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, " %q", n)
	}
	return b.String()
}

// Kind returns what n is: "spout", "queue", "bolt" or "coordinator".
func (n *Node) Kind() string { return string(n.kind()) }

func (n *Node) kind() kind {
	switch {
	case n.Source != nil:
		return spoutKind
	case n.Queue != nil:
		return queueKind
	case n.Coordinates:
		return coordKind
	}
	return boltKind
}

// grouping returns how an input of component c is grouped, and the key's fields or
// the name of a custom one.
func (p *Plan) grouping(c, input int) (g Grouping, key []string) {
	in := p.Components[c].Inputs[input]
	for _, r := range p.Components[in.From].Outputs {
		if r.To == c && r.Input == input {
			g = r.Grouping
			for _, f := range r.Fields {
				key = append(key, in.Stream.Fields[f])
			}
			if g == Custom {
				key = []string{r.Custom}
			}
		}
	}
	return g, key
}
