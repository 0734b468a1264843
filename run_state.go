package egret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// reachTimeout is how long the places of states may take to answer when a run starts. Later
// they are waited for.
const reachTimeout = 15 * time.Second

// An unreached is an error of Start that is of the place of a state, and of no mistake.
type unreached struct{ err error }

func (u *unreached) Error() string { return u.err.Error() }
func (u *unreached) Unwrap() error { return u.err }

// openState opens the state directory, if there is one, and gives set what an
// earlier run has left in it.
func (r *Running) openState(ctx context.Context, set *task.Settings) (err error) {
	if r.plan.Guarantee == topology.ExactlyOnce {
		ctx, cancel := context.WithTimeout(ctx, reachTimeout)
		defer cancel()
		if err := trident.Reach(ctx, r.plan); err != nil {
			return &unreached{fmt.Errorf("topology %s: %w", r.plan.Topology, err)}
		}
	}
	if r.config.StateDir == "" {
		if r.plan.Guarantee == topology.ExactlyOnce && set.Records == nil { // a hook may have its own
			set.Records = disk.MemoryRecords()
		}
		return nil
	}
	if r.config.Reset && r.plan.Guarantee == topology.ExactlyOnce {
		if err := trident.Filled(ctx, r.plan); err != nil {
			return fmt.Errorf("%w: a reset begins with states that have nothing: %w: delete the states where they are, or begin in another place, or go on without the reset", ErrState, err)
		}
	}
	r.state, err = disk.Open(r.config.StateDir, r.plan.Topology, disk.Options{
		Fingerprint: r.plan.Fingerprint(), Reset: r.config.Reset, MaxBytes: r.config.MaxDeadLetterBytes,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	r.plan.Epoch = r.state.Epoch() // before anybody reads the plan
	if r.plan.Guarantee == topology.ExactlyOnce {
		records, err := r.state.Records()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrState, errors.Join(err, r.state.Close()))
		}
		if err := fit(records, r.plan, r.config.StateDir); err != nil {
			return fmt.Errorf("%w: %w", ErrState, errors.Join(err, r.state.Close()))
		}
		set.Records, r.resumed = records, records.Record().Committed > 0
	}
	set.Store, set.Positions = r.state, r.state.Positions()
	r.resumed = r.resumed || len(set.Positions) > 0
	set.Continued = r.resumed || r.state.Epoch() > 1 && !r.config.Reset && queued(r.plan)
	return nil
}

// queued reports whether there is a queue in the plan: it goes on in every run, and
// has no position that says so.
func queued(p *topology.Plan) bool {
	return slices.ContainsFunc(p.Components, func(n topology.Node) bool { return n.Queue != nil })
}

func (r *Running) closeState() error {
	if r.state == nil {
		return nil
	}
	return r.state.Close()
}

// tellWaiting says at the end of a run how many dead letters it leaves to be
// replayed.
func (r *Running) tellWaiting() {
	if r.state == nil {
		return
	}
	n, err := r.state.Waiting()
	if err != nil {
		r.config.Logger.Error("cannot count the dead letters to replay: "+err.Error(), "topology", r.plan.Topology)
	}
	if n > 0 {
		r.config.Logger.Warn("dead letters are still to be replayed: the next run takes those that it can", "topology", r.plan.Topology, "letters", n)
	}
}
