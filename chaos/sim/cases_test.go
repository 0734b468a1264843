package sim

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A stage is a small topology, s0 -> b1a -> b2a, on which one story is played: the
// race that one rule of the protocol is there for.
type stage struct {
	*run
	t     *testing.T
	acts  int  // how often the race was on
	acted bool // for rules that act once

	chance *rand.Rand
}

const s0, b1a, b2a = "s0/0", "b1a/0", "b2a/0"

func newStage(t *testing.T, seed uint64, edit func(*scene)) *stage {
	s := &scene{
		seed: seed, texts: texts{keys: 10}, net: Links{LateEvery: -1, FreezeEvery: -1}, cost: 20 * us,
		set: task.Settings{
			ParcelSize: 4, Linger: ms, MaxPending: 100, PendingBytes: 1 << 20, TreeSize: 4,
			MessageTimeout: time.Second, MaxReplays: 8, Began: time.Unix(1_000_000_000, 0), Logger: slog.New(slog.DiscardHandler),
		},
		parts: []part{
			{name: "s0", parallel: 1, streams: 1, splits: []int{300}, perCall: 16},
			{name: "b1a", parallel: 1, streams: 1, inputs: []edge{{from: 0, grouping: topology.Shuffle}}, spend: ms},
			{name: "b2a", parallel: 1, inputs: []edge{{from: 1, grouping: topology.Fields}}, spend: ms},
		},
	}
	edit(s)
	return &stage{run: newRun(s, nil), t: t, chance: rand.New(rand.NewPCG(seed, 0x616476))}
}

