package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// open opens the part of topology t in a directory for a run.
func open(t testing.TB, root string, o Options) *Store {
	t.Helper()
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	s, err := Open(root, "t", o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func at(split, position string, epoch, restart uint32) task.Position {
	return task.Position{Component: "in", Split: split, Position: position, Life: tuple.NewIncarnation(epoch, restart)}
}

func letter(text string) *task.DeadLetter {
	v, _ := tuple.ValueOf(text)
	n, _ := tuple.ValueOf(7)
	return &task.DeadLetter{
		Time: time.Unix(1, 2).UTC(), Component: "in", Task: "in/0", Stream: "default", Fields: []string{"text", "n"},
		Values: []tuple.Value{v, n}, Err: "no " + text, Failures: 9, Losses: 1, History: []string{"failed: x", "lost"}, Deaths: 1,
	}
}

// bury stores letters with these texts and returns their IDs.
func bury(t testing.TB, s *Store, texts ...string) (ids []string) {
	t.Helper()
	var all []*task.DeadLetter
	for _, text := range texts {
		all = append(all, letter(text))
	}
	n, err := s.Bury(all)
	require.NoError(t, err)
	require.Len(t, all, n)
	for _, l := range all {
		ids = append(ids, l.ID)
	}
	return ids
}

func anybody(*task.DeadLetter) error { return nil }

// listed is the letters of a directory, "7-1 text", with a + if they are to be replayed.
func listed(t testing.TB, root string) (all []string) {
	t.Helper()
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	entries, err := l.List()
	require.NoError(t, err)
	for _, e := range entries {
		s := e.ID + " " + e.Values[0].String()
		if e.Waiting {
			s += " +"
		}
		all = append(all, s)
	}
	return all
}

func TestPositions(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{Fingerprint: "f"})
	require.EqualValues(t, 1, s.Epoch())
	require.Empty(t, s.Positions())
	refused, err := s.Save([]task.Position{at("a", "10", 1, 1), at("b\n\xff\" 1.1", "\x00", 1, 2)}, nil)
	require.NoError(t, err)
	require.Zero(t, refused)
	refused, err = s.Save([]task.Position{at("a", "5", 1, 2), at("b\n\xff\" 1.1", "old", 1, 1)}, nil)
	require.NoError(t, err)
	require.Equal(t, 1, refused, "an older incarnation may not commit (R12)")
	require.NoError(t, s.Close())

	s = open(t, root, Options{})
	require.EqualValues(t, 2, s.Epoch())
	require.Equal(t, map[string]map[string]string{"in": {"a": "5", "b\n\xff\" 1.1": "\x00"}}, s.Positions())
	refused, err = s.Save([]task.Position{at("a", "6", 1, 9)}, nil)
	require.NoError(t, err)
	require.Zero(t, refused, "one of its own run, later")
	_, err = s.Save([]task.Position{at("a", "7", 2, 1)}, nil)
	require.NoError(t, err)
	refused, err = s.Save([]task.Position{at("a", "8", 1, 10)}, nil)
	require.NoError(t, err)
	require.Equal(t, 1, refused, "a zombie of an earlier run")
	require.NoError(t, s.Close())

	s = open(t, root, Options{Reset: true})
	require.EqualValues(t, 3, s.Epoch(), "a reset is no reason to count anew")
	require.Empty(t, s.Positions())
	_, err = os.Stat(filepath.Join(root, "t", "positions.before-3"))
	require.NoError(t, err, "nothing is deleted")
}

func TestOneRunAtATime(t *testing.T) {
	root := t.TempDir()
	require.False(t, Running(root, "t"))
	s := open(t, root, Options{})
	require.True(t, Running(root, "t"))
	_, err := Open(root, "t", Options{})
	require.ErrorIs(t, err, ErrInUse)
	require.EqualError(t, err, fmt.Sprintf("%s is in use by a run of t in process %d; stop that one, or use another directory", filepath.Join(root, "t"), os.Getpid()))
	other, err := Open(root, "other", Options{})
	require.NoError(t, err, "another topology has another part")
	require.NoError(t, other.Close())
	require.NoError(t, s.Close())
	require.False(t, Running(root, "t"))
	open(t, root, Options{})
}

func TestModes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, root, Options{})
	_, err := s.Save([]task.Position{at("a", "1", 1, 1)}, nil)
	require.NoError(t, err)
	bury(t, s, "x")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}

