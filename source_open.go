package egret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// What is open in a cluster, and dead: each node has its part.
//
//	clusterSource --Open----> all nodes, each asks its own tasks
//	      the oldest of all
//	              --Places--> all nodes, each asks its own tasks

// openTime is how long a node may take to say what its tasks have: they have a second.
const openTime = 3 * time.Second

// asks returns who asks the tasks of a topology that are here, and their plan; nil: none are.
func (s *nodeSource) asks(ctx context.Context, topology string) (*asking, *topology.Plan, error) {
	run, part := s.runs.part(topology)
	if part == nil {
		return nil, nil, nil
	}
	plan := s.partOf(ctx, run).Plan
	if plan == nil {
		return nil, nil, nil
	}
	if err := tracks(plan); err != nil {
		return nil, nil, err
	}
	part.askable.Do(func() {
		part.asking = newAsking(func(msg any) { s.p.ToRun(run, msg) }, part.over)
	})
	return part.asking, plan, nil
}

// Open returns trees of the tasks that are here.
func (s *nodeSource) Open(ctx context.Context, topology string, n int) ([]view.OpenTree, error) {
	a, plan, err := s.asks(ctx, topology)
	if a == nil {
		return nil, err
	}
	trees, err := a.trees(ctx, n)
	if err != nil {
		return nil, err
	}
	all := make([]view.OpenTree, len(trees))
	for i := range trees {
		x := &trees[i]
		all[i] = view.OpenTree{Tree: showTree(plan, "", x), Sought: view.Sought{Task: x.ID.Task, Life: x.ID.Incarnation, Tree: x.ID.Seq, Mask: x.Mask}}
	}
	return all, nil
}

// Places returns what the tasks that are here have of trees.
func (s *nodeSource) Places(ctx context.Context, topology string, of []view.Sought) ([]view.OpenPlace, error) {
	a, plan, err := s.asks(ctx, topology)
	if a == nil {
		return nil, err
	}
	sought := make([]task.Sought, len(of))
	for i, x := range of {
		sought[i] = task.Sought{ID: tuple.TreeID{Task: x.Task, Incarnation: x.Life, Seq: x.Tree}, Mask: x.Mask}
	}
	places, err := a.whereabouts(ctx, sought)
	if err != nil {
		return nil, err
	}
	all := make([]view.OpenPlace, len(places))
	for i := range places {
		all[i] = view.OpenPlace{Of: places[i].Tree, Place: showPlace(plan, "", &places[i])}
	}
	return all, nil
}

// Oldest is for the cluster to say.
func (s *nodeSource) Oldest(context.Context, string, int) ([]view.Tree, error) {
	return nil, &web.Error{Code: web.NotHere, Text: "a node by itself knows of its own tasks alone: ask the cluster"}
}

// Oldest joins what all nodes say of their tasks.
func (s *clusterSource) Oldest(ctx context.Context, topology string, n int) ([]view.Tree, error) {
	v, sub, err := s.submission(ctx, topology)
	if err != nil {
		return nil, err
	}
	if sub.Plan == nil || !sub.Status.Runs() {
		return []view.Tree{}, nil
	}
	names := nodeNames(v)
	var open []view.OpenTree
	answers := askWithin(ctx, openTime, s, v, func(ctx context.Context, p partSource) ([]view.OpenTree, error) { return p.Open(ctx, topology, n) })
	if err := none(answers); err != nil {
		return nil, err
	}
	for _, a := range answers {
		for _, t := range a.value {
			t.Tree.Node = names[a.from.Node]
			for i := range t.Tree.Places {
				t.Tree.Places[i].Node = t.Tree.Node
			}
			open = append(open, t)
		}
	}
	slices.SortStableFunc(open, func(x, y view.OpenTree) int { return cmp.Compare(y.Tree.Age, x.Tree.Age) })
	open = open[:min(n, len(open))]
	if len(open) == 0 {
		return []view.Tree{}, nil
	}
	all, sought := make([]view.Tree, len(open)), make([]view.Sought, len(open))
	for i, t := range open {
		all[i], sought[i] = t.Tree, t.Sought
	}
	for _, a := range askWithin(ctx, openTime, s, v, func(ctx context.Context, p partSource) ([]view.OpenPlace, error) {
		return p.Places(ctx, topology, sought)
	}) {
		if a.err != nil {
			a.value = silentPlaces(sub, a.from.Home, sought)
		}
		for _, x := range a.value {
			if x.Of < 0 || x.Of >= len(all) {
				continue // it is of another version, or is not what it says
			}
			x.Place.Node = names[a.from.Node]
			all[x.Of].Places = append(all[x.Of].Places, x.Place)
		}
	}
	for i := range all {
		slices.SortStableFunc(all[i].Places, func(x, y view.Place) int { return strings.Compare(x.Task, y.Task) })
	}
	return all, nil
}

