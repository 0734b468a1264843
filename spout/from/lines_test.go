package from

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

var lineField = []*tuple.Schema{{Component: "lines", Stream: "default", Fields: []string{"line"}}}

// next calls Next once for at most max messages.
func next(ctx context.Context, r spout.Reader, max int) (lines []string, err error) {
	out, b := spout.NewOut(lineField), &spout.Batch{}
	out.Collect(b, max)
	err = r.Next(ctx, out)
	for i := range b.Len() {
		seg, cells := b.Message(i)
		p := &tuple.Parcel{Schema: lineField[0]}
		p.Begin(seg.Kinds, 1)
		p.AppendRun(cells, 1)
		lines = append(lines, p.Tuple(0).At(0).String())
	}
	return lines, err
}

// readFrom reads a split from a position to its end or first error.
func readFrom(s spout.Source, split spout.Split, position string, max int) (lines []string, err error) {
	r, err := s.Open(context.Background(), split, position)
	if err != nil {
		return nil, err
	}
	for err == nil {
		var some []string
		some, err = next(context.Background(), r, max)
		lines = append(lines, some...)
		if err != nil && err != io.EOF && len(some) > 0 {
			return nil, fmt.Errorf("messages together with the error %w", err)
		}
	}
	if c, ok := r.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, err
}

// readSplits reads all splits.
func readSplits(t require.TestingT, s spout.Source, max int) (lines []string) {
	splits, err := s.Splits(context.Background())
	require.NoError(t, err)
	for _, split := range splits {
		some, err := readFrom(s, split, "", max)
		require.NoError(t, err)
		lines = append(lines, some...)
	}
	return lines
}

// linesOf is the obvious way to cut lines.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func write(t testing.TB, name string, text []byte) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func zip(texts ...string) []byte {
	var b bytes.Buffer
	for _, text := range texts { // a member each
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	}
	return b.Bytes()
}

func TestLines(t *testing.T) {
	long := strings.Repeat("long ", 50_000)
	var many strings.Builder
	for i := range 20_000 { // all different, so that a block that is used again shows
		fmt.Fprintln(&many, "It was age", i)
	}
	for _, tt := range []struct {
		name, text string
	}{
		{"empty", ""},
		{"one", "a\n"},
		{"no end", "a\nb"},
		{"empty lines", "\n\na\n\n"},
		{"windows", "a\r\nb\r\n\r\n"},
		{"bare CR at the end", "a\r"},
		{"CR within", "a\rb\n\r\r\n"},
		{"not UTF-8", "\xff\xfe\n\x00\n"},
		{"longer than a block", "a\n" + long + "\nb\n" + long},
		{"many", many.String()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := linesOf(tt.text)
			require.Equal(t, want, readSplits(t, Lines(write(t, "a.txt", []byte(tt.text))), 256), "file")
			require.Equal(t, want, readSplits(t, Lines(write(t, "a.gz", zip(tt.text))), 256), "gzip")
			half := len(tt.text) / 2
			require.Equal(t, want, readSplits(t, Lines(write(t, "b.gz", zip(tt.text[:half], tt.text[half:]))), 256), "gzip of two members")
			fsys := fstest.MapFS{"a.txt": {Data: []byte(tt.text)}, "a.gz": {Data: zip(tt.text)}}
			require.Equal(t, want, readSplits(t, LinesFS(fsys, "a.txt"), 256), "file system")
			require.Equal(t, want, readSplits(t, LinesFS(fsys, "a.gz"), 256), "gzip in a file system")
		})
	}
}

func TestSplits(t *testing.T) {
	path := write(t, "book.txt", make([]byte, 9<<20))
	zipped := write(t, "book.gz", zip("a"))
	empty := write(t, "empty", nil)
	splits, err := Lines(path, zipped, empty, "-").Splits(t.Context())
	require.NoError(t, err)
	require.Equal(t, []spout.Split{
		spout.Split(path + ":0-4194304"), spout.Split(path + ":4194304-8388608"), spout.Split(path + ":8388608-12582912"),
		spout.Split(zipped), spout.Split(empty + ":0-4194304"), "-",
	}, splits)
}

