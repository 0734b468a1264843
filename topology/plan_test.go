package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

func TestPlan(t *testing.T) {
	p, err := New("orders", func(b *Builder) {
		b.Guarantee(AtMostOnce)
		b.Bolt("log", noBolt, b.Component("join").Stream("late").Global(), b.Component("orders").Shuffle())
		users := b.Spout("users", source{}).Emits("country", "user")
		orders := b.Spout("orders", source{}).Emits("id", "user", "sum").Parallel(3)
		b.Bolt("join", noBolt, orders.By("user", "id"), users.By("user")).
			EmitsTo("good", "sum").EmitsTo("late", "id").Parallel(2).Every(time.Second)
		b.Bolt("sum", noBolt, b.Component("join").Stream("good").LocalOrShuffle(), users.All())
	}).Build(Options{Epoch: 7, Parallel: map[string]int{"sum": 4}})
	require.NoError(t, err)

	usersDefault := &tuple.Schema{Component: "users", Stream: "default", Fields: []string{"country", "user"}}
	ordersDefault := &tuple.Schema{Component: "orders", Stream: "default", Fields: []string{"id", "user", "sum"}}
	good := &tuple.Schema{Component: "join", Stream: "good", Fields: []string{"sum"}}
	late := &tuple.Schema{Component: "join", Stream: "late", Fields: []string{"id"}}
	for i := range p.Components {
		p.Components[i].Bolt = nil // functions do not compare
	}
	require.Equal(t, &Plan{
		Topology: "orders", Guarantee: AtMostOnce, Epoch: 7,
		Components: []Node{
			{Name: "users", Source: source{}, Parallel: 1, First: 0, Streams: []*tuple.Schema{usersDefault}, Outputs: []Route{
				{Stream: 0, To: 2, Input: 1, Grouping: Fields, Fields: []int{1}},
				{Stream: 0, To: 4, Input: 1, Grouping: All},
			}},
			{Name: "orders", Source: source{}, Parallel: 3, First: 1, Streams: []*tuple.Schema{ordersDefault}, Outputs: []Route{
				{Stream: 0, To: 3, Input: 1, Grouping: Shuffle},
				{Stream: 0, To: 2, Input: 0, Grouping: Fields, Fields: []int{1, 0}},
			}},
			{Name: "join", Parallel: 2, First: 4, Every: time.Second, Streams: []*tuple.Schema{good, late},
				Inputs: []Input{{From: 1, Stream: ordersDefault}, {From: 0, Stream: usersDefault}},
				Outputs: []Route{
					{Stream: 0, To: 4, Input: 0, Grouping: LocalOrShuffle},
					{Stream: 1, To: 3, Input: 0, Grouping: Global},
				}},
			{Name: "log", Parallel: 1, First: 6, Inputs: []Input{{From: 2, Stream: late}, {From: 1, Stream: ordersDefault}}},
			{Name: "sum", Parallel: 4, First: 7, Inputs: []Input{{From: 2, Stream: good}, {From: 0, Stream: usersDefault}}},
		},
		Tasks: []Task{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {3, 0}, {4, 0}, {4, 1}, {4, 2}, {4, 3}},
	}, p)
	require.Equal(t, "sum/3", p.TaskName(10))
	require.Equal(t, "task 11", p.TaskName(11))
	require.Equal(t, []tuple.TaskID{0, 4, 5}, p.Senders(4))
	require.Equal(t, []int{0, 1, 2}, p.Origins(4))
	require.Equal(t, []int{0, 1, 2}, p.Origins(3))
}

func TestGuarantee(t *testing.T) {
	p, err := New("test", func(b *Builder) { lines(b) }).Build(Options{})
	require.NoError(t, err)
	require.Equal(t, AtLeastOnce, p.Guarantee)
	p, err = New("test", func(b *Builder) { lines(b); b.Guarantee(AtMostOnce) }).Build(Options{Guarantee: new(AtLeastOnce)})
	require.NoError(t, err)
	require.Equal(t, AtLeastOnce, p.Guarantee)
}

// A part is a component of a random topology, as data.
type part struct {
	name     string
	spout    bool
	parallel int
	streams  []string
	inputs   []want
}

type want struct {
	from, stream string
	grouping     Grouping
	fields       []string
}

var fields = []string{"a", "b", "c"}

