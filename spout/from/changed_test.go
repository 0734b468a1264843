package from

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/spout"
)

// What has grown since it was divided is read by the next one that divides it.
func TestGrownSinceItWasDivided(t *testing.T) {
	path := write(t, "a.txt", []byte("aaaa\nbbbb\ncccc\n"))
	s := Lines(path)
	s.rangeSize = 5
	require.Equal(t, []string{"aaaa", "bbbb", "cccc"}, readSplits(t, s, 10))
	require.NoError(t, os.WriteFile(path, []byte("aaaa\nbbbb\ncccc\ndddd\neeee\n"), 0o600))
	require.Equal(t, []string{"aaaa", "bbbb", "cccc"}, readSplits(t, s, 10), "the rest is behind the last split")
	again := Lines(path)
	again.rangeSize = 5
	require.Equal(t, []string{"aaaa", "bbbb", "cccc", "dddd", "eeee"}, readSplits(t, again, 10))
}

// Wherever and whenever a file is cut off, no half of a line is a message, the lines
// before are, and the end is an error.
func TestCutOffFile(t *testing.T) {
	path := write(t, "a.txt", nil)
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching("[a-z]{0,5}"), 1, 12).Draw(t, "lines")
		text := strings.Join(lines, "\n") + "\n"
		first := rapid.IntRange(0, len(lines)).Draw(t, "read before")
		cut := rapid.IntRange(0, len(text)-1).Draw(t, "cut")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s := Lines(path)
		s.rangeSize = int64(rapid.IntRange(1, len(text)+5).Draw(t, "range"))
		splits, err := s.Splits(context.Background())
		require.NoError(t, err)
		r, err := s.Open(context.Background(), splits[0], "")
		require.NoError(t, err)
		lr := r.(*lineReader)
		lr.c.r = &narrow{lr.c.r} // so that not all of it is in memory
		got, err := next(context.Background(), r, max(1, first))
		require.True(t, err == nil || err == io.EOF, "%v", err)
		require.NoError(t, os.Truncate(path, int64(cut)))
		for err == nil {
			var some []string
			some, err = next(context.Background(), r, 3)
			got = append(got, some...)
		}
		require.NoError(t, r.(io.Closer).Close())
		if err != io.EOF { // else all of the split had been read before
			require.EqualError(t, err, fmt.Sprintf("the file is shorter than it was (%s, had %s): it was changed while it was read", amount.Of(cut, "byte"), amount.Digits(len(text))))
			require.True(t, spout.IsFatal(err))
		} else {
			require.GreaterOrEqual(t, lr.c.pos, min(lr.end, int64(len(text))))
		}
		require.Equal(t, lines[:len(got)], got)
		require.EqualValues(t, len(strings.Join(append(got[:len(got):len(got)], ""), "\n")), lr.c.pos, "no position within a line")
		for _, split := range splits {
			_, err := s.Open(context.Background(), split, "")
			require.ErrorContains(t, err, fmt.Sprintf("is shorter than it was (%s, had %s)", amount.Of(cut, "byte"), amount.Digits(len(text))))
			require.True(t, spout.IsFatal(err))
		}
	})
}

// narrow reads a byte at a time.
type narrow struct{ r io.Reader }

func (n *narrow) Read(b []byte) (int, error) { return n.r.Read(b[:1]) }

// A range that begins behind the cut says so, too, and has no position to go on from.
func TestCutOffInTheLineBefore(t *testing.T) {
	path := write(t, "a.txt", []byte("a\n"+strings.Repeat("x", 3*blockSize)+"\nb\n"))
	s := Lines(path)
	s.rangeSize = 3
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	r, err := s.Open(t.Context(), splits[1], "")
	require.NoError(t, err)
	r.(*lineReader).end = endless
	require.NoError(t, os.Truncate(path, blockSize))
	lines, err := next(t.Context(), r, 10)
	require.ErrorContains(t, err, "is shorter than it was (65,536 bytes, had 196,613)")
	require.Empty(t, lines)
	require.Empty(t, r.Position())
	require.NoError(t, r.(io.Closer).Close())
}

