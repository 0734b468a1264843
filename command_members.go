package egret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// A memberJSON is a node for programs.
type memberJSON struct {
	ID       cluster.NodeID `json:"id"`
	Boot     cluster.Boot   `json:"boot"`
	Name     string         `json:"name"`
	Addr     string         `json:"addr"`
	State    string         `json:"state"` // alive, dead, left
	Keeps    bool           `json:"keeps"` // it has a data directory
	Votes    bool           `json:"votes"` // a quorum is more than half of those that do
	Draining bool           `json:"draining"`
	Leader   bool           `json:"leader"`
	Asked    bool           `json:"asked"` // it has given the answer
	Weight   int            `json:"weight"`
	Tasks    int            `json:"tasks"`
}

const (
	alive = "alive"
	dead  = "dead"
	left  = "left"
)

// members lists all nodes that are seen or that the log knows, by name.
func members(v *node.View) (all []memberJSON) {
	seen := map[cluster.NodeID]bool{}
	for _, m := range v.Members {
		seen[m.Node] = true
		x := memberJSON{
			ID: m.Node, Boot: m.Boot, Name: m.Name, Addr: m.Addr, State: alive, Keeps: m.Keeps, Votes: slices.Contains(v.Voters, m.Node), Draining: m.Draining,
			Leader: m.Node == v.Leader && m.Alive, Asked: m.Node == v.Self.Node, Weight: max(1, m.Weight), Tasks: m.Tasks,
		}
		switch {
		case m.Left:
			x.State = left
		case !m.Alive:
			x.State = dead
		}
		all = append(all, x)
	}
	for _, n := range v.Nodes {
		if !seen[n.ID] {
			all = append(all, memberJSON{ID: n.ID, Boot: n.Boot, Name: n.Name, Addr: n.Addr, State: dead, Votes: slices.Contains(v.Voters, n.ID), Draining: n.Draining, Weight: 1})
		}
	}
	slices.SortFunc(all, func(a, b memberJSON) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	return all
}

func printMembers(w io.Writer, all []memberJSON) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tADDRESS\tID\tBOOT\tVOTES\tTASKS\tSTATE")
	for _, m := range all {
		state := m.State
		if m.Leader {
			state += ", leads"
		}
		if m.Draining {
			state += ", draining"
		}
		votes := "no"
		if m.Votes {
			votes = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%d\t%s\n", oneLine(m.Name, 60), m.Addr, m.ID, m.Boot, votes, m.Tasks, state)
	}
	t.Flush()
	if slices.ContainsFunc(all, func(m memberJSON) bool { return m.State == dead }) {
		fmt.Fprintln(w, "\nA dead node that will not come back can be forgotten: egret forget NODE")
	}
}

// find returns the node that somebody means: by its name, its address, its id or a
// beginning of it that no other has.
func find(v *node.View, name string) (memberJSON, error) {
	all := members(v)
	for _, is := range []func(memberJSON) bool{
		func(m memberJSON) bool { return m.ID.String() == name },
		func(m memberJSON) bool { return (m.Name == name || m.Addr == name) && m.State == alive },
		func(m memberJSON) bool { return m.Name == name || m.Addr == name },
		func(m memberJSON) bool { return strings.HasPrefix(m.ID.String(), name) },
	} {
		var found []memberJSON
		for _, m := range all {
			if name != "" && is(m) {
				found = append(found, m)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		var ids []string
		for _, m := range found {
			ids = append(ids, m.ID.String())
		}
		return memberJSON{}, &codedError{ExitUnknown, fmt.Errorf("%q may be any of the nodes %s: give more of the id", name, strings.Join(ids, " and "))}
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return memberJSON{}, &codedError{ExitUnknown, fmt.Errorf("there is no node %q: the cluster has %s", name, strings.Join(names, ", "))}
}

// names returns what people call the nodes.
func names(v *node.View) func(cluster.Home) string {
	by := map[cluster.NodeID]string{}
	for _, m := range members(v) {
		by[m.ID] = m.Name
	}
	return func(h cluster.Home) string {
		if name := by[h.Node]; name != "" {
			return oneLine(name, 60)
		}
		return h.Node.String()
	}
}

// moves says which tasks move, in a line for those that do, that are new and that end.
func moves(v *node.View, all []node.Move) string {
	of := names(v)
	var move, begin, end []string
	for _, m := range all {
		switch {
		case m.From == cluster.Home{}:
			begin = append(begin, m.Task+" on "+of(m.To))
		case m.To == cluster.Home{}:
			end = append(end, m.Task+" on "+of(m.From))
		default:
			move = append(move, m.Task+" from "+of(m.From)+" to "+of(m.To))
		}
	}
	line := func(one, several string, tasks []string) string {
		if len(tasks) == 0 {
			return ""
		}
		text := "1 task " + one
		if len(tasks) > 1 {
			text = fmt.Sprintf("%d tasks %s", len(tasks), several)
		}
		text += ": " + strings.Join(tasks[:min(len(tasks), mostMoves)], ", ")
		if more := len(tasks) - mostMoves; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return text + "\n"
	}
	return line("moves", "move", move) + line("is new", "are new", begin) + line("ends", "end", end)
}

const mostMoves = 10 // that are listed

// movesJSON is what a command that moves tasks prints for programs.
type movesJSON struct {
	Moves []node.Move `json:"moves"`
}

func moved(all []node.Move) movesJSON {
	if all == nil {
		all = []node.Move{}
	}
	return movesJSON{all}
}

// membersCommand is "members".
func membersCommand() *cobra.Command {
	l := &client{}
	return l.command("members", "List the nodes of the cluster", "", cobra.NoArgs, func(ctx context.Context, c *cobra.Command, _ []string) error {
		v, err := l.view(ctx)
		if err != nil {
			return err
		}
		all := members(v)
		var text strings.Builder
		printMembers(&text, all)
		if v.Leader == 0 {
			return l.print(c, all, noQuorum(all)+text.String())
		}
		return l.print(c, all, text.String())
	})
}

// noQuorum is what is said of a cluster in which nobody leads.
func noQuorum(all []memberJSON) string {
	voters, reached := 0, 0
	for _, m := range all {
		if m.Votes {
			voters++
			if m.State == alive {
				reached++
			}
		}
	}
	if 2*reached > voters {
		return fmt.Sprintf("NO QUORUM: no node leads at the moment: %d of %d voters can be reached, and choose one.\nWhat runs goes on, and nothing can be changed until then.\n\n", reached, voters)
	}
	return "NO QUORUM: no node leads, since more than half of the voters cannot be reached from here.\nWhat runs goes on, and nothing can be changed.\n\n"
}

// drainCommand is "drain".
func drainCommand() *cobra.Command {
	l := &client{}
	var off bool
	c := l.command("drain NODE", "Move all tasks off a node, and give it no others",
		"NODE is a name, an address, an id or the beginning of one. The node stays in the\ncluster. What is open is finished before the tasks move.\n", cobra.ExactArgs(1),
		func(ctx context.Context, c *cobra.Command, args []string) error {
			if l.preview && (off || l.wait) {
				return &usageError{errors.New("--preview does nothing, so there is nothing for --off or --wait: give one of them")}
			}
			v, err := l.view(ctx)
			if err != nil {
				return err
			}
			m, err := find(v, args[0])
			if err != nil {
				return err
			}
			q := &node.Request{Op: node.OpDrain, Node: m.ID, On: !off}
			if off {
				if _, err := l.ask(ctx, q); err != nil {
					return err
				}
				return l.print(c, moved(nil), "node "+m.Name+" may have tasks again\n")
			}
			all, err := l.move(ctx, c, v, q)
			if err != nil {
				return err
			}
			stay, why := staying(v, m.ID)
			if why != "" {
				fmt.Fprintln(c.ErrOrStderr(), plainText(why))
			}
			if len(all) == 0 && m.Tasks > stay {
				fmt.Fprintf(c.ErrOrStderr(), "no other node can take %s of %s: they stay until one can\n", besides(stay, "the tasks", "the other tasks"), m.Name)
			}
			if l.preview {
				text := nothingDone
				if m.Tasks == 0 {
					text = "node " + m.Name + " has no tasks\n"
				}
				return l.print(c, moved(all), text)
			}
			if l.wait {
				err := l.until(ctx, "node "+m.Name+" still has tasks", func(v *node.View) bool {
					stay, _ = staying(v, m.ID)
					return tasksOf(v, m.ID) == stay
				})
				if err != nil {
					return err
				}
			}
			text := "node " + m.Name + " is draining\n"
			if l.wait || m.Tasks == 0 {
				text = "node " + m.Name + " has " + besides(stay, "no tasks", "no tasks but those that stay") + "\n"
			}
			return l.print(c, moved(all), text)
		})
	c.Flags().BoolVar(&off, "off", false, "let it have tasks again")
	c.Flags().BoolVar(&l.wait, "wait", false, "until it has no tasks that can move")
	l.previewFlag(c)
	return c
}

// move says what moves by a request, and then makes it, unless that is only to be seen. It
// returns what moves.
func (l *client) move(ctx context.Context, c *cobra.Command, v *node.View, q *node.Request) ([]node.Move, error) {
	first := *q
	first.Preview = true
	a, err := l.ask(ctx, &first)
	if err != nil {
		return nil, err
	}
	said := a.Moves
	if !l.json {
		fmt.Fprint(c.OutOrStdout(), moves(v, said))
	}
	if l.preview {
		return said, nil
	}
	if a, err = l.ask(ctx, q); err != nil {
		return nil, err
	}
	if !l.json && !slices.Equal(a.Moves, said) {
		fmt.Fprint(c.OutOrStdout(), "it is another move now, since the cluster has changed meanwhile\n"+moves(v, a.Moves))
	}
	return a.Moves, nil
}

// previewFlag adds --preview.
func (l *client) previewFlag(c *cobra.Command) {
	c.Flags().BoolVar(&l.preview, "preview", false, "say what would move, and do nothing")
}

const nothingDone = "nothing was done\n" // after a preview

// tasksOf returns how many tasks of running topologies a node has in any process.
func tasksOf(v *node.View, id cluster.NodeID) (n int) {
	for _, s := range v.Submissions {
		if s.Plan == nil || !s.Status.Runs() {
			continue
		}
		for _, t := range s.Plan.Tasks {
			if t.Home.Node == id {
				n++
			}
		}
	}
	return n
}

// leaveCommand is "leave".
func leaveCommand() *cobra.Command {
	l := &client{wait: true}
	return l.command("leave [NODE]", "Move all tasks off a node, and end it",
		"NODE is a name, an address, an id or the beginning of one; without it the node that\nis asked leaves. The command waits for the end. A node that has left may come back.\n", cobra.MaximumNArgs(1),
		func(ctx context.Context, c *cobra.Command, args []string) error {
			v, err := l.view(ctx)
			if err != nil {
				return err
			}
			name := v.Self.Node.String()
			if len(args) > 0 {
				name = args[0]
			}
			m, err := find(v, name)
			if err != nil {
				return err
			}
			if m.State != alive {
				return refused("node %s is %s: it has no process that could leave; %s forget removes it", m.Name, m.State, program())
			}
			var all []node.Move
			others := slices.DeleteFunc(members(v), func(o memberJSON) bool { return o.State != alive || o.ID == m.ID })
			if len(others) > 0 || v.Leader != m.ID { // else it is the whole cluster
				a, err := l.ask(ctx, &node.Request{Op: node.OpDrain, Node: m.ID, On: true, Preview: true})
				if err != nil {
					return err // without a quorum nothing stops
				}
				all = a.Moves
				stay, why := staying(v, m.ID)
				if why != "" {
					fmt.Fprintln(c.ErrOrStderr(), plainText(why)+"; they end with it, and begin again when it is back")
				}
				if len(others) > 0 && m.Tasks > stay && len(all) == 0 {
					return refused("no other node can take the tasks of node %s, so it does not leave: %[2]s members shows which are drained, and %[2]s drain NODE --off ends that", m.Name, program())
				}
				if !l.json {
					fmt.Fprint(c.OutOrStdout(), moves(v, all))
				}
			}
			if _, err := l.askAt(ctx, m.Addr, &node.Request{Op: node.OpLeave}); err != nil {
				return err
			}
			if err := l.gone(ctx, m, others); err != nil {
				return err
			}
			return l.print(c, moved(all), "node "+m.Name+" has left\n")
		})
}

// gone waits until a node has ended: the others know it, and nobody listens at its address.
func (l *client) gone(ctx context.Context, m memberJSON, others []memberJSON) error {
	if len(others) > 0 {
		if m.Asked {
			l.node = others[0].Addr
		}
		err := l.until(ctx, "node "+m.Name+" has not left yet", func(v *node.View) bool {
			return !slices.ContainsFunc(members(v), func(o memberJSON) bool { return o.ID == m.ID && o.State == alive })
		})
		if err != nil {
			return err
		}
	}
	for {
		v, err := l.viewAt(ctx, m.Addr)
		if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
			return nil
		}
		if err == nil && (v.Self.Node != m.ID || v.Self.Boot != m.Boot) {
			return nil // it has been started again, or another one has its address
		}
		if !pause(ctx, leaveAgain) {
			return &runError{fmt.Errorf("node %s has left, but its process still listens at %s after %v", m.Name, m.Addr, l.timeout)}
		}
	}
}

const leaveAgain = 20 * time.Millisecond

// forgetCommand is "forget".
func forgetCommand() *cobra.Command {
	l := &client{}
	return l.command("forget NODE", "Forget a node that will not come back",
		"NODE is a name, an address, an id or the beginning of one.\n", cobra.ExactArgs(1),
		func(ctx context.Context, c *cobra.Command, args []string) error {
			v, err := l.view(ctx)
			if err != nil {
				return err
			}
			m, err := find(v, args[0])
			if err != nil {
				return err
			}
			if m.State == alive {
				return refused("node %s is alive: %s leave %s ends it first", m.Name, program(), m.Name)
			}
			if _, err := l.ask(ctx, &node.Request{Op: node.OpForget, Node: m.ID}); err != nil {
				return err
			}
			return l.print(c, map[string]string{"forgotten": m.ID.String()}, "node "+m.Name+" is forgotten\n")
		})
}
