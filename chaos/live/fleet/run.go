package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/topology"
)

// Options say what is to be run.
type Options struct {
	Nodes    int
	Rate     int           // numbers a second
	Duration time.Duration // of the input
	Splits   int           // 0: 8
	Deeds    []Deed
	Seed     uint64 // draws who is a worker
	Pace     cluster.Pace
	Patience cluster.Patience
	Parallel map[string]int
	Dir      string           // of the nodes' data
	Logs     string           // directory of their logs; "": none
	Hurry    bool             // begin before the nodes have their votes
	Netns    bool             // each node in a network namespace of its own
	Command  func() *exec.Cmd // a process that calls Child with its standard input
	// Said, if not nil, is told in a line what happens.
	Said func(at time.Duration, text string)
}

const (
	startWithin = 60 * time.Second // for all nodes to be members, and voters
	deedWithin  = 30 * time.Second // for what a deed waits for
	endWithin   = 60 * time.Second // without a number, then it is not waited any more
	endAgain    = time.Second      // a node that was rolled is left alone so long
	lookEvery   = 10 * time.Millisecond
	countEvery  = time.Second
)

// A run is what Run has to do with.
type run struct {
	Options
	fleet    *fleet
	recorder *Recorder
	net      *bridge // nil: loopback
	rand     *rand.Rand
	began    time.Duration // by the recorder: the first number
	names    map[cluster.NodeID]string
	harmed   map[int]bool // by pid
	parts    []*Part
	counts   map[countOf]node.TaskCount
}

// A countOf names a task in a process.
type countOf struct {
	home cluster.Home
	task string
}

// A step is a deed that is due, or the end of one.
type step struct {
	at  time.Duration
	do  Deed
	end func() error // not nil: the end of one
	who []*ship
}

// Run starts a fleet, does to it what is to be done, waits for the end of the topology,
// and reports. Nothing is left of the fleet when it returns. The error is of what stands
// outside of the nodes; what they did wrong is in the report.
func Run(ctx context.Context, o Options) (rep *Report, err error) {
	if o.Splits == 0 {
		o.Splits = 8
	}
	if o.Said == nil {
		o.Said = func(time.Duration, string) {}
	}
	messages := int64(float64(o.Rate) * o.Duration.Seconds())
	if o.Nodes < 1 || messages < int64(o.Splits) {
		return nil, fmt.Errorf("%d nodes and %d numbers: there must be at least 1 and %d", o.Nodes, messages, o.Splits)
	}
	r := &run{Options: o, fleet: newFleet(o.Command), rand: rand.New(rand.NewPCG(o.Seed, 0)), names: map[cluster.NodeID]string{}, harmed: map[int]bool{}, counts: map[countOf]node.TaskCount{}}
	defer r.fleet.close()
	addr := "127.0.0.1:0"
	if o.Netns {
		if r.net, err = newBridge(o.Nodes); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.net.close()) }()
		defer r.fleet.close() // before it
		addr = r.net.addr(0, 0)
	}
	if r.recorder, err = StartRecorder(addr, messages, o.Splits); err != nil {
		return nil, err
	}
	defer r.recorder.Close()
	if err := r.launch(ctx); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, r.fleet.heard())
	}
	if err := r.submit(ctx, messages); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, r.fleet.heard())
	}
	ended := r.carryOut(ctx, messages)
	return r.report(ended), nil
}

func (r *run) say(format string, args ...any) {
	r.Said(r.recorder.now()-r.began, fmt.Sprintf(format, args...))
}

// launch starts all nodes and waits until they know each other and have their votes.
func (r *run) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for i := range r.Nodes {
		addr, space := "", ""
		if r.net != nil {
			addr, space = r.net.addr(i+1, 7100), r.net.space(i+1)
		} else {
			var err error
			if addr, err = wire.Spare(); err != nil {
				return err
			}
		}
		r.fleet.add(r.Dir, &r.Options, addr, space)
	}
	for _, s := range r.fleet.ships {
		if err := r.fleet.start(s); err != nil {
			return err
		}
	}
	voters := 1
	if r.Nodes >= 3 {
		voters = min(r.Nodes, 5) - (min(r.Nodes, 5)+1)%2
	}
	if r.Hurry {
		voters = 1
	}
	r.say("%d nodes are started, and it is waited until %d vote", r.Nodes, voters)
	_, err := r.fleet.until(ctx, "all nodes are members and vote", func(v *node.View) bool {
		for _, m := range v.Members {
			if m.Alive {
				r.names[m.Node] = m.Name
			}
		}
		return len(r.names) == r.Nodes && v.Leader != 0 && len(v.Voters) >= voters
	})
	return err
}

