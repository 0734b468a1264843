package egret

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
	ended   chan struct{} // closed when nothing runs any more
	stacks  sync.Map      // of panics, by where and why: those that were logged
	noise   noise         // and what was not
	names   metrics.Names // of the bolts' own metrics
	state   *disk.Store   // nil: none
	resumed bool          // it had positions
	elapsed time.Duration // these two are written before ended is closed
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
	r := &Running{plan: plan, config: c, ended: make(chan struct{}), began: time.Now()}
	set := c.settings()
	set.Event, set.Began = r.event, r.began
	if err := task.Hook(ctx, plan, set); err != nil {
		return nil, err
	}
	if err := r.openState(set); err != nil {
		return nil, err
	}
	for id := range plan.Tasks {
		n := &plan.Components[plan.Tasks[id].Component]
		r.ms = append(r.ms, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
		r.ms[id].Own.Names = &r.names
	}
	unregister, err := r.register()
	if err != nil {
		return nil, errors.Join(err, r.closeState())
	}
	r.host = host.New(host.Config{Seed: c.Seed, Logger: c.Logger})
	done := make(chan error, 2) // of the supervisor and of its guard
	r.sup = r.host.Spawn(plan.Topology, &guard{
		supervisor: task.NewSupervisor(plan, set, r.ms, func(err error) { done <- err }),
		ended:      func(err error) { done <- err },
	})
	stop := context.AfterFunc(ctx, r.Drain)
	go func() { // ends with the run; Wait waits for it
		err := <-done
		stop()
		r.leftBehind(r.host.Close())
		r.tellWaiting()
		err = errors.Join(err, r.closeState())
		r.elapsed = time.Since(r.began)
		r.err = r.outcome(err)
		r.noise.quiet(r)
		unregister()
		close(r.ended)
	}()
	return r, nil
}

// Drain ends the run in good order: sources are read no further and what is open
// is finished, within Config.StopTimeout. It returns at once; see Wait.
func (r *Running) Drain() { r.host.Send(r.sup, task.DrainBy{Deadline: r.config.StopTimeout}) }

// Stop ends the run without finishing what is open.
func (r *Running) Stop() { r.host.Send(r.sup, task.Stop{}) }

// Wait waits until nothing of the run is left and says how it went.
func (r *Running) Wait() (*Stats, error) {
	<-r.ended
	return r.Stats(), r.err
}

// Stats returns what the run has done so far.
func (r *Running) Stats() *Stats {
	elapsed := time.Since(r.began)
	select {
	case <-r.ended:
		elapsed = r.elapsed
	default:
	}
	return readStats(r.plan, r.ms, elapsed)
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

// event logs what people should hear of.
func (r *Running) event(e task.Event) {
	switch e := e.(type) {
	case *task.Died:
		if log := r.about(e.Task, "task died"); log != nil {
			attrs := []any{"life", e.Life.String(), "again_in", e.Again}
			if p, ok := errors.AsType[*task.PanicError](e.Err); ok && r.unseen(p) {
				attrs = append(attrs, "stack", userStack(p.Stack))
			}
			log.Error("task died: "+e.Err.Error(), attrs...)
		}
	case *task.Stuck:
		if log := r.about(e.Task, "task stuck "+e.Task); log != nil {
			stuck(log, e)
		}
	case *task.Failure:
		if log := r.about(e.Task, "execution failed"); log != nil {
			attrs := []any{"failed_so_far", e.Failed}
			if e.Tuple != "" {
				attrs = append(attrs, "tuple", e.Tuple)
			}
			log.Warn("execution failed: "+e.Err, attrs...)
		}
	case *task.TimedOut:
		if log := r.about(e.Task, "messages timed out"); log != nil {
			log.Warn("messages timed out and are replayed: "+e.Err, "timed_out_so_far", e.TimedOut)
		}
	case *task.Notice:
		if log := r.about(e.Task, "notice"); log != nil {
			log.Warn(e.Text)
		}
	case *task.DeadLetter:
		if log := r.about(e.Task, "message is dead"); log != nil {
			if e.ID != "" {
				log = log.With("id", e.ID)
			}
			log.Warn("message is dead: "+e.Err, "stream", e.Stream,
				"values", deadValues(e), "failures", e.Failures, "losses", e.Losses)
		}
	case *task.SourceError:
		if log := r.about(e.Task, "source failed"); log != nil {
			log.Warn("source failed: "+e.Err.Error(), "split", e.Split, "position", e.Position, "again_in", e.Again)
		}
	case *task.QueueError:
		switch log := r.about(e.Task, "queue failed"); {
		case log == nil:
		case e.Again > 0:
			log.Warn("queue failed: "+e.Err.Error(), "again_in", e.Again)
		default:
			log.Warn("queue was not answered: "+e.Err.Error(), "answers_lost", e.Lost)
		}
	case *task.StoreError:
		attrs := []any{"topology", r.plan.Topology}
		if e.Again > 0 {
			attrs = append(attrs, "again_in", e.Again)
		}
		r.config.Logger.Error("cannot "+e.Doing+": "+e.Err.Error(), attrs...)
	}
}

// unseen reports whether p is the first panic of its kind: the stack of the others
// would say the same.
func (r *Running) unseen(p *task.PanicError) bool {
	if len(p.Stack) == 0 {
		return false
	}
	_, seen := r.stacks.LoadOrStore(fmt.Sprint(p.Component, p.During, p.Value), true)
	return !seen
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
		if len(s) > 200 {
			s = s[:200] + "..."
		}
		attrs[i] = slog.String(e.Fields[i], s)
	}
	return slog.GroupValue(attrs...)
}
