package to

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// begin prepares a life of task 0 of 1.
func begin(t require.TestingT, f bolt.Factory, life int) *fileBolt {
	b := f().(*fileBolt)
	require.NoError(t, b.Prepare(context.Background(), &bolt.Task{Topology: "top", Component: "out", Parallel: 1, Life: life}))
	return b
}

func read(t require.TestingT, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// names lists a directory.
func names(t *testing.T, dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

type point struct{ X, Y int }

func init() {
	tuple.RegisterCodec("to.point",
		func(dst []byte, p point) ([]byte, error) { return fmt.Appendf(dst, "%d %d", p.X, p.Y), nil },
		func(b []byte) (p point, err error) {
			_, err = fmt.Sscanf(string(b), "%d %d", &p.X, &p.Y)
			return p, err
		})
}

func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	b := begin(t, Lines(path), 1)
	for _, in := range []tuple.Tuple{
		row("the whale", 3), row(), row("tab\tin the only field"),
		row(nil, true, uint64(1<<63), 2.5, "", []byte("bytes"), time.Unix(0, 7), time.Minute),
	} {
		require.NoError(t, b.Execute(in, nil))
	}
	require.Equal(t, "old", read(t, path), "not before the end")
	want := "the whale\t3\n\ntab\tin the only field\n\ttrue\t9223372036854775808\t2.5\t\tbytes\t1970-01-01T00:00:00.000000007Z\t1m0s\n"
	require.Equal(t, want, read(t, path+partial))
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, want, read(t, path))
	require.Equal(t, []string{"out.txt"}, names(t, filepath.Dir(path)))

	path = filepath.Join(t.TempDir(), "two.txt")
	b = begin(t, Lines(path, "2", "0"), 1)
	require.NoError(t, b.Execute(row("a", "b", "c"), nil))
	for in, want := range map[tuple.Tuple]string{
		row("a\nb", "", ""): `field "0" of stream in.default has a '\n' at byte 1, which would end its line or column: write it with to.JSONLines, or without`,
		row("a", "", "\r"):  `field "2" of stream in.default has a '\r' at byte 0, which would end its line or column: write it with to.JSONLines, or without`,
		row("a", "", "b\t"): `field "2" of stream in.default has a '\t' at byte 1, which would end its line or column: write it with to.JSONLines, or without`,
	} {
		err := b.Execute(in, nil)
		require.EqualError(t, err, want)
		require.True(t, bolt.IsReject(err))
	}
	require.NoError(t, b.Execute(row("d", "not written,\n so it may", "e"), nil))
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, "c\ta\ne\td\n", read(t, path))
}

func TestJSONLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	b := begin(t, JSONLines(path), 1)
	for _, in := range []tuple.Tuple{
		row(), row("the \"whale\"\n\u2028<", 3, -0.5, 2.0, 1e300, math.MinInt64), row(nil, false, uint64(math.MaxUint64)),
		row([]byte{0, 255}, time.Unix(1, 7), 90*time.Second, tuple.Any(point{1, 2})),
	} {
		require.NoError(t, b.Execute(in, nil))
	}
	for _, tt := range []struct {
		in   tuple.Tuple
		want string
	}{
		{row(1, math.NaN()), `field "1" of stream in.default: NaN cannot be written as JSON: emit nil instead`},
		{row(math.Inf(-1)), `field "0" of stream in.default: -Inf cannot be written as JSON: emit nil instead`},
		{row("\xff"), `field "0" of stream in.default: a string that is not valid UTF-8 cannot be written as JSON: emit it as bytes`},
	} {
		err := b.Execute(tt.in, nil)
		require.EqualError(t, err, tt.want)
		require.True(t, bolt.IsReject(err))
	}
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	want := `{}
{"0":"the \"whale\"\n` + "\u2028" + `<","1":3,"2":-0.5,"3":2.0,"4":1e+300,"5":-9223372036854775808}
{"0":null,"1":false,"2":18446744073709551615}
{"0":"AP8=","1":"1970-01-01T00:00:01.000000007Z","2":"1m30s","3":{"X":1,"Y":2}}
`
	require.Equal(t, want, read(t, path))

	path = filepath.Join(t.TempDir(), "one.jsonl")
	b = begin(t, JSONLines(path, "1"), 1)
	require.NoError(t, b.Execute(row("a", "b"), nil))
	require.Panics(t, func() { _ = b.Execute(row("a"), nil) }, "a misuse, which the task makes a rejection of")
	require.NoError(t, b.Execute(row("a", "c"), nil))
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, "{\"1\":\"b\"}\n{\"1\":\"c\"}\n", read(t, path))
}