// Whatever has happened to a file, the error names it and it is left alone.
func TestDamage(t *testing.T) {
	for _, file := range []string{"positions", "run", "dead/1-1.letters", "replay"} {
		for how, damage := range map[string]func([]byte) []byte{
			"torn":    func(b []byte) []byte { return b[:len(b)-3] },
			"empty":   func([]byte) []byte { return nil },
			"flipped": func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b },
			"longer":  func(b []byte) []byte { return append(b, "x\n"...) },
		} {
			t.Run(file+" "+how, func(t *testing.T) {
				root := t.TempDir()
				s := open(t, root, Options{})
				_, err := s.Save([]task.Position{at("a", "1", 1, 1)}, nil)
				require.NoError(t, err)
				bury(t, s, "x", "y")
				l, err := OpenLetters(root, "t")
				require.NoError(t, err)
				path := filepath.Join(root, "t", filepath.FromSlash(file))
				if file == "replay" {
					_, err := l.Replay(nil, anybody)
					require.NoError(t, err)
					paths, err := l.yard.files(replayDir)
					require.NoError(t, err)
					path = paths[0]
				}
				require.NoError(t, s.Close())
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				b = damage(b)
				require.NoError(t, os.WriteFile(path, b, 0o600))

				s, err = Open(root, "t", Options{})
				if err == nil {
					_, _, err = s.Replays()
					defer s.Close()
				}
				if strings.HasPrefix(file, "dead") {
					require.NoError(t, err, "a run does not read them")
					_, err = l.List()
				}
				require.ErrorIs(t, err, ErrCorrupt)
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, "it was left as it is")
				_, _ = l.Drop(nil)
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(b), string(after), "never overwritten, never deleted")
			})
		}
	}
}

func TestLettersForPeople(t *testing.T) {
	root := t.TempDir()
	_, err := OpenLetters(root, "t")
	require.ErrorIs(t, err, fs.ErrNotExist)
	s := open(t, root, Options{})
	require.Equal(t, []string{"1-1", "1-2", "1-3"}, bury(t, s, "a", "b", "c"))
	require.Equal(t, []string{"1-4"}, bury(t, s, "d"))
	require.NoError(t, s.Close())
	s = open(t, root, Options{})
	require.Equal(t, []string{"2-1"}, bury(t, s, "e"))
	require.Equal(t, []string{"1-1 a", "1-2 b", "1-3 c", "1-4 d", "2-1 e"}, listed(t, root))

	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	n, err := l.Drop([]string{"1-2", "1-4", "3-1"})
	require.Equal(t, 2, n)
	require.EqualError(t, err, "there is no dead letter 3-1")
	require.Equal(t, []string{"1-1 a", "1-3 c", "2-1 e"}, listed(t, root))

	n, err = l.Replay([]string{"1-3", "2-1"}, func(l *task.DeadLetter) error {
		if l.ID == "2-1" {
			return errors.New("no such stream")
		}
		return nil
	})
	require.Equal(t, 1, n)
	require.EqualError(t, err, "dead letter 2-1 cannot be replayed and stays: no such stream")
	require.Equal(t, []string{"1-1 a", "1-3 c +", "2-1 e"}, listed(t, root))
	n, err = l.Replay([]string{"1-3"}, anybody)
	require.NoError(t, err)
	require.Equal(t, 1, n, "it waits already")

	letters, _, err := s.Replays()
	require.NoError(t, err)
	require.Len(t, letters, 1)
	want := letter("c")
	want.ID = "1-3"
	require.Equal(t, fmt.Sprint(want.Values), fmt.Sprint(letters[0].Values))
	want.Values = letters[0].Values
	require.Equal(t, want, letters[0])
	letters, _, err = s.Replays()
	require.NoError(t, err)
	require.Empty(t, letters, "each is given to a run once")
	require.Equal(t, []string{"1-1 a", "1-3 c +", "2-1 e"}, listed(t, root), "until it is done")
	_, err = s.Save(nil, []string{"1-3", "9-9"})
	require.NoError(t, err)
	require.Equal(t, []string{"1-1 a", "2-1 e"}, listed(t, root))

	n, err = l.Replay(nil, anybody)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = l.Drop(nil)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Empty(t, listed(t, root))
	_, err = s.Save(nil, []string{"1-1"})
	require.NoError(t, err, "dropped while it was replayed")
}