// drawParts draws a topology without mistakes, in a random order of declaration.
func drawParts(t *rapid.T) []part {
	n := rapid.IntRange(1, 12).Draw(t, "components")
	spouts := rapid.IntRange(1, n).Draw(t, "spouts")
	parts := make([]part, n)
	for i := range parts {
		p := &parts[i]
		*p = part{
			name:     fmt.Sprintf("c%d", i),
			spout:    i < spouts,
			parallel: rapid.IntRange(1, 4).Draw(t, "parallel"),
			streams:  []string{"default", "s1", "s2"}[:rapid.IntRange(1, 3).Draw(t, "streams")],
		}
		if p.spout {
			continue
		}
		for range rapid.IntRange(1, 4).Draw(t, "inputs") {
			from := parts[rapid.IntRange(0, i-1).Draw(t, "from")]
			w := want{from: from.name, stream: rapid.SampledFrom(from.streams).Draw(t, "stream"),
				grouping: rapid.SampledFrom([]Grouping{Shuffle, LocalOrShuffle, Fields, Global, All}).Draw(t, "grouping")}
			if w.grouping == Fields {
				w.fields = rapid.Permutation(fields).Draw(t, "key")[:rapid.IntRange(1, 3).Draw(t, "keys")]
			}
			if !slices.ContainsFunc(p.inputs, func(o want) bool { return fmt.Sprint(o) == fmt.Sprint(w) }) {
				p.inputs = append(p.inputs, w)
			}
		}
	}
	return rapid.Permutation(parts).Draw(t, "declared")
}

// define describes the parts to a Builder, by name only.
func define(parts []part) func(*Builder) {
	return func(b *Builder) {
		for _, p := range parts {
			var subs []Subscription
			for _, w := range p.inputs {
				s := b.Component(w.from).Stream(w.stream)
				subs = append(subs, map[Grouping]Subscription{
					Shuffle: s.Shuffle(), LocalOrShuffle: s.LocalOrShuffle(), Fields: s.By(w.fields...), Global: s.Global(), All: s.All(),
				}[w.grouping])
			}
			var c *Component
			if p.spout {
				c = b.Spout(p.name, source{})
			} else {
				c = b.Bolt(p.name, noBolt, subs...)
			}
			for _, s := range p.streams {
				c.EmitsTo(s, fields...)
			}
			c.Parallel(p.parallel)
		}
	}
}

// Whatever graph is declared in whatever order, the plan says the same as the
// declaration, in topological order.
func TestPlanOfRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t)
		p, err := New("test", define(parts)).Build(Options{})
		require.NoError(t, err)

		var names []string
		for _, n := range p.Components {
			names = append(names, n.Name)
		}
		require.Equal(t, orderOf(parts), names)

		var tasks []Task
		routes := 0
		for i, n := range p.Components {
			d := parts[slices.IndexFunc(parts, func(d part) bool { return d.name == n.Name })]
			require.Equal(t, d.spout, n.Source != nil)
			require.Equal(t, d.spout, n.Bolt == nil)
			require.Equal(t, d.parallel, n.Parallel)
			require.EqualValues(t, len(tasks), n.First)
			for k := range n.Parallel {
				tasks = append(tasks, Task{i, k})
			}
			require.Len(t, n.Streams, len(d.streams))
			for k, s := range n.Streams {
				require.Equal(t, &tuple.Schema{Component: n.Name, Stream: d.streams[k], Fields: fields}, s)
			}
			require.Len(t, n.Inputs, len(d.inputs))
			for k, in := range n.Inputs {
				require.Less(t, in.From, i)
				w := d.inputs[k]
				require.Equal(t, w.from, p.Components[in.From].Name)
				require.Contains(t, p.Components[in.From].Streams, in.Stream)
				require.Equal(t, w.stream, in.Stream.Stream)
				var found []Route
				for _, r := range p.Components[in.From].Outputs {
					if r.To == i && r.Input == k {
						found = append(found, r)
					}
				}
				require.Len(t, found, 1)
				require.Same(t, in.Stream, p.Components[in.From].Streams[found[0].Stream])
				require.Equal(t, w.grouping, found[0].Grouping)
				var key []string
				for _, f := range found[0].Fields {
					key = append(key, fields[f])
				}
				require.Equal(t, w.fields, key)
			}
			routes += len(n.Inputs)
			require.True(t, slices.IsSortedFunc(n.Outputs, func(x, y Route) int {
				at := func(r Route) int {
					return slices.IndexFunc(parts, func(d part) bool { return d.name == p.Components[r.To].Name })
				}
				return (x.Stream-y.Stream)*1_000_000 + (at(x)-at(y))*1000 + x.Input - y.Input
			}), "routes are ordered by stream, then by declaration")
		}
		require.Equal(t, tasks, p.Tasks)
		for _, n := range p.Components {
			routes -= len(n.Outputs)
		}
		require.Zero(t, routes, "every route is an input")
	})
}