// submit submits the topology and waits for its first number.
func (r *run) submit(ctx context.Context, messages int64) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	start := time.Now().Add(time.Second) // when all tasks are there
	r.recorder.due(start, r.Rate)
	params := map[string][]string{
		"recorder": {r.recorder.Addr()}, "splits": {strconv.Itoa(r.Splits)}, "rate": {strconv.Itoa(r.Rate)}, "messages": {strconv.FormatInt(messages, 10)},
		"start": {start.Format(time.RFC3339Nano)},
	}
	plan, err := Numbers().Build(topology.Options{Params: params, Parallel: r.Parallel})
	if err != nil {
		return err
	}
	spec := node.SpecOf(plan, params, nil, "")
	spec.Parallel = r.Parallel
	if _, err := r.fleet.insist(ctx, &node.Request{Op: node.OpSubmit, Topology: Topology, Spec: spec}); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	for {
		if n, _ := r.recorder.done(); n > 0 {
			r.began = r.recorder.now()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no number was executed: %w", context.Cause(ctx))
		case <-time.After(lookEvery):
		}
	}
}

// steps are all deeds in their order.
func (r *run) steps() (all []step) {
	for _, d := range r.Deeds {
		for at := d.At; at < r.Duration; at += d.Every {
			all = append(all, step{at: at, do: d})
			if d.Every == 0 {
				break
			}
		}
	}
	sortSteps(all)
	return all
}

func sortSteps(all []step) {
	slices.SortStableFunc(all, func(a, b step) int { return int(a.at - b.at) })
}

// carryOut does the deeds and waits for the end. It returns "" if the cluster has said
// that the topology is done, and else why it is not waited for.
func (r *run) carryOut(ctx context.Context, messages int64) string {
	steps := r.steps()
	counted, news := time.Duration(0), r.recorder.now()
	seen := int64(0)
	for {
		now := r.recorder.now()
		distinct, _ := r.recorder.done()
		if distinct > seen {
			seen, news = distinct, now
		}
		all := distinct == messages
		for len(steps) > 0 && (now-r.began >= steps[0].at || all && steps[0].end != nil) {
			s := steps[0]
			steps = steps[1:]
			if all && s.end == nil {
				r.say("the input was over before this: %v", s.do)
				r.parts = append(r.parts, &Part{What: s.do.what(), At: now - r.began, Err: "the input was over before"})
				continue
			}
			if end := r.take(ctx, s); end != nil {
				steps = append(steps, *end)
				sortSteps(steps)
			}
			now = r.recorder.now()
			news = now
		}
		if now-counted >= countEvery {
			counted = now
			r.count(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx).Error()
		case all && len(steps) == 0:
			return r.ending(ctx)
		case now-news > endWithin:
			return fmt.Sprintf("no new number was executed for %v", endWithin)
		}
		time.Sleep(lookEvery)
	}
}

// ending waits until the cluster says that the topology is done.
func (r *run) ending(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, deedWithin)
	defer cancel()
	status := func(v *node.View) *cluster.Submission {
		for _, s := range v.Submissions {
			if s.Topology == Topology {
				return s
			}
		}
		return nil
	}
	v, err := r.fleet.until(ctx, "the topology is done", func(v *node.View) bool {
		s := status(v)
		return s == nil || !s.Status.Runs()
	})
	switch {
	case err != nil:
		return err.Error()
	case status(v) == nil:
		return "the cluster does not know the topology any more"
	case status(v).Status != cluster.Done:
		return fmt.Sprintf("the topology is %s: %s", status(v).Status, status(v).Reason)
	}
	return ""
}

// count remembers what the tasks say of themselves, also of those that will be gone.
func (r *run) count(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	a, err := r.fleet.ask(ctx, &node.Request{Op: node.OpStats, Topology: Topology})
	if err != nil || a.Stats == nil {
		return
	}
	for _, t := range a.Stats.Tasks {
		if t.Known {
			r.counts[countOf{t.Home, t.Name}] = t.TaskCount
		}
	}
}

// choose says who is meant.
func (r *run) choose(ctx context.Context, who []string) (all []*ship, err error) {
	var v *node.View
	if slices.Contains(who, Leader) || slices.Contains(who, Worker) {
		v, err = r.fleet.until(ctx, "there is a leader", func(v *node.View) bool { return v.Leader != 0 })
		if err != nil {
			return nil, err
		}
	}
	for _, w := range who {
		var of []*ship
		for _, s := range r.fleet.ships {
			fits := s.name == w
			if w == Leader || w == Worker {
				fits = (r.names[v.Leader] == s.name) == (w == Leader) && s.running && !s.frozen && !s.cut && (w == Leader || tasksOf(v, s.name) > 0)
			}
			if fits && !slices.Contains(all, s) {
				of = append(of, s)
			}
		}
		if len(of) == 0 {
			return nil, fmt.Errorf("there is no %s", w)
		}
		all = append(all, of[r.rand.IntN(len(of))])
	}
	return all, nil
}

func tasksOf(v *node.View, name string) int {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Tasks
		}
	}
	return 0
}

