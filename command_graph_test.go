package egret

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func graphed(name string) *topology.Topology {
	return topology.New(name, func(b *topology.Builder) {
		tasks := b.Int("tasks", 1, "tasks of out")
		in := b.Spout("in", spout.Slice("x")).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.By("n")).Parallel(tasks)
	})
}

func TestGraphCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.svg")
	text := `a: 2 components, 4 tasks, at-least-once

○  in   spout    (n)
│    by n
●  out  bolt ×3
`
	for _, tt := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{args: []string{"graph", "a", "--set", "tasks=3"}, out: text},
		{args: []string{"graph", "a", "--set", "tasks=9", "--parallel", "out=3"}, out: text},
		{args: []string{"graph", "a", "--format", "dot"}, out: `"in" -> "out" [label="by n\n(n)"];`},
		{args: []string{"graph", "b", "--format", "svg"}, out: "<title id=\"egret-b-title\">Topology b</title>"},
		{args: []string{"graph", "b", "--format", "svg", "-o", file}},
		{args: []string{"graph", "b", "-o", filepath.Join(dir, "y.SVG")}},
		{args: []string{"graph", "b", "-o", filepath.Join(dir, "y.dot")}},
		{args: []string{"graph", "b", "-o", filepath.Join(dir, "y.png")}},
		{args: []string{"graph", "b", "--format", "dot", "-o", filepath.Join(dir, "z.svg")}},
		{args: []string{"graph", "a", "--tasks", "3"}, code: ExitUsage, errs: "unknown flag: --tasks, which is a parameter of the topology a: here it is --set tasks=VALUE\nTry: PROG graph --help\n"},
		{args: []string{"graph", "a", "--task", "3"}, code: ExitUsage, errs: "unknown flag: --task\n"},
		{args: []string{"topologies", "--tasks=3"}, code: ExitUsage, errs: "unknown flag: --tasks, which is a parameter of the topology a: give it to run, or to graph with --set tasks=VALUE"},
		{args: []string{"graph"}, code: ExitUsage, errs: "name one of the topologies a or b"},
		{args: []string{"graph", "c"}, code: ExitUsage, errs: `there is no topology "c": the program has the topologies a and b`},
		{args: []string{"graph", "a", "b"}, code: ExitUsage, errs: `unknown argument "b": name one topology`},
		{args: []string{"graph", "a", "--format", "png"}, code: ExitUsage, errs: `--format is "png": use text, dot or svg`},
		{args: []string{"graph", "a", "--set", "tasks"}, code: ExitUsage, errs: "--set tasks has no value: write --set tasks=VALUE"},
		{args: []string{"graph", "a", "--set", "task=3"}, code: ExitUsage, errs: `topology a: unknown parameter "task" (have tasks)`},
		{args: []string{"graph", "a", "--parallel", "out"}, code: ExitUsage, errs: `"out" is no component and its number of tasks, as in count=4`},
		{args: []string{"graph", "a", "--parallel", "nobody=3", "--set", "tasks=x"}, code: ExitUsage, errs: "PROG:\n  topology a:\n    parameter \"tasks\": \"x\" is not a whole number\n    parallelism"},
		{args: []string{"graph", "a", "--parallel", "nobody=3"}, code: ExitUsage, errs: `unknown component "nobody"`},
		{args: []string{"graph", "a", "-o", filepath.Join(file, "no")}, code: ExitFailed, errs: "no"},
	} {
		var out, errs bytes.Buffer
		code := execute([]*topology.Topology{graphed("a"), graphed("b")}, tt.args, nil, &out, &errs)
		require.Equal(t, tt.code, code, "%v: %s", tt.args, &errs)
		require.Contains(t, errs.String(), strings.ReplaceAll(tt.errs, "PROG", program()), "%v", tt.args)
		require.Contains(t, out.String(), tt.out, "%v", tt.args)
		if tt.code != ExitDone {
			require.Empty(t, out.String(), "%v", tt.args)
		}
	}
	for name, part := range map[string]string{"x.svg": "</svg>", "y.SVG": "</svg>", "y.dot": "digraph", "y.png": "b: 2 components", "z.svg": "digraph"} {
		picture, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(picture), part, name)
	}

	var out, errs bytes.Buffer // of one topology the name may be left out
	for _, args := range [][]string{{"graph", "--set", "tasks=3"}, {"graph", "a", "--set", "tasks=3"}} {
		out.Reset()
		require.Equal(t, ExitDone, execute([]*topology.Topology{graphed("a")}, args, nil, &out, &errs), &errs)
		require.Equal(t, text, out.String())
	}
}
