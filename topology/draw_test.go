package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
)

// shapes are the topologies of the golden drawings and fingerprints.
var shapes = map[string]func(*Builder){
	"chain": func(b *Builder) {
		lines := b.Spout("lines", source{}).Emits("line")
		words := b.Bolt("split", noBolt, lines.Shuffle()).Emits("word").Parallel(2)
		sums := b.Bolt("count", noBolt, words.By("word")).Emits("word", "count").Parallel(4)
		b.Bolt("top", noBolt, sums.Global())
	},
	"diamond": func(b *Builder) {
		numbers := b.Spout("numbers", source{}).Emits("n")
		evens := b.Bolt("evens", noBolt, numbers.Shuffle()).Emits("n").Parallel(2)
		odds := b.Bolt("odds", noBolt, numbers.LocalOrShuffle()).Emits("n")
		b.Bolt("join", noBolt, evens.By("n"), odds.By("n")).Parallel(3)
	},
	"join": func(b *Builder) {
		orders := b.Spout("orders", source{}).Emits("id", "user", "sum").Parallel(3)
		users := b.Spout("users", source{}).Emits("user", "country")
		rates := b.Spout("rates", source{}).Emits("country", "rate")
		joined := b.Bolt("join", noBolt, orders.By("user"), users.By("user"), rates.All()).
			Emits("country", "sum").EmitsTo("late", "id", "age").Parallel(4).Every(time.Second)
		b.Bolt("sums", noBolt, joined.By("country")).Every(1500 * time.Millisecond)
		b.Bolt("alarm", noBolt, joined.Stream("late").Global(), rates.Shuffle())
	},
	"knot": func(b *Builder) {
		a := b.Spout("a", source{}).Emits("x").EmitsTo("errors", "what")
		c := b.Bolt("c", noBolt, a.Shuffle(), b.Component("e").Shuffle()).Emits("x")
		d := b.Bolt("d", noBolt, a.Shuffle()).Emits("x")
		b.Bolt("e", noBolt, a.By("x"), d.All()).Emits("x")
		f := b.Bolt("f", noBolt, d.Shuffle(), d.By("x"), c.Shuffle()).EmitsTo("out", "y")
		b.Bolt("log", noBolt, a.Stream("errors").Global(), f.Stream("out").Global())
		b.Spout("alone", source{}).Emits("z")
	},
	"queue": func(b *Builder) {
		noted := b.Bolt("note", noBolt, b.Component("jobs").Shuffle(), b.Component("config").All()).Emits("x").Parallel(2)
		b.Bolt("store", noBolt, noted.Global())
		b.Queue("jobs", func() spout.Queue { return nil }).Emits("x").Parallel(3)
		b.Spout("config", source{}).Emits("y")
	},
	"choices": func(b *Builder) {
		in := b.Spout("in", source{}).Emits("word", "n").EmitsTo("to", "x").EmitsTo("rest", "x")
		half := b.Bolt("half", noBolt, in.PartialBy("word", "n")).Emits("word").Parallel(4)
		b.Bolt("told", noBolt, in.Stream("to").Direct(), half.None()).Parallel(3)
		b.Bolt("own", noBolt, in.Stream("rest").Custom("by-region", noChooser), half.Custom("odd", noChooser)).Parallel(2)
	},
	"fan": func(b *Builder) {
		in := b.Spout("in", source{}).Emits("x")
		b.Bolt("one", noBolt, in.Shuffle())
		two := b.Bolt("two", noBolt, in.Shuffle()).Emits("x")
		three := b.Bolt("three", noBolt, in.Shuffle()).Emits("x")
		four := b.Bolt("four", noBolt, in.Shuffle()).Emits("x")
		b.Bolt("all", noBolt, four.Shuffle(), two.Shuffle(), three.Shuffle())
	},
}

func noChooser(Sender) Chooser { return nil }

func TestDraw(t *testing.T) {
	for name, define := range shapes {
		t.Run(name, func(t *testing.T) {
			p, err := New(name, define).Build(Options{})
			require.NoError(t, err)
			golden(t, name+".txt", p.Draw())
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

// In the drawing of any graph every rail that goes down from a line is met by
// one that comes up from the next, and there are as many lines as components and
// subscriptions.
func TestRailsMeet(t *testing.T) {
	const (
		down = "│├┤╭╮"
		up   = "│├┤╰╯"
	)
	rapid.Check(t, func(t *rapid.T) {
		p, err := New("test", define(drawParts(t))).Build(Options{})
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSuffix(p.Draw(), "\n"), "\n")[2:]

		ups := func(line []rune, i int, n *Node) bool {
			if i >= len(line) {
				return false
			}
			if line[i] == '●' || line[i] == '○' {
				return len(n.Inputs) > 0
			}
			return strings.ContainsRune(up, line[i])
		}
		downs := func(line []rune, i int, n *Node) bool {
			if i >= len(line) {
				return false
			}
			if line[i] == '●' || line[i] == '○' {
				return len(n.Outputs) > 0
			}
			return strings.ContainsRune(down, line[i])
		}
		var above []rune
		var last *Node
		c, inputs := 0, 0
		for _, l := range lines {
			n := &p.Components[min(c, len(p.Components)-1)]
			line := []rune(l)
			for i := range max(len(line), len(above)) {
				if downs(above, i, last) != ups(line, i, n) {
					t.Fatalf("column %d of %q below %q in\n%s", i, l, string(above), p.Draw())
				}
			}
			above, last = line, n
			if strings.ContainsAny(l, "●○") {
				require.Equal(t, n.Reads(), strings.Contains(l, "○"))
				require.Contains(t, l, "  "+n.Name+" ")
				require.Equal(t, len(n.Inputs), inputs, n.Name)
				c, inputs = c+1, 0
			} else {
				inputs++
			}
		}
		require.Equal(t, len(p.Components), c)
	})
}