// take does a step. It returns its end, if it has one.
func (r *run) take(ctx context.Context, s step) *step {
	ctx, cancel := context.WithTimeout(ctx, deedWithin)
	defer cancel()
	p := &Part{What: s.do.what()}
	if s.end == nil {
		var err error
		if s.who, err = r.choose(ctx, s.do.Who); err != nil {
			p.Err = err.Error()
			p.At = r.recorder.now() - r.began
			r.parts = append(r.parts, p)
			return nil
		}
	}
	for _, who := range s.who {
		p.Who = append(p.Who, who.name)
	}
	if s.end != nil {
		p.What = "end of " + p.What
	}
	if s.end == nil || s.do.Kind != Kill { // a node that is back harms nobody
		p.mark = r.recorder.mark()
		p.At = p.mark.at - r.began
		r.parts = append(r.parts, p)
	}
	r.say("%s %v", p.What, p.Who)
	var err error
	var end *step
	if s.end != nil {
		err = s.end()
	} else {
		end, err = r.do(ctx, s, p)
	}
	if err != nil {
		p.Err = err.Error()
		r.say("%s: %v", p.What, err)
		if p.mark == nil {
			r.parts = append(r.parts, p)
		}
	}
	p.Took = r.recorder.now() - r.began - p.At
	if end != nil {
		end.at, end.do, end.who = r.recorder.now()-r.began+s.do.For, s.do, s.who
	}
	return end
}

// do does a deed. For one that lasts it returns how it ends.
func (r *run) do(ctx context.Context, s step, p *Part) (end *step, err error) {
	each := func(f func(*ship) error) error {
		var errs []error
		for _, who := range s.who {
			if err := f(who); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", who.name, err))
			}
		}
		return errors.Join(errs...)
	}
	switch s.do.Kind {
	case Kill:
		for _, who := range s.who {
			if who.running {
				r.harmed[who.cmd.Process.Pid] = true
				_ = who.cmd.Process.Kill() // all of them before one is waited for
			}
		}
		for _, who := range s.who {
			r.fleet.kill(who)
		}
		if s.do.For > 0 {
			end = &step{end: func() error { return each(r.fleet.start) }}
		}
	case Stall:
		err = each(func(who *ship) error {
			r.harmed[who.cmd.Process.Pid] = true
			return r.fleet.freeze(who)
		})
		end = &step{end: func() error { return each(r.fleet.thaw) }}
	case Restart:
		err = each(func(who *ship) error { return r.restart(ctx, who) })
	case Roll:
		err = r.roll(ctx)
	case Cut:
		if r.net == nil {
			return nil, errors.New("nodes can be cut from each other with --netns only")
		}
		cut := func(on bool) func() error {
			return func() error {
				return each(func(who *ship) error {
					r.harmed[who.cmd.Process.Pid] = true
					who.cut = on
					return r.net.cut(who.number, on)
				})
			}
		}
		err = cut(true)()
		end = &step{end: cut(false)}
	case Rebalance:
		p.renewed = map[string]bool{}
		for name := range s.do.Parallel {
			p.renewed[name] = true
		}
		if _, err = r.fleet.insist(ctx, &node.Request{Op: node.OpRebalance, Topology: Topology, Parallel: s.do.Parallel}); err != nil {
			return nil, err
		}
		_, err = r.fleet.until(ctx, "the tasks are as many as was wanted", func(v *node.View) bool {
			return slices.ContainsFunc(v.Submissions, func(sub *cluster.Submission) bool {
				if sub.Topology != Topology || sub.Plan == nil || sub.Next != nil {
					return false
				}
				for i, c := range sub.Components {
					if n, has := s.do.Parallel[c.Name]; has && sub.Plan.Components[i].Parallel != n {
						return false
					}
				}
				return true
			})
		})
	case Drain, Undrain:
		err = each(func(who *ship) error { return r.drain(ctx, who, s.do.Kind == Drain) })
	}
	return end, err
}

func (r *run) drain(ctx context.Context, who *ship, on bool) error {
	var id cluster.NodeID
	for n, name := range r.names {
		if name == who.name {
			id = n
		}
	}
	if _, err := r.fleet.insist(ctx, &node.Request{Op: node.OpDrain, Node: id, On: on}); err != nil || !on {
		return err
	}
	_, err := r.fleet.until(ctx, who.name+" has no tasks", func(v *node.View) bool { return tasksOf(v, who.name) == 0 })
	return err
}

// restart ends a process in good order and starts another one.
func (r *run) restart(ctx context.Context, who *ship) error {
	r.harmed[who.cmd.Process.Pid] = true
	r.say("interrupt %s", who.name)
	err := r.fleet.interrupt(who, deedWithin)
	if err := errors.Join(err, r.fleet.start(who)); err != nil {
		return err
	}
	old := who.cmd.Process.Pid
	_, err = r.fleet.until(ctx, who.name+" is back", func(v *node.View) bool {
		a, err := r.fleet.askOne(ctx, who, &node.Request{Op: node.OpState})
		return err == nil && a.Error == nil && a.State.Leader != 0 && a.State.Applied+10 >= v.Applied && who.cmd.Process.Pid == old
	})
	return err
}

// roll restarts all nodes, one after the other.
func (r *run) roll(ctx context.Context) error {
	for i, who := range r.fleet.ships {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deedWithin)
		err := r.restart(ctx, who)
		cancel()
		if err != nil {
			return err
		}
		if i < len(r.fleet.ships)-1 {
			time.Sleep(endAgain)
		}
	}
	return nil
}
