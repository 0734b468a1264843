package egret

import (
	"context"
	"fmt"
	"time"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// mostAsking is how many may ask at a time what is open; others wait.
const mostAsking = 4

// An asking asks the tasks of a run on this node what is open. Its methods may be called
// from any goroutine.
type asking struct {
	send   func(msg any) // to the supervisor
	ended  <-chan struct{}
	places chan struct{} // has one for each who asks
}

func newAsking(send func(any), ended <-chan struct{}) *asking {
	return &asking{send, ended, make(chan struct{}, mostAsking)}
}

// ask sends the supervisor a question, and returns its answer.
func ask[T any](ctx context.Context, a *asking, question func(say func(T)) any) (answer T, err error) {
	over := &web.Error{Code: web.Refused, Text: "the run has ended: nothing is open any more"}
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	case <-a.ended:
		return answer, over
	}
	said := make(chan T, 1) // has room for the one answer, whether somebody waits for it or not
	a.send(question(func(x T) { said <- x }))
	select {
	case answer = <-said:
		return answer, nil
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	case <-a.ended:
		return answer, over
	}
}

// trees returns up to n open trees of the tasks that are here.
func (a *asking) trees(ctx context.Context, n int) ([]task.OpenTree, error) {
	return ask(ctx, a, func(say func([]task.OpenTree)) any { return task.Oldest{N: n, Say: say} })
}

// whereabouts returns what the tasks that are here have of trees.
func (a *asking) whereabouts(ctx context.Context, of []task.Sought) ([]task.TreePlace, error) {
	return ask(ctx, a, func(say func([]task.TreePlace)) any { return task.Whereabouts{Of: of, Say: say} })
}

// oldest returns up to n open trees of the run, the oldest first, and where they are. It
// takes up to two seconds if tasks do not answer.
func (r *Running) oldest(ctx context.Context, n int) ([]view.Tree, error) {
	if err := tracks(r.plan); err != nil {
		return nil, err
	}
	trees, err := r.asking.trees(ctx, n)
	if err != nil {
		return nil, err
	}
	places, err := r.asking.whereabouts(ctx, soughtOf(trees))
	if err != nil {
		return nil, err
	}
	return joinTrees(r.plan, localNode, trees, places), nil
}

// tracks says why a topology has no open trees, if so.
func tracks(p *topology.Plan) error {
	switch p.Guarantee {
	case topology.AtMostOnce:
		return &web.Error{Code: web.NotHere, Text: fmt.Sprintf("the topology %s is not tracked (at-most-once): nobody knows which messages are open", p.Topology)}
	case topology.ExactlyOnce:
		return &web.Error{Code: web.NotHere, Text: fmt.Sprintf("the topology %s is exactly-once: its messages come in batches, so look at its batches, which say what waits for whom", p.Topology)}
	}
	return nil
}

// soughtOf returns what is looked for of trees.
func soughtOf(trees []task.OpenTree) []task.Sought {
	all := make([]task.Sought, len(trees))
	for i := range trees {
		all[i] = trees[i].Sought
	}
	return all
}

// joinTrees puts together what tasks of a node have said of trees and of their places.
func joinTrees(p *topology.Plan, node string, trees []task.OpenTree, places []task.TreePlace) []view.Tree {
	all := make([]view.Tree, len(trees))
	for i := range trees {
		all[i] = showTree(p, node, &trees[i])
	}
	for _, x := range places {
		t := &all[x.Tree]
		t.Places = append(t.Places, showPlace(p, node, &x))
	}
	return all
}

func showPlace(p *topology.Plan, node string, x *task.TreePlace) view.Place {
	return view.Place{
		Task: p.TaskName(x.Task), Node: node, Queued: x.Queued, Held: x.Held, Unsent: x.Unsent, Waits: x.Waits,
		During: x.During, Inside: x.Inside, Hand: x.Hand, Others: x.Others, Maybe: x.Maybe,
	}
}

// showTree is what is shown of a tree, with the places that its own task knows of.
func showTree(p *topology.Plan, node string, x *task.OpenTree) view.Tree {
	t := view.Tree{
		Task: p.TaskName(x.Task), Node: node, Tree: x.ID.Seq, Messages: x.Messages, Replay: x.Replay, Message: x.Message,
		Error: x.Err, Age: x.Age, Silent: x.Silent, Unknown: x.Unknown, Places: []view.Place{},
	}
	switch {
	case x.Unknown:
		t.Places = append(t.Places, view.Place{Task: t.Task, Node: node, During: x.During, Inside: x.Inside, Maybe: true})
	case x.Between:
		t.Places = append(t.Places, view.Place{Task: t.Task, Node: node, Waits: max(x.Waits, time.Nanosecond)})
	}
	return t
}
