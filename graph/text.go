package graph

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/egretstream/egret/topology"
)

const (
	nameSize  = 15 // pixels, bold
	smallSize = 12
	titleSize = 18 // bold
	longest   = 36 // characters of a label
)

// width guesses, rather too much than too little, how wide a text is in a font
// without serifs.
func width(s string, size int, bold bool) int {
	sum := 0 // in hundredths of the size
	for _, r := range s {
		switch {
		case strings.ContainsRune("ijl.,:;|!'()[] ", r):
			sum += 38
		case strings.ContainsRune("frt-", r):
			sum += 45
		case strings.ContainsRune("mwMW×…", r):
			sum += 95
		case r >= 'A' && r <= 'Z':
			sum += 75
		default:
			sum += 63
		}
	}
	if bold {
		sum += sum / 12
	}
	return (sum*size + 99) / 100
}

// about is the second text in a box.
func about(n *topology.Node) string {
	s := n.Kind()
	if n.Parallel > 1 {
		s += fmt.Sprintf(" ×%d", n.Parallel)
	}
	if n.Every > 0 {
		s += fmt.Sprintf(", every %v", n.Every)
	}
	return s
}

func boxWidth(n *topology.Node) int {
	return 36 + max(width(short(n.Name), nameSize, true), width(about(n), smallSize, false))
}

// labelOf returns the texts above and below the line of a subscription: the
// grouping, and the stream with its fields. The name "default" is left out.
func labelOf(p *topology.Plan, c, k int) (above, below string) {
	s := p.Components[c].Inputs[k].Stream
	below = "(" + strings.Join(s.Fields, ", ") + ")"
	if s.Stream != "default" {
		below = s.Stream + " " + below
	}
	return p.Label(c, k), below
}

func labelWidth(ln *line) int {
	return max(width(short(ln.above), smallSize, false), width(short(ln.below), smallSize, false)) + 8
}

// short cuts a text that is too long for the picture.
func short(s string) string {
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	return string([]rune(s)[:longest-1]) + "…"
}

// summary is the line below the title.
func summary(p *topology.Plan) string {
	return fmt.Sprintf("%s, %s, %v", count(len(p.Components), "component"), count(len(p.Tasks), "task"), p.Guarantee)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func headerWidth(p *topology.Plan) int {
	return max(width(short(p.Topology), titleSize, true), width(summary(p), smallSize, false)) + margin
}
