package egret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/bench"
	"github.com/egretstream/egret/topology"
)

// Exit codes of [Main].
const (
	ExitDone        = 0
	ExitFailed      = 1   // the run failed
	ExitUsage       = 2   // the command line or the topology is wrong
	ExitDead        = 3   // the run came to its end, but messages are dead
	ExitUnknown     = 4   // there is no such topology, component, node, state or key
	ExitParameter   = 5   // a parameter that is unknown, or has a value that cannot be
	ExitNoQuorum    = 6   // nothing can be agreed on
	ExitFingerprint = 7   // the nodes run another program than the one that submits
	ExitUnreachable = 8   // no node can be reached
	ExitRefused     = 9   // as things are: what should be new or over is at work, or the other way round
	ExitInterrupted = 130 // interrupted three times
)

// Main gives a program its command line, runs the command and exits the process.
//
//	prog [run [NAME]] [flags]   run a topology; its parameters are flags
//	prog topologies             those of the program, with parameters and a drawing
//	prog graph [NAME]           a topology as text, DOT or SVG
//	prog deadletters list       messages that were given up; also show, replay, drop
//	prog bench                  how fast this machine is
//	prog chaos sim              the engine in a simulation, with faults
//	prog chaos live [NAME]      a topology, with faults
//	prog node                   one node of a cluster; prog dev: three on this machine
//	prog submit NAME            a topology to a cluster, through any of its nodes
//	prog list                   the topologies that a cluster has
//	prog status [NAME]          what they do; also activate, deactivate, rebalance, kill
//	prog query NAME STATE KEY   committed values of a state, of a cluster or a run
//	prog tap NAME COMPONENT     a sample of the tuples of a stream
//	prog members                the nodes; also drain, leave, forget
//	prog recover                one node goes on when the quorum is lost for ever
//	prog --version              what it is built of
//
// A program of one topology runs it without being told its name. The first
// interrupt lets a run finish what is open, the second stops it, the third exits,
// whenever they come.
func Main(topologies ...*topology.Topology) {
	os.Exit(execute(topologies, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute is Main without the process around it.
func execute(topologies []*topology.Topology, args []string, in io.Reader, out, errs io.Writer) int {
	root, err := command(topologies)
	if err != nil {
		fmt.Fprintln(errs, err)
		return ExitUsage
	}
	root.SetArgs(args)
	root.SetIn(in)
	printed := &output{w: out}
	root.SetOut(printed)
	root.SetErr(errs)
	c, err := root.ExecuteContextC(context.Background())
	switch {
	case printed.err == nil:
	case err == nil:
		err = &runError{fmt.Errorf("the output is not complete: %w", printed.err)}
	case errors.Is(err, printed.err): // no mistake in the command line
		err = &runError{err}
	}
	if err == nil {
		return ExitDone
	}
	fmt.Fprintln(errs, plainText(fmt.Sprint(errorOf(root.Name(), err))))
	if helps(err) {
		fmt.Fprintf(errs, "Try: %s --help\n", c.CommandPath())
	}
	return exitCode(err)
}

// errorOf returns err with its subject before it: in a line with the one mistake, or
// in a line of its own above several.
func errorOf(subject string, err error) error {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return fmt.Errorf("%s: %w", subject, err)
	}
	return &listedError{subject + ":\n  " + strings.Join(lines, "\n  "), err}
}

// A listedError is several errors, whose text stands one below the other.
type listedError struct {
	text string
	err  error
}

func (l *listedError) Error() string { return l.text }
func (l *listedError) Unwrap() error { return l.err }

// An output remembers that something could not be written, so that no command has
// to look at each line that it prints.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// A usageError is a mistake in the command line.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

// A runError is what a command reports that had begun its work.
type runError struct{ err error }

func (r *runError) Error() string { return r.err.Error() }
func (r *runError) Unwrap() error { return r.err }

// A placeError says that a command line is right and this machine has no place for
// what it asks for, such as an address that is taken.
type placeError struct{ err error }

func (p *placeError) Error() string { return p.err.Error() }
func (p *placeError) Unwrap() error { return p.err }

// helps reports whether the help of a command says what to do about an error.
func helps(err error) bool {
	_, place := errors.AsType[*placeError](err)
	return exitCode(err) == ExitUsage && !place
}

func exitCode(err error) int {
	if errors.Is(err, ErrDead) {
		return ExitDead
	}
	if coded, ok := errors.AsType[*codedError](err); ok {
		return coded.code
	}
	if _, ok := errors.AsType[*runError](err); ok {
		return ExitFailed
	}
	return ExitUsage
}

// command builds the tree of commands.
func command(topologies []*topology.Topology) (*cobra.Command, error) {
	if len(topologies) == 0 {
		return nil, errors.New("egret.Main needs a topology")
	}
	var names []string
	for _, t := range topologies {
		if slices.Contains(names, t.Name()) {
			return nil, fmt.Errorf("two topologies have the name %s", t.Name())
		}
		names = append(names, t.Name())
	}
	root := &cobra.Command{
		Use:   program(),
		Short: "Run " + list(topologies, "and") + " on Egret",
	}
	if len(topologies) == 1 {
		root = topologyCommand(topologies[0], program())
	}
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(runCommand(topologies), topologiesCommand(topologies), graphCommand(topologies), deadLettersCommand(topologies), failing(bench.Command(benchRunner, benchHalver)), chaosCommand(topologies))
	root.AddCommand(clusterCommands(topologies)...)
	showVersion(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	return root, nil
}

// failing makes the errors of a command failures of a run.
func failing(c *cobra.Command) *cobra.Command {
	if f := c.RunE; f != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			if err := f(c, args); err != nil {
				return &runError{err}
			}
			return nil
		}
	}
	return c
}

func program() string {
	name := os.Args[0]
	for i := len(name) - 1; i >= 0; i-- {
		if os.IsPathSeparator(name[i]) {
			return name[i+1:]
		}
	}
	return name
}

// oneOf names the topology, or those of which one is meant.
func oneOf(topologies []*topology.Topology) string {
	if len(topologies) == 1 {
		return list(topologies, "or")
	}
	return "one of " + list(topologies, "or")
}

// list names topologies for people.
func list(topologies []*topology.Topology, and string) string {
	if len(topologies) == 1 {
		return "the topology " + topologies[0].Name()
	}
	s := "the topologies "
	for i, t := range topologies {
		switch {
		case i == len(topologies)-1:
			s += " " + and + " "
		case i > 0:
			s += ", "
		}
		s += t.Name()
	}
	return s
}