// Whatever is written is JSON, and a float stays one.
func TestJSONLinesAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, s := rapid.Float64().Draw(t, "float"), rapid.String().Draw(t, "string")
		e := &jsonEncoder{}
		line, err := e.append(nil, row(f, s))
		require.NoError(t, err)
		require.Equal(t, byte('\n'), line[len(line)-1])
		require.NotContains(t, string(line[:len(line)-1]), "\n")
		var got struct {
			F json.Number `json:"0"`
			S string      `json:"1"`
		}
		require.NoError(t, json.Unmarshal(line, &got))
		back, err := got.F.Float64()
		require.NoError(t, err)
		require.Equal(t, f, back)
		require.True(t, strings.ContainsAny(got.F.String(), ".e"))
		require.Equal(t, s, got.S)
	})
}

// What was acked is in the file, once, as soon as it is acked, whatever lives there
// were and however they ended; what was not acked is not in it.
func TestLivesOfOneFile(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "out.txt")
		factory := Lines(path)
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.WriteFile(path+partial, []byte("left of a run that was killed\n"), 0o600))
		life, acked := 1, ""
		b := begin(t, factory, life)
		for i := range rapid.IntRange(0, 30).Draw(t, "tuples") {
			line := fmt.Sprint("line ", i)
			broken := rapid.IntRange(0, 9).Draw(t, "disk") == 0
			good := b.out.f
			if broken {
				var err error
				b.out.f, err = os.Open(b.out.name()) // cannot be written
				require.NoError(t, err)
			}
			if err := b.Execute(row(line), nil); err == nil {
				acked += line + "\n"
			} else {
				require.True(t, broken, "%v", err)
				require.ErrorContains(t, err, path)
			}
			if broken {
				require.NoError(t, b.out.f.Close())
				b.out.f = good
			}
			require.Equal(t, acked, read(t, b.out.name()))
			switch rapid.IntRange(0, 4).Draw(t, "what then") {
			case 0: // it dies
				require.NoError(t, b.Close())
				life++
				b = begin(t, factory, life)
			case 1: // it is given up, and goes on all the same
				old := b
				life++
				b = begin(t, factory, life)
				require.ErrorIs(t, old.Execute(row("late"), nil), errLate)
				require.ErrorIs(t, old.Finish(nil), errLate)
				require.NoError(t, old.Close())
			case 2: // a write has failed and left something
				_, err := b.out.f.WriteAt([]byte("longer than any line"), b.out.size)
				require.NoError(t, err)
				require.NoError(t, b.Close())
				life++
				b = begin(t, factory, life)
			case 3: // it dies behind Finish
				if rapid.Bool().Draw(t, "behind Finish") {
					require.NoError(t, b.Finish(nil))
					require.Equal(t, acked, read(t, path))
					require.NoError(t, b.Close())
					life++
					b = begin(t, factory, life)
				}
			}
		}
		require.NoError(t, b.Finish(nil))
		require.NoError(t, b.Close())
		require.Equal(t, acked, read(t, path))
		require.NoFileExists(t, path+partial)
	})
}

// A run that does not come to its end leaves what was there, and its own lines
// beside it, until the next run.
func TestFileOfAStoppedRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	factory := Lines(path)
	b := begin(t, factory, 1)
	require.NoError(t, b.Execute(row("stopped"), nil))
	require.NoError(t, b.Close())
	require.Equal(t, "old\n", read(t, path))
	require.Equal(t, "stopped\n", read(t, path+partial))

	b = begin(t, factory, 1) // the same topology, run again
	require.NoError(t, b.Execute(row("new"), nil))
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, "new\n", read(t, path))
	require.NoFileExists(t, path+partial)
}

func TestFilesOfSeveralTasks(t *testing.T) {
	dir := t.TempDir()
	factory := Lines(filepath.Join(dir, "part-{task}.txt"))
	for i := range 3 {
		b := factory().(*fileBolt)
		require.NoError(t, b.Prepare(context.Background(), &bolt.Task{Component: "out", Parallel: 3, Index: i, Life: 1}))
		require.NoError(t, b.Execute(row(i), nil))
		require.NoError(t, b.Finish(nil))
		require.NoError(t, b.Close())
	}
	require.Equal(t, []string{"part-0.txt", "part-1.txt", "part-2.txt"}, names(t, dir))
	require.Equal(t, "2\n", read(t, filepath.Join(dir, "part-2.txt")))
}