// orderOf is the slow obvious order: spouts, then again and again the first part
// all of whose senders stand already.
func orderOf(parts []part) []string {
	var names []string
	for _, p := range parts {
		if p.spout {
			names = append(names, p.name)
		}
	}
next:
	for len(names) < len(parts) {
		for _, p := range parts {
			ready := !slices.Contains(names, p.name)
			for _, w := range p.inputs {
				ready = ready && slices.Contains(names, w.from)
			}
			if ready {
				names = append(names, p.name)
				continue next
			}
		}
	}
	return names
}

// A back edge in a random graph is found, and the way that is told is one.
func TestCyclesOfRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t)
		at := func(name string) *part {
			return &parts[slices.IndexFunc(parts, func(p part) bool { return p.name == name })]
		}
		var bolts []string
		for _, p := range parts {
			if !p.spout {
				bolts = append(bolts, p.name)
			}
		}
		if len(bolts) == 0 {
			return // nothing to close a cycle with
		}
		// From any bolt to itself or to one it can come from.
		from := at(rapid.SampledFrom(bolts).Draw(t, "back from"))
		up := map[string]bool{from.name: true}
		for again := true; again; {
			again = false
			for name := range maps.Clone(up) {
				for _, w := range at(name).inputs {
					if !up[w.from] && !at(w.from).spout {
						up[w.from], again = true, true
					}
				}
			}
		}
		to := at(rapid.SampledFrom(slices.Sorted(maps.Keys(up))).Draw(t, "back to"))
		to.inputs = append(to.inputs, want{from: from.name, stream: "default", grouping: Fields, fields: []string{"c"}})

		_, err := New("test", define(parts)).Build(Options{})
		require.ErrorIs(t, err, ErrCycle)
		for _, e := range all(t, err) {
			if e.Err == ErrSubscription {
				continue // the drawn edge was there
			}
			require.Equal(t, ErrCycle, e.Err, "%v", e)
			_, way, _ := strings.Cut(e.Detail, ": ")
			names := strings.Split(way, " -> ")
			require.GreaterOrEqual(t, len(names), 2)
			require.Equal(t, e.Component, names[0])
			require.Equal(t, e.Component, names[len(names)-1])
			for i := range names[1:] {
				require.True(t, slices.ContainsFunc(at(names[i+1]).inputs, func(w want) bool { return w.from == names[i] }), way)
			}
		}
	})
}

// Whatever is described, Build returns either a plan or mistakes that are
// BuildErrors, and does not panic.
func TestAnyDescription(t *testing.T) {
	plans, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "d", "__x", ""})
		stream := rapid.SampledFrom([]string{"default", "default", "default", "s", " "})
		field := rapid.SliceOfN(rapid.SampledFrom([]string{"k", "v", "w"}), 0, 2)
		top := New("test", func(b *Builder) {
			b.Spout("a", source{}).Emits("k", "v")
			for range rapid.IntRange(0, 4).Draw(t, "bolts") {
				var subs []Subscription
				for range rapid.IntRange(0, 2).Draw(t, "inputs") {
					s := b.Component(name.Draw(t, "from")).Stream(stream.Draw(t, "stream"))
					if rapid.Bool().Draw(t, "by") {
						subs = append(subs, s.By(field.Draw(t, "key")...))
					} else {
						subs = append(subs, s.Shuffle())
					}
				}
				b.Bolt(name.Draw(t, "name"), noBolt, subs...).
					EmitsTo(stream.Draw(t, "emits"), field.Draw(t, "fields")...).
					Parallel(rapid.IntRange(0, 9).Draw(t, "parallel"))
			}
		})
		p, err := top.Build(Options{})
		if err == nil {
			plans++
			require.NotEmpty(t, p.Tasks)
			require.NotEmpty(t, p.Draw())
			return
		}
		refused++
		require.Nil(t, p)
		for _, e := range all(t, err) {
			require.NotEmpty(t, e.Error())
			require.Error(t, e.Err)
		}
	})
	require.Positive(t, plans)
	require.Positive(t, refused)
}
