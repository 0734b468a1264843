package graph

import (
	"fmt"
	"html"
	"strings"

	"github.com/egretstream/egret/topology"
)

// The colours are those of docs/flow.svg, and paler ones on a dark page.
const style = `
    text { font-family: ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 12px; fill: #3d4450 }
    .page { fill: #fbfaf7 }
    .title { font-size: 18px; font-weight: 600; fill: #1b1f24 }
    .name { font-size: 15px; font-weight: 600; fill: #1f4e79; text-anchor: middle }
    .about, .label, .fields { text-anchor: middle }
    .summary, .about, .fields { fill: #636b77 }
    .box { fill: #fff; stroke: #1f4e79; stroke-width: 1.5 }
    .source .box { fill: #eef6ee; stroke: #2e7d32 }
    .source .name { fill: #2e7d32 }
    .line { fill: none; stroke: #7d8793; stroke-width: 1.5 }
    .tip { fill: #7d8793 }
    @media (prefers-color-scheme: dark) {
      text { fill: #c9d1d9 }
      .page { fill: #0d1117 }
      .title { fill: #f0f3f6 }
      .name { fill: #9ecbff }
      .summary, .about, .fields { fill: #9aa4b0 }
      .box { fill: #161b22; stroke: #6ba8e5 }
      .source .box { fill: #14221a; stroke: #6cc077 }
      .source .name { fill: #8fdc98 }
      .line { stroke: #7d8793 }
    }
`

// SVG returns a picture of p that stands by itself: it refers to nothing outside,
// and follows the reader's choice of light or dark.
func SVG(p *topology.Plan) string {
	l := arrange(p, still)
	var b strings.Builder
	id := "egret-" + html.EscapeString(p.Topology)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="%s-title %s-desc">`+"\n",
		l.w, l.h, l.w, l.h, id, id)
	fmt.Fprintf(&b, "  <title id=\"%s-title\">Topology %s</title>\n", id, html.EscapeString(p.Topology))
	fmt.Fprintf(&b, "  <desc id=\"%s-desc\">%s</desc>\n", id, html.EscapeString(description(p)))
	fmt.Fprintf(&b, "  <style>%s  </style>\n", style)
	fmt.Fprintf(&b, `  <defs><marker id="%s-tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>`+"\n", id)
	fmt.Fprintf(&b, "  <rect class=\"page\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", l.w, l.h)
	text(&b, "title", margin, margin+14, short(p.Topology))
	text(&b, "summary", margin, margin+36, summary(p))
	for _, ln := range l.lines {
		fmt.Fprintf(&b, "  <path class=\"line\" d=\"%s\" marker-end=\"url(#%s-tip)\"/>\n", ln.path(0), id)
	}
	for _, ln := range l.lines {
		s := ln.label
		fmt.Fprintf(&b, "  <g><title>%s</title>\n", html.EscapeString(said(p, ln.component, ln.input)))
		text(&b, "label", s.x+s.w/2, s.y-6, short(ln.above))
		text(&b, "fields", s.x+s.w/2, s.y+14, short(ln.below))
		b.WriteString("  </g>\n")
	}
	for _, s := range l.boxes {
		s.write(&b, &p.Components[s.component])
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, class string, x, y int, s string) {
	fmt.Fprintf(b, "  <text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
}

// path is the way of a line, moved down: level in columns, curved between them.
func (ln *line) path(down int) string {
	var b strings.Builder
	for i, h := range ln.hops {
		x0, y0, x1, y1 := h.ends()
		y0, y1 = y0+down, y1+down
		if i == 0 {
			fmt.Fprintf(&b, "M%d %d", x0, y0)
		} else {
			fmt.Fprintf(&b, "H%d", x0)
		}
		if y0 == y1 {
			fmt.Fprintf(&b, "H%d", x1)
			continue
		}
		mid := (x0 + x1) / 2
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", mid, y0, mid, y1, x1, y1)
	}
	return b.String()
}

func (h *hop) ends() (x0, y0, x1, y1 int) {
	return h.from.x + h.from.w, h.from.y + h.fromY, h.to.x, h.to.y + h.toY
}

// write draws a box; behind one of several tasks there are more.
func (s *spot) write(b *strings.Builder, n *topology.Node) {
	class, round := "bolt", 8
	if n.Bolt == nil {
		class, round = "source", 22
	}
	fmt.Fprintf(b, "  <g class=\"%s\"><title>%s</title>\n", class, html.EscapeString(told(n)))
	for i := min(n.Parallel-1, 2); i >= 0; i-- {
		fmt.Fprintf(b, "    <rect class=\"box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>\n",
			s.x+4*i, s.y-s.h/2-4*i, s.w-8*i, s.h, round)
	}
	x := s.x + s.w/2
	b.WriteString("  ")
	text(b, "name", x, s.y-3, short(n.Name))
	b.WriteString("  ")
	text(b, "about", x, s.y+15, about(n))
	b.WriteString("  </g>\n")
}

// told says what a component is, in full.
func told(n *topology.Node) string {
	s := fmt.Sprintf("%s %s: %s", n.Kind(), n.Name, count(n.Parallel, "task"))
	if n.Every > 0 {
		s += fmt.Sprintf(", ticked every %v", n.Every)
	}
	for _, x := range n.Streams {
		s += fmt.Sprintf("; emits %s (%s)", x.Stream, strings.Join(x.Fields, ", "))
	}
	return s
}

// said says what a subscription is, in full.
func said(p *topology.Plan, c, k int) string {
	in := p.Components[c].Inputs[k].Stream
	return fmt.Sprintf("%s gets %s.%s (%s): %s", p.Components[c].Name, in.Component, in.Stream, strings.Join(in.Fields, ", "), p.Label(c, k))
}

// description is the picture for those who do not see it.
func description(p *topology.Plan) string {
	s := summary(p) + ". Tuples flow from left to right."
	for c := range p.Components {
		n := &p.Components[c]
		s += " " + told(n) + "."
		for k := range n.Inputs {
			s += " " + said(p, c, k) + "."
		}
	}
	return s
}
