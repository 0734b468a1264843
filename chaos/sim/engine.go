package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
)

// Options are how [Seed] and [Seeds] run. The zero value will do.
type Options struct {
	// Tuples is about how many tuples a run executes when nothing goes wrong.
	// Default 1,000. With another number a seed draws another scene.
	Tuples int
	// Peaceful draws no faults.
	Peaceful bool
	// Plan, if not nil, takes the place of the faults that a seed draws. An empty one
	// plays the scene without faults.
	Plan *chaos.Plan
	// Topology, if given, is played instead of one that is drawn: it returns a topology of
	// yours, new for each run, with the sources and bolts that it is to have. They must do
	// the same in the same run, whenever it is played: read no clock but that of the Run,
	// no file that changes, and start nothing that goes on by itself.
	Topology func(*Run) *topology.Topology
	// Params are parameters of that topology, by name. Others have their defaults.
	Params map[string][]string
	// For drains that topology after so much made-up time: for sources that never end.
	// Zero lets it read all.
	For time.Duration
	// Log, if given, gets what a seed has drawn and a line for each event of its first
	// run.
	Log io.Writer
	// Unshrunk does not look for a smaller plan when a seed fails.
	Unshrunk bool
	// Once does not run a seed a second time to see that it gives the same run.
	Once bool
}

func (o *Options) messages() int {
	if o.Tuples <= 0 {
		return 1000
	}
	return o.Tuples
}

// A Report is what one seed came to.
type Report struct {
	Seed       uint64         `json:"seed"`
	Mood       string         `json:"mood"` // peaceful, failing, deadly or forgetful
	Hash       uint64         `json:"hash"` // of the events and what was done in them
	Events     int            `json:"events"`
	Time       time.Duration  `json:"time_ns"` // made-up
	Messages   int            `json:"messages"`
	Executions int            `json:"executions"`
	Faults     map[string]int `json:"faults"`   // by kind
	Features   []string       `json:"features"` // what there was in the scene
	// Checks is how often each checker was asked whether nothing bad had happened, and
	// Twins how often whether the good thing had.
	Checks   map[chaos.Checker]int `json:"checks"`
	Twins    map[chaos.Checker]int `json:"twins"`
	Recovery []time.Duration       `json:"recovery_ns"`
}

// A Failure is a seed in which an invariant did not hold, with the smallest plan that was
// found with which the same invariant does not hold.
type Failure struct {
	Seed      uint64 `json:"seed"`
	Violation        // under Plan
	// Plan is what is left of the plan with which the seed has failed, nil if none smaller
	// was looked for, and Drawn how many faults that had.
	Plan    chaos.Plan `json:"plan"`
	Drawn   int        `json:"drawn"`
	own     bool
	nodes   int // of a cluster; -1: drawn; 0: it is none
	batches bool
}

func (f *Failure) Error() string {
	s := fmt.Sprintf("seed %d: %v; to see it again: ", f.Seed, &f.Violation)
	n := ""
	if f.Plan != nil && len(f.Plan) < f.Drawn {
		n = fmt.Sprintf(" (%d of its %d faults)", len(f.Plan), f.Drawn)
	}
	if f.own {
		s += fmt.Sprintf("sim.Seed(%d, options), with a Log to see its events", f.Seed)
		if f.Plan != nil {
			s += fmt.Sprintf(" and the Plan %q", f.Plan)
		}
		return s + n
	}
	return s + fmt.Sprintf("egret chaos sim --seed %d%s -v", f.Seed, f.Flag()) + n
}

// Flag is the flag of "egret chaos sim" that has the seed fail with Plan, with a space
// before it, or nothing if there is no such plan.
func (f *Failure) Flag() string {
	if f.batches {
		return " --batches"
	}
	if f.nodes != 0 {
		return fmt.Sprintf(" --nodes %d", max(f.nodes, 0))
	}
	if f.Plan == nil {
		return ""
	}
	return fmt.Sprintf(" --plan '%v'", f.Plan)
}

// Seed runs the engine, the code that ships, on a topology, a network and faults
// that are drawn from a seed, and checks what came of each message against a
// record that the simulated sources, queues and bolts keep. It runs the seed twice and
// compares. The error is a *[Failure].
//
// Seeds share nothing and may be run at the same time.
func Seed(seed uint64, o Options) (Report, error) {
	if err := o.Check(seed); err != nil {
		return Report{Seed: seed}, &Failure{Seed: seed, Violation: Violation{Invariant: "plan", What: err.Error()}}
	}
	fresh := o.fresh(seed)
	report, bad := play(fresh, &o)
	if !o.Once {
		report.Checks[repeatable] = report.Events
	}
	if bad == nil {
		return report, nil
	}
	s := fresh(nil).scene
	plan := s.plan
	if o.Topology != nil && o.For > 0 {
		plan = plan[:len(plan)-1] // the end after For, which every run has
	}
	f := &Failure{Seed: seed, Violation: *bad, Drawn: len(plan), own: o.Topology != nil}
	if o.Plan != nil {
		plan = append(chaos.Plan{}, plan...) // an empty one is a plan, too
		f.Plan = plan
	}
	if o.Log != nil || o.Unshrunk || bad.Invariant == repeatable {
		return report, f
	}
	f.Plan, bad = shrink(plan, bad, s.targets(), func(p chaos.Plan) (*Violation, int) {
		smaller := o
		smaller.Plan = &p
		r := smaller.fresh(seed)(nil)
		r.play()
		return r.rec.bad, r.w.Events()
	})
	f.Violation = *bad
	return report, f
}

// fresh makes the runs of a seed, each like the one before.
func (o *Options) fresh(seed uint64) func(log io.Writer) *run {
	if o.Topology != nil {
		return func(log io.Writer) *run { return newOwn(seed, o, log) }
	}
	return func(log io.Writer) *run { return newRun(draw(seed, o), log) }
}

// Check says why Plan cannot be done to the scene of a seed: what it names is not
// there, or cannot be done to an engine that works.
func (o Options) Check(seed uint64) error {
	if o.Plan == nil {
		return nil
	}
	check := draw(seed, &o).check
	if o.Topology != nil {
		check = newOwn(seed, &o, nil).checkOwn
	}
	if err := check(); err != nil {
		return fmt.Errorf("the plan does not fit seed %d: %w", seed, err)
	}
	return nil
}
