package egret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// A letterBox has the dead letters of a topology in a directory of state, for who looks.
// A run may have the directory at the same time; what is settled it finds by itself.
type letterBox struct {
	dir, topology string
	node          string
	plan          *topology.Plan // nil: not known
}

// list returns up to n letters, the latest first.
func (b *letterBox) list(ctx context.Context, component string, n int) ([]view.Letter, error) {
	l, err := b.open()
	if l == nil {
		return []view.Letter{}, err
	}
	if p := b.plan; p != nil && component != "" && !slices.ContainsFunc(p.Components, func(c topology.Node) bool { return c.Name == component }) {
		return nil, &web.Error{Code: web.Unknown, Text: fmt.Sprintf("there is no component %q in the topology %s", component, p.Topology)}
	}
	entries, err := l.Latest(ctx, component, n)
	if err != nil && len(entries) == 0 {
		return nil, fmt.Errorf("read the dead letters of %s: %w", b.topology, err)
	}
	all := make([]view.Letter, len(entries))
	for i := range entries {
		all[i] = b.show(&entries[i])
	}
	return all, nil
}

// open returns nil if nothing of the topology is there, and an error if there could not be.
func (b *letterBox) open() (*disk.Letters, error) {
	if p := b.plan; p != nil && p.Guarantee != topology.AtLeastOnce {
		return nil, &web.Error{Code: web.NotHere, Text: fmt.Sprintf("the topology %s is %v, and only at-least-once topologies have dead letters", p.Topology, p.Guarantee)}
	}
	if b.dir == "" {
		return nil, &web.Error{Code: web.NotHere, Text: "there is no directory for dead letters: give run a --state directory (Config.StateDir), or node --data; what is dead is in the log alone"}
	}
	l, err := disk.OpenLetters(b.dir, b.topology)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return l, err
}

func (b *letterBox) show(e *disk.Entry) view.Letter {
	l := view.Letter{
		ID: e.ID, Node: b.node, Waiting: e.Waiting, Component: e.Component, Task: e.Task, Stream: e.Stream, Fields: e.Fields, Values: []json.RawMessage{},
		Error: e.DeadLetter.Err, History: append([]string{}, e.History...), Failures: e.Failures, Losses: e.Losses, Replayed: e.Deaths - 1, Died: e.Time,
	}
	if e.Err == nil {
		l.Values = view.Values(b.schema(e.DeadLetter), e.Values)
	} else {
		l.Error += fmt.Sprintf(" (its values cannot be read here: %v)", e.Err)
	}
	return l
}

// schema is that of a letter's values, with the fields that are masked now. All are if
// nobody knows which, or if nobody may look at tuples.
func (b *letterBox) schema(l *task.DeadLetter) *tuple.Schema {
	s := &tuple.Schema{Component: l.Component, Stream: l.Stream, Fields: l.Fields, Masked: l.Fields}
	if b.plan == nil || b.plan.NoTaps {
		return s
	}
	s.Masked = nil
	for c := range b.plan.Components {
		for _, other := range b.plan.Components[c].Streams {
			if other.Component == l.Component && other.Stream == l.Stream {
				s.Masked = other.Masked
				return s
			}
			s.Masked = append(s.Masked, other.Masked...) // of a stream that is no more, fields of those names
		}
	}
	return s
}

// settle replays letters, or drops them.
func (b *letterBox) settle(ids []string, replay bool, when string) (*view.Effect, error) {
	for _, id := range ids {
		if !disk.IsID(id) {
			return nil, &web.Error{Code: web.Invalid, Text: fmt.Sprintf("%q is not the id of a dead letter, such as 7-42", id)}
		}
	}
	l, err := b.open()
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, &web.Error{Code: web.Unknown, Text: "there are no dead letters of " + b.topology}
	}
	var n int
	text := "dropped"
	if replay {
		text = "will be replayed " + when
		n, err = l.Replay(ids, func(x *task.DeadLetter) error {
			if b.plan == nil {
				return nil // the run looks for itself
			}
			return task.Replayable(b.plan, x)
		})
	} else {
		n, err = l.Drop(ids)
	}
	text = fmt.Sprintf("%s %s", amount.Of(n, "dead letter"), text)
	switch {
	case err != nil && n == 0:
		return nil, &web.Error{Code: web.Refused, Text: oneText(err)}
	case err != nil:
		text += "; but " + oneText(err)
	}
	return &view.Effect{Done: true, Text: text}, nil
}

// oneText is joined errors in one line.
func oneText(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Letters are those in the state directory.
func (s *runSource) Letters(ctx context.Context, topology, component string, n int) ([]view.Letter, error) {
	if err := s.known(topology); err != nil {
		return nil, err
	}
	return s.letterBox().list(ctx, component, n)
}

// Settle is what the command deadletters does. The run takes letters to replay by itself.
func (s *runSource) Settle(_ context.Context, topology string, ids []string, replay bool) (*view.Effect, error) {
	if err := s.known(topology); err != nil {
		return nil, err
	}
	when := "within about a second, or by the next run if the input has ended"
	if s.ending.Load() {
		when = "by the next run with this state directory: this one ends"
	}
	return s.letterBox().settle(ids, replay, when)
}

func (s *runSource) letterBox() *letterBox {
	return &letterBox{dir: s.config.StateDir, topology: s.plan.Topology, node: localNode, plan: s.plan}
}
