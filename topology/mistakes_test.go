package topology

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
)

// mistakes are definitions and options with everything that Build says about
// them, line by line. Names of streams and components are good unless they are
// what the case is about.
var mistakes = []struct {
	name    string
	define  func(*Builder)
	options Options
	err     error // of the first line
	want    string
}{
	{
		name: "field of a grouping",
		define: func(b *Builder) {
			words := b.Bolt("split", noBolt, lines(b).Shuffle()).Emits("word")
			b.Bolt("count", noBolt, words.By("wrod"))
		},
		err:  ErrField,
		want: `bolt count: stream split.default has no field "wrod" (it has "word")`,
	},
	{
		name: "queues",
		define: func(b *Builder) {
			b.Bolt("x", noBolt, b.Queue("jobs", nil).Parallel(0).Every(time.Second).Shuffle())
		},
		err: ErrNil,
		want: `queue jobs: its factory is nil
queue jobs: parallelism 0 is not between 1 and 4096
queue jobs: a queue is not ticked: Every is for bolts
queue jobs: it declares no stream: add .Emits(...)
bolt x: component jobs has no stream "default" (it has none)`,
	},
	{
		name: "several fields of a grouping",
		define: func(b *Builder) {
			s := b.Spout("in", source{}).EmitsTo("pairs", "a", "b")
			b.Bolt("x", noBolt, s.Stream("pairs").By("c", "a", "d"))
		},
		err: ErrField,
		want: `bolt x: stream in.pairs has no field "c" (it has "a", "b")
bolt x: stream in.pairs has no field "d" (it has "a", "b")`,
	},
	{
		name: "masks",
		define: func(b *Builder) {
			in := b.Spout("in", source{}).Mask("early", "a").Emits("a").Mask("a", "b").EmitsTo("more", "c").Mask("a")
			b.Bolt("x", noBolt, in.Shuffle()).Mask("d")
		},
		err: ErrField,
		want: `spout in: Mask: stream default has no field "b" (it has "a")
spout in: Mask: stream more has no field "a" (it has "c")
spout in: Mask("early", "a") stands before the stream that it is for: put it behind Emits or EmitsTo
bolt x: Mask("d") stands before the stream that it is for: put it behind Emits or EmitsTo`,
	},
	{
		name:   "grouping by nothing",
		define: func(b *Builder) { b.Bolt("x", noBolt, lines(b).By()) },
		err:    ErrField,
		want:   `bolt x: By names no field of stream lines.default (it has "line")`,
	},
	{
		name:   "grouping by a field twice",
		define: func(b *Builder) { b.Bolt("x", noBolt, lines(b).By("line", "line")) },
		err:    ErrField,
		want:   `bolt x: By names field "line" of stream lines.default twice`,
	},
	{
		name: "partial keys",
		define: func(b *Builder) {
			b.Bolt("x", noBolt, lines(b).PartialBy(), b.Component("lines").PartialBy("line", "line"), b.Component("lines").PartialBy("lien"))
		},
		err: ErrField,
		want: `bolt x: PartialBy names no field of stream lines.default (it has "line")
bolt x: PartialBy names field "line" of stream lines.default twice
bolt x: stream lines.default has no field "lien" (it has "line")`,
	},
	{
		name: "direct with others",
		define: func(b *Builder) {
			in := b.Spout("in", source{}).Emits("a").EmitsTo("one", "a").EmitsTo("two", "a").EmitsTo("good", "a")
			b.Bolt("x", noBolt, in.Direct(), in.Stream("one").Shuffle(), in.Stream("good").Direct())
			b.Bolt("y", noBolt, in.By("a"), in.Stream("one").Direct(), in.Stream("two").Direct())
			b.Bolt("z", noBolt, in.Stream("two").Direct(), in.Stream("two").Direct())
		},
		err: ErrSubscription,
		want: `bolt x: it subscribes to stream in.default direct, so nobody else can (y does, by a): declare another stream for one of them
bolt y: it subscribes to stream in.one direct, so nobody else can (x does, shuffle): declare another stream for one of them
bolt y: it subscribes to stream in.two direct, so nobody else can (z does, direct): declare another stream for one of them
bolt z: it subscribes to stream in.two twice with the same grouping (direct)`,
	},
	{
		name: "custom groupings",
		define: func(b *Builder) {
			in := lines(b)
			b.Bolt("x", noBolt, in.Custom("", noChooser), in.Custom("a b", nil), in.Custom("c", noChooser), in.Custom("c", noChooser), in.Custom("d", noChooser))
		},
		err: ErrName,
		want: `bolt x: the name "" of the custom grouping of stream lines.default is empty
bolt x: the name "a b" of the custom grouping of stream lines.default has ' ' in it; allowed are letters, digits, _ - .
bolt x: the custom grouping "a b" of stream lines.default is nil
bolt x: it subscribes to stream lines.default twice with the same grouping (custom c)`,
	},
	{
		name: "names of components",
		define: func(b *Builder) {
			l := lines(b)
			for _, name := range []string{"", "my bolt", "__ack", "-x", ".x", "größe", strings.Repeat("x", 101), "good-1_A.b"} {
				b.Bolt(name, noBolt, l.Shuffle())
			}
		},
		err: ErrName,
		want: `bolt "": the name is empty
bolt "my bolt": the name has ' ' in it; allowed are letters, digits, _ - .
bolt "__ack": the name starts with "__", which is reserved
bolt "-x": the name does not start with a letter, a digit or _
bolt ".x": the name does not start with a letter, a digit or _
bolt "größe": the name has 'ö' in it; allowed are letters, digits, _ - .
bolt "` + strings.Repeat("x", 101) + `": the name is longer than 100 bytes`,
	},
	{
		name: "name taken",
		define: func(b *Builder) {
			l := lines(b)
			b.Bolt("x", noBolt, l.Shuffle())
			b.Bolt("x", noBolt, l.By("lien"))
			b.Spout("x", source{}).Emits("a")
		},
		err: ErrName,
		want: `bolt x: the name is taken: another component has it
bolt x: stream lines.default has no field "lien" (it has "line")
spout x: the name is taken: another component has it`,
	},
	{
		name: "names of streams and fields",
		define: func(b *Builder) {
			b.Spout("in", source{}).EmitsTo("", "a").EmitsTo("__x", "a").EmitsTo("y", "", "a/b", "__key")
		},
		err: ErrName,
		want: `spout in: the stream name "" is empty
spout in: the stream name "__x" starts with "__", which is reserved
spout in: the field name "" of stream y is empty
spout in: the field name "a/b" of stream y has '/' in it; allowed are letters, digits, _ - .
spout in: the field name "__key" of stream y starts with "__", which is reserved`,
	},
	{
		name: "streams and fields twice or empty",
		define: func(b *Builder) {
			b.Spout("in", source{}).Emits("a", "b", "a").EmitsTo("late", "x").EmitsTo("late", "y").EmitsTo("none")
		},
		err: ErrField,
		want: `spout in: stream default has field "a" twice
spout in: stream late is declared twice
spout in: stream none has no fields`,
	},
	{
		name: "nothing to run",
		define: func(b *Builder) {
			in := b.Spout("in", nil).Emits("a")
			b.Bolt("x", nil, in.Shuffle())
		},
		err: ErrNil,
		want: `spout in: its source is nil
bolt x: its factory is nil`,
	},
	{
		name:   "a spout that emits nothing",
		define: func(b *Builder) { b.Spout("in", source{}) },
		err:    ErrStream,
		want:   `spout in: it declares no stream: add .Emits(...)`,
	},
	{
		name:   "empty",
		define: func(*Builder) {},
		err:    ErrNoSpout,
		want:   `topology test has no spout`,
	},
	{
		name: "no spout",
		define: func(b *Builder) {
			x := b.Bolt("x", noBolt).Emits("a")
			b.Bolt("y", noBolt, x.Shuffle())
		},
		err: ErrUnreachable,
		want: `bolt x: it has no inputs
topology test has no spout`,
	},
	{
		name: "unreachable",
		define: func(b *Builder) {
			l := lines(b)
			x := b.Bolt("x", noBolt).Emits("a")
			y := b.Bolt("y", noBolt, x.Shuffle()).Emits("a")
			b.Bolt("z", noBolt, y.Shuffle(), x.Shuffle(), y.By("a"))
			b.Bolt("fine", noBolt, y.Shuffle(), l.Shuffle())
		},
		err: ErrUnreachable,
		want: `bolt x: it has no inputs
bolt y: no spout reaches it: its inputs come from x
bolt z: no spout reaches it: its inputs come from y, x`,
	},
	{
		name: "cycle",
		define: func(b *Builder) {
			x := b.Bolt("x", noBolt, lines(b).Shuffle(), b.Component("z").Shuffle()).Emits("a")
			y := b.Bolt("y", noBolt, x.Shuffle()).Emits("a")
			b.Bolt("z", noBolt, y.Shuffle()).Emits("a")
		},
		err:  ErrCycle,
		want: `bolt x: what it emits comes back to it: x -> y -> z -> x`,
	},
	{
		name: "two cycles, one fed by no spout",
		define: func(b *Builder) {
			l := lines(b)
			b.Bolt("self", noBolt, l.Shuffle(), b.Component("self").Shuffle()).Emits("a")
			b.Bolt("x", noBolt, b.Component("y").Shuffle()).Emits("a")
			b.Bolt("y", noBolt, b.Component("x").Shuffle()).Emits("a")
			b.Bolt("out", noBolt, b.Component("x").Shuffle(), b.Component("self").Shuffle())
		},
		err: ErrUnreachable,
		want: `bolt x: no spout reaches it: its inputs come from y
bolt y: no spout reaches it: its inputs come from x
bolt self: what it emits comes back to it: self -> self
bolt x: what it emits comes back to it: x -> y -> x`,
	},
	{
		name: "cycles that share a component",
		define: func(b *Builder) {
			hub := b.Bolt("hub", noBolt, lines(b).Shuffle(), b.Component("a").Shuffle(), b.Component("c").Shuffle()).Emits("x")
			b.Bolt("a", noBolt, hub.Shuffle()).Emits("x")
			d := b.Bolt("b", noBolt, hub.Shuffle()).Emits("x")
			b.Bolt("c", noBolt, d.Shuffle()).Emits("x")
		},
		err: ErrCycle,
		want: `bolt hub: what it emits comes back to it: hub -> a -> hub
bolt b: what it emits comes back to it: b -> c -> hub -> b`,
	},
	{
		name: "parallelism",
		define: func(b *Builder) {
			l := lines(b).Parallel(0)
			b.Bolt("a", noBolt, l.Shuffle()).Parallel(-3)
			b.Bolt("b", noBolt, l.Shuffle()).Parallel(4097)
			b.Bolt("c", noBolt, l.Shuffle()).Parallel(4096)
		},
		err: ErrParallel,
		want: `spout lines: parallelism 0 is not between 1 and 4096
bolt a: parallelism -3 is not between 1 and 4096
bolt b: parallelism 4097 is not between 1 and 4096`,
	},
	{
		name: "intervals",
		define: func(b *Builder) {
			l := lines(b).Every(time.Second)
			b.Bolt("a", noBolt, l.Shuffle()).Every(0)
			b.Bolt("b", noBolt, l.Shuffle()).Every(-time.Second)
		},
		err: ErrInterval,
		want: `spout lines: a spout is not ticked: Every is for bolts
bolt a: the tick interval 0s is not greater than zero
bolt b: the tick interval -1s is not greater than zero`,
	},
	{
		name: "streams that nobody declared",
		define: func(b *Builder) {
			words := b.Bolt("split", noBolt, lines(b).Shuffle()).Emits("word").EmitsTo("empty", "line")
			b.Bolt("count", noBolt, words.Stream("late").By("word"))
			mute := b.Bolt("mute", noBolt, words.Shuffle())
			b.Bolt("deaf", noBolt, mute.Shuffle())
		},
		err: ErrStream,
		want: `bolt count: component split has no stream "late" (it has "default", "empty")
bolt deaf: component mute has no stream "default" (it has none)`,
	},
	{
		name: "components that nobody declared",
		define: func(b *Builder) {
			b.Component("idle")
			x := b.Bolt("x", noBolt, b.Component("lins").Shuffle()).Emits("a")
			b.Bolt("y", noBolt, x.Shuffle())
			lines(b)
		},
		err: ErrComponent,
		want: `bolt x: there is no component "lins" (have x, y, lines)
component idle: it is asked for but not declared (have x, y, lines)`,
	},
	{
		name: "subscriptions of nothing",
		define: func(b *Builder) {
			var later *Component
			b.Bolt("x", noBolt, lines(b).Shuffle(), later.Shuffle(), Subscription{}, later.Stream("late").By("a"))
		},
		err: ErrSubscription,
		want: `bolt x: input 2 is of no component: it is a zero Subscription or one of a nil *Component; for what is declared later use Builder.Component
bolt x: input 3 is of no component: it is a zero Subscription or one of a nil *Component; for what is declared later use Builder.Component
bolt x: input 4 is of no component: it is a zero Subscription or one of a nil *Component; for what is declared later use Builder.Component`,
	},
	{
		name: "subscription of another builder",
		define: func(b *Builder) {
			other := lines(&Builder{handles: map[string]*Component{}})
			b.Bolt("x", noBolt, lines(b).Shuffle())
			b.Bolt("y", noBolt, other.Shuffle())
		},
		err:  ErrSubscription,
		want: `bolt y: input 1, stream lines.default, is of another Builder: use what this one returns`,
	},
	{
		name: "subscribed twice",
		define: func(b *Builder) {
			in := b.Spout("in", source{}).Emits("a", "b")
			b.Bolt("x", noBolt, in.Shuffle(), in.Global(), in.Shuffle(), in.By("a"), in.By("b"), in.By("a"))
		},
		err: ErrSubscription,
		want: `bolt x: it subscribes to stream in.default twice with the same grouping (shuffle)
bolt x: it subscribes to stream in.default twice with the same grouping (by a)`,
	},
	{
		name: "guarantee",
		define: func(b *Builder) {
			lines(b)
			b.Guarantee(7)
		},
		options: Options{Guarantee: new(Guarantee(9))},
		err:     ErrGuarantee,
		want: `there is no guarantee 7
there is no guarantee 9`,
	},
	{
		name:   "unknown parameter",
		define: func(b *Builder) { lines(b); b.String("file", "", ""); b.Int("top", 20, "") },
		options: Options{Params: map[string][]string{
			"fil": {"x"}, "tpo": {"3"}, "top": {"3"},
		}},
		err: ErrParam,
		want: `unknown parameter "fil" (have file, top)
unknown parameter "tpo" (have file, top)`,
	},
	{
		name:    "parameter of a topology without any",
		define:  func(b *Builder) { lines(b) },
		options: Options{Params: map[string][]string{"file": nil}},
		err:     ErrParam,
		want:    `unknown parameter "file" (have none)`,
	},
	{
		name: "values of parameters",
		define: func(b *Builder) {
			lines(b)
			b.Int("n", 1, "")
			b.Int("big", 1, "")
			b.Float("f", 1, "")
			b.Bool("yes", false, "")
			b.Duration("d", 0, "")
			b.String("two", "", "")
			b.String("no", "", "")
			b.Int("n", 1, "again, but told once")
		},
		options: Options{Params: map[string][]string{
			"n": {"many"}, "big": {"99999999999999999999"}, "f": {"1,5"}, "yes": {"maybe"}, "d": {"7"}, "two": {"a", "b"}, "no": {},
		}},
		err: ErrParam,
		want: `parameter "n": "many" is not a whole number
parameter "big": "99999999999999999999" is too large or too small
parameter "f": "1,5" is not a number
parameter "yes": "maybe" is not true or false
parameter "d": "7" is not a duration such as 1.5s or 2m
parameter "two": takes one value, not 2
parameter "no": takes one value, not 0`,
	},
	{
		name: "parameters declared badly",
		define: func(b *Builder) {
			lines(b)
			for _, name := range []string{"", "Top", "top_n", "-x", "x-", "a--b", "1a", "a-1"} {
				b.Int(name, 0, "")
			}
			b.Int("n", 1, "")
			b.Int("n", 2, "")
			b.String("n", "1", "")
			b.Int("n", 1, "fine")
		},
		err: ErrParam,
		want: `parameter "": the name is empty; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "Top": the name has 'T' at 1; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "top_n": the name has '_' at 4; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "-x": the name has '-' at 1; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "x-": the name has '-' at 2; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "a--b": the name has '-' at 3; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "1a": the name has '1' at 1; allowed are lower-case letters and digits with single dashes between them, a letter first
parameter "n": is declared twice, as int with default "1" and as int with default "2"
parameter "n": is declared twice, as int with default "1" and as string with default "1"`,
	},
	{
		name: "overrides of parallelism",
		define: func(b *Builder) {
			b.Bolt("x", noBolt, lines(b).Shuffle(), b.Component("gone").Shuffle())
		},
		options: Options{Parallel: map[string]int{"xx": 2, "x": 0, "lines": 5000, "gone": 1}},
		err:     ErrComponent,
		want: `bolt x: there is no component "gone" (have lines, x)
parallelism is given for an unknown component "gone" (have lines, x)
spout lines: the given parallelism 5000 is not between 1 and 4096
bolt x: the given parallelism 0 is not between 1 and 4096
parallelism is given for an unknown component "xx" (have lines, x)`,
	},
	{
		name: "all at once",
		define: func(b *Builder) {
			b.Check(errors.New("top must be at least 1"))
			b.Check(nil)
			l := b.Spout("lines", nil)
			words := b.Bolt("split", noBolt, l.Shuffle()).Emits("word")
			b.Bolt("count", noBolt, words.By("wrod"), words.By()).Parallel(0)
		},
		options: Options{Params: map[string][]string{"x": nil}, Parallel: map[string]int{"y": 1}},
		err:     ErrParam,
		want: `unknown parameter "x" (have none)
top must be at least 1
spout lines: its source is nil
spout lines: it declares no stream: add .Emits(...)
bolt split: component lines has no stream "default" (it has none)
bolt count: parallelism 0 is not between 1 and 4096
bolt count: stream split.default has no field "wrod" (it has "word")
bolt count: By names no field of stream split.default (it has "word")
parallelism is given for an unknown component "y" (have lines, split, count)`,
	},
}