// Compressed files, too, even where a member ends; and records.
func TestCutOffParts(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2)) // so that a member is longer than what is read ahead
	var text strings.Builder
	text.WriteString("n,t\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "%d,%x\n", i, noise.Uint64())
	}
	one := zip(text.String())
	require.Greater(t, len(one), 2*blockSize)
	two := append(one[:len(one):len(one)], zip("1,2\n")...)
	jsons := strings.Repeat(`{"n": 1, "t": 1}`+"\n", 20_000)
	for name, tt := range map[string]struct {
		source func(path string) spout.Source
		text   []byte
		cut    int
	}{
		"a member":  {func(p string) spout.Source { return CSV(p) }, two, len(one)},
		"in a .gz":  {func(p string) spout.Source { return CSV(p) }, two, len(one) - 100},
		"CSV":       {func(p string) spout.Source { return CSV(p) }, []byte(text.String()), 200_002},
		"JSONLines": {func(p string) spout.Source { return JSONLines(p) }, []byte(jsons), 200_007},
		"in a file system": {func(p string) spout.Source {
			return CSVFS(os.DirFS(filepath.Dir(p)), filepath.Base(p))
		}, []byte(text.String()), 200_002},
	} {
		t.Run(name, func(t *testing.T) {
			file := "a.txt"
			if strings.HasSuffix(name, ".gz") || name == "a member" {
				file = "a.gz"
			}
			path := write(t, file, tt.text)
			s := tt.source(path)
			splits, err := s.Splits(t.Context())
			require.NoError(t, err)
			r, err := s.Open(t.Context(), splits[0], "")
			require.NoError(t, err)
			_, err = some(r, declared("n", "t"), 1)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, int64(tt.cut)))
			for err == nil {
				_, err = some(r, declared("n", "t"), 1000)
			}
			require.ErrorContains(t, err, fmt.Sprintf("is shorter than it was (%s, had %s)", amount.Of(tt.cut, "byte"), amount.Digits(len(tt.text))))
			require.True(t, spout.IsFatal(err))
			require.NoError(t, r.(io.Closer).Close())
		})
	}
}

// A run that goes on from a position wants the file that the position is of, and does
// not mind what is put right or appended behind it.
func TestReplacedFile(t *testing.T) {
	old := "n\n" + strings.Repeat("11\n", 3000)
	grown := old + strings.Repeat("33\n", 3000)
	other := "n\n" + strings.Repeat("22\n", 6000)
	header := "m\n" + old[2:]
	sources := map[string]func(path string) spout.Source{
		"lines":          func(p string) spout.Source { return Lines(p) },
		"records":        func(p string) spout.Source { return CSV(p) },
		"records, parts": func(p string) spout.Source { return CSV(p).OneLine() },
		"file system": func(p string) spout.Source {
			return LinesFS(noSeek{os.DirFS(filepath.Dir(p))}, filepath.Base(p))
		},
	}
	for name, source := range sources {
		for _, file := range []string{"a.txt", "a.gz"} {
			unit := "byte"
			if file == "a.gz" {
				unit = "decompressed byte"
			}
			packed := func(text string) []byte {
				if file == "a.gz" {
					return zip(text)
				}
				return []byte(text)
			}
			for _, read := range []int{1, 100, 2500} {
				t.Run(fmt.Sprint(name, " of ", file, " after ", read), func(t *testing.T) {
					path := write(t, file, packed(old))
					splits, err := source(path).Splits(t.Context())
					require.NoError(t, err)
					r, err := source(path).Open(t.Context(), splits[0], "")
					require.NoError(t, err)
					_, err = some(r, declared("n"), read)
					require.NoError(t, err)
					at := r.Position()
					require.NoError(t, r.(io.Closer).Close())
					pos, ok := parsePosition(at)
					require.True(t, ok)

					reopen := func(text string) error {
						require.NoError(t, os.WriteFile(path, packed(text), 0o600))
						r, err := source(path).Open(t.Context(), splits[0], at)
						if err == nil {
							again := r.Position()
							require.NoError(t, r.(io.Closer).Close())
							require.Equal(t, at, again)
						}
						return err
					}
					require.NoError(t, reopen(old))
					require.NoError(t, reopen(grown))
					require.NoError(t, reopen(old[:pos.at]+"put right\n"))
					require.NoError(t, reopen(old[:pos.at]))
					for _, text := range []string{other, header, "\n" + grown} {
						err := reopen(text)
						if text == other && pos.at == 2 {
							continue // nothing of what differs had been read
						}
						require.EqualError(t, err, fmt.Sprintf("the file is not the one that was read up to byte %d, for it begins differently: name the right one, or start over with --reset", pos.at))
						require.True(t, spout.IsFatal(err))
					}
					for _, size := range []int64{0, 1, pos.at - 1} {
						err := reopen(old[:min(size, pos.at-1)])
						require.ErrorContains(t, err, fmt.Sprintf("the file has %s and cannot be read from byte %d: it is shorter than it was; name the right one, or start over with --reset", amount.Of(min(size, pos.at-1), unit), pos.at))
						require.True(t, spout.IsFatal(err))
					}
				})
			}
		}
	}
}

