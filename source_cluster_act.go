package egret

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// Act asks the cluster for what commands ask it for.
func (s *clusterSource) Act(ctx context.Context, a *view.Action) (*view.Effect, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, err
	}
	if a.Do == "drain" || a.Do == "undrain" {
		return s.drain(ctx, v, a)
	}
	sub := submission(v, a.Topology)
	if sub == nil {
		return nil, &web.Error{Code: web.Unknown, Text: unknownTopology(v, a.Topology).Error()}
	}
	switch a.Do {
	case "activate":
		return s.status(ctx, sub, cluster.Active, a.Preview, "its spouts emit again")
	case "deactivate":
		return s.status(ctx, sub, cluster.Inactive, a.Preview, "its spouts emit nothing for now; what is open is finished")
	case "stop":
		return s.status(ctx, sub, cluster.Stopping, a.Preview,
			fmt.Sprintf("its spouts emit nothing more, and %s is finished within %v; its positions are kept, and it goes on from there when it is submitted again", s.openOf(ctx, sub), stopTimeout))
	case "kill":
		text := "it has ended, and is forgotten with its positions"
		if sub.Status.Runs() {
			text = fmt.Sprintf("its spouts emit nothing more, %s is finished within %v, and then it is forgotten with its positions", s.openOf(ctx, sub), stopTimeout)
		}
		return s.status(ctx, sub, cluster.Ending, a.Preview, text)
	case "rebalance":
		return s.rebalance(ctx, v, a)
	case "cancel":
		return s.cancel(ctx, sub, a.Preview)
	}
	return nil, &web.Error{Code: web.NotHere, Text: fmt.Sprintf("a cluster does not know %s", a.Do)}
}

// ask asks for something, again if what hinders it may pass.
func (s *clusterSource) ask(ctx context.Context, q *node.Request) (*node.Answer, error) {
	a, err := patiently(ctx, q, func() (*node.Answer, error) {
		a := s.p.Ask(ctx, q)
		if a.Error != nil {
			return nil, a.Error
		}
		return a, nil
	})
	return a, codeOf(err)
}

// codeOf makes of a refusal of the cluster one of the API.
func codeOf(err error) error {
	r, is := err.(*cluster.Refusal)
	if !is {
		return err
	}
	code := web.Refused
	switch r.Reason {
	case cluster.ErrUnknown, node.ErrComponent, node.ErrState:
		code = web.Unknown
	case cluster.ErrInvalid, node.ErrParameter:
		code = web.Invalid
	case node.ErrNoQuorum, node.ErrUnsure:
		code = web.NoQuorum
	case node.ErrBusy:
		code = web.Busy
	case node.ErrFailed:
		code = web.Broken
	}
	return &web.Error{Code: code, Text: r.Error()}
}

