package egret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos/live/fleet"
	"github.com/egretstream/egret/cluster"
)

const (
	mostFleet   = 9 // nodes
	fleetMember = "live-node"
)

// fleetOptions are the flags of "chaos live --nodes".
type fleetOptions struct {
	run  fleet.Options
	pace string
	logs string
	json bool
}

// add gives a command that has no topology the flags of a fleet.
func (o *fleetOptions) add(c *cobra.Command) {
	c.Use = "live NAME | live --nodes N DEEDS"
	c.Long = `Run a topology and do harm to its tasks: live NAME.

With --nodes: start a cluster of so many processes on this machine, run a topology of
numbers on it, and do harm to the nodes. A record outside of them knows which numbers were
executed; the report says what was lost, how long after each deed the last number was done
that had been under way, the rate before and after, and which tasks had new lives that need
not have had. The exit code is 1 if a number was lost, if such a task had a new life, or if
the rate after a deed was below ` + fmt.Sprintf("%.1f", fleet.RateFloor) + ` of that before it.

DEEDS are one or several with semicolons between them, each at 5s or every 8s:

  ` + strings.Join(fleet.Help(), "\n  ") + `

WHO is node/1, leader, or worker: a node with tasks that does not lead.`
	c.Example = "  " + program() + ` chaos live --nodes 3 --rate 20000 --duration 30s 'at 5s kill worker for 5s; at 20s kill leader'
  ` + program() + ` chaos live --nodes 3 --settle 2s --rate 2000 --duration 125s 'every 6s kill worker for 2s'`
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.run.Nodes, "nodes", 0, fmt.Sprintf("run a cluster of so many nodes, up to %d", mostFleet))
	f.IntVar(&o.run.Rate, "rate", 20_000, "numbers a second")
	f.DurationVar(&o.run.Duration, "duration", 30*time.Second, "of the input")
	f.StringVar(&o.pace, "pace", cluster.Calm.String(), "how quickly a dead node is noticed: calm or quick")
	f.DurationVar(&o.run.Patience.Settle, "settle", 10*time.Second, "a node has been there for so long before tasks are moved to it")
	f.Uint64Var(&o.run.Seed, "seed", 1, "draws who is a worker")
	f.BoolVar(&o.run.Netns, "netns", false, "each node in a network namespace of its own, for cut; needs root and ip")
	f.StringVar(&o.logs, "logs", "", "directory for the logs of the nodes (default: none)")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
}

// live runs a fleet.
func (o *fleetOptions) live(c *cobra.Command, args []string) (err error) {
	var errs []error
	if o.run.Nodes < 1 || o.run.Nodes > mostFleet {
		errs = append(errs, fmt.Errorf("--nodes is %d: use 1 to %d", o.run.Nodes, mostFleet))
	}
	if o.run.Rate < 1 || o.run.Rate > 1_000_000 {
		errs = append(errs, fmt.Errorf("--rate is %d: use 1 to %s", o.run.Rate, amount.Digits(1_000_000)))
	}
	if o.run.Duration < time.Second || o.run.Duration > time.Hour {
		errs = append(errs, fmt.Errorf("--duration is %v: use 1s to 1h", o.run.Duration))
	}
	if o.run.Patience.Settle <= 0 {
		errs = append(errs, fmt.Errorf("--settle is %v: use a time above 0", o.run.Patience.Settle))
	}
	switch o.pace {
	case cluster.Calm.String():
	case cluster.Quick.String():
		o.run.Pace = cluster.Quick
	default:
		errs = append(errs, fmt.Errorf("--pace is %q: use calm or quick", o.pace))
	}
	deeds, err := fleet.Parse(strings.Join(args, ";"))
	errs = append(errs, err)
	if err == nil && len(deeds) == 0 {
		errs = append(errs, errors.New("nothing is to be done: say what, as in 'at 5s kill worker'"))
	}
	for _, d := range deeds {
		if d.Kind == fleet.Cut && !o.run.Netns {
			errs = append(errs, fmt.Errorf("%q needs --netns: on one loopback nodes cannot be cut from each other", d))
		}
		if err := d.Fits(o.run.Nodes); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &usageError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return &runError{err}
	}
	dir, err := os.MkdirTemp("", "egret-fleet-")
	if err != nil {
		return &placeError{err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.logs != "" {
		if err := os.MkdirAll(o.logs, 0o700); err != nil {
			return &placeError{err}
		}
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	_, stop := interrupts(func(int) { cancel(errors.New("interrupted")) })
	defer stop()
	var mu sync.Mutex
	o.run.Deeds, o.run.Dir, o.run.Logs = deeds, dir, o.logs
	o.run.Command = func() *exec.Cmd { return exec.Command(self, "chaos", fleetMember) }
	o.run.Said = func(at time.Duration, text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(c.ErrOrStderr(), "%7.2fs  %s\n", at.Seconds(), text)
	}
	rep, err := fleet.Run(ctx, o.run)
	if errors.Is(err, fleet.ErrPermission) {
		return &placeError{err}
	}
	if err != nil {
		return &runError{err}
	}
	if o.json {
		err = json.NewEncoder(c.OutOrStdout()).Encode(rep)
	} else {
		rep.Print(c.OutOrStdout())
	}
	if why := rep.Failed(); why != nil {
		err = errors.Join(err, &runError{why})
	}
	return err
}

// fleetNodeCommand is a node of a fleet.
func fleetNodeCommand() *cobra.Command {
	return &cobra.Command{Use: fleetMember, Hidden: true, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		if err := fleet.Child(c.InOrStdin()); err != nil {
			return &runError{err}
		}
		return nil
	}}
}