// The fingerprint is made of the beginning of the file in each of its splits.
func TestLaterSplitsOfReplacedFile(t *testing.T) {
	text := strings.Repeat("line\n", 4000)
	path := write(t, "a.txt", []byte(text))
	s := Lines(path)
	s.rangeSize = 10_000
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	r, err := s.Open(t.Context(), splits[1], "")
	require.NoError(t, err)
	_, err = next(t.Context(), r, 1)
	require.NoError(t, err)
	at := r.Position()
	require.NoError(t, r.(io.Closer).Close())
	require.Regexp(t, "^10005@4096-", at)
	require.NoError(t, os.WriteFile(path, []byte("L"+text[1:]), 0o600))
	_, err = s.Open(t.Context(), splits[1], at)
	require.ErrorContains(t, err, "the file is not the one that was read up to byte 10005")
	_, err = s.Open(t.Context(), splits[1], "")
	require.NoError(t, err, "nothing of it was read")
}

func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := position{at: rapid.Int64Min(0).Draw(t, "at"), line: rapid.Int64Min(0).Draw(t, "line")}
		if n := rapid.IntRange(0, int(min(p.at, headSize))).Draw(t, "n"); n > 0 {
			p.head = fingerprint{n, rapid.Uint32().Draw(t, "sum")}
		}
		again, ok := parsePosition(p.String())
		require.True(t, ok, "%s", p)
		require.Equal(t, p, again)
	})
	require.Equal(t, "4194310:70012@4096-1c291ca3", position{4194310, 70012, fingerprint{4096, 0x1c291ca3}}.String())
	require.Equal(t, fingerprint{9, 0xcbf43926}, fingerprintOf([]byte("123456789")), "the same for ever: positions outlive a version")
}

func FuzzParsePosition(f *testing.F) {
	for _, text := range []string{"0", "17", "17:3", "17@17-0000002a", "17:3@4-1c291ca3", "+1", "-1", "1:0", "9@10-00000000", "9@-1-0", "1:2:3", "x", "@", ":", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parsePosition(text)
		if !ok {
			return
		}
		require.Equal(t, text, p.String())
		require.GreaterOrEqual(t, p.at, int64(p.head.n))
		require.LessOrEqual(t, p.head.n, headSize)
		require.GreaterOrEqual(t, p.head.n, 0)
		require.GreaterOrEqual(t, p.line, int64(0))
	})
}