// Every line of a file is in exactly one split, wherever the borders are, and
// from every position that a reader ever gives the rest is read again.
func TestRanges(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\r")), 0, 60, -1).Draw(t, "text")
		s := Lines(filepath.Join(dir, "text"))
		s.rangeSize = int64(rapid.IntRange(1, 70).Draw(t, "range"))
		require.NoError(t, os.WriteFile(s.names[0], []byte(text), 0o600))
		splits, err := s.Splits(context.Background())
		require.NoError(t, err)
		var all []string
		for _, split := range splits {
			r, err := s.Open(context.Background(), split, "")
			require.NoError(t, err)
			whole, err := readFrom(s, split, "", 1000)
			require.NoError(t, err)
			var sofar []string
			var end error
			for end == nil {
				var some []string
				some, end = next(context.Background(), r, rapid.IntRange(1, 3).Draw(t, "max"))
				sofar = append(sofar, some...)
				rest, err := readFrom(s, split, r.Position(), 2)
				require.NoError(t, err)
				require.Equal(t, whole, append(sofar[:len(sofar):len(sofar)], rest...), "split %s from %q", split, r.Position())
			}
			require.ErrorIs(t, end, io.EOF)
			require.NoError(t, r.(io.Closer).Close())
			all = append(all, sofar...)
		}
		require.Equal(t, linesOf(text), all)
	})
}

// noSeek hides that a file can seek.
type noSeek struct{ fs.FS }

func (n noSeek) Open(name string) (fs.File, error) {
	f, err := n.FS.Open(name)
	return struct{ fs.File }{f}, err
}

// The sources of one split go on from every position.
func TestResumeWhole(t *testing.T) {
	text := "one\ntwo\r\n\nfour\nfive"
	fsys := fstest.MapFS{"a.txt": {Data: []byte(text)}, "a.gz": {Data: zip(text[:6], text[6:])}}
	for name, s := range map[string]*LineSource{
		"a.txt":             LinesFS(fsys, "a.txt"),
		"a.txt, no seeking": LinesFS(noSeek{fsys}, "a.txt"),
		"a.gz":              LinesFS(fsys, "a.gz"),
	} {
		name, _, _ = strings.Cut(name, ",")
		r, err := s.Open(t.Context(), spout.Split(name), "")
		require.NoError(t, err)
		for i, want := range []string{"4", "9", "10", "15", "19"} {
			_, err := next(t.Context(), r, 1)
			require.NoError(t, err)
			at, _, _ := strings.Cut(r.Position(), "@")
			require.Equal(t, want, at)
			rest, err := readFrom(s, spout.Split(name), r.Position(), 2)
			require.NoError(t, err)
			require.Equal(t, linesOf(text)[i+1:], append([]string{}, rest...), name)
		}
		_, err = s.Open(t.Context(), spout.Split(name), "20")
		require.ErrorContains(t, err, "cannot be read from byte 20: it is shorter than it was")
		require.True(t, spout.IsFatal(err))
	}
}

func TestLineErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("dir", 0o700))
	require.NoError(t, os.WriteFile("a.txt", []byte("short\nas long as it may\nlonger than it may be\nshort"), 0o600))
	require.NoError(t, os.WriteFile("big.txt", []byte("short\n"+strings.Repeat("x", 2<<20)), 0o600))
	require.NoError(t, os.WriteFile("text.gz", []byte("not compressed"), 0o600))
	require.NoError(t, os.WriteFile("empty.gz", nil, 0o600))
	text := strings.Repeat("good\n", 1000)
	whole := zip(text)
	require.NoError(t, os.WriteFile("cut.gz", whole[:len(whole)-9], 0o600))
	sum := bytes.Clone(whole)
	sum[len(sum)-8] ^= 1
	require.NoError(t, os.WriteFile("sum.gz", sum, 0o600))
	require.NoError(t, os.WriteFile("tail.gz", append(bytes.Clone(whole), "and more text"...), 0o600))
	two := append(bytes.Clone(whole), zip(text)[:12]...)
	require.NoError(t, os.WriteFile("two.gz", two, 0o600))

	good := linesOf(text)
	for _, tt := range []struct {
		source *LineSource
		good   []string
		want   string
	}{
		{Lines(), nil, "a source of lines has no files: name at least one"},
		{Lines(""), nil, "the name of a file of lines is empty"},
		{Lines("a.txt").MaxLine(0), nil, "MaxLine of a source of lines is 0: it must be at least 1"},
		{Lines("a.txt", "a.txt"), nil, "the file a.txt is named twice: to read a source several times use spout.Repeat"},
		{Lines("gone.txt", "dir"), nil, "stat gone.txt: no such file or directory\ndir is a directory: name the files in it"},
		{LinesFS(os.DirFS("."), "gone.txt"), nil, "stat gone.txt: no such file or directory"},
		{LinesFS(os.DirFS("."), "../a.txt"), nil, "stat ../a.txt: invalid argument"},
		{Lines("a.txt").MaxLine(17), []string{"short", "as long as it may"}, "the line at byte 24 is longer than 17 bytes: if that is how it should be, set a higher limit with MaxLine"},
		{Lines("big.txt").MaxLine(1 << 20), []string{"short"}, "the line at byte 6 is longer than 1 MB: if that is how it should be, set a higher limit with MaxLine"},
		{Lines("text.gz"), nil, "the file is corrupt behind byte 0 of its decompressed text: gzip: invalid header"},
		{Lines("empty.gz"), nil, "the file is cut off behind byte 0 of its decompressed text: unexpected EOF"},
		{Lines("cut.gz"), good, "the file is cut off behind byte 5000 of its decompressed text: unexpected EOF"},
		{Lines("sum.gz"), good, "the file is corrupt behind byte 5000 of its decompressed text: gzip: invalid checksum"},
		{Lines("tail.gz"), good, "the file is corrupt behind byte 5000 of its decompressed text: gzip: invalid header"},
		{Lines("two.gz"), good, "the file is cut off behind byte 5000 of its decompressed text: unexpected EOF"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			splits, err := tt.source.Splits(t.Context())
			var lines []string
			if err == nil {
				lines, err = readFrom(tt.source, splits[0], "", 100)
			}
			require.EqualError(t, err, tt.want)
			require.True(t, spout.IsFatal(err))
			require.Equal(t, tt.good, lines)
		})
	}
	for split, position := range map[string]string{"a.txt:0-4194304": "x", "a.txt:10-": ""} {
		_, err := Lines("a.txt").Open(t.Context(), spout.Split(split), position)
		require.True(t, spout.IsFatal(err), "%v", err)
	}
	_, err := Lines("a.txt").Open(t.Context(), "a.txt:0-4194304", "x")
	require.EqualError(t, err, `position "x" of split "a.txt:0-4194304" is not a byte of it: the position belongs to another source`)
	_, err = Lines("a.txt").Open(t.Context(), "b.txt:0-", "")
	require.EqualError(t, err, `there is no split "b.txt:0-": the file has changed since it was divided`)
}

// A line may be as long as the limit, whatever ends it and wherever blocks end.
func TestMaxLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		max := rapid.IntRange(1, 12).Draw(t, "max")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abc\n\r")), 0, 40, -1).Draw(t, "text")
		var want []string
		at, long := 0, false
		for _, line := range strings.SplitAfter(text, "\n") {
			cut := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if line == "" {
				break
			}
			if long = len(cut) > max; long {
				break
			}
			want = append(want, cut)
			at += len(line)
		}
		r := &lineReader{name: "text", end: endless, file: io.NopCloser(nil)}
		r.c = cutter{r: &pieces{text: text, size: func() int { return rapid.IntRange(1, 5).Draw(t, "read") }}, max: max}
		var got []string
		var err error
		for err == nil {
			var some []string
			some, err = next(context.Background(), r, 3)
			got = append(got, some...)
		}
		require.Equal(t, want, got)
		if !long {
			require.ErrorIs(t, err, io.EOF)
			return
		}
		require.ErrorContains(t, err, fmt.Sprintf("the line at byte %d is longer than %d bytes", at, max))
	})
}

// pieces is a reader that gives a text in pieces, the last one with io.EOF or
// without, and sometimes nothing.
type pieces struct {
	text string
	size func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := p.size()
	if n == 5 && p.text != "" {
		return 0, nil
	}
	n = min(n, len(b), len(p.text))
	copy(b, p.text[:n])
	p.text = p.text[n:]
	if p.text == "" && (n == 0 || n%2 == 1) {
		return n, io.EOF
	}
	return n, nil
}

