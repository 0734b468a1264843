package egret

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/topology"
)

// clusterCommands are those that run a node, or talk to one.
func clusterCommands(topologies []*topology.Topology) []*cobra.Command {
	return []*cobra.Command{
		nodeCommand(topologies), devCommand(topologies),
		submitCommand(topologies), statusCommand(), listCommand(), statusOf("activate", "Let the spouts of a topology emit again", cluster.Active),
		statusOf("deactivate", "Let the spouts of a topology emit nothing for now", cluster.Inactive),
		rebalanceCommand(), stopCommand(), killCommand(), queryCommand(topologies),
		uiCommand(), membersCommand(), drainCommand(), leaveCommand(), forgetCommand(), recoverCommand(),
		tapCommand(), topCommand(), errorsCommand(),
	}
}

// submitOptions are the flags of "submit".
type submitOptions struct {
	run runOptions
	set []string
}

// submitCommand is "submit".
func submitCommand(topologies []*topology.Topology) *cobra.Command {
	l, o := &client{}, &submitOptions{}
	c := l.command("submit TOPOLOGY", "Run a topology on the cluster",
		`The program of the nodes must have the topology; this one need not, but if it has,
it must be the same. The command returns when the cluster has taken it: status shows
how it goes on. Output goes to the nodes. One that was stopped or has failed goes on
where it was, and so does an exactly-once one that is done: to begin anew, kill it first.
`, cobra.ExactArgs(1), func(ctx context.Context, c *cobra.Command, args []string) error {
			spec, err := o.spec(c.Flags(), topologies, args[0])
			if err != nil {
				return err
			}
			a, err := l.ask(ctx, &node.Request{Op: node.OpSubmit, Topology: spec.Topology, Spec: spec})
			if err != nil {
				return err
			}
			said, text := map[string]any{"topology": spec.Topology, "run": a.Run}, fmt.Sprintf("topology %s is submitted, as run %d", spec.Topology, a.Run)
			if a.Before != 0 {
				said["goes_on"] = a.Before
				text += fmt.Sprintf(", and goes on where run %d was", a.Before)
			}
			return l.print(c, said, text+"\n")
		})
	f := c.Flags()
	f.StringArrayVar(&o.set, "set", nil, "value of a parameter, `name=value`; as often as needed")
	f.StringVar(&o.run.guarantee, "guarantee", "", guaranteeUsage)
	f.Var(&o.run.parallel, "parallel", "tasks of components, as in count=4,split=2")
	o.run.tuning(f)
	c.SetFlagErrorFunc(parameterHint(topologies, "here it is --set NAME=VALUE"))
	return c
}

// spec returns what is submitted. If the program has the topology, most mistakes are
// found here.
func (o *submitOptions) spec(f *pflag.FlagSet, topologies []*topology.Topology, name string) (*cluster.Spec, error) {
	params, err := settings(o.set)
	if err != nil {
		return nil, &usageError{err}
	}
	o.run.config.StopTimeout = stopTimeout
	if _, err := o.run.build(); err != nil {
		return nil, &usageError{err}
	}
	spec := &cluster.Spec{Topology: name, Params: params, Parallel: o.run.parallel, Guarantee: o.run.guarantee, Flags: map[string]string{}}
	tuning := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(runOptions).tuning(tuning)
	f.Visit(func(flag *pflag.Flag) {
		if tuning.Lookup(flag.Name) != nil {
			spec.Flags[flag.Name] = flag.Value.String()
		}
	})
	for _, t := range topologies {
		if t.Name() != name {
			continue
		}
		if r := node.Complete([]*topology.Topology{t}, spec); r != nil {
			return nil, refusal(r)
		}
	}
	return spec, nil
}

// statusOf is "activate" and "deactivate".
func statusOf(use, short string, to cluster.Status) *cobra.Command {
	l := &client{}
	return l.command(use+" TOPOLOGY", short, "", cobra.ExactArgs(1), func(ctx context.Context, c *cobra.Command, args []string) error {
		if _, err := l.ask(ctx, &node.Request{Op: node.OpSetStatus, Topology: args[0], Status: to}); err != nil {
			return err
		}
		return l.print(c, map[string]any{"topology": args[0], "status": to}, fmt.Sprintf("topology %s is %s\n", args[0], to))
	})
}

