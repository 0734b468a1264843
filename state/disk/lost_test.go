package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// Without the file run the next number is still greater than any that was used, so
// that no letter takes the name of another and no position is refused.
func TestNumberOfTheRunIsFound(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, s *Store){
		"positions": func(t *testing.T, s *Store) {
			_, err := s.Save([]task.Position{at("a", "1", s.Epoch(), 1)}, nil)
			require.NoError(t, err)
		},
		"letters": func(t *testing.T, s *Store) { bury(t, s, "x") },
		"letters to be replayed": func(t *testing.T, s *Store) {
			bury(t, s, "x")
			l, err := OpenLetters(filepath.Dir(s.dir), "t")
			require.NoError(t, err)
			_, err = l.Replay(nil, anybody)
			require.NoError(t, err)
		},
	} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprint(what, reset), func(t *testing.T) {
				root := t.TempDir()
				for range 3 {
					require.NoError(t, open(t, root, Options{}).Close())
				}
				s := open(t, root, Options{})
				leave(t, s)
				before := listed(t, root)
				require.NoError(t, s.Close())
				require.NoError(t, os.Remove(filepath.Join(root, "t", "run")))

				s = open(t, root, Options{Reset: reset})
				require.EqualValues(t, 5, s.Epoch())
				bury(t, s, "y")
				require.Equal(t, append(before, "5-1 y"), listed(t, root))
				refused, err := s.Save([]task.Position{at("a", "2", 5, 1)}, nil)
				require.NoError(t, err)
				require.Zero(t, refused)
			})
		}
	}
	// The same for positions that were reset, and when only the split is of a later run.
	root := t.TempDir()
	s := open(t, root, Options{})
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(root, "t", "positions.before-9"), nil, 0o600))
	s = open(t, root, Options{})
	require.EqualValues(t, 10, s.Epoch())
	require.NoError(t, s.Close())
	p := positions{Epoch: 2, Splits: map[split]position{{"in", "a"}: {"1", tuple.NewIncarnation(20, 1)}}}
	require.NoError(t, os.WriteFile(filepath.Join(root, "t", "positions"), encodePositions(&p), 0o600))
	require.EqualValues(t, 21, open(t, root, Options{}).Epoch())
}

// A file of letters never takes the place of another.
func TestLettersTakeNobodysPlace(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	path := filepath.Join(root, "t", "dead", "1-1.letters")
	require.NoError(t, os.WriteFile(path, []byte("somebody's"), 0o600))
	bury(t, s, "x")
	require.ErrorIs(t, create(path, nil), os.ErrExist)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "somebody's", string(b))
	all, err := readLetters(filepath.Join(root, "t", "dead", "1-2.letters"))
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// A file of a later format is not called corrupt, and is left alone.
func TestNewerFormat(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	_, err := s.Save([]task.Position{at("a", "1", 1, 1)}, nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	dir := filepath.Join(root, "t")
	for _, file := range []string{"run", "positions"} {
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		newer := []byte(strings.Replace(string(b), " 1\n", " 2\n", 1) + "more\n")
		require.NoError(t, os.WriteFile(path, newer, 0o600))
		_, err = Open(root, "t", Options{})
		require.EqualError(t, err, path+": it was written by a newer Egret: its format has the number 2, and this Egret knows 1; it was left as it is: use that Egret, or another state directory")
		require.NotErrorIs(t, err, ErrCorrupt)
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "replay", "1-1.letters"), []byte("egret letters 3\n"), 0o600))
	s = open(t, root, Options{})
	_, _, err = s.Replays()
	require.ErrorIs(t, err, ErrNewer)

	// What the message about a broken run file says does help.
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run"), []byte("egret run 1\n?\n"), 0o600))
	_, err = Open(root, "t", Options{Reset: true})
	require.ErrorContains(t, err, "move it away; the next run then takes a number that is greater")
	require.NoError(t, os.Remove(filepath.Join(dir, "run")))
	open(t, root, Options{})
}

