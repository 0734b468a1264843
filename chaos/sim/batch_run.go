package sim

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How long a run of an exactly-once topology may take. After batchHeal nothing goes wrong
// any more, and what the sources have held back comes.
const (
	batchHeal     = 12 * time.Second
	mostBatch     = 10 * time.Minute // behind that
	batchEvents   = 3_000_000
	mostBatchRuns = 60
)

// A batchRun is one run of a seed: runs of a topology, one after the other as they end or
// crash, with the same stores and the same record.
//
//	deeds --> kills, crashes, delays --> supervisor, coordinator, tasks (the code that ships)
//	                                          |              |
//	          book <-- what is said     simRecords      simStates
type batchRun struct {
	w       *World
	s       *batchScene
	book    *batchBook
	chance  *rand.Rand
	records *simRecords
	states  []*simState // by part; nil: it has none

	plan    *topology.Plan
	sup     actor.Ref
	ms      []*metrics.Task
	counted []*metrics.Task // of all runs
	runs    int
	done    bool // the present run has ended
	crashed bool
	asked   bool // it was asked to end
	err     error

	met   int // procs that are known
	lives map[*proc]*batchLife
	now   []*batchLife // the present life of each task

	waiting []*pendingDeed
	deeds   map[string]int // that were done
	harmed  map[*proc]bool // by their own code
	kills   int
	lost    int  // the run in which a store has lost something; 0: none has
	told    bool // and somebody has said so
	healed  bool
	ended   bool
	took    time.Duration
}

// A batchLife is one incarnation of a task.
type batchLife struct {
	proc *proc
	run  int
	task tuple.TaskID
	life tuple.Incarnation
}

func newBatchRun(s *batchScene, log io.Writer) *batchRun {
	r := &batchRun{s: s, chance: rand.New(rand.NewPCG(s.seed, 0x73746f726573)), lives: map[*proc]*batchLife{}, deeds: map[string]int{}, harmed: map[*proc]bool{}}
	r.w = New(Config{Seed: s.seed, Links: s.net, Cost: s.cost, Block: s.wait, Log: log, Hangs: s.does("hang"), OnSend: r.onSend, OnBlock: r.onBlock})
	r.w.describe, r.w.content = describeBatch, task.AppendContent
	r.book = newBatchBook(r)
	r.w.hears = r.book.hears
	r.records = &simRecords{run: r}
	for i := range s.parts {
		r.states = append(r.states, nil)
		if s.parts[i].state() {
			r.states[i] = newSimState(r, i)
		}
	}
	if log != nil {
		_, _ = io.WriteString(log, s.String())
	}
	return r
}

func (r *batchRun) draw(least, most time.Duration) time.Duration {
	return least + time.Duration(r.chance.Int64N(int64(most-least)+1))
}

func (r *batchRun) oneIn(n int) bool { return r.chance.IntN(n) == 0 }

func (r *batchRun) play() {
	defer func() {
		bad := r.book.bad
		r.w.Release()
		r.book.bad = bad
	}()
	r.prepare()
	for !r.ended {
		if r.runs++; r.runs > mostBatchRuns {
			r.book.violate(chaos.Rest, "%d runs have come to no end", mostBatchRuns)
			return
		}
		r.start()
		if !r.wait("to end", func() bool { return r.done || r.crashed }) {
			return
		}
		if !r.crashed {
			r.book.runEnds()
			r.w.Stop(r.sup)
			if !r.wait("to stop", func() bool { return !r.w.Alive(r.sup) }) {
				return
			}
		}
		if !r.ended {
			r.w.At(r.w.Now()+r.draw(time.Millisecond, time.Second), "begin again", func() { r.done = true })
			r.done = false
			if !r.wait("to begin again", func() bool { return r.done }) {
				return
			}
		}
	}
	r.took = r.w.Now()
	if !r.wait("to come to rest", nil) {
		return
	}
	r.book.atEnd()
}

