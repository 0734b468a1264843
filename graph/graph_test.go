package graph

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

var (
	source = spout.Slice("x")
	noBolt = bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil })
)

func noChooser(topology.Sender) topology.Chooser { return nil }

// shapes are the topologies of the golden pictures.
var shapes = map[string]func(*topology.Builder){
	"wordcount": func(b *topology.Builder) {
		lines := b.Spout("lines", source).Emits("line")
		words := b.Bolt("split", noBolt, lines.Shuffle()).Emits("word").Parallel(2)
		sums := b.Bolt("count", noBolt, words.By("word")).Emits("word", "count").Parallel(4)
		b.Bolt("top", noBolt, sums.Global())
	},
	"orders": func(b *topology.Builder) {
		orders := b.Spout("orders", source).Emits("id", "user", "sum").EmitsTo("errors", "text").Parallel(3)
		users := b.Spout("users", source).Emits("user", "country")
		rates := b.Queue("rates", func() spout.Queue { return nil }).Emits("country", "rate")
		joined := b.Bolt("join", noBolt, orders.By("user"), users.By("user"), rates.All()).
			Emits("country", "sum").EmitsTo("late", "id", "age").EmitsTo("to", "country", "sum").Parallel(4).Every(time.Second)
		sums := b.Bolt("sums", noBolt, joined.PartialBy("country")).Emits("country", "sum").Every(1500 * time.Millisecond).Parallel(2)
		b.Bolt("alarm", noBolt, joined.Stream("late").Global(), orders.Stream("errors").Shuffle(), rates.None())
		b.Bolt("regions", noBolt, joined.Stream("to").Direct(), sums.Custom("by-region", noChooser)).Parallel(2)
	},
	"alone": func(b *topology.Builder) { b.Spout("one", source).Emits("x") },
	"long": func(b *topology.Builder) {
		a := b.Spout(strings.Repeat("a", 100), source).Emits(strings.Repeat("b", 100), "c")
		b.Bolt("d", noBolt, a.By(strings.Repeat("b", 100)))
	},
}

func build(t require.TestingT, name string) *topology.Plan {
	p, err := topology.New(name, shapes[name]).Build(topology.Options{})
	require.NoError(t, err)
	return p
}

// A drawing for a page says of components what only their plan knows.
func TestDrawingHasSettings(t *testing.T) {
	p, err := topology.New("held", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("x")
		b.Bolt("join", noBolt, in.By("x")).Parallel(3).Every(time.Second).Holds(time.Minute)
	}).Build(topology.Options{})
	require.NoError(t, err)
	d := Draw(p)
	require.Equal(t, []any{"join", "bolt", 3, time.Second, time.Minute}, []any{d.Components[1].Component, d.Components[1].Kind, d.Components[1].Tasks, d.Components[1].Every, d.Components[1].Holds})
	require.Zero(t, d.Components[0].Every+d.Components[0].Holds)
	require.Equal(t, "by x", d.Edges[0].Grouping)
}

func TestPictures(t *testing.T) {
	for name := range shapes {
		t.Run(name, func(t *testing.T) {
			p := build(t, name)
			golden(t, name+".svg", SVG(p))
			golden(t, name+".dot", DOT(p))
			for range 10 {
				require.Equal(t, SVG(p), SVG(p))
			}
		})
	}
}

// golden compares got with a file in testdata; UPDATE=1 writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if os.Getenv("UPDATE") == "1" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// wellFormed reads a picture as XML. It refers to nothing outside itself, and has
// what a reader for the blind needs.
func wellFormed(t require.TestingT, svg string) {
	d := xml.NewDecoder(strings.NewReader(svg))
	ids, used := map[string]bool{}, regexp.MustCompile(`url\(#([^)]+)\)|aria-labelledby="([^ "]+) ([^ "]+)"`)
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if e, ok := tok.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "id" {
					require.False(t, ids[a.Value], "id %s twice", a.Value)
					ids[a.Value] = true
				}
			}
		}
	}
	for _, m := range used.FindAllStringSubmatch(svg, -1) {
		for _, id := range m[1:] {
			require.True(t, id == "" || ids[id], "nothing has the id %q", id)
		}
	}
	require.Equal(t, 1, strings.Count(svg, "http"), "the name of the language alone")
	require.Contains(t, svg, `role="img"`)
}

// A rect is the place of a box or a label.
type rect struct {
	name                     string
	left, top, right, bottom int
}

func (s *spot) rect(name string) rect {
	return rect{name, s.x, s.y - s.h/2, s.x + s.w, s.y + s.h/2}
}

func (r rect) meets(o rect) bool {
	return r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom
}

func (r rect) holds(x, y float64) bool {
	return float64(r.left) < x && x < float64(r.right) && float64(r.top) < y && y < float64(r.bottom)
}

