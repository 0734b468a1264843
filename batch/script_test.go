package batch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

// TestScripts plays the conversations in testdata. UPDATE=1 writes down what the
// coordinator wants. A line that begins with a tab is that; the rest is
//
//	coordinator lines:spout*2 split:bolt count:stateful tell:bolt:behind lead:bystander ahead=2 replays=1
//	lives 1 1 2.1 0                      by task
//	recovered epoch=1 committed=3 lines/a=@5 fixed=lines/a:0..5 | recovered err=text | recovered replaced
//	appended [err=text | stale]
//	joined 0 1 | ready 2 tx=1 | wrote 3 tx=1 groups=1,2 keys=7
//	input 0 tx=1 more | emitted 0 tx=1 a:0..5 ended | failed 2 tx=1 err=text broken
//	fenced 3 by=8 err=text
//	hold on | hold off | drain | status | next
//	at 5s                                a tick
//
// Answers are of the present attempt and life, unless attempt=1.2 or life=3 says
// otherwise. A position is where a split is read on, and what has been asked of the
// record is asked of a real one, when the script says what has become of that.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var out strings.Builder
			s := script{t: t}
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				out.WriteString(line)
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				for _, answer := range append(s.play(line), s.wants()...) {
					out.WriteString("\t" + answer + "\n")
				}
				s.c.check(t)
			}
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
				return
			}
			require.Equal(t, string(text), out.String())
		})
	}
}

// check looks at the invariants of c.
func (c *Coordinator) check(t require.TestingT) {
	require.LessOrEqual(t, len(c.batches), c.set.Ahead)
	require.True(t, len(c.batches) == 0 || c.phase == Running, "batches in phase %v", c.phase)
	require.LessOrEqual(t, len(c.failures), c.set.Ahead, "failures are kept of batches that are under way, or were when the round ended")
	for i, w := range c.batches {
		require.Equal(t, c.record.Committed+tuple.TxID(i)+1, w.tx)
		require.True(t, i == 0 || w.stage == Emitting, "batch %d is %v, and is not the first", w.tx, w.stage)
		emitted, ready, wrote := 0, 0, 0
		for _, m := range w.got {
			emitted += int(m & hasEmitted)
			ready += int(m&hasReadied) / int(hasReadied)
			wrote += int(m&hasWritten) / int(hasWritten)
		}
		require.Equal(t, []int{c.emitters - emitted, c.readiers - ready, c.writers - wrote}, []int{w.unemitted, w.unready, w.unwrote})
	}
}

type script struct {
	t     *testing.T
	c     *Coordinator
	now   time.Duration
	asked Request
}

