package acker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

// TestScripts plays the conversations in testdata. UPDATE=1 writes down what
// the ledger answers. A line that begins with a tab is an answer; the rest is
//
//	ledger task=0 life=1 timeout=30s sends=0>1,1>2
//	open at=1s edges=a,b to=1,2 what=text
//	report at=2s from=1/1 [to=0/1] view=2/1,... | entry 1 edges=a,c to=2 | fail 1 index=7 class=panicked err=boom | lost 1 | queued 1 | held 1 by=3
//	lost task=2 life=1
//	expire at=30s
//	drain
//
// with edges in hexadecimal. Drain tells everything that the ledger has to say.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var out strings.Builder
			var s script
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				out.WriteString(line)
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				for _, answer := range s.play(t, line) {
					out.WriteString("\t" + answer + "\n")
				}
				s.l.check(t)
			}
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
				return
			}
			require.Equal(t, string(text), out.String())
		})
	}
}

type script struct{ l *Ledger[string] }

func (s *script) play(t *testing.T, line string) (answer []string) {
	a := parse(t, line)
	at := a.duration("at")
	switch a.verb {
	case "ledger":
		sends := map[string]bool{}
		for _, pair := range a.list("sends") {
			sends[pair] = true
		}
		s.l = NewLedger[string](Config{Task: tuple.TaskID(a.number("task")), Life: tuple.Incarnation(a.number("life")), Timeout: a.duration("timeout"),
			Sends: func(from, to tuple.TaskID) bool { return sends[fmt.Sprintf("%d>%d", from, to)] }})
	case "open":
		answer = append(answer, fmt.Sprintf("tree %d", s.l.Open(at, a.edges(), a.mask(), a.values["what"])))
	case "report":
		s.l.Report(at, s.report(t, a, strings.Split(line, "|")[1:]))
	case "lost":
		s.l.Lost(at, Death{Task: tuple.TaskID(a.number("task")), Life: tuple.Incarnation(a.number("life"))})
	case "expire":
		s.l.Expire(at)
	case "drain":
		return s.drain()
	default:
		t.Fatalf("no such verb: %s", line)
	}
	return answer
}

func (s *script) report(t *testing.T, a args, parts []string) *Report {
	r := &Report{To: s.l.Task, ToLife: s.l.Life}
	d := a.deaths("from")[0]
	r.From, r.FromLife = d.Task, d.Life
	if a.values["to"] != "" {
		d = a.deaths("to")[0]
		r.To, r.ToLife = d.Task, d.Life
	}
	r.View = a.deaths("view")
	for _, part := range parts {
		p := parse(t, part)
		switch p.verb {
		case "entry":
			r.Entries = append(r.Entries, Entry{Seq: p.seq(), Xor: p.edges(), Mask: p.mask()})
		case "fail":
			f := Fail{Seq: p.seq(), Index: uint16(p.number("index")), Err: p.values["err"]}
			for int(f.Class) < len(classNames) && f.Class.String() != p.values["class"] {
				f.Class++
			}
			if p.values["suspects"] != "" {
				f.Suspects = p.number("suspects")
			}
			r.Fails = append(r.Fails, f)
		case "lost":
			r.Lost = append(r.Lost, p.seq())
		case "queued":
			r.Queued = append(r.Queued, p.seq())
		case "held":
			r.Held = append(r.Held, Held{Seq: p.seq(), Component: p.number("by"), Within: p.values["within"] != "no"})
		default:
			t.Fatalf("no such part of a report: %s", part)
		}
	}
	return r
}

func (s *script) drain() (answer []string) {
	for _, v := range s.l.Drain(nil) {
		text := fmt.Sprintf("tree %d %v: %s", v.Seq, v.Outcome, v.Message)
		for _, f := range v.Fails {
			text += fmt.Sprintf(", %d %v (%s)", f.Index, f.Class, f.Err)
		}
		if v.Holder >= 0 {
			text += fmt.Sprintf(", held by %d", v.Holder)
		}
		answer = append(answer, text)
	}
	for _, f := range s.l.Late(nil) {
		answer = append(answer, fmt.Sprintf("late: tree %d, %d %v (%s)", f.Seq, f.Index, f.Class, f.Err))
	}
	for _, d := range s.l.Learned(nil) {
		answer = append(answer, fmt.Sprintf("learned: task %d is dead up to life %d", d.Task, d.Life))
	}
	return append(answer, fmt.Sprintf("open %d, stale %d, strays %d", s.l.Len(), s.l.Stale(), s.l.Strays()))
}

// args is one line or part: a verb, maybe a tree, and key=value pairs.
type args struct {
	t      *testing.T
	verb   string
	tree   string
	values map[string]string
}

func parse(t *testing.T, text string) args {
	text, _, _ = strings.Cut(text, "|")
	words := strings.Fields(text)
	require.NotEmpty(t, words)
	a := args{t: t, verb: words[0], values: map[string]string{}}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(w, "="); ok {
			a.values[key] = value
		} else {
			a.tree = w
		}
	}
	return a
}

func (a args) list(key string) []string {
	if a.values[key] == "" {
		return nil
	}
	return strings.Split(a.values[key], ",")
}

func (a args) uint(text string, base int) uint64 {
	n, err := strconv.ParseUint(text, base, 64)
	require.NoError(a.t, err)
	return n
}

func (a args) number(key string) int {
	if a.values[key] == "" {
		return 0
	}
	return int(a.uint(a.values[key], 10))
}

func (a args) seq() uint64 { return a.uint(a.tree, 10) }

func (a args) duration(key string) time.Duration {
	if a.values[key] == "" {
		return 0
	}
	d, err := time.ParseDuration(a.values[key])
	require.NoError(a.t, err)
	return d
}

func (a args) edges() (xor tuple.EdgeID) {
	for _, e := range a.list("edges") {
		xor ^= tuple.EdgeID(a.uint(e, 16))
	}
	return xor
}

func (a args) mask() (mask uint64) {
	for _, task := range a.list("to") {
		mask |= Bit(tuple.TaskID(a.uint(task, 10)))
	}
	return mask
}

func (a args) deaths(key string) (ds []Death) {
	for _, d := range a.list(key) {
		task, life, _ := strings.Cut(d, "/")
		ds = append(ds, Death{Task: tuple.TaskID(a.uint(task, 10)), Life: tuple.Incarnation(a.uint(life, 10))})
	}
	return ds
}