// Whatever the graph: everything is in the picture, no two boxes or labels
// overlap, lines go from the box that sends to the one that gets, always to the
// right, and through no other box or label.
func TestNothingOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := topology.New("random", drawTopology(t)).Build(topology.Options{})
		require.NoError(t, err)
		l := arrange(p, rapid.SampledFrom([]least{still, live}).Draw(t, "least"))
		require.Len(t, l.boxes, len(p.Components))
		var all []rect
		owner := map[int]*line{}
		for c, s := range l.boxes {
			require.GreaterOrEqual(t, s.w, max(l.least.boxWidth, boxWidth(&p.Components[c])))
			require.GreaterOrEqual(t, s.h, l.least.boxHeight)
			all = append(all, s.rect(p.Components[c].Name))
		}
		inputs := 0
		for _, ln := range l.lines {
			inputs++
			owner[len(all)] = ln
			require.GreaterOrEqual(t, ln.label.w, max(l.least.labelWidth, labelWidth(ln)))
			all = append(all, ln.label.rect("label "+ln.above))
		}
		for i := range p.Components {
			inputs -= len(p.Components[i].Inputs)
		}
		require.Zero(t, inputs, "a line for each input")
		for i, a := range all {
			require.True(t, a.left >= margin && a.right <= l.w-margin && a.top >= header && a.bottom <= l.h-margin, "%v is outside", a)
			for _, b := range all[i+1:] {
				if a.meets(b) {
					t.Fatalf("%v and %v", a, b)
				}
			}
		}
		for _, ln := range l.lines {
			from, to := l.boxes[ln.from], l.boxes[ln.component]
			require.Same(t, from, ln.hops[0].from)
			require.Same(t, to, ln.hops[len(ln.hops)-1].to)
			lastX, lastY := 0, 0
			for i, h := range ln.hops {
				x0, y0, x1, y1 := h.ends()
				require.Less(t, x0, x1, "to the right")
				if i == 0 {
					require.True(t, y0 > from.y-from.h/2 && y0 < from.y+from.h/2, "begins at its box")
				} else {
					require.Equal(t, lastY, y0, "level in a column")
					require.LessOrEqual(t, lastX, x0)
				}
				lastX, lastY = x1, y1
				for step := range 21 { // along the hop and the level part before it
					s := float64(step) / 20
					x := float64(x0)*(1-s) + float64(x1)*s
					y := float64(y0)*(1-s)*(1-s)*(1+2*s) + float64(y1)*s*s*(3-2*s)
					for k, r := range all {
						if owner[k] != ln && r.holds(x, y) {
							t.Fatalf("line to %s through %s", p.Components[ln.component].Name, r.name)
						}
					}
				}
				if h.to.component < 0 {
					for k, r := range all {
						if owner[k] != ln && r.holds(float64(h.to.x+h.to.w/2), float64(y1)) {
							t.Fatalf("line to %s through %s", p.Components[ln.component].Name, r.name)
						}
					}
				}
			}
			require.True(t, lastX == to.x && lastY > to.y-to.h/2 && lastY < to.y+to.h/2, "ends at its box")
		}
		svg := SVG(p)
		wellFormed(t, svg)
		require.Equal(t, svg, SVG(p))
	})
}

// drawTopology draws any graph: several inputs of the same stream, spouts that
// nobody reads, long ways beside short ones.
func drawTopology(t *rapid.T) func(*topology.Builder) {
	n := rapid.IntRange(1, 14).Draw(t, "components")
	spouts := rapid.IntRange(1, n).Draw(t, "spouts")
	name := rapid.StringMatching(`[a-zA-Z0-9_]{1,30}`)
	type in struct{ from, grouping int }
	inputs := make([][]in, n)
	fields, parallel := make([]string, n), make([]int, n)
	for i := range n {
		fields[i] = name.Draw(t, "field")
		parallel[i] = rapid.IntRange(1, 4).Draw(t, "parallel")
		for k := range rapid.IntRange(1, 4).Draw(t, "inputs") {
			if i >= spouts {
				inputs[i] = append(inputs[i], in{rapid.IntRange(0, i-1).Draw(t, "from"), k})
			}
		}
	}
	return func(b *topology.Builder) {
		all := make([]*topology.Component, n)
		for i := range n {
			if i < spouts {
				all[i] = b.Spout(fmt.Sprintf("c%d_%s", i, fields[i]), source)
			} else {
				var subs []topology.Subscription
				for _, x := range inputs[i] {
					c := all[x.from]
					subs = append(subs, []func() topology.Subscription{
						c.Shuffle, c.All, func() topology.Subscription { return c.By("f" + fields[x.from]) }, c.Global,
					}[x.grouping]())
				}
				all[i] = b.Bolt(fmt.Sprintf("c%d_%s", i, fields[i]), noBolt, subs...)
			}
			all[i].Emits("f" + fields[i]).Parallel(parallel[i])
		}
	}
}

// Lines that need not cross do not.
func TestNoNeedlessCrossings(t *testing.T) {
	for name, want := range map[string]int{"wordcount": 0, "alone": 0, "long": 0, "orders": 2} {
		require.Equal(t, want, arrange(build(t, name), still).crossings(), name)
	}
}

// A chain is one straight line.
func TestChainIsLevel(t *testing.T) {
	for _, ln := range arrange(build(t, "wordcount"), still).lines {
		for _, h := range ln.hops {
			_, y0, _, y1 := h.ends()
			require.Equal(t, y0, y1)
		}
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	for name := range shapes {
		wellFormed(t, SVG(build(t, name)))
	}
}

// What stands in quotes in DOT comes out of them as it went in.
func TestQuote(t *testing.T) {
	require.Equal(t, `"a\"b\\c\nd"`, quote("a\"b\\c\nd"))
	unquote := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		q := quote(s)
		require.NotRegexp(t, `^"([^\\"]|\\.)*"[^$]`, q, "closed too early")
		require.Equal(t, s, unquote.Replace(q[1:len(q)-1]))
	})
}