// A process that is killed between two steps leaves a letter at two places.
func TestReconcile(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	bury(t, s, "a", "b")
	dead := filepath.Join(root, "t", "dead", "1-1.letters")
	b, err := os.ReadFile(dead)
	require.NoError(t, err)
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	_, err = l.Replay(nil, anybody)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dead, b, 0o600)) // killed before it was removed
	require.Equal(t, []string{"1-1 a +", "1-2 b +"}, listed(t, root), "listed once")
	require.NoError(t, s.Close())

	s = open(t, root, Options{})
	letters, _, err := s.Replays()
	require.NoError(t, err)
	require.Len(t, letters, 2)
	// One is dead again, and the process is killed before it has said so.
	letters[0].Deaths++
	_, err = s.Bury(letters[:1])
	require.NoError(t, err)
	require.Equal(t, []string{"1-1 a", "1-2 b +"}, listed(t, root))
	require.NoError(t, s.Close())

	s = open(t, root, Options{})
	letters, _, err = s.Replays()
	require.NoError(t, err)
	require.Len(t, letters, 1, "what is dead again is not replayed again by itself")
	_, err = s.Save(nil, []string{letters[0].ID})
	require.NoError(t, err)
	require.Equal(t, []string{"1-1 a"}, listed(t, root), "what came through is gone for good")
}

// What a killed process was writing is no letter, and is swept up.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	bury(t, s, "a")
	require.NoError(t, s.Close())
	part := filepath.Join(root, "t", "dead", "1-2.letters.part")
	require.NoError(t, os.WriteFile(part, []byte("egret"), 0o600))
	require.Equal(t, []string{"1-1 a"}, listed(t, root))
	open(t, root, Options{})
	_, err := os.Stat(part)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, []string{"1-1 a"}, listed(t, root))
}

func TestBound(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{MaxBytes: 300})
	bury(t, s, "a")
	bury(t, s, "b")
	n, err := s.Bury([]*task.DeadLetter{letter("c"), letter("d")})
	require.Zero(t, n)
	require.ErrorIs(t, err, task.ErrFull)
	require.ErrorContains(t, err, filepath.Join(root, "t"))
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	_, err = l.Drop(nil)
	require.NoError(t, err)
	bury(t, s, "e")
	require.Len(t, listed(t, root), 1)
}

func TestManyLetters(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	const n = 2*fileLetters + 1
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	ids := bury(t, s, texts...)
	bury(t, s, strings.Repeat("x", fileBytes), "y", "z")
	paths, err := s.yard.files(deadDir)
	require.NoError(t, err)
	require.Len(t, paths, 5, "few files: each costs a sync")
	require.Len(t, listed(t, root), n+3)
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	k, err := l.Drop(ids[1:])
	require.NoError(t, err)
	require.Equal(t, n-1, k)
	require.Len(t, listed(t, root), 4)
}

// point is a value with a codec that fails when it is asked to.
type point struct{ X, Y int }

func init() {
	tuple.RegisterCodec("disk.point", func(b []byte, p point) ([]byte, error) {
		if p.X < 0 {
			return b, errors.New("left of everything")
		}
		return fmt.Appendf(b, "%d %d", p.X, p.Y), nil
	}, func(b []byte) (p point, err error) {
		_, err = fmt.Sscanf(string(b), "%d %d", &p.X, &p.Y)
		return p, err
	})
}

func TestAnyValues(t *testing.T) {
	l := letter("x")
	l.ID = "1-1"
	l.Values[1] = tuple.Any(point{3, 4})
	r, err := decodeLetter(encodeLetter(l))
	require.NoError(t, err)
	require.NoError(t, r.err)
	require.Equal(t, point{3, 4}, r.letter.Values[1].Any())

	l.Values[1] = tuple.Any(point{-1, 4})
	r, err = decodeLetter(encodeLetter(l))
	require.NoError(t, err)
	require.Equal(t, "{-1 4}", r.letter.Values[1].String(), "its text is kept")
	require.Contains(t, r.letter.History[2], "left of everything")

	// A letter whose codec is not registered here is kept as it is.
	l.Values[1] = tuple.Any(point{3, 4})
	raw := bytes.Replace(encodeLetter(l), []byte("disk.point"), []byte("disk.other"), 1)
	r, err = decodeLetter(raw)
	require.NoError(t, err)
	require.ErrorContains(t, r.err, `no codec "disk.other" is registered here`)
	require.Nil(t, r.letter.Values)
	all, err := decodeLetters(encodeLetters([]record{r}))
	require.NoError(t, err)
	require.Equal(t, raw, all[0].raw)
}

