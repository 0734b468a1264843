package egret

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/topology"
)

// stopTimeout is the default of --stop-timeout.
const stopTimeout = 30 * time.Second

// nodeOptions are the flags of "node".
type nodeOptions struct {
	config           process.Config
	secret, previous string // files
	pace             string
	stopTimeout      time.Duration
	http             httpOptions
}

// nodeCommand is "node".
func nodeCommand(topologies []*topology.Topology) *cobra.Command {
	o := &nodeOptions{}
	c := &cobra.Command{
		Use:   "node",
		Short: "Run one node of a cluster",
		Long: `Run one node of a cluster, until it is interrupted.

Without --join a node founds a cluster, if its data directory belongs to none yet.
With --join it joins that of any node at one of the addresses; started again, it is
back in its own.

The first interrupt moves its tasks to other nodes, if there are any, and leaves; the
second stops at once, the third exits. Beyond this machine's loopback a node needs
the secret that all nodes and commands of the cluster have: ` + wire.SecretVariable + `, or a file.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c, topologies) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.config.Listen, "listen", defaultNode, "host:port for everything between nodes; port 0: any that is free")
	f.StringVar(&o.config.Advertise, "advertise", "", "host:port where other nodes find this one (default: as --listen)")
	f.StringVar(&o.config.Data, "data", "", "directory of what the node must not forget (default: none, and then it has no vote)")
	f.StringArrayVar(&o.config.Join, "join", nil, "host:port of a node of the cluster; as often as wanted")
	f.StringVar(&o.config.Name, "name", "", "for people (default: its address)")
	f.StringVar(&o.secret, "secret-file", "", "file with the secret of the cluster (default: the variable "+wire.SecretVariable+")")
	f.StringVar(&o.previous, "previous-secret-file", "", "file with the secret of before, which is believed too")
	f.BoolVar(&o.config.Insecure, "insecure", false, "listen beyond loopback without a secret: whoever reaches the port can do anything")
	f.StringVar(&o.pace, "pace", cluster.Calm.String(), "how quickly a dead node is noticed: calm, or quick on a quiet network; all nodes have the same")
	f.DurationVar(&o.stopTimeout, "stop-timeout", stopTimeout, "for the tasks to be moved away when the node is interrupted")
	o.http.flags(f)
	return c
}

// build returns what the flags are, or every mistake in them.
func (o *nodeOptions) build() (process.Config, error) {
	c := o.config
	var errs []error
	address := func(flag, text string) {
		if _, _, err := net.SplitHostPort(text); err != nil {
			errs = append(errs, fmt.Errorf("--%s is %q: use host:port, as in %s", flag, text, defaultNode))
		}
	}
	address("listen", c.Listen)
	if c.Advertise != "" {
		address("advertise", c.Advertise)
	}
	for _, addr := range c.Join {
		address("join", addr)
	}
	switch o.pace {
	case cluster.Calm.String():
	case cluster.Quick.String():
		c.Pace = cluster.Quick
	default:
		errs = append(errs, fmt.Errorf("--pace is %q: use calm or quick", o.pace))
	}
	if o.stopTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--stop-timeout is %v: use a time above 0", o.stopTimeout))
	}
	var err error
	if c.Secret, err = wire.ReadSecret(o.secret); err != nil {
		errs = append(errs, err)
	}
	if o.previous != "" {
		if c.Previous, err = wire.ReadSecret(o.previous); err != nil {
			errs = append(errs, err)
		}
	}
	c.Logger = slog.Default()
	if info, ok := debug.ReadBuildInfo(); ok {
		c.Version = version(info)
	}
	return c, errors.Join(errs...)
}

func (o *nodeOptions) run(c *cobra.Command, topologies []*topology.Topology) error {
	config, err := o.build()
	page, herr := o.http.build()
	if err := errors.Join(err, herr); err != nil {
		return &usageError{err}
	}
	listener, err := page.listen(config.Logger)
	if err != nil {
		return serveError(err)
	}
	stderr := c.ErrOrStderr()
	interrupted, stop := interrupts(nil)
	defer stop() // last of all
	runs := newNodeProgram(topologies, config.Data, config.Logger)
	config.Program = runs.program()
	p, err := o.start(c.Context(), config, interrupted)
	if err != nil {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
		return startError(errors.Join(err, runs.close()))
	}
	door := openDoor(p, runs, listener, config.Logger)
	how := p.Came()
	if how == process.Joined {
		how += " " + strings.Join(config.Join, ", ")
	}
	fmt.Fprintf(stderr, "node %s (id %v, boot %d) of cluster %s: %s\n", p.Addr(), p.Home().Node, p.Home().Boot, p.Cluster(), how)
	if door.url() != "" {
		fmt.Fprintln(stderr, "page: "+door.url())
	}
	select {
	case <-p.Died():
		return failed(errors.Join(p.Err(), door.close(), p.Close(), runs.close()))
	case <-interrupted:
		fmt.Fprintf(stderr, "interrupted: leaving, when other nodes have the tasks (at most %v); again to stop\n", o.stopTimeout)
	case <-p.LeaveAsked():
		fmt.Fprintf(stderr, "asked to leave: leaving, when other nodes have the tasks (at most %v); an interrupt stops\n", o.stopTimeout)
	}
	err = o.depart(p, interrupted, stderr.Write)
	err = errors.Join(err, door.close(), p.Close(), runs.close())
	fmt.Fprintln(stderr, "the node has ended")
	return failed(err)
}

// start starts the node. An interrupt ends the wait for a cluster to join.
func (o *nodeOptions) start(ctx context.Context, config process.Config, interrupted <-chan int) (*process.Process, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := make(chan struct{})
	ended := make(chan struct{})
	go func() { // ends when the node has started, which waits for it
		defer close(ended)
		select {
		case <-interrupted:
			cancel(errors.New("interrupted"))
		case <-started:
		}
	}()
	p, err := process.Start(ctx, config)
	close(started)
	<-ended
	if err == nil && ctx.Err() != nil { // too late
		err = errors.Join(context.Cause(ctx), p.Close())
	}
	return p, err
}

// depart moves the tasks away; the next interrupt ends that.
func (o *nodeOptions) depart(p *process.Process, interrupted <-chan int, tell func([]byte) (int, error)) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), o.stopTimeout, fmt.Errorf("--stop-timeout is over after %v", o.stopTimeout))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Depart(ctx) }() // waited for here
	select {
	case err := <-ended:
		return err
	case <-interrupted:
		_, _ = tell([]byte("interrupted again: stopping; once more to exit at once\n"))
		cancel()
		<-ended
		return errors.New("stopped before all tasks were moved")
	}
}

// startError says whose mistake it is that a node does not start.
func startError(err error) error {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &placeError{err}
	}
	switch {
	case errors.Is(err, process.ErrForeign):
		return &codedError{ExitRefused, err}
	case errors.Is(err, wire.ErrOpen):
		return &usageError{err}
	}
	return &runError{err}
}
