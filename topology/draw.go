package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/egretstream/egret/amount"
)

// Draw returns a picture of p for people, some lines of text that end with a
// newline:
//
//	wordcount: 4 components, 8 tasks, at-least-once
//
//	○  lines  spout    (line)
//	│    shuffle
//	●  split  bolt ×2  (word)
//	│    by word
//	●  count  bolt ×4  (word, count)
//	│    global
//	●  top    bolt
//
// Tuples flow down. Every component has a line, every subscription one above the
// component that has it; the fields of a stream stand in parentheses behind its
// name, which is left out for "default".
func (p *Plan) Draw() string {
	d := drawing{p: p}
	for c := range p.Components {
		if !p.Components[c].Coordinates {
			d.component(c)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s, %v\n\n", p.Topology, amount.Of(len(p.Components), "component"), amount.Of(len(p.Tasks), "task"), p.Guarantee)
	names, kinds, rails := 0, 0, 0
	for _, l := range d.lines {
		names = max(names, width(l.name))
		kinds = max(kinds, width(l.kind))
		rails = max(rails, width(l.rails))
	}
	for _, l := range d.lines {
		text := "  " + l.label // deeper than names are
		if l.label == "" {
			text = pad(l.name, names) + "  " + pad(l.kind, kinds) + "  " + l.rest
		}
		b.WriteString(strings.TrimRight(pad(l.rails, rails)+"  "+text, " ") + "\n")
	}
	return b.String()
}

// A drawing is a picture in the making. A column holds the rail of a component
// from its own line to its last subscriber's.
type drawing struct {
	p     *Plan
	rails []rail // by column
	lines []line
}

// A rail with left == 0 is a free column.
type rail struct {
	from int // component
	left int // its subscriptions that are not drawn yet
}

// A line is a component or, if it has a label, a subscription.
type line struct {
	rails      string
	name, kind string
	rest       string
	label      string
}

// component draws the inputs of c and c itself. It stands below a rail that ends
// here, if there is one, so that a chain is a straight line.
func (d *drawing) component(c int) {
	n := &d.p.Components[c]
	own := map[int]int{} // component -> how many inputs of c come from it
	for _, in := range n.Inputs {
		own[in.From]++
	}
	at := slices.IndexFunc(d.rails, func(r rail) bool { return r.left > 0 && own[r.from] == r.left })
	below := at >= 0 // a rail comes down to c's place
	if !below {
		at = d.free()
	}
	for k, in := range n.Inputs {
		from := slices.IndexFunc(d.rails, func(r rail) bool { return r.left > 0 && r.from == in.From })
		d.rails[from].left--
		d.join(from, at, below)
		d.lines[len(d.lines)-1].label = d.label(c, k)
		below = true
	}
	marks := d.verticals()
	marks[at] = '●'
	if n.Reads() {
		marks[at] = '○'
	}
	kind := string(n.kind())
	if n.Parallel > 1 {
		kind += fmt.Sprintf(" ×%d", n.Parallel)
	}
	if n.Every > 0 {
		kind += fmt.Sprintf(", every %v", n.Every)
	}
	if n.Holds > 0 {
		kind += fmt.Sprintf(", holds %v", n.Holds)
	}
	var streams []string
	for _, s := range n.Streams {
		name := s.Stream
		if name == defaultStream {
			name = ""
		}
		streams = append(streams, name+"("+strings.Join(s.Fields, ", ")+")")
	}
	d.lines = append(d.lines, line{rails: spaced(marks, -1, -1), name: n.Name, kind: kind, rest: strings.Join(streams, " ")})
	d.rails[at] = rail{c, len(n.Outputs)}
}

// free returns a column without a rail.
func (d *drawing) free() int {
	i := slices.IndexFunc(d.rails, func(r rail) bool { return r.left == 0 })
	if i < 0 {
		i = len(d.rails)
		d.rails = append(d.rails, rail{})
	}
	return i
}

// join draws the line that leads from the rail in column from to a component
// that will stand in column at; below says that something comes down there
// already. A rail that is crossed but has no part in it stays whole.
func (d *drawing) join(from, at int, below bool) {
	marks := d.verticals()
	if from == at {
		marks[at] = '│'
		d.lines = append(d.lines, line{rails: spaced(marks, -1, -1)})
		return
	}
	left, right := min(from, at), max(from, at)
	for i := left + 1; i < right; i++ {
		if marks[i] == ' ' {
			marks[i] = '─'
		}
	}
	goesOn := d.rails[from].left > 0
	marks[left], marks[right] = '├', '┤'
	switch {
	case from == left && !goesOn:
		marks[left] = '╰'
	case from == right && !goesOn:
		marks[right] = '╯'
	}
	switch {
	case at == left && !below:
		marks[left] = '╭'
	case at == right && !below:
		marks[right] = '╮'
	}
	d.lines = append(d.lines, line{rails: spaced(marks, left, right)})
}

// verticals returns the marks of a line on which nothing happens.
func (d *drawing) verticals() []rune {
	marks := make([]rune, len(d.rails))
	for i, r := range d.rails {
		marks[i] = ' '
		if r.left > 0 {
			marks[i] = '│'
		}
	}
	return marks
}

// spaced puts a space between marks, or a dash between left and right.
func spaced(marks []rune, left, right int) string {
	var b strings.Builder
	for i, m := range marks {
		if i > 0 && left < i && i <= right {
			b.WriteRune('─')
		} else if i > 0 {
			b.WriteRune(' ')
		}
		b.WriteRune(m)
	}
	return b.String()
}

// label says how input k of c is grouped, and where it comes from unless that is
// the one input of c and the component drawn just above.
func (d *drawing) label(c, k int) string {
	n := &d.p.Components[c]
	in := n.Inputs[k]
	text := d.p.Label(c, k)
	stream := in.Stream.Component
	if in.Stream.Stream != defaultStream {
		stream += "." + in.Stream.Stream
	} else if len(n.Inputs) == 1 && in.From == c-1 {
		return text
	}
	return text + " from " + stream
}

func width(s string) int { return len([]rune(s)) }

func pad(s string, n int) string { return s + strings.Repeat(" ", n-width(s)) }
