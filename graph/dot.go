package graph

import (
	"fmt"
	"strings"

	"github.com/egretstream/egret/topology"
)

// DOT returns p in the language of Graphviz.
func DOT(p *topology.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", quote(p.Topology))
	fmt.Fprintf(&b, "  graph [rankdir=LR, label=%s, labelloc=t, labeljust=l, fontname=\"Helvetica\"];\n", quote(p.Topology+"\n"+summary(p)))
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\"];\n")
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=10];\n\n")
	for c := range p.Components {
		n := &p.Components[c]
		fmt.Fprintf(&b, "  %s [label=%s", quote(n.Name), quote(n.Name+"\n"+about(n)))
		if n.Bolt == nil {
			b.WriteString(", fillcolor=\"#eef6ee\"")
		}
		b.WriteString("];\n")
	}
	b.WriteString("\n")
	for c := range p.Components {
		n := &p.Components[c]
		for k, in := range n.Inputs {
			above, below := labelOf(p, c, k)
			fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", quote(p.Components[in.From].Name), quote(n.Name), quote(above+"\n"+below))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// quote makes an ID of any text; a line break stays one in labels.
func quote(s string) string { return `"` + escapes.Replace(s) + `"` }