// status gives a topology another status, or says what that would do.
func (s *clusterSource) status(ctx context.Context, sub *cluster.Submission, to cluster.Status, preview bool, text string) (*view.Effect, error) {
	e := &view.Effect{Done: !preview, Text: sub.Topology + ": " + text}
	switch {
	case !sub.Status.Runs() && to != cluster.Ending:
		return nil, &web.Error{Code: web.Refused, Text: fmt.Sprintf("topology %s is %s: submit it again", sub.Topology, sub.Status)}
	case sub.Status == cluster.Ending:
		return nil, &web.Error{Code: web.Refused, Text: fmt.Sprintf("topology %s is being killed already", sub.Topology)}
	case sub.Status == cluster.Stopping && to != cluster.Ending:
		return nil, &web.Error{Code: web.Refused, Text: fmt.Sprintf("topology %s is being stopped already", sub.Topology)}
	case sub.Status == to:
		e.Text = fmt.Sprintf("%s: it is %s already", sub.Topology, to)
	}
	if preview {
		return e, nil
	}
	_, err := s.ask(ctx, &node.Request{Op: node.OpSetStatus, Topology: sub.Topology, Status: to})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openOf says how much of a topology is open.
func (s *clusterSource) openOf(ctx context.Context, sub *cluster.Submission) string {
	const what = "what is open"
	x, err := s.Sample(ctx)
	if err != nil {
		return what
	}
	at := slices.IndexFunc(x.Runs, func(r view.Run) bool { return r.Run == runName(sub.Run) })
	if at < 0 || x.Runs[at].Batches != nil {
		return what
	}
	var open int64
	for i := range x.Runs[at].Tasks {
		open += x.Runs[at].Tasks[i].Open
	}
	if slices.ContainsFunc(x.Runs[at].Tasks, func(t view.Task) bool { return !t.Known }) {
		return fmt.Sprintf("%s (%s, and more on nodes that are silent)", what, amount.Of(open, "message"))
	}
	return fmt.Sprintf("%s (%s)", what, amount.Of(open, "message"))
}

func (s *clusterSource) rebalance(ctx context.Context, v *node.View, a *view.Action) (*view.Effect, error) {
	answer, err := s.ask(ctx, &node.Request{Op: node.OpRebalance, Topology: a.Topology, Parallel: a.Parallel, Preview: a.Preview})
	if err != nil {
		return nil, err
	}
	text := "nothing to move: it is as it should be"
	if n := len(answer.Moves); n > 0 {
		text = fmt.Sprintf("%s, when nothing is open", changed(answer.Moves))
	}
	return &view.Effect{Done: !a.Preview, Text: a.Topology + ": " + text, Moves: shownMoves(v, answer.Moves)}, nil
}

// cancel drops a change that waits until nothing is open.
func (s *clusterSource) cancel(ctx context.Context, sub *cluster.Submission, preview bool) (*view.Effect, error) {
	_, err := s.ask(ctx, &node.Request{Op: node.OpRebalance, Topology: sub.Topology, Cancel: true, Preview: preview})
	if err != nil {
		return nil, err
	}
	text := "it stays as it is: the change that waits until nothing is open is dropped"
	if sub.Next != nil {
		text += fmt.Sprintf(" (%s)", amount.Of(nextMoves(sub), "task"))
	}
	return &view.Effect{Done: !preview, Text: sub.Topology + ": " + text}, nil
}

// drain empties a node, or lets it have tasks again.
func (s *clusterSource) drain(ctx context.Context, v *node.View, a *view.Action) (*view.Effect, error) {
	m, err := named(v, a.Node)
	if err != nil {
		return nil, err
	}
	on := a.Do == "drain"
	e := &view.Effect{Done: !a.Preview, Text: a.Node + ": it may have tasks again"}
	if !on && a.Preview {
		return e, nil
	}
	answer, err := s.ask(ctx, &node.Request{Op: node.OpDrain, Node: m.ID, On: on, Preview: a.Preview})
	if err != nil {
		return nil, err
	}
	if !on {
		return e, nil
	}
	stay, why := staying(v, m.ID)
	switch e.Moves = shownMoves(v, answer.Moves); {
	case m.Tasks == 0:
		e.Text = a.Node + ": it has no tasks, and gets no others"
	case len(e.Moves) > 0:
		e.Text = fmt.Sprintf("%s: %s to other nodes, when nothing is open, and it gets no others", a.Node, changed(answer.Moves))
	case m.Tasks > stay:
		e.Text = a.Node + ": it gets no other tasks; " + besides(stay, "those that it has stay", "those that could move stay") + ", until another node can take them"
	default:
		e.Text = a.Node + ": it gets no other tasks"
	}
	if stay > 0 {
		e.Text += "; " + why
	}
	return e, nil
}

// named returns the node that somebody means, by the name that a sample has for it, or as
// in commands.
func named(v *node.View, name string) (memberJSON, error) {
	names := nodeNames(v)
	for _, m := range members(v) {
		if names[m.ID] == name {
			return m, nil
		}
	}
	m, err := find(v, name)
	if err != nil {
		return m, &web.Error{Code: web.Unknown, Text: err.Error()}
	}
	return m, nil
}

// changed says how many tasks move, begin and end.
func changed(all []node.Move) string {
	var move, begin, end int
	for _, m := range all {
		switch {
		case m.From == cluster.Home{}:
			begin++
		case m.To == cluster.Home{}:
			end++
		default:
			move++
		}
	}
	var parts []string
	for _, x := range []struct {
		n    int
		one  string
		many string
	}{{move, "moves", "move"}, {begin, "is new", "are new"}, {end, "ends", "end"}} {
		if x.n == 1 {
			parts = append(parts, "1 task "+x.one)
		} else if x.n > 1 {
			parts = append(parts, amount.Of(x.n, "task")+" "+x.many)
		}
	}
	return strings.Join(parts, ", ")
}

func shownMoves(v *node.View, all []node.Move) (moves []view.Move) {
	names := nodeNames(v)
	for _, m := range all {
		moves = append(moves, view.Move{Task: m.Task, From: names[m.From.Node], To: names[m.To.Node]})
	}
	return moves
}