// start begins a run of the topology.
func (r *batchRun) start() {
	plan, err := r.topology().Build(topology.Options{Epoch: uint32(r.runs)})
	if err != nil {
		panic(err)
	}
	r.plan, r.ms = plan, nil
	for id := range plan.Tasks {
		n := &plan.Components[plan.Tasks[id].Component]
		r.ms = append(r.ms, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	r.counted = append(r.counted, r.ms...)
	r.now = make([]*batchLife, len(plan.Tasks))
	set := r.s.set
	set.Event, set.Records = r.book.event, r.records
	r.done, r.crashed, r.asked, r.err = false, false, false, nil
	r.book.begun, r.book.furthest, r.book.again = tuple.BatchID{}, 0, 0
	run := r.runs
	r.sup = r.w.Spawn("supervisor", task.NewSupervisor(plan, &set, r.ms, func(err error) {
		if run == r.runs {
			r.done, r.err = true, err
		}
	}))
}

// wait runs the world and says whether all is well.
func (r *batchRun) wait(what string, until func() bool) bool {
	stop := until
	if until != nil {
		stop = func() bool {
			r.meet()
			return r.book.bad != nil || until() || r.w.Now() > batchHeal+mostBatch
		}
	}
	err := r.w.Run(stop, Limit{Time: batchHeal + mostBatch, Events: batchEvents})
	if err == nil && until != nil && !until() {
		err = fmt.Errorf("the run goes on %v after everything was healed", mostBatch)
	}
	if err != nil {
		r.book.violate(chaos.Rest, "%s: %v%s", what, err, r.stuck())
	}
	return r.book.bad == nil
}

// meet learns of actors that have begun since it was last asked.
func (r *batchRun) meet() {
	for ; r.met < len(r.w.procs); r.met++ {
		p := r.w.procs[r.met]
		at, _ := p.ref.(address)
		for id := range r.ms {
			if r.ms[id].Name != at.name {
				continue
			}
			l := &batchLife{p, r.runs, tuple.TaskID(id), tuple.NewIncarnation(uint32(r.runs), 1)}
			if was := r.now[id]; was != nil {
				l.life = was.life + 1
			}
			r.lives[p], r.now[id] = l, l
		}
	}
}

// complete reports whether all messages are committed.
func (r *batchRun) complete() bool {
	for i := range r.s.parts {
		for k, n := range r.s.parts[i].splits {
			if r.book.positions[[2]int{i, k}] < n {
				return false
			}
		}
	}
	return true
}

// forgiven reports whether a run may have ended with its error: for what was done to it.
func (r *batchRun) forgiven(err error) bool {
	text := err.Error()
	switch {
	case r.asked && errors.Is(err, task.ErrDrain):
		return true
	case strings.Contains(text, "times in a row"), strings.Contains(text, "tries"):
		return len(r.harmed)+r.kills > 0 && strings.Contains(text, errBroken.Error())
	}
	return false
}

// stuck says what has not come through, for people.
func (r *batchRun) stuck() string {
	text := fmt.Sprintf("; run %d, record %d of epoch %d", r.runs, r.records.record.Committed, r.records.record.Epoch)
	for i := range r.s.parts {
		for k, n := range r.s.parts[i].splits {
			if at := r.book.positions[[2]int{i, k}]; at < n {
				text += fmt.Sprintf("; split %d of %s is at %d of %d", k, r.s.parts[i].name, at, n)
			}
		}
	}
	if r.w.Now() > batchHeal && r.ended {
		for _, p := range r.w.procs[1:] {
			if p.state != ended {
				text += "; " + p.label + " has not ended"
			}
		}
	}
	return text
}

func (r *batchRun) broken() *Violation { return r.book.bad }

func (r *batchRun) report() Report {
	out := Report{Seed: r.s.seed, Mood: r.s.mood, Hash: r.w.Hash(), Events: r.w.Events(), Time: r.took, Faults: r.deeds, Executions: r.book.executions}
	r.book.sawScene()
	out.Features = slices.Sorted(maps.Keys(r.book.features))
	out.Checks, out.Twins = r.book.counted()
	for _, n := range r.book.positions {
		out.Messages += n
	}
	return out
}