// A run that goes on from the positions of an earlier one reads each line that was
// appended meanwhile, and none twice, however the borders fall.
func TestGrownFile(t *testing.T) {
	path := write(t, "a.txt", nil)
	rapid.Check(t, func(t *rapid.T) {
		size := int64(rapid.IntRange(1, 20).Draw(t, "range"))
		line := rapid.StringMatching("[a-z]{0,12}\n")
		positions := map[spout.Split]string{}
		var text, got string
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			for range rapid.IntRange(0, 6).Draw(t, "lines") {
				text += line.Draw(t, "line")
			}
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			s := Lines(path)
			s.rangeSize = size
			splits, err := s.Splits(context.Background())
			require.NoError(t, err)
			for _, split := range splits {
				r, err := s.Open(context.Background(), split, positions[split])
				require.NoError(t, err)
				for err == nil {
					var lines []string
					lines, err = next(context.Background(), r, 3)
					if len(lines) > 0 {
						positions[split] = r.Position()
						got += strings.Join(lines, "\n") + "\n"
					}
				}
				require.ErrorIs(t, err, io.EOF)
				require.NoError(t, r.(io.Closer).Close())
			}
			require.Equal(t, text, got)
		}
	})
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := Lines(write(t, "a.txt", []byte("a\nb\n")), write(t, "a.gz", zip(strings.Repeat("a\n", headSize))))
	s.rangeSize = 2
	splits, err := s.Splits(ctx)
	require.NoError(t, err)
	for _, split := range splits {
		r, err := s.Open(ctx, split, "")
		require.NoError(t, err)
		_, err = next(ctx, r, 10)
		require.ErrorIs(t, err, context.Canceled)
		rest, err := readFrom(s, split, r.Position(), 10)
		require.NoError(t, err)
		require.NotEmpty(t, rest, "nothing is lost")
		require.NoError(t, r.(io.Closer).Close())
	}
	_, err = s.Open(ctx, splits[2], strconv.Itoa(2*headSize))
	require.ErrorIs(t, err, context.Canceled)
}

func TestClose(t *testing.T) {
	s := Lines(write(t, "a.txt", []byte("a\n")))
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	r, err := s.Open(t.Context(), splits[0], "")
	require.NoError(t, err)
	require.NoError(t, r.(io.Closer).Close())
	_, err = next(t.Context(), r, 1)
	require.ErrorIs(t, err, os.ErrClosed)
}

// Lines cost an allocation for each block, not for each line.
func TestLinesAllocate(t *testing.T) {
	const lines = 50_000
	s := Lines(write(t, "a.txt", []byte(strings.Repeat("It was the age of wisdom, it was the age of foolishness\n", lines))))
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	require.Len(t, splits, 1)
	out, b := spout.NewOut(lineField), &spout.Batch{}
	n := 0
	allocs := testing.AllocsPerRun(3, func() {
		n = 0
		r, err := s.Open(context.Background(), splits[0], "")
		for err == nil {
			b.Reset()
			out.Collect(b, 256)
			err = r.Next(context.Background(), out)
			n += b.Len()
		}
		_ = r.(io.Closer).Close()
	})
	require.Equal(t, lines, n)
	require.Less(t, allocs/lines, 0.02)
}

func FuzzLines(f *testing.F) {
	for _, text := range []string{"", "\n", "\r", "a\r\n\r\r\nb", strings.Repeat("x", 70_000) + "\r\n", "\xff\n\x00"} {
		f.Add([]byte(text), uint16(7), uint16(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, size, skip uint16) {
		n := int(size)%9000 + 1
		if n == 5 {
			n = 4 // pieces gives nothing for 5
		}
		r := &lineReader{name: "text", end: endless, file: io.NopCloser(nil)}
		r.c = cutter{r: &pieces{text: string(text), size: func() int { return n }}, max: len(text) + 1}
		want := linesOf(string(text))
		if skip%2 == 1 {
			r.skip = true
			want = nil
			if _, rest, ok := bytes.Cut(text, []byte("\n")); ok {
				want = linesOf(string(rest))
			}
		}
		var got []string
		var err error
		for err == nil {
			var some []string
			some, err = next(context.Background(), r, int(skip)%50+1)
			got = append(got, some...)
		}
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, want, got)
		require.EqualValues(t, len(text), r.c.pos)
	})
}

func BenchmarkLines(b *testing.B) {
	text := []byte(strings.Repeat("It was the age of wisdom, it was the age of foolishness\n", 70_000))
	for name, path := range map[string]string{"kind=plain": write(b, "a.txt", text), "kind=gzip": write(b, "a.gz", zip(string(text)))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			s := Lines(path)
			splits, err := s.Splits(b.Context())
			require.NoError(b, err)
			out, batch := spout.NewOut(lineField), &spout.Batch{}
			for b.Loop() {
				r, err := s.Open(b.Context(), splits[0], "")
				for err == nil {
					batch.Reset()
					out.Collect(batch, 256)
					err = r.Next(b.Context(), out)
				}
				_ = r.(io.Closer).Close()
			}
		})
	}
}

func ExampleLinesFS() {
	fsys := fstest.MapFS{"rhyme.txt": {Data: []byte("the cow\njumped over\nthe moon\n")}}
	source := LinesFS(fsys, "rhyme.txt")
	lines, err := readFrom(source, "rhyme.txt", "8", 10)
	fmt.Printf("%q %v\n", lines, err)
	// Output: ["jumped over" "the moon"] <nil>
}