func (s *script) play(line string) (answer []string) {
	words := strings.Fields(line)
	verb, words := words[0], words[1:]
	values := map[string]string{}
	var ids []tuple.TaskID
	a := Answer{Ranges: Ranges{}}
	var other []string
	for _, w := range words {
		key, value, is := strings.Cut(w, "=")
		split, span, isRange := strings.Cut(w, ":")
		switch id, err := strconv.Atoi(w); {
		case is:
			values[key] = value
		case err == nil && verb != "lives":
			ids = append(ids, tuple.TaskID(id))
		case isRange && verb == "emitted":
			a.Ranges[split] = s.span(span)
			a.Tuples += a.Ranges[split].Messages
		default:
			other = append(other, w)
		}
	}
	has := func(w string) bool { return slices.Contains(other, w) }
	if s.c != nil {
		a.Attempt = s.c.attempt
	}
	a.Tx, a.Err, a.Broken, a.More, a.Ended = tuple.TxID(s.number(values["tx"])), values["err"], has("broken"), has("more"), has("ended")
	a.Keys, a.Fence = s.number(values["keys"]), uint32(s.number(values["by"]))
	if g := values["groups"]; g != "" {
		for g := range strings.SplitSeq(g, ",") {
			a.Groups.Add(uint16(s.number(g)))
		}
	}
	if at := values["attempt"]; at != "" {
		epoch, round, _ := strings.Cut(at, ".")
		a.Attempt = tuple.Attempt{Epoch: uint32(s.number(epoch)), Round: uint32(s.number(round))}
	}
	switch verb {
	case "coordinator":
		s.c = NewCoordinator(s.roles(other), Settings{Ahead: s.number(values["ahead"]), MaxReplays: s.number(values["replays"])})
	case "lives":
		var lives []tuple.Incarnation
		for _, w := range words {
			epoch, restart, is := strings.Cut(w, ".")
			if !is {
				epoch, restart = "0", w
			}
			lives = append(lives, tuple.NewIncarnation(uint32(s.number(epoch)), uint32(s.number(restart))))
		}
		s.c.Lives(s.now, lives)
	case "recovered":
		require.True(s.t, s.asked.Begin, "nobody has asked for that")
		s.asked = Request{}
		if has("replaced") {
			s.c.Recovered(s.now, nil, ErrReplaced)
			break
		}
		if values["err"] != "" {
			s.c.Recovered(s.now, nil, errors.New(values["err"]))
			break
		}
		s.c.Recovered(s.now, s.record(values), nil)
	case "appended":
		require.NotNil(s.t, s.asked.Append, "nobody has asked for that")
		s.asked = Request{}
		var err error
		if has("stale") {
			err = fmt.Errorf("%w: epoch 9", ErrStale)
		} else if values["err"] != "" {
			err = errors.New(values["err"])
		}
		s.c.Appended(s.now, err)
	case "joined", "input", "emitted", "ready", "wrote", "failed", "fenced":
		a.Kind = AnswerKind(slices.Index(answerNames[:], verb))
		for _, id := range ids {
			life := tuple.Incarnation(s.number(values["life"]))
			if values["life"] == "" && int(id) < len(s.c.view) {
				life = s.c.view[id]
			}
			stale := s.c.stale
			s.c.Answer(s.now, id, life, &a)
			if s.c.stale > stale {
				answer = append(answer, fmt.Sprintf("of %d: dropped", id))
			}
		}
	case "at":
		at, err := time.ParseDuration(words[0])
		require.NoError(s.t, err)
		s.now = at
		s.c.Tick(at)
	case "hold":
		s.c.Hold(s.now, has("on"))
	case "drain":
		s.c.Drain(s.now)
	case "next":
		if at, ok := s.c.Next(); ok {
			return []string{at.String()}
		}
		return []string{"never"}
	case "status":
		return s.status()
	default:
		require.Fail(s.t, "what is "+verb)
	}
	return answer
}

var answerNames = [...]string{"", "joined", "input", "emitted", "ready", "wrote", "failed", "fenced"}

func (s *script) number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

func (s *script) roles(words []string) (roles []Role) {
	for _, w := range words {
		w, n, many := strings.Cut(w, "*")
		parts := strings.Split(w, ":")
		r := Role{Component: parts[0]}
		for _, p := range parts[1:] {
			switch p {
			case "bystander":
			case "spout":
				r.Kind = Spout
			case "bolt":
				r.Kind = Bolt
			case "stateful":
				r.Kind = Stateful
			case "behind":
				r.Behind = true
			case "transactional":
				r.Transactional = true
			case "settled":
				r.Settled = true
			default:
				require.Fail(s.t, "what is "+p)
			}
		}
		k := 1
		if many {
			k = s.number(n)
		}
		for range k {
			roles = append(roles, r)
		}
	}
	return roles
}

// span reads a range: 3..7.
func (s *script) span(text string) Range {
	from, to, _ := strings.Cut(text, "..")
	return Range{from, to, s.number(to) - s.number(from)}
}

func (s *script) record(values map[string]string) *Record {
	r := &Record{Epoch: uint32(s.number(values["epoch"])), Committed: tuple.TxID(s.number(values["committed"]))}
	for key, value := range values {
		component, split, is := strings.Cut(key, "/")
		if is {
			if r.Positions == nil {
				r.Positions = map[string]Positions{}
			}
			if r.Positions[component] == nil {
				r.Positions[component] = Positions{}
			}
			r.Positions[component][split] = strings.TrimPrefix(value, "@")
		}
		if key == "fixed" {
			component, rest, _ := strings.Cut(value, "/")
			split, span, _ := strings.Cut(rest, ":")
			r.Fixed = map[string]Ranges{component: {split: s.span(span)}}
		}
	}
	return r
}

