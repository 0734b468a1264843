package portraits

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// asProgram makes the test's program the example itself.
const asProgram = "EGRET_SPEECHES_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		egret.Main(Topology())
	}
	os.Exit(m.Run())
}

// run runs the program.
func run(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		require.True(t, ok, "%v", err)
		code = exit.ExitCode()
	}
	require.NotContains(t, stderr.String(), "goroutine ", "no panic")
	return stdout.String(), stderr.String(), code
}

// plainPortraits says the same without any of the program's code.
func plainPortraits(t *testing.T) string {
	f, err := since1961.Open("speeches.ndjson.gz")
	require.NoError(t, err)
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	type person struct {
		name, party                          string
		from, to, speeches, words, sentences int
		uses                                 map[string]int
	}
	var people []*person // in the order of their first speeches
	all, allWords := map[string]int{}, 0
	word, end := regexp.MustCompile(`\pL+`), regexp.MustCompile(`[.!?]+`)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var speech struct {
			Year                 int
			Speaker, Party, Text string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &speech))
		var p *person
		for _, q := range people {
			if q.name == speech.Speaker {
				p = q
			}
		}
		if p == nil {
			p = &person{name: speech.Speaker, party: speech.Party, from: speech.Year, uses: map[string]int{}}
			people = append(people, p)
		}
		p.to = speech.Year
		p.speeches++
		p.sentences += len(end.FindAllString(speech.Text, -1))
		for _, w := range word.FindAllString(speech.Text, -1) {
			w = strings.ToLower(w)
			p.words++
			allWords++
			p.uses[w]++
			all[w]++
		}
	}
	require.NoError(t, lines.Err())
	sort.SliceStable(people, func(i, k int) bool {
		if people[i].from != people[k].from {
			return people[i].from < people[k].from
		}
		return people[i].name < people[k].name
	})
	var s strings.Builder
	for _, p := range people {
		score := func(w string) float64 {
			return float64(p.uses[w]) / float64(p.words) / (float64(all[w]) / float64(allWords))
		}
		var words []string
		for w, n := range p.uses {
			if n >= 8 && len([]rune(w)) >= 5 && score(w) >= 4 {
				words = append(words, w)
			}
		}
		sort.Slice(words, func(i, k int) bool {
			a, b := float64(p.uses[words[i]])*math.Log(score(words[i])), float64(p.uses[words[k]])*math.Log(score(words[k]))
			return a > b || a == b && words[i] < words[k]
		})
		fmt.Fprintf(&s, "%d-%d  %-22s %-2s  %3d speeches, %6d words and %4.1f in a sentence: %s\n", p.from, p.to, p.name, p.party,
			p.speeches, p.words/p.speeches, float64(p.words)/float64(p.sentences), strings.Join(words[:min(5, len(words))], ", "))
	}
	return s.String()
}

func TestSpeeches(t *testing.T) {
	want := plainPortraits(t)
	require.Contains(t, want, "terrorists, iraqi, terror")
	for _, args := range []string{"", "--readers 3 --parallel uses=5", "--guarantee at-most-once"} {
		out, errs, code := run(t, strings.Fields(args)...)
		require.Zero(t, code, "%s", errs)
		require.Equal(t, want, out)
		require.Contains(t, errs, "speeches: 62 messages in ")
	}
	out, errs, code := run(t, "--words", "0")
	require.Zero(t, code, "%s", errs)
	require.Equal(t, regexp.MustCompile(`(?m): .*$`).ReplaceAllString(want, ": "), out)
}

func TestBadInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.ndjson")
	require.NoError(t, os.WriteFile(path, []byte("{\"year\": \"long ago\"}\n"), 0o600))
	_, errs, code := run(t, "--file", path)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "spout speeches, split "+path+`:0-4194304: line 1, at byte 0: field "year" is "long ago", not a whole number`)
	_, errs, code = run(t, "--words", "-1")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--words is -1: it must be at least 0")
}
