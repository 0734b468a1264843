package egret

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node/process"
)

// recoverCommand is "recover".
func recoverCommand() *cobra.Command {
	var data string
	var yes bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "Go on without a quorum that is lost for ever, from one node's directory",
		Long: `Go on without a quorum that is lost for ever, from one node's directory.

The node, which must not be running, becomes the only one of a new cluster, with the
topologies and positions that its log has. Nodes of the old cluster are refused by the
new one: they join with empty directories.

Without --yes nothing is changed, and it says what the directory has. Of several
directories take the one whose log ends last.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if data == "" {
				return &usageError{errors.New("give the directory of the node: --data DIR")}
			}
			id, err := process.Recover(data, func(r process.Remains) bool {
				printRemains(c.OutOrStdout(), r)
				return yes
			})
			switch {
			case err != nil:
				return failed(err)
			case !yes:
				fmt.Fprintln(c.OutOrStdout(), "Nothing was changed. To go on with this directory: the same command with --yes.")
			default:
				fmt.Fprintf(c.OutOrStdout(), "It is the only node of a new cluster now, %s. Start it as ever; start the others with empty directories and --join.\n", id)
			}
			return nil
		},
	}
	c.Flags().StringVar(&data, "data", "", "directory of a node that is left")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func printRemains(w io.Writer, r process.Remains) {
	fmt.Fprintf(w, "node %v of cluster %s: its log ends with term %d, entry %d\n", r.Node, r.Cluster, r.Term, r.Index)
	for _, s := range r.Servers {
		is := "listens"
		if s.Voter {
			is = "votes"
		}
		if s.Node == r.Node {
			is += ", this one"
		}
		at := s.Addr
		if n, known := r.State.Node(s.Node); known && n.Addr != "" {
			at = n.Addr
		}
		fmt.Fprintf(w, "  %v %s: %s\n", s.Node, at, is)
	}
	subs := slices.DeleteFunc(slices.Clone(r.State.Submissions), func(s *cluster.Submission) bool { return !s.Status.Runs() })
	for _, s := range subs {
		fmt.Fprintf(w, "  topology %s (run %d): %v, positions of %s\n", s.Topology, s.Run, s.Status, amount.Of(s.Positions.Len(), "split"))
	}
	if len(subs) == 0 {
		fmt.Fprintln(w, "  no topology runs")
	}
	fmt.Fprintln(w, `What the lost nodes had agreed on behind this entry is forgotten: topologies that were submitted or killed, and
positions, so that messages are executed again. What was asked for last may be done although nobody had agreed on it.
All other nodes of this cluster must be stopped, and stay so.`)
}
