package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Options say what is done to a run, and how.
type Options struct {
	Plan chaos.Plan
	Seed uint64 // draws who is meant by a component, and by *
	// Before and After are the quiet times around the faults, which are done For so
	// long. Settle is how long the sources are given, before the run is drained, to read
	// again what was open when their task died.
	Before, For, After, Settle time.Duration
	// Start starts the run with a context that has a task.Hook. Its error is that of Run.
	Start func(context.Context) (*Engine, error)
	// Interrupted brings numbers: the first ends the faults, the second stops the run.
	Interrupted <-chan int
	// Told is called for each fault that is done, by Run and by tasks; it must not wait.
	// Shown is called by Run, five times a second. Both may be nil.
	Told  func(Done)
	Shown func(Progress)
}

// An Engine is a run that has been started, for what the record has no part in.
type Engine struct {
	Kill        func(actor.Ref)
	Drain, Stop func()
	Ended       <-chan struct{}
	// Err is what it has ended with, and whether all that was to be done was: then what is
	// not done is lost.
	Err func() (err error, finished bool)
}

// Progress is how far a run is.
type Progress struct {
	Elapsed time.Duration
	Phase   string
	Done    int64 // messages
	Open    int64
	Rate    float64 // messages done a second, in the last fifth of one
	Faults  int
}

// A run is one of Run.
type run struct {
	*Options
	record  *record
	engine  *Engine
	random  *rand.Rand
	targets map[int][]tuple.TaskID // of the faults that last
	windows []int64                // messages done in each tenth of a second
	phase   string
	phases  [4]time.Duration // when quiet, faults, quiet and the end began
	dones   int64
	cut     bool
	ended   bool
}

const window = 100 * time.Millisecond

// Run runs a topology, does to it what the plan says, and reports what became of its
// messages. The error says why nothing was started.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Plan.Live(); err != nil {
		return nil, err
	}
	rec := newRecord()
	engine, err := o.Start(task.WithHook(ctx, func(plan *topology.Plan, set *task.Settings) error {
		if err := o.check(plan); err != nil {
			return err
		}
		rec.install(plan, set)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	rec.lives.mu.Lock()
	rec.lives.kill = engine.Kill
	rec.lives.mu.Unlock()
	r := &run{
		Options: &o, record: rec, engine: engine, random: rand.New(rand.NewPCG(o.Seed, 0)),
		targets: map[int][]tuple.TaskID{},
	}
	r.all(ctx)
	return r.report(), nil
}

// all is the whole run, until nothing of it is left.
func (r *run) all(ctx context.Context) {
	r.phase = "before"
	r.wait(ctx, r.Before)
	r.phases[1] = r.record.now()
	if !r.cut && !r.ended {
		r.phase = "faults"
		for _, d := range timeline(r.Plan, r.For) {
			r.wait(ctx, r.phases[1]+d.at)
			if r.cut || r.ended {
				break
			}
			r.do(d)
		}
		r.wait(ctx, r.phases[1]+r.For)
	}
	r.heal()
	r.phases[2] = r.record.now()
	r.phase = "after"
	r.wait(ctx, r.phases[2]+r.After)
	r.phases[3] = r.record.now()
	r.phase = "draining"
	r.record.enough.Store(true)
	for until := r.record.now() + r.Settle; !r.ended && r.record.now() < until && (!r.record.lives.all() || r.record.abandoned() > 0); {
		r.step(ctx, r.record.now()+window/10)
	}
	r.engine.Drain()
	for !r.ended {
		r.step(ctx, r.record.now()+window)
	}
}

// wait waits until a time, unless the run has ended or is cut short.
func (r *run) wait(ctx context.Context, until time.Duration) {
	for !r.ended && !r.cut && r.record.now() < until {
		r.step(ctx, until)
	}
}

// step waits until a time, or less.
func (r *run) step(ctx context.Context, until time.Duration) {
	next := time.Duration(len(r.windows)+1) * window
	timer := time.NewTimer(max(0, min(until, next)-r.record.now()))
	defer timer.Stop()
	over := ctx.Done()
	if r.cut {
		over = nil
	}
	select {
	case <-r.engine.Ended:
		r.ended = true
	case <-timer.C:
	case <-over:
		r.cut = true
	case n := <-r.Interrupted:
		r.cut = true
		if n > 1 {
			r.engine.Stop()
		}
	}
	if r.record.now() < next {
		return
	}
	now := r.record.done.Load()
	r.windows = append(r.windows, now-r.dones)
	r.dones = now
	r.record.sweep(false)
	if n := len(r.windows); n%2 == 0 && r.Shown != nil {
		r.Shown(Progress{
			Elapsed: r.record.now(), Phase: r.phase, Done: now, Open: r.record.open(), Faults: r.record.harms.count(),
			Rate: float64(r.windows[n-1]+r.windows[n-2]) / (2 * window).Seconds(),
		})
	}
}

// do does what is due.
func (r *run) do(d deed) {
	f := r.Plan[d.fault]
	ids := r.targets[d.fault]
	if !d.ends {
		ids = who(r.record.plan, &f)
		if f.Who.Task == chaos.One {
			ids = []tuple.TaskID{ids[r.random.IntN(len(ids))]}
		}
		r.targets[d.fault] = ids
	}
	for _, id := range ids {
		if f.Kind == chaos.Kill {
			r.record.lives.put(id, f.Times, func(life tuple.Incarnation) { r.tell(f, id, life, false) })
			continue
		}
		r.tell(f, id, 0, d.ends)
		r.record.troubles[id].set(func(t *trouble) { t.take(&f, d.ends, r.record.harms.count()) })
	}
}

// tell says that a fault is done to a task. It is called by Run, and by whoever hears of
// a life that is to end at once.
func (r *run) tell(f chaos.Fault, id tuple.TaskID, life tuple.Incarnation, ends bool) {
	d := Done{At: r.record.now(), Fault: f, Task: r.record.plan.TaskName(id), Life: life.Restart(), Ends: ends}
	if !ends {
		r.record.harms.add(&harm{Done: d, id: id, life: life})
	}
	if r.Told != nil {
		r.Told(d)
	}
}

// take changes the trouble of a task by a fault that begins or ends; number tells it from
// others.
func (t *trouble) take(f *chaos.Fault, ends bool, number int) {
	switch f.Kind {
	case chaos.Stall:
		t.until = time.Now().Add(f.Most)
	case chaos.Panic:
		t.crash = append(t.crash, f.Times)
	case chaos.Break:
		t.errs = append(t.errs, fmt.Sprintf("broken for the %d. time", number)) // the same error again and again would end the run
	case chaos.Pause:
		if t.pause++; ends {
			t.pause -= 2
		}
	case chaos.Slow:
		if !ends {
			t.slow = append(t.slow, f.Factor)
			break
		}
		for i, by := range t.slow {
			if by == f.Factor {
				t.slow = append(t.slow[:i], t.slow[i+1:]...)
				break
			}
		}
	}
}

// planned is how many faults were to be done.
func (r *run) planned() (n int) {
	for _, d := range timeline(r.Plan, r.For) {
		f := &r.Plan[d.fault]
		if d.ends {
			continue
		}
		tasks := 1
		if f.Who.Task != chaos.One {
			tasks = len(who(r.record.plan, f))
		}
		if f.Kind == chaos.Kill {
			tasks *= 1 + f.Times
		}
		n += tasks
	}
	return n
}

// heal ends all harm.
func (r *run) heal() {
	close(r.record.healed)
	r.record.lives.spare()
	for _, t := range r.record.troubles {
		t.heal()
	}
}
