package cluster

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

func TestRestore(t *testing.T) {
	m, run, epoch := running(t)
	m.Epoch = 7
	m.must(Entry{Commit: &Commit{"words", run, append(many(200), positions("split", tuple.NewIncarnation(1, 1), "x")...)}})
	m.must(Entry{SawNode: &SawNode{1, "one", "h:1", 1}})
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, epoch, moved(m.Submission("words").Plan, 1, Home{3, 1}), "a move"}})
	m.Apply(m.Applied+1, nil)
	data := m.snapshot()
	var again State
	require.NoError(t, again.Restore([]byte(data)))
	require.Equal(t, data, shot(t, &again))
	for p := range m.Submission("words").Positions.All() {
		got, ok := again.Submission("words").Positions.At(p.Component, p.Split)
		require.True(t, ok)
		require.Equal(t, p, got)
	}
	// It goes on from there, as if nothing had been.
	other := machine{t, again}
	require.Equal(t, m.must(Entry{Switch: &Switch{"words", run, epoch}}), other.must(Entry{Switch: &Switch{"words", run, epoch}}))
	require.Equal(t, m.snapshot(), other.snapshot())

	var empty State
	require.NoError(t, new(State).Restore([]byte(shot(t, &empty))))
}

// A snapshot that cannot be leaves the state as it is.
func TestRestoreRefuses(t *testing.T) {
	golden, err := os.ReadFile("testdata/snapshot.json")
	require.NoError(t, err)
	for _, tt := range []struct {
		name, old, new string
		want           Reason
	}{
		{"version", `"version": 2`, `"version": 3, "more": 1`, ErrNewer},
		{"word", `"boot": 3`, `"boot": 3, "more": 1`, ErrCorrupt},
		{"boot", `"boot": 3`, `"boot": 0`, ErrCorrupt},
		{"torn", `"unread"`, ``, ErrCorrupt},
		{"node twice", `00000000000000b2`, `00000000000000a1`, ErrCorrupt},
		{"status", `"failed"`, `"sleepy"`, ErrCorrupt},
		{"order", `"topology": "short"`, `"topology": "words"`, ErrCorrupt},
		{"name", `"topology": "short"`, `"topology": ""`, ErrCorrupt},
		{"run", `"run": 4`, `"run": 5`, ErrCorrupt},
		{"epoch", `"epoch": 4`, `"epoch": 2`, ErrCorrupt},
		{"task's epoch", `"epoch": 2`, `"epoch": 4`, ErrCorrupt},
		{"plan", `"first": 3`, `"first": 2`, ErrCorrupt},
		{"position", `"split": "atlas"`, `"split": "book"`, ErrCorrupt},
		{"component", `"component": "lines"`, `"component": "other"`, ErrCorrupt},
		{"life", `"life": 8589934593`, `"life": 28589934593`, ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Contains(t, string(golden), tt.old)
			s := State{Cluster: "c1"}
			require.ErrorIs(t, s.Restore([]byte(strings.Replace(string(golden), tt.old, tt.new, 1))), tt.want)
			require.Equal(t, State{Cluster: "c1"}, s)
		})
	}
	require.ErrorIs(t, new(State).Restore(nil), ErrCorrupt)
	require.ErrorIs(t, new(State).Restore([]byte(`{"version":2,"submissions":[{}]}`)), ErrCorrupt)
	require.NoError(t, new(State).Restore(golden))
}

// Whatever comes out of the log, a state is sound, its snapshot is the same state, what
// was read of it before stays as it was, and a refused entry changes nothing.
func FuzzApply(f *testing.F) {
	entries, err := os.ReadFile("testdata/entries.txt")
	require.NoError(f, err)
	lines := slices.DeleteFunc(bytes.Split(entries, []byte("\n")), func(l []byte) bool { return bytes.HasPrefix(l, []byte("\t")) })
	f.Add(bytes.Join(lines, []byte("\n")))
	f.Add([]byte(`{"found":{"cluster":"c"}}` + "\n" + `{"submit":{"spec":{"topology":"a","components":[{"name":"a","parallel":1}]},"at":"9999-12-31T23:59:59-23:59"}}`))
	f.Add([]byte("{\"found\":{\"cluster\":\"c\"}}\n{\"\xff\":{}}"))
	f.Fuzz(func(t *testing.T, log []byte) {
		var s State
		for i, entry := range bytes.Split(log, []byte("\n")) {
			before := s
			was := shot(t, &before)
			r := s.Apply(uint64(i+1), entry)
			require.Equal(t, was, shot(t, &before), "it was changed in place")
			if r.Err != nil {
				require.NotEmpty(t, r.Err.(*Refusal).Text)
				s := s
				s.Applied, s.Unread = before.Applied, before.Unread
				require.Equal(t, was, shot(t, &s), "it was refused")
			}
			require.NoError(t, s.check())
			var again State
			require.NoError(t, again.Restore([]byte(shot(t, &s))))
			require.Equal(t, shot(t, &s), shot(t, &again))
		}
	})
}

func FuzzRestore(f *testing.F) {
	golden, err := os.ReadFile("testdata/snapshot.json")
	require.NoError(f, err)
	f.Add(golden)
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s, again State
		if s.Restore(data) != nil {
			require.Equal(t, State{}, s)
			return
		}
		require.NoError(t, again.Restore([]byte(shot(t, &s))))
		require.Equal(t, shot(t, &s), shot(t, &again))
	})
}

func large(b *testing.B) []byte {
	var s State
	spec := Spec{Topology: "words", Components: []Component{{Name: "lines", Parallel: 1}}}
	for _, e := range []Entry{{Found: &Found{"c1"}}, {Submit: &Submit{spec, clock}}} {
		data, err := e.Encode()
		require.NoError(b, err)
		require.NoError(b, s.Apply(s.Applied+1, data).Err)
	}
	s.Epoch = 7
	e, err := Entry{Commit: &Commit{"words", 1, many(100_000)}}.Encode()
	require.NoError(b, err)
	require.NoError(b, s.Apply(s.Applied+1, e).Err)
	data, err := s.Snapshot()
	require.NoError(b, err)
	return data
}

func BenchmarkSnapshot(b *testing.B) {
	data := large(b)
	var s State
	require.NoError(b, s.Restore(data))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestore(b *testing.B) {
	data := large(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := new(State).Restore(data); err != nil {
			b.Fatal(err)
		}
	}
}

// A plan of 20,000 tasks on 1,000 nodes, as it comes out of the log.
func BenchmarkSetPlan(b *testing.B) {
	components, all := thousand()
	p, err := Place(components, nil, all)
	require.NoError(b, err)
	var s State
	for _, e := range []Entry{{Found: &Found{"c1"}}, {Submit: &Submit{Spec{Topology: "t", Components: components}, clock}}} {
		data, err := e.Encode()
		require.NoError(b, err)
		require.NoError(b, s.Apply(s.Applied+1, data).Err)
	}
	data, err := Entry{SetPlan: &SetPlan{"t", 1, 0, p}}.Encode()
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s := s
		if r := s.Apply(s.Applied+1, data); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
