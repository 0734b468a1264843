package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConversations plays the conversations in testdata/lead. UPDATE=1 writes down what
// the coordinator answers. A line that begins with a tab is an answer; the rest is
//
//	lead 1.1                        process 1 of node 1 begins to lead
//	members 1.1 2.1*3 -3.1          3.1 is dead, and 2.1 has the weight 3
//	submit words lines:1>1 count:4  with "local" behind it, one node has its states
//	status words inactive
//	drain 2 on
//	resize words count=6
//	say 1.1 2.1 [rest] [ended] [saved] [over] [err=e] [cannot=c] [refused=3.1] [down=3.1/12s] [reset=3.1]
//	at 3s                           what is asked for is entered at once, until that is nothing
//	ask 3s                          what is asked for is lost
//
// Who says something says it of all runs, in the plan that is there.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/lead/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var out strings.Builder
			s := conversation{machine: founded(t)}
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				out.WriteString(line)
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				for _, answer := range s.play(strings.Fields(line)) {
					out.WriteString("\t" + answer + "\n")
				}
			}
			golden(t, filepath.Join("lead", name), out.String())
		})
	}
}

type conversation struct {
	*machine
	c   *Coordinator
	now time.Duration
}

func (s *conversation) play(words []string) (answer []string) {
	verb, words := words[0], words[1:]
	enter := func(e Entry) {
		if r := s.apply(e); r.Err != nil {
			refusal, _ := errors.AsType[*Refusal](r.Err)
			answer = append(answer, "\trefused, "+string(refusal.Reason))
		}
	}
	switch verb {
	case "lead":
		s.c = NewCoordinator(s.home(words[0]), s.now, Patience{})
	case "members":
		var all []Member
		for _, w := range words {
			w, dead := strings.CutPrefix(w, "-")
			w, weight, _ := strings.Cut(w, "*")
			m := Member{Home: s.home(w), Alive: !dead}
			m.Weight, _ = strconv.Atoi(weight)
			m.Addr = fmt.Sprintf("h%d:1", m.Node)
			all = append(all, m)
		}
		s.c.Members(s.now, all)
	case "submit":
		spec := Spec{Topology: words[0]}
		for _, w := range words[1:] {
			if w == "local" {
				spec.Local = true
				continue
			}
			w, to, sends := strings.Cut(w, ">")
			name, n, _ := strings.Cut(w, ":")
			k := Component{Name: name, Parallel: s.number(n)}
			if sends {
				k.To = []int{s.number(to)}
			}
			spec.Components = append(spec.Components, k)
		}
		enter(Entry{Submit: &Submit{spec, clock}})
	case "status":
		enter(Entry{SetStatus: &SetStatus{words[0], s.Submission(words[0]).Run, Status(words[1]), clock}})
	case "drain":
		enter(Entry{DrainNode: &DrainNode{NodeID(s.number(words[0])), words[1] == "on"}})
	case "resize":
		sub := s.Submission(words[0])
		name, n, _ := strings.Cut(words[1], "=")
		p, err := Resize(sub.Components, sub.Plan, s.c.Candidates(&s.State, sub), map[string]int{name: s.number(n)})
		require.NoError(s.t, err)
		enter(Entry{ProposeNext: &ProposeNext{sub.Topology, sub.Run, sub.epoch(), p, "rebalance"}})
	case "say":
		s.say(words)
	case "at", "ask":
		var err error
		s.now, err = time.ParseDuration(words[0])
		require.NoError(s.t, err)
		for range 20 {
			entries := s.c.Decide(s.now, &s.State, clock, nil)
			for _, e := range entries {
				answer = append(answer, s.tell(e)...)
				if verb == "at" {
					enter(e)
				}
			}
			if len(entries) == 0 || verb == "ask" {
				return answer
			}
		}
		require.Fail(s.t, "it comes to no end")
	default:
		require.Fail(s.t, "what is "+verb)
	}
	return answer
}

func (s *conversation) say(words []string) {
	var who []Home
	var x RunReport
	var links []LinkReport
	var reset []Home
	var rest, ended, saved bool
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		value = strings.ReplaceAll(value, "_", " ")
		switch key {
		case "saved":
			saved = true
		case "rest":
			rest = true
		case "ended":
			ended = true
		case "over":
			x.Over = true
		case "err":
			x.Over, x.Err = true, value
		case "cannot":
			x.Cannot = value
		case "refused":
			links = append(links, LinkReport{To: s.home(value), Refused: true, Down: time.Millisecond})
		case "down":
			to, d, _ := strings.Cut(value, "/")
			down, err := time.ParseDuration(d)
			require.NoError(s.t, err)
			links = append(links, LinkReport{To: s.home(to), Down: down})
		case "reset":
			reset = append(reset, s.home(value))
		default:
			who = append(who, s.home(key))
		}
	}
	for _, h := range who {
		r := &Report{Home: h, Applied: s.Applied, Links: slices.Clone(links)}
		var epochs []RunEpoch
		for _, sub := range s.Submissions {
			if !sub.Status.Runs() {
				continue
			}
			x.Run, x.Epoch, x.Ended, x.Rest = sub.Run, sub.epoch(), ended, 0
			if rest {
				x.Rest = sub.NextAt
			}
			if saved {
				x.Rest = AtEnd
			}
			r.Runs = append(r.Runs, x)
			epochs = append(epochs, RunEpoch{sub.Run, sub.epoch()})
		}
		for _, to := range reset {
			r.Links = append(r.Links, LinkReport{To: to, Reset: epochs})
		}
		s.c.Report(r)
	}
}

// tell says an entry in few words.
func (s *conversation) tell(e Entry) (lines []string) {
	place := func(p *Plan) {
		for _, h := range p.hosts() {
			line := fmt.Sprintf("\t%d.%d:", h.Node, h.Boot)
			for _, t := range p.Tasks {
				if t.Home == h.Home {
					line += fmt.Sprintf(" c%d.%d", t.Component, t.Index)
					if t.Epoch == 0 {
						line += "*"
					}
				}
			}
			lines = append(lines, line)
		}
	}
	_, kind := e.changes()
	switch {
	case e.SawNode != nil:
		lines = append(lines, fmt.Sprintf("%s %d.%d", kind, e.SawNode.Node, e.SawNode.Boot))
	case e.SetPlan != nil:
		lines = append(lines, fmt.Sprintf("%s %s, after %d", kind, e.SetPlan.Topology, e.SetPlan.Base))
		place(e.SetPlan.Plan)
	case e.ProposeNext != nil:
		lines = append(lines, fmt.Sprintf("%s %s, after %d: %s", kind, e.ProposeNext.Topology, e.ProposeNext.Base, e.ProposeNext.Why))
		place(e.ProposeNext.Plan)
	case e.CancelNext != nil:
		lines = append(lines, kind+" "+e.CancelNext.Topology)
	case e.Switch != nil:
		lines = append(lines, kind+" "+e.Switch.Topology)
	case e.Finish != nil:
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", kind, e.Finish.Topology, e.Finish.Status, e.Finish.Reason)))
	case e.Forget != nil:
		lines = append(lines, kind+" "+e.Forget.Topology)
	default:
		require.Fail(s.t, "a coordinator does not ask for "+kind)
	}
	return lines
}

func (s *conversation) home(w string) Home {
	n, boot, ok := strings.Cut(w, ".")
	require.True(s.t, ok, w)
	return Home{NodeID(s.number(n)), Boot(s.number(boot))}
}

func (s *conversation) number(w string) int {
	n, err := strconv.Atoi(w)
	require.NoError(s.t, err)
	return n
}
