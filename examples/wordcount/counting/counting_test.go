package counting

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// asProgram makes the test's program the example itself.
const asProgram = "EGRET_WORDCOUNT_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		egret.Main(Topology())
	}
	os.Exit(m.Run())
}

// wordcountOf runs the program.
func wordcountOf(t *testing.T, stdin io.Reader, args ...string) (out, errs string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = stdin, &stdout, &stderr
	if err := c.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		require.True(t, ok, "%v", err)
		code = exit.ExitCode()
	}
	require.NotContains(t, stderr.String(), "goroutine ", "no panic")
	return stdout.String(), stderr.String(), code
}

// plainCount counts the words of a text without any of the program's code and
// prints them as it should.
func plainCount(text string, top int) string {
	counts, word := map[string]int{}, []byte{}
	for _, b := range append([]byte(text), ' ') {
		switch {
		case 'a' <= b && b <= 'z':
			word = append(word, b)
		case 'A' <= b && b <= 'Z':
			word = append(word, b+'a'-'A')
		default:
			if len(word) > 0 {
				counts[string(word)]++
			}
			word = word[:0]
		}
	}
	var words []string
	for w := range counts {
		words = append(words, w)
	}
	sort.Slice(words, func(i, k int) bool {
		if counts[words[i]] != counts[words[k]] {
			return counts[words[i]] > counts[words[k]]
		}
		return words[i] < words[k]
	})
	if top > 0 && len(words) > top {
		words = words[:top]
	}
	var s strings.Builder
	for _, w := range words {
		fmt.Fprintln(&s, w, counts[w])
	}
	return s.String()
}

func bookText(t *testing.T) string {
	f, err := book.Open("moby_dick.txt.gz")
	require.NoError(t, err)
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

func zip(text string) string {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// The twenty most frequent words of the book are those that ordinary tools find:
//
//	zcat moby_dick.txt.gz | tr -cs A-Za-z '\n' | tr A-Z a-z | grep -v '^$' |
//		sort | uniq -c | sort -k1,1nr -k2,2 | head -20 | awk '{print $2, $1}'
func TestBook(t *testing.T) {
	want, err := os.ReadFile("testdata/top20.txt")
	require.NoError(t, err)
	out, errs, code := wordcountOf(t, nil)
	require.Zero(t, code, "%s", errs)
	require.Equal(t, string(want), out)
	require.Contains(t, errs, "wordcount: 21,424 messages in ")
	require.Contains(t, errs, "all done; 0 failed, 0 lost, 0 timed out, 0 replayed")
}

// All words, with whatever number of tasks, guarantee and order of reading.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	text := bookText(t)
	text = text[:100_000]
	file := func(name, content string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, []byte(content), 0o600))
		return p
	}
	plain, zipped := file("plain.txt", text), file("zipped.gz", zip(text))
	half := strings.LastIndexByte(text[:50_000], '\n') + 1
	one, two := file("one.txt", text[:half]), file("two.gz", zip(text[half:]))
	want := plainCount(text, 0)
	for _, args := range []string{
		"--file " + plain,
		"--file " + zipped,
		"--file " + one + " --file " + two,
		"run --file=" + two + " --file=" + one + " --spouts 3 --split 5 --count 7",
		"--file " + plain + " --spouts 1 --split 1 --count 1",
		"--file " + plain + " --guarantee at-most-once",
		"--file " + plain + " --max-pending 100 --parallel count=3,lines=2",
		"--file -",
		"--file " + plain + " --rate 1e9",
	} {
		t.Run(args, func(t *testing.T) {
			out, errs, code := wordcountOf(t, strings.NewReader(text), append(strings.Fields(args), "--top", "0")...)
			require.Zero(t, code, "%s", errs)
			require.Equal(t, want, out)
		})
	}
	t.Run("repeat and top", func(t *testing.T) {
		out, errs, code := wordcountOf(t, nil, "--file", plain, "--repeat", "3", "--top", "7")
		require.Zero(t, code, "%s", errs)
		require.Equal(t, plainCount(text+"\n"+text+"\n"+text, 7), out)
	})
	t.Run("topologies", func(t *testing.T) {
		out, _, code := wordcountOf(t, nil, "topologies")
		require.Zero(t, code)
		for _, flag := range []string{"--file", "--spouts", "--split", "--count", "--top", "--repeat", "--rate"} {
			require.Contains(t, out, flag)
		}
	})
}

// Whatever a file has in it, the result is right or an error says what is wrong.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("whale ", 100<<20/6)
	whole := zip(strings.Repeat("call me ishmael\n", 100_000))
	for _, tt := range []struct {
		name, content string
		code          int
		out, errs     string
	}{
		{"empty.txt", "", 0, "", "0 messages"},
		{"empty.gz", zip(""), 0, "", "0 messages"},
		{"no-line-end.txt", "one two\ntwo", 0, "two 2\none 1\n", "2 messages"},
		{"line-ends.txt", "\n\n\r\n\n", 0, "", "4 messages"},
		{"not-utf8.txt", "caf\xe9 \xff\xfe b\x00d \xc3\n", 0, "b 1\ncaf 1\nd 1\n", "1 message"},
		{"dead.txt", strings.Repeat("\x00", 1<<20), 0, "", "1 message"},
		{"long.txt", long, 1, "", "long.txt:0-4194304: the line at byte 0 is longer than 16 MB"},
		{"long.gz", zip(long), 1, "", "long.gz: the line at byte 0 is longer than 16 MB"},
		{"nothing.gz", "", 1, "", "nothing.gz: the file is cut off behind byte 0 of its decompressed text"},
		{"cut.gz", whole[:len(whole)/2], 1, "", "cut.gz: the file is cut off behind byte"},
		{"flipped.gz", flip(whole, len(whole)/2), 1, "", "flipped.gz: the file is corrupt behind byte"},
		{"plain.gz", "this is not gzip\n", 1, "", "plain.gz: the file is corrupt behind byte 0"},
		{"missing.txt", "-", 1, "", "missing.txt"},
		{"directory", "/", 1, "", "directory is a directory: name the files in it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := filepath.Join(dir, tt.name)
			switch tt.content {
			case "-":
			case "/":
				require.NoError(t, os.Mkdir(p, 0o700))
			default:
				require.NoError(t, os.WriteFile(p, []byte(tt.content), 0o600))
			}
			out, errs, code := wordcountOf(t, nil, "--file", p)
			require.Equal(t, tt.code, code, "%s", errs)
			require.Contains(t, errs, tt.errs)
			require.Equal(t, tt.out, out)
		})
	}
	t.Run("twice", func(t *testing.T) {
		p := filepath.Join(dir, "empty.txt")
		_, errs, code := wordcountOf(t, nil, "--file", p, "--file", p)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "is named twice")
	})
	for _, args := range []string{"--top x", "--spouts 0", "--rate fast", "--file", "--nothing", "something"} {
		t.Run(args, func(t *testing.T) {
			_, errs, code := wordcountOf(t, nil, strings.Fields(args)...)
			require.Equal(t, 2, code, "%s", errs)
			require.Contains(t, errs, "Try: ")
		})
	}
	t.Run("--top -1", func(t *testing.T) {
		_, errs, code := wordcountOf(t, nil, "--top", "-1")
		require.NotZero(t, code)
		require.Contains(t, errs, "it must be at least 0")
	})
}

func flip(s string, at int) string { return s[:at] + string(s[at]^0xff) + s[at+1:] }