func lines(b *Builder) *Component { return b.Spout("lines", source{}).Emits("line") }

func TestMistakes(t *testing.T) {
	for _, tt := range mistakes {
		t.Run(tt.name, func(t *testing.T) {
			for range 5 { // the order is stable
				p, err := New("test", tt.define).Build(tt.options)
				require.Nil(t, p)
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, all(t, err)[0], tt.err)
			}
		})
	}
}

// all returns the mistakes that err joins.
func all(t require.TestingT, err error) []*BuildError {
	var es []*BuildError
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		be, ok := e.(*BuildError)
		require.True(t, ok, "%T", e)
		es = append(es, be)
	}
	return es
}

func TestTopologyName(t *testing.T) {
	for name, want := range map[string]string{
		"":    `topology "": the name is empty`,
		"a b": `topology "a b": the name has ' ' in it; allowed are letters, digits, _ - .`,
	} {
		_, err := New(name, func(b *Builder) { lines(b) }).Build(Options{})
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, ErrName)
	}
	_, err := New("", nil).Build(Options{})
	require.EqualError(t, err, "topology \"\": the name is empty\ntopology \"\": its definition is nil")
	require.ErrorIs(t, err, ErrNil)
}

func TestBuildErrorSaysWhere(t *testing.T) {
	_, err := New("test", mistakes[0].define).Build(Options{})
	be, ok := errors.AsType[*BuildError](err)
	require.True(t, ok)
	require.Equal(t, &BuildError{
		Component: "count", Stream: "split.default", Field: "wrod",
		Detail: `stream split.default has no field "wrod" (it has "word")`,
		Err:    ErrField, kind: boltKind,
	}, be)
}

func TestCheckKeepsTheError(t *testing.T) {
	mine := errors.New("mine")
	_, err := New("test", func(b *Builder) { lines(b); b.Check(mine) }).Build(Options{})
	require.ErrorIs(t, err, mine)
	require.EqualError(t, err, "mine")
}

func TestPanicOfADefinitionIsNotRecovered(t *testing.T) {
	top := New("test", func(*Builder) { panic("oops") })
	require.PanicsWithValue(t, "oops", func() { _, _ = top.Build(Options{}) })
	require.PanicsWithValue(t, "oops", func() { _, _ = top.Params() })
}

// A handle kept from an earlier run of the definition must not leak into a plan.
func TestHandleOfAnEarlierRun(t *testing.T) {
	var kept *Component
	top := New("test", func(b *Builder) {
		l := lines(b)
		if kept == nil {
			kept = l
		}
		b.Bolt("x", bolt.Factory(noBolt), kept.Shuffle())
	})
	_, err := top.Build(Options{})
	require.NoError(t, err)
	_, err = top.Build(Options{})
	require.ErrorIs(t, err, ErrSubscription)
}
