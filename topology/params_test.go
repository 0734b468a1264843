package topology

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type values struct {
	s  string
	i  int
	f  float64
	b  bool
	d  time.Duration
	ss []string
}

// everyKind returns a topology with a parameter of every kind, and where its
// definition leaves their values.
func everyKind() (*Topology, *values) {
	v := new(values)
	return New("test", func(b *Builder) {
		lines(b)
		v.ss = b.Strings("paths", []string{"a", "b"}, "files to read")
		v.s = b.String("file", "book.txt", "text to count")
		v.i = b.Int("top", 20, "words to print")
		v.f = b.Float("rate", 0.5, "share of lines")
		v.b = b.Bool("loud", true, "print more")
		v.d = b.Duration("window", 90*time.Second, "length of a window")
	}), v
}

func TestParams(t *testing.T) {
	top, v := everyKind()
	ps, err := top.Params()
	require.NoError(t, err)
	require.Equal(t, []Param{
		{"paths", "files to read", "a,b", StringsParam},
		{"file", "text to count", "book.txt", StringParam},
		{"top", "words to print", "20", IntParam},
		{"rate", "share of lines", "0.5", FloatParam},
		{"loud", "print more", "true", BoolParam},
		{"window", "length of a window", "1m30s", DurationParam},
	}, ps)
	require.Equal(t, values{"book.txt", 20, 0.5, true, 90 * time.Second, []string{"a", "b"}}, *v)
}

func TestParamsGiven(t *testing.T) {
	top, v := everyKind()
	_, err := top.Build(Options{Params: map[string][]string{
		"paths": {"x,y", "", "z"}, "file": {""}, "top": {"-3"}, "rate": {"1e3"}, "loud": {"false"}, "window": {"2h"},
	}})
	require.NoError(t, err)
	require.Equal(t, values{"", -3, 1000, false, 2 * time.Hour, []string{"x,y", "", "z"}}, *v)

	_, err = top.Build(Options{Params: map[string][]string{"paths": {}, "top": {"7"}}})
	require.NoError(t, err)
	require.Equal(t, values{"book.txt", 7, 0.5, true, 90 * time.Second, []string{}}, *v)
}

// The default text of a parameter is a value that gives the default.
func TestDefaultIsAValue(t *testing.T) {
	top, v := everyKind()
	ps, err := top.Params()
	require.NoError(t, err)
	want := *v
	given := map[string][]string{}
	for _, p := range ps {
		if p.Kind != StringsParam {
			given[p.Name] = []string{p.Default}
		}
	}
	_, err = top.Build(Options{Params: given})
	require.NoError(t, err)
	require.Equal(t, want, *v)
}

func TestParamDeclaredAgain(t *testing.T) {
	var first, second int
	top := New("test", func(b *Builder) {
		lines(b)
		first, second = b.Int("n", 1, "usage"), b.Int("n", 1, "")
	})
	_, err := top.Build(Options{Params: map[string][]string{"n": {"5"}}})
	require.NoError(t, err)
	require.Equal(t, []int{5, 5}, []int{first, second})
	ps, err := top.Params()
	require.NoError(t, err)
	require.Equal(t, []Param{{"n", "usage", "1", IntParam}}, ps)
}

// Params is asked before values are known, so it speaks of declarations only.
func TestParamsLeavesOtherMistakesToBuild(t *testing.T) {
	top := New("test", func(b *Builder) {
		if b.String("file", "", "") == "" {
			b.Check(errors.New("file must be given"))
		}
		b.Int("Bad", 1, "")
	})
	ps, err := top.Params()
	require.Len(t, ps, 2)
	require.Len(t, all(t, err), 1)
	require.ErrorIs(t, err, ErrParam)
}

func TestStringsAreNotShared(t *testing.T) {
	given := map[string][]string{"s": {"a"}}
	def := []string{"d"}
	top := New("test", func(b *Builder) {
		lines(b)
		b.Strings("s", def, "")[0] = "changed"
	})
	_, err := top.Build(Options{Params: given})
	require.NoError(t, err)
	_, err = top.Params()
	require.NoError(t, err)
	require.Equal(t, "a", given["s"][0])
	require.Equal(t, "d", def[0])
}