func TestLetterRoundTrip(t *testing.T) {
	text := rapid.StringOf(rapid.Rune())
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]{1,5}"), 1, 5, rapid.ID).Draw(t, "fields")
		l := &task.DeadLetter{
			ID: id{rapid.Uint64Max(1<<32-1).Draw(t, "run"), rapid.Uint64().Draw(t, "n")}.String(), Time: time.Unix(0, rapid.Int64().Draw(t, "time")).UTC(),
			Component: text.Draw(t, "component"), Task: text.Draw(t, "task"), Stream: text.Draw(t, "stream"), Err: string(rapid.SliceOf(rapid.Byte()).Draw(t, "error")),
			Fields: fields, Failures: rapid.IntRange(0, 1<<30).Draw(t, "failures"), Losses: rapid.IntRange(0, 1<<30).Draw(t, "losses"),
			Deaths: rapid.IntRange(1, 9).Draw(t, "deaths"), Direct: rapid.IntRange(0, 9).Draw(t, "direct"), History: rapid.SliceOf(text).Draw(t, "history"),
		}
		for range fields {
			v, err := tuple.ValueOf(rapid.OneOf(
				rapid.Just(any(nil)), rapid.Int64().AsAny(), rapid.Uint64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(), text.AsAny(),
				rapid.Map(rapid.Int64(), func(n int64) any { return time.Duration(n) }), rapid.Map(rapid.Int64(), func(n int64) any { return time.Unix(n%1e9, n%1e9) }),
				rapid.SliceOf(rapid.Byte()).AsAny(),
			).Draw(t, "value"))
			require.NoError(t, err)
			l.Values = append(l.Values, v)
		}
		all, err := decodeLetters(encodeLetters([]record{{raw: encodeLetter(l)}, {raw: encodeLetter(l)}}))
		require.NoError(t, err)
		require.Len(t, all, 2)
		if len(l.History) == 0 {
			l.History = nil
		}
		got := *all[1].letter
		require.Equal(t, fmt.Sprint(l.Values), fmt.Sprint(got.Values))
		for i, v := range l.Values {
			require.Equal(t, v.Kind(), got.Values[i].Kind())
		}
		got.Values = l.Values
		require.Equal(t, l, &got)
	})
}

func FuzzLetters(f *testing.F) {
	l := letter("x")
	l.ID = "1-1"
	raw := encodeLetter(l)
	f.Add(encodeLetters([]record{{raw: raw}}))
	f.Add(encodeLetters([]record{{raw: raw}, {raw: raw}})[:200])
	f.Add([]byte(letterMagic + "\xff\xff\xff\xff"))
	f.Add(raw)
	f.Fuzz(func(t *testing.T, b []byte) {
		if all, err := decodeLetters(b); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		} else {
			require.Equal(t, b, encodeLetters(all))
		}
		if r, err := decodeLetter(b); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		} else if r.err == nil {
			again, err := decodeLetter(encodeLetter(r.letter))
			require.NoError(t, err)
			require.NoError(t, again.err)
			require.Equal(t, fmt.Sprint(r.letter.Values), fmt.Sprint(again.letter.Values))
		}
	})
}

func FuzzPositions(f *testing.F) {
	p := positions{Topology: "t", Fingerprint: "f", Epoch: 7, Splits: map[split]position{
		{"in", "a \" b\n"}: {"10", tuple.NewIncarnation(7, 1)}, {"in", ""}: {"\xff", tuple.NewIncarnation(6, 2)},
	}}
	f.Add(encodePositions(&p))
	f.Add([]byte("egret positions 1\nsum 00000000\n"))
	f.Add([]byte("\nsum 00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// With a right sum, which no fuzzer finds, too.
		for _, b := range [][]byte{b, sumUp(b)} {
			p, err := decodePositions(b)
			if err != nil {
				require.ErrorIs(t, err, ErrCorrupt)
				continue
			}
			again, err := decodePositions(encodePositions(&p))
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
	})
}

// sumUp gives lines the sum that they should end with.
func sumUp(b []byte) []byte {
	lines, _, _ := bytes.Cut(b, []byte("\nsum "))
	return addSum(append(slices.Clip(lines), '\n'))
}

func FuzzRun(f *testing.F) {
	f.Add(encodeRun(7))
	f.Add([]byte("egret run 1\negret run 1\n7\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decodeRun(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := decodeRun(encodeRun(n))
		require.NoError(t, err)
		require.Equal(t, n, again)
	})
}
