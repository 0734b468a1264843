package egret

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

var (
	// ErrDead reports that a run has come to its end but has given up messages.
	ErrDead = errors.New("messages are dead")
	// ErrDrain reports that a run that was stopped did not finish what was open
	// before Config.StopTimeout.
	ErrDrain = task.ErrDrain
	// ErrState reports that Config.StateDir cannot be used: another run uses it, or a
	// file in it cannot be read.
	ErrState = errors.New("state directory")

	errLaw = errors.New("egret: a law of conservation is broken (this is a bug in Egret)")
)

// Run runs a topology on this machine until its sources have ended and all
// messages are done, or until ctx ends: then it reads no more, finishes what is
// open, and returns nil if that succeeds within Config.StopTimeout.
//
// The error is a *topology.BuildError (several are joined) if the topology is not
// right, wraps [ErrDead] if messages were given up, [ErrDrain] if the stop took too
// long, and [ErrState] if the state directory cannot be used. The Stats are not nil unless nothing was started.
func Run(ctx context.Context, t *topology.Topology, c Config) (*Stats, error) {
	r, err := Start(ctx, t, c)
	if err != nil {
		return nil, err
	}
	return r.Wait()
}

// A Running is a topology that has been started. Its methods may be called from
// any goroutine.
type Running struct {
	plan    *topology.Plan
	ms      []*metrics.Task
	host    *host.Host
	sup     actor.Ref
	began   time.Time
	config  Config
	ending  atomic.Bool   // it was asked to end
	over    chan struct{} // closed when it is known how the run went
	ended   chan struct{} // closed when nothing runs any more
	events  events        // as they are logged
	names   metrics.Names // of the bolts' own metrics
	taps    taps
	asking  *asking
	state   *disk.Store   // nil: none
	served  *served       // nil: nothing is
	resumed bool          // it had positions
	elapsed time.Duration // these two are written before over is closed
	err     error
}

// Start starts a topology and returns at once; see [Run]. Wait must be called.
func Start(ctx context.Context, t *topology.Topology, c Config) (*Running, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	plan, err := t.Build(topology.Options{Params: c.Params, Parallel: c.Parallel, Guarantee: c.Guarantee, Epoch: 1})
	if err != nil {
		return nil, err
	}
	r := &Running{plan: plan, config: c, over: make(chan struct{}), ended: make(chan struct{}), began: time.Now()}
	r.events.topology, r.events.node, r.events.logger = plan.Topology, localNode, plainLogger(c.Logger)
	set := c.settings()
	set.Event, set.Began = r.events.tell, r.began
	if err := task.Hook(ctx, plan, set); err != nil {
		return nil, err
	}
	if err := r.openState(ctx, set); err != nil {
		return nil, err
	}
	for id := range plan.Tasks {
		n := &plan.Components[plan.Tasks[id].Component]
		r.ms = append(r.ms, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
		r.ms[id].Own.Names = &r.names
	}
	if err := r.listen(); err != nil {
		return nil, errors.Join(err, r.closeState())
	}
	unregister, err := r.register()
	if err != nil {
		return nil, errors.Join(err, r.served.close(), r.closeState())
	}
	r.host = host.New(host.Config{Seed: c.Seed, Logger: c.Logger})
	done := make(chan error, 2) // of the supervisor and of its guard
	r.sup = r.host.Spawn(plan.Topology, &guard{
		supervisor: task.NewSupervisor(plan, set, r.ms, func(err error) { done <- err }),
		ended:      func(err error) { done <- err },
	})
	r.tapable()
	r.asking = newAsking(func(msg any) { r.host.Send(r.sup, msg) }, r.over)
	r.served.serve(r)
	stop := context.AfterFunc(ctx, r.Drain)
	go func() { // ends with the run; Wait waits for it
		err := <-done
		stop()
		r.leftBehind(r.host.Close())
		r.tellWaiting()
		err = errors.Join(err, r.closeState())
		r.elapsed = time.Since(r.began)
		r.err = r.outcome(err)
		r.events.quiet()
		close(r.over)
		if err := r.served.close(); err != nil {
			c.Logger.Warn("http: "+err.Error(), "topology", plan.Topology)
		}
		unregister()
		close(r.ended)
	}()
	return r, nil
}

// Drain ends the run in good order: sources are read no further and what is open
// is finished, within Config.StopTimeout. It returns at once; see Wait.
func (r *Running) Drain() {
	r.ending.Store(true)
	r.host.Send(r.sup, task.DrainBy{Deadline: r.config.StopTimeout})
}

// Stop ends the run without finishing what is open.
func (r *Running) Stop() {
	r.ending.Store(true)
	r.host.Send(r.sup, task.Stop{})
}

// Wait waits until nothing of the run is left and says how it went.
func (r *Running) Wait() (*Stats, error) {
	<-r.ended
	return r.Stats(), r.err
}

// Stats returns what the run has done so far.
func (r *Running) Stats() *Stats {
	select {
	case <-r.over:
		s := readStats(r.plan, r.ms, r.elapsed)
		if s.Batches != nil {
			s.Batches.Now = nil // which is of before the end
		}
		return s
	default:
		return readStats(r.plan, r.ms, time.Since(r.began))
	}
}

func (r *Running) outcome(err error) error {
	if err != nil {
		return fmt.Errorf("topology %s: %w", r.plan.Topology, err)
	}
	s := readStats(r.plan, r.ms, r.elapsed)
	if err := s.laws(); err != nil {
		return err
	}
	if s.Dead > 0 {
		return fmt.Errorf("topology %s: %w: %d", r.plan.Topology, ErrDead, s.Dead)
	}
	return nil
}

// userStack cuts a stack down to the user's part: from the call that panicked to
// where Egret called.
func userStack(stack []byte) string {
	lines := strings.Split(strings.TrimRight(string(stack), "\n"), "\n")
	from, to := 0, len(lines)
	for i := 1; i+1 < len(lines); i += 2 { // a function and its line
		switch {
		case strings.HasPrefix(lines[i], "panic("):
			from = i + 2
		case from > 0 && strings.HasPrefix(lines[i], "github.com/egretstream/egret/task."):
			to = min(to, i)
		}
	}
	if from >= to {
		return string(stack)
	}
	return strings.Join(lines[from:to], "\n")
}

func deadValues(e *task.DeadLetter) slog.Value {
	attrs := make([]slog.Attr, len(e.Values))
	for i, v := range e.Values {
		s := v.String()
		if slices.Contains(e.Masked, e.Fields[i]) {
			s = tuple.Mask
		}
		if len(s) > 200 {
			s = s[:200] + "..."
		}
		attrs[i] = slog.String(e.Fields[i], s)
	}
	return slog.GroupValue(attrs...)
}