func planOf(text string) chaos.Plan {
	p, err := chaos.Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// with adds a rule to those of the network.
func (s *stage) with(rule func(from, to string, msg any) Verdict) {
	s.w.onSend = func(from, to actor.Ref, msg any) Verdict {
		v := s.onSend(from, to, msg)
		if w := rule(nameOf(from), nameOf(to), msg); w != (Verdict{}) {
			v = w
		}
		return v
	}
}

func nameOf(ref actor.Ref) string {
	if a, is := ref.(address); is {
		return a.name
	}
	return ""
}

// killAt kills a task at a time.
func (s *stage) killAt(at time.Duration, name string) {
	s.w.At(at, "kill "+name, func() { s.adv.kill(s.adv.tasks[name], false) })
}

// news reports whether a message says that a task has a later life.
func (s *stage) news(msg any, of string) bool {
	p, is := msg.(*task.Peers)
	return is && len(p.Peers) == 1 && p.Peers[0].Task == s.adv.tasks[of] && p.Peers[0].Life.Restart() > 1
}

var cases = []struct {
	name  string
	scene func(*scene)
	play  func(*stage)
	want  chaos.Checker // the invariant that is broken; "": none
}{
	{
		// b1a sends to a dead b2a and reports it, when the ledger knows better (R3).
		"a report in ignorance of a death", nothing,
		func(s *stage) {
			s.killAt(30*ms, b2a)
			s.with(func(from, to string, msg any) Verdict {
				if p, is := msg.(*tuple.Parcel); is && p.To == s.adv.tasks[b2a] && s.rec.kills > 0 && p.ToLife.Restart() == 1 {
					s.acts++
				}
				if to == b1a && s.news(msg, b2a) {
					return Verdict{Loose: true, Delay: 50 * ms}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// b1a sends to the new b2a and reports it before the ledger has heard of the
		// death of the old one (R3: it learns from the view, and the spout with it).
		"a report that knows of a death first",
		func(s *scene) {
			s.parts[2].inputs = append(s.parts[2].inputs, edge{from: 0, grouping: topology.Shuffle})
		},
		ledgerHearsLast, "",
	},
	{
		// The same when nothing of the spout's own went to the dead: no tree of the
		// living may be given back.
		"a ledger that hears last", nothing, ledgerHearsLast, "",
	},
	{
		// b1a has a parcel half done, with edges to b2a in it, when b2a dies (R4).
		"a death with an input in hand",
		func(s *scene) { s.parts[1].spend, s.parts[2].spend = 20*ms, 20*ms },
		func(s *stage) {
			for k := range time.Duration(20) {
				s.killAt((100+90*k)*ms, b2a)
			}
			s.with(func(from, to string, msg any) Verdict {
				if r, is := msg.(*acker.Report); is && len(r.Lost) > 0 {
					s.acts++
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// The ledger's new life is known to b1a by its parcels and its address is not,
		// when b2a dies: what waits for the address was written in ignorance (R4).
		"reports that wait for an address", nothing,
		func(s *stage) {
			s.killAt(30*ms, s0)
			s.with(func(from, to string, msg any) Verdict {
				if p, is := msg.(*tuple.Parcel); is && p.FromLife.Restart() == 2 && from == s0 && !s.acted {
					s.acted = true
					s.acts++
					s.killAt(s.w.Now()+5*ms, b2a)
				}
				if to == b1a && s.news(msg, s0) {
					return Verdict{Loose: true, Delay: 40 * ms}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// A tuple fails, and its parcel's entry overtakes every other report (R6).
		"entries out of order with failures",
		func(s *scene) {
			s.parts[1].spend, s.plan = 20*ms, planOf("refuse b1a 20%")
			s.set.TreeSize, s.set.ParcelSize = 64, 64
		},
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				if r, is := msg.(*acker.Report); is {
					if len(r.Fails) > 0 {
						s.acts++
					}
					return Verdict{Loose: true, Delay: time.Duration(s.chance.Int64N(int64(100 * ms)))}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// A message kills, and the report of that comes when its tree has been given
		// back by the news of the death. It counts all the same (R7).
		"poison with a late report",
		func(s *scene) {
			s.plan, s.parts[0].splits = planOf("poison b2a 6%"), []int{60}
			s.set.MaxReplays = 3
		},
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				if r, is := msg.(*acker.Report); is && len(r.Fails) > 0 {
					s.acts++
					return Verdict{Loose: true, Delay: 30 * ms}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// Limits are lost, and who waits asks (R8).
		"limits are lost", nothing,
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				if _, is := msg.(*task.Limit); is && s.chance.IntN(10) > 0 {
					s.acts++
					return Verdict{Drop: true}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// A limit of a dead life comes late, and is not one of the present life (R8).
		"limits of a dead life",
		func(s *scene) { s.parts[1].spend, s.parts[2].spend, s.set.MaxPending = 0, 20*ms, 1000 },
		func(s *stage) {
			s.killAt(900*ms, b2a)
			s.with(func(from, to string, msg any) Verdict {
				if m, is := msg.(*task.Limit); is && from == b2a && m.FromLife.Restart() == 1 {
					s.acts++
					m.Parcels = nil
					return Verdict{Copies: 1, Loose: true, Delay: 200 * ms}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// A reader panics behind messages that it has appended: they are read again, and
		// nothing else is.
		"a reader that panics",
		func(s *scene) {
			s.guarantee = topology.AtMostOnce
			s.parts[0].prompt, s.parts[0].perCall, s.parts[0].wait = true, 16, 400*ms
			s.plan = planOf("panic s0 0.2%; break s0 1%")
			s.parts[0].splits = []int{300, 300, 300}
		},
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				if _, is := msg.(actor.Terminated); is && from == s0 && s.rec.panics > 0 {
					s.acts++
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// Nothing tracks the tuples that wait when the input ends, but the end waits
		// behind them.
		"the end behind kept parcels",
		func(s *scene) {
			s.guarantee, s.set.ParcelSize = topology.AtMostOnce, 48
			s.parts[0].perCall, s.parts[1].spend, s.parts[2].spend = 256, 0, 20*ms
		},
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				if _, is := msg.(*task.Limit); is && from == b2a && s.chance.IntN(20) > 0 {
					s.acts++
					return Verdict{Drop: true}
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// What waits in queues for longer than the message timeout has not timed out (R9).
		"queues longer than the timeout",
		func(s *scene) { s.parts[1].spend, s.parts[2].spend, s.set.MaxPending = 60*ms, 60*ms, 1000 },
		func(s *stage) { s.acts++ }, "",
	},
	{
		"a parcel that takes longer than the timeout",
		func(s *scene) {
			s.parts[1].spend, s.set.ParcelSize, s.set.TreeSize, s.parts[0].perCall, s.set.MaxPending = 60*ms, 64, 64, 256, 1000
		},
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				if p, is := msg.(*tuple.Parcel); is && p.Len() > 40 {
					s.acts++
				}
				return Verdict{}
			})
		}, "",
	},
	{
		// A ledger that did not run for long has no evidence against anybody (R9).
		"a ledger that stands still",
		func(s *scene) { s.parts[2].spend, s.set.MaxPending = 60*ms, 1000 },
		func(s *stage) {
			for k := range time.Duration(3) {
				s.w.At((300+4000*k)*ms, "stall", func() {
					s.acts++
					s.w.Freeze(s.adv.now[s.adv.tasks[s0]], 3*time.Second)
				})
			}
		}, "",
	},
	{
		// A queue dies just behind its end, and what had failed comes again: it passes
		// bolts that have finished, and one behind them that holds it waits for Flush.
		"an input that begins again behind its end",
		func(s *scene) {
			s.parts[0].queue, s.parts[0].splits = &queuePlan{most: 50, eager: true}, []int{30}
			s.parts[1].act, s.plan = counting, planOf("refuse b1a 30%")
			s.parts[2].act, s.parts[2].hold = holding, 100
		},
		func(s *stage) {
			s.with(func(from, to string, msg any) Verdict {
				s.rec.queues[0].look()
				if _, is := msg.(*task.End); is && from == s0 && !s.acted && len(s.rec.queues[0].again) > 0 {
					s.acted = true
					s.acts++
					s.killAt(s.w.Now()+ms, s0)
				}
				return Verdict{}
			})
		}, "",
	},
	// What the network must never do: the checkers notice.
	{"a parcel is lost", nothing, never1(func(m any) bool { _, is := m.(*tuple.Parcel); return is }, Verdict{Drop: true}), chaos.Timeouts},
	{"a parcel comes twice", func(s *scene) { s.set.AlwaysEncode = true }, never1(func(m any) bool { _, is := m.(*tuple.Parcel); return is }, Verdict{Copies: 1}), chaos.Order},
	{"a report is lost", nothing, never1(isReport, Verdict{Drop: true}), chaos.Timeouts},
	{"a report comes twice", nothing, never1(isReport, Verdict{Copies: 1}), chaos.Timeouts},
	{"the end is lost", nothing, never1(func(m any) bool { _, is := m.(*task.End); return is }, Verdict{Drop: true}), chaos.Rest},
}

func nothing(*scene) {}

// ledgerHearsLast has the spout hear of a death in the view of a report.
func ledgerHearsLast(s *stage) {
	s.killAt(30*ms, b2a)
	s.with(func(from, to string, msg any) Verdict {
		if r, is := msg.(*acker.Report); is && to == s0 && len(r.View) > 0 {
			s.acts++
		}
		if to == s0 && s.news(msg, b2a) {
			return Verdict{Loose: true, Delay: 200 * ms}
		}
		if from == b2a && to == s0 { // which would tell it as well
			return Verdict{Delay: 30 * ms}
		}
		return Verdict{}
	})
}

func isReport(m any) bool {
	r, is := m.(*acker.Report)
	return is && len(r.Entries) > 0
}

// never1 does something to one message that must not be done.
func never1(which func(any) bool, v Verdict) func(*stage) {
	return func(s *stage) {
		n := 1 + s.chance.IntN(3)
		s.with(func(from, to string, msg any) Verdict {
			if which(msg) {
				if n--; n == 0 {
					s.acts++
					return v
				}
			}
			return Verdict{}
		})
	}
}

// Each story is played under a few seeds, and the race must have been on.
func TestCases(t *testing.T) {
	for _, tt := range cases {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			acts, broken := 0, map[chaos.Checker]int{}
			for seed := range uint64(10) {
				s := newStage(t, seed, tt.scene)
				s.prologue = func() { tt.play(s) }
				s.play()
				acts += s.acts
				if bad := s.rec.bad; bad != nil {
					broken[bad.Invariant]++
					if tt.want == "" {
						t.Error(fmt.Sprintf("seed %d: ", seed), bad)
					}
				}
			}
			require.NotZero(t, acts, "the race was never on")
			if tt.want != "" {
				require.NotZero(t, broken[tt.want], "%v", broken)
			}
		})
	}
}