// stopCommand is "stop".
func stopCommand() *cobra.Command {
	return endCommand("stop TOPOLOGY", "End a topology, so that it can be submitted again and goes on",
		`Its spouts emit nothing more, what is open is finished within 30 s, and then it has no
tasks any more. Its positions, and of an exactly-once topology what is committed, are
kept: when it is submitted again, with other parameters or by another version of the
program, it goes on from there.
`, cluster.Stopping, "stopped")
}

// killCommand is "kill".
func killCommand() *cobra.Command {
	return endCommand("kill TOPOLOGY", "End a topology, and forget it",
		`Its spouts emit nothing more, what is open is finished within 30 s, and then it is
forgotten with its positions: "stop" keeps them. One that has ended is forgotten at once.
`, cluster.Ending, "killed")
}

func endCommand(use, short, long string, status cluster.Status, done string) *cobra.Command {
	l := &client{}
	c := l.command(use, short, long, cobra.ExactArgs(1), func(ctx context.Context, c *cobra.Command, args []string) error {
		name := args[0]
		v, err := l.view(ctx)
		if err != nil {
			return err
		}
		if _, err := l.ask(ctx, &node.Request{Op: node.OpSetStatus, Topology: name, Status: status}); err != nil {
			return err
		}
		old := submission(v, name)
		if !l.wait || old == nil {
			return l.print(c, map[string]any{"topology": name}, fmt.Sprintf("topology %s is being %s\n", name, done))
		}
		text := "topology " + name + " has ended"
		err = l.until(ctx, "topology "+name+" has not ended yet", func(v *node.View) bool {
			now := submission(v, name)
			over := now == nil || now.Run != old.Run || !now.Status.Runs()
			if over && now != nil && now.Run == old.Run && now.Reason != "" {
				text += ": " + now.Reason
			}
			return over
		})
		if err != nil {
			return err
		}
		return l.print(c, map[string]any{"topology": name, "run": old.Run}, text+"\n")
	})
	c.Flags().BoolVar(&l.wait, "wait", false, "until it has ended")
	return c
}

// rebalanceCommand is "rebalance".
func rebalanceCommand() *cobra.Command {
	l := &client{}
	var parallel tasksValue
	var cancel bool
	c := l.command("rebalance TOPOLOGY", "Give components other numbers of tasks, or spread tasks evenly",
		`Without --parallel the tasks that there are are spread evenly over the nodes. What is
open is finished before tasks move; status shows whether that is still waited for,
and until then --cancel takes it back.
`, cobra.ExactArgs(1), func(ctx context.Context, c *cobra.Command, args []string) error {
			if cancel {
				if l.preview {
					return &usageError{errors.New("--cancel moves nothing, so there is nothing to see with --preview: give one of the two")}
				}
				if len(parallel) > 0 {
					return &usageError{errors.New("--cancel drops the change that waits, and --parallel asks for another one: give one of the two")}
				}
				if _, err := l.ask(ctx, &node.Request{Op: node.OpRebalance, Topology: args[0], Cancel: true}); err != nil {
					return err
				}
				return l.print(c, moved(nil), "topology "+args[0]+" stays as it is\n")
			}
			v, err := l.view(ctx)
			if err != nil {
				return err
			}
			all, err := l.move(ctx, c, v, &node.Request{Op: node.OpRebalance, Topology: args[0], Parallel: parallel})
			if err != nil {
				return err
			}
			text := "topology " + args[0] + " is being changed\n"
			if l.preview {
				text = nothingDone
			}
			if len(all) == 0 {
				text = "nothing to move: topology " + args[0] + " is as it should be\n"
			}
			return l.print(c, moved(all), text)
		})
	c.Flags().Var(&parallel, "parallel", "tasks of components, as in count=4,split=2")
	c.Flags().BoolVar(&cancel, "cancel", false, "drop the change that was asked for and still waits")
	l.previewFlag(c)
	return c
}

// submission returns what a node says of a topology, nil for nothing.
func submission(v *node.View, name string) *cluster.Submission {
	for _, s := range v.Submissions {
		if s.Topology == name {
			return s
		}
	}
	return nil
}

// unknownTopology says which topologies there are.
func unknownTopology(v *node.View, name string) error {
	var have []string
	for _, s := range v.Submissions {
		have = append(have, s.Topology)
	}
	text := "it has none"
	if len(have) > 0 {
		text = "it has " + strings.Join(have, ", ")
	}
	return &codedError{ExitUnknown, fmt.Errorf("there is no topology %q in the cluster: %s", name, text)}
}