// A letter that people drop while a run has it in hand does not come back when it
// dies again; others do.
func TestDroppedInHand(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	bury(t, s, "a", "b")
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	_, err = l.Replay(nil, anybody)
	require.NoError(t, err)
	letters, more, err := s.Replays()
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, letters, 2)
	_, err = l.Drop([]string{"1-1"})
	require.NoError(t, err)
	for _, l := range letters {
		l.Deaths++
	}
	n, err := s.Bury(append(letters, letter("c")))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	_, err = s.Save(nil, []string{"1-1", "1-2"})
	require.NoError(t, err)
	require.Equal(t, []string{"1-2 b", "1-3 c"}, listed(t, root))

	// One of a file that cannot be read any more may be in it.
	_, err = l.Replay(nil, anybody)
	require.NoError(t, err)
	letters, _, err = s.Replays()
	require.NoError(t, err)
	paths, err := s.yard.files(replayDir)
	require.NoError(t, err)
	for _, path := range paths {
		require.NoError(t, os.WriteFile(path, []byte("?"), 0o600))
	}
	for _, l := range letters {
		l.Deaths++
	}
	_, err = s.Bury(letters)
	require.NoError(t, err)
	l2, err := OpenLetters(root, "t")
	require.NoError(t, err)
	all, err := l2.List()
	require.ErrorIs(t, err, ErrCorrupt)
	require.Len(t, all, 2)
}

// What of a Bury is stored when it fails is said, and is not stored again.
func TestBuryOnAFillingDisk(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{MaxBytes: 5 * fileBytes})
	var all []*task.DeadLetter
	for i := range 5 {
		all = append(all, letter(fmt.Sprint(i, strings.Repeat("x", fileBytes))))
	}
	n, err := s.Bury(all)
	require.ErrorIs(t, err, task.ErrFull)
	require.ErrorContains(t, err, "--max-dead-letter-bytes")
	require.Equal(t, 2, n, "of about two megabytes each")
	s.max = 1 << 30
	dead := filepath.Join(root, "t", deadDir)
	require.NoError(t, os.Rename(dead, dead+".away"))
	k, err := s.Bury(all[n:])
	require.Error(t, err)
	require.Zero(t, k)
	require.NoError(t, os.Rename(dead+".away", dead))
	k, err = s.Bury(all[n:])
	require.NoError(t, err)
	require.Equal(t, 5-n, k)
	paths, err := s.yard.files(deadDir)
	require.NoError(t, err)
	require.Len(t, paths, 5, "each once")
	require.Len(t, listed(t, root), 5)
}

// Letters that are too many for one go are given one part after another, and what
// cannot be read holds up nothing.
func TestReplaysInParts(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	const n = 20
	for i := range n {
		bury(t, s, fmt.Sprint(i, strings.Repeat("x", fileBytes)))
	}
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	_, err = l.Replay(nil, anybody)
	require.NoError(t, err)
	for _, dir := range []string{deadDir, replayDir} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "t", dir, "1-0.letters"), []byte("?"), 0o600))
	}
	k, err := s.Waiting()
	require.NoError(t, err)
	require.Equal(t, n, k)
	got, parts := map[string]bool{}, 0
	var errs []error
	for more := true; more; parts++ {
		var letters []*task.DeadLetter
		letters, more, err = s.Replays()
		errs = append(errs, err)
		require.NotEmpty(t, letters)
		for _, l := range letters {
			got[l.ID] = true
		}
	}
	require.Len(t, got, n)
	require.Equal(t, 3, parts)
	text := errors.Join(errs...).Error()
	require.Equal(t, 2, strings.Count(text, "corrupt file"), "each is told once: %s", text)
}

// A letter whose codec is missing stays, and the others of its file are given.
func TestReplayWithoutCodec(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	x := letter("x")
	x.Values[1] = tuple.Any(point{3, 4})
	_, err := s.Bury([]*task.DeadLetter{x, letter("y")})
	require.NoError(t, err)
	l, err := OpenLetters(root, "t")
	require.NoError(t, err)
	_, err = l.Replay(nil, anybody)
	require.NoError(t, err)
	paths, err := s.yard.files(replayDir)
	require.NoError(t, err)
	all, err := readLetters(paths[0])
	require.NoError(t, err)
	all[0].raw = []byte(strings.Replace(string(all[0].raw), "disk.point", "disk.other", 1))
	require.NoError(t, os.WriteFile(paths[0], encodeLetters(all), 0o600))
	letters, _, err := s.Replays()
	require.ErrorContains(t, err, paths[0]+": 1 of its 2 letters, the first of them 1-1: the values cannot be read")
	require.ErrorContains(t, err, "run a program that can read them, or drop them")
	require.Len(t, letters, 1)
	_, err = s.Save(nil, []string{letters[0].ID})
	require.NoError(t, err)
	k, err := s.Waiting()
	require.NoError(t, err)
	require.Equal(t, 1, k)
	_, err = l.Drop([]string{"1-1"})
	require.NoError(t, err)
}