// wants writes down what the coordinator wants done. Orders that are the same for
// several tasks are one line.
func (s *script) wants() (lines []string) {
	e := s.c.Take()
	for _, v := range e.Events {
		lines = append(lines, "event: "+eventText(v))
	}
	var texts []string
	to := map[string][]string{}
	for _, l := range e.Orders {
		text := orderText(l.Order)
		if to[text] == nil {
			texts = append(texts, text)
		}
		to[text] = append(to[text], strconv.Itoa(int(l.To)))
	}
	for _, text := range texts {
		lines = append(lines, "to "+strings.Join(to[text], " ")+": "+text)
	}
	if e.Request != (Request{}) {
		require.Equal(s.t, Request{}, s.asked, "it asks twice")
		s.asked = e.Request
		lines = append(lines, "ask: "+requestText(e.Request))
	}
	return lines
}

func eventText(v Event) string {
	text := fmt.Sprintf("%v %v", v.Kind, v.Attempt)
	if v.Tx > 0 {
		text += fmt.Sprintf(", batch %d", v.Tx)
	}
	switch {
	case v.Kind == RoundBegan:
		text += fmt.Sprintf(", for %v", v.Cause)
	case v.Kind == Committed:
		text += fmt.Sprintf(", %d messages, %d tuples, %d keys in %v", v.Messages, v.Tuples, v.Keys, v.Took)
	}
	if len(v.Tasks) > 0 {
		text += fmt.Sprintf(", tasks %v", v.Tasks)
	}
	if v.Failures > 0 {
		text += fmt.Sprintf(", failure %d", v.Failures)
	}
	if v.Err != nil {
		text += ": " + v.Err.Error()
	}
	return text
}

func orderText(o *Order) string {
	text := fmt.Sprintf("%s %d of %v", [...]string{"", "join behind", "begin", "write", "settled", "finish behind"}[o.Kind], o.Tx, o.Attempt)
	if o.Kind == Join {
		text += fmt.Sprintf(", view %v", o.View)
		for _, split := range slices.Sorted(maps.Keys(o.Positions)) {
			text += fmt.Sprintf(", %s at %s", split, o.Positions[split])
		}
		for g, stamp := range o.Last {
			if stamp.Tx > 0 {
				text += fmt.Sprintf(", group %d has %v", g, stamp)
			}
		}
	}
	if o.Fixed != nil {
		text += ", fixed" + rangesText(o.Fixed)
	}
	return text
}

func rangesText(ranges Ranges) (text string) {
	for _, split := range slices.Sorted(maps.Keys(ranges)) {
		r := ranges[split]
		text += fmt.Sprintf(" %s:%s..%s", split, r.From, r.To)
	}
	return text
}

func requestText(r Request) string {
	if r.Begin {
		return "begin an epoch"
	}
	e := r.Append
	if e.Fix != nil {
		text := fmt.Sprintf("fix batch %d in epoch %d:", e.Fix.Tx, e.Epoch)
		for _, component := range slices.Sorted(maps.Keys(e.Fix.Ranges)) {
			text += " " + component + "/" + rangesText(e.Fix.Ranges[component])
		}
		return text
	}
	text := fmt.Sprintf("commit batch %d in epoch %d, round %d", e.Commit.Tx, e.Epoch, e.Commit.Round)
	for _, component := range slices.Sorted(maps.Keys(e.Commit.Positions)) {
		for _, split := range slices.Sorted(maps.Keys(e.Commit.Positions[component])) {
			text += fmt.Sprintf(", %s/%s at %s", component, split, e.Commit.Positions[component][split])
		}
	}
	for _, component := range slices.Sorted(maps.Keys(e.Commit.Written)) {
		groups := e.Commit.Written[component]
		for g := range uint16(tuple.KeyGroups) {
			if groups.Has(g) {
				text += fmt.Sprintf(", %s has written group %d", component, g)
			}
		}
	}
	return text
}

func (s *script) status() (lines []string) {
	v := s.c.Status()
	text := fmt.Sprintf("%v %v, committed %d", v.Phase, v.Attempt, v.Committed)
	for _, b := range v.Batches {
		text += fmt.Sprintf(", batch %d %v (%d)", b.Tx, b.Stage, b.Messages)
	}
	if v.Missing != nil {
		text += fmt.Sprintf(", missing %v", v.Missing)
	}
	if v.Asked {
		text += ", asked"
	}
	if v.Held {
		text += ", held"
	}
	text += fmt.Sprintf(", rounds %v, stale %d, idle %t", v.Rounds, v.Stale, s.c.Idle())
	return []string{text}
}