// silentPlaces are those of tasks of a node that does not answer, as far as they have had
// something of the trees.
func silentPlaces(sub *cluster.Submission, home cluster.Home, sought []view.Sought) (all []view.OpenPlace) {
	for id, t := range sub.Plan.Tasks {
		for i, x := range sought {
			if t.Home == home && x.Mask&acker.Bit(tuple.TaskID(id)) != 0 {
				all = append(all, view.OpenPlace{Of: i, Place: view.Place{Task: fmt.Sprintf("%s/%d", sub.Components[t.Component].Name, t.Index), Maybe: true}})
			}
		}
	}
	return all
}

// none says why there is no answer: a node has said why there can be none, or none has said
// anything else.
func none[T any](answers []partAnswer[T]) (err error) {
	answered := false
	for _, a := range answers {
		if _, is := errors.AsType[*web.Error](a.err); is {
			return a.err
		}
		if answered = answered || a.err == nil; a.err != nil {
			err = a.err
		}
	}
	if answered {
		return nil
	}
	return err
}

// letterBox has the letters that tasks of this node have written.
func (s *nodeSource) letterBox(ctx context.Context, topology string) *letterBox {
	b := &letterBox{dir: s.runs.dir, topology: topology, node: nodeName(s.p.Home().Node)}
	if run, part := s.runs.part(topology); part != nil {
		b.plan = s.partOf(ctx, run).Plan
	}
	if b.plan == nil {
		b.plan = s.runs.plan(topology)
	}
	return b
}

func (s *nodeSource) Letters(ctx context.Context, topology, component string, n int) ([]view.Letter, error) {
	return s.letterBox(ctx, topology).list(ctx, component, n)
}

func (s *nodeSource) Settle(ctx context.Context, topology string, ids []string, replay bool) (*view.Effect, error) {
	return s.letterBox(ctx, topology).settle(ids, replay, "within about a second, or when the topology runs on the node again")
}

// Letters are those of all nodes that live. Their ids begin with the node's.
func (s *clusterSource) Letters(ctx context.Context, topology, component string, n int) ([]view.Letter, error) {
	v, _, err := s.submission(ctx, topology)
	if err != nil {
		return nil, err
	}
	names := nodeNames(v)
	answers := askAll(ctx, s, v, func(ctx context.Context, p partSource) ([]view.Letter, error) {
		return p.Letters(ctx, topology, component, n)
	})
	all, some := []view.Letter{}, false
	for _, a := range answers {
		for _, l := range a.value {
			l.ID, l.Node = nodeName(a.from.Node)+"/"+l.ID, names[a.from.Node]
			all = append(all, l)
		}
		some = some || a.err == nil
	}
	if !some { // else who has none says so, such as a node without a directory
		return nil, none(answers)
	}
	slices.SortStableFunc(all, func(x, y view.Letter) int { return y.Died.Compare(x.Died) })
	return all[:min(n, len(all))], nil
}

// Settle has each node settle its own letters.
func (s *clusterSource) Settle(ctx context.Context, topology string, ids []string, replay bool) (*view.Effect, error) {
	v, _, err := s.submission(ctx, topology)
	if err != nil {
		return nil, err
	}
	names := nodeNames(v)
	of := map[*node.MemberView][]string{}
	var order []*node.MemberView
	for _, id := range ids {
		name, letter, is := strings.Cut(id, "/")
		at := slices.IndexFunc(v.Members, func(m node.MemberView) bool { return nodeName(m.Node) == name && m.Alive })
		switch {
		case !is:
			return nil, &web.Error{Code: web.Invalid, Text: fmt.Sprintf("%q is not the id of a dead letter in a cluster, such as %s/7-42", id, nodeName(1))}
		case at < 0:
			return nil, &web.Error{Code: web.Refused, Text: fmt.Sprintf("the node of dead letter %s is not there: its letters can be settled when it is", id)}
		}
		m := &v.Members[at]
		if of[m] == nil {
			order = append(order, m)
		}
		of[m] = append(of[m], letter)
	}
	texts, errs := make([]string, len(order)), make([]error, len(order))
	var asked sync.WaitGroup
	for i, m := range order {
		asked.Go(func() {
			e, err := s.at(v, m).Settle(ctx, topology, of[m], replay)
			if errs[i] = err; err == nil {
				texts[i] = e.Text
			} else {
				texts[i] = oneText(err)
			}
			if len(order) > 1 {
				texts[i] = names[m.Node] + ": " + texts[i]
			}
		})
	}
	asked.Wait()
	text := strings.Join(texts, "; ")
	if !slices.Contains(errs, nil) {
		if _, is := errors.AsType[*web.Error](errs[0]); is {
			return nil, &web.Error{Code: web.Refused, Text: text}
		}
		return nil, errors.New(text)
	}
	return &view.Effect{Done: true, Text: text}, nil
}
