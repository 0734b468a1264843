package egret

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/view"
)

const (
	mostStack = 8 << 10 // bytes of one that is kept
	mostTuple = 1 << 10 // and of a tuple
	mostError = 2 << 10 // and of what was said
)

// A book keeps the last errors of a topology's tasks, for people who look at it. Its
// methods may be called from any goroutine.
type book struct {
	mu       sync.Mutex
	errors   view.Errors
	troubles map[trouble]view.Trouble
}

// A trouble is of a component (died) or of a task (stuck).
type trouble struct{ kind, of string }

func (b *book) add(e view.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors.Add(e)
}

// all returns the errors, the latest first.
func (b *book) all() []view.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.errors.All()
}

// trouble keeps what people should hear of before all else: how a component has died last,
// and which tasks are in a call that does not come back.
func (b *book) trouble(e task.Event, x *view.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := view.Trouble{Kind: x.Kind, Component: x.Component, Task: x.Task, Text: cutText(x.Text, mostTuple), At: x.Last}
	switch e := e.(type) {
	case *task.Died:
		b.troubled(trouble{"died", x.Component}, now)
		delete(b.troubles, trouble{"stuck", x.Task})
	case *task.Stuck:
		if now.At = x.Last.Add(-e.For); !e.Replaced {
			b.troubled(trouble{"stuck", x.Task}, now)
		}
	case *task.Notice:
		if e.Back {
			delete(b.troubles, trouble{"stuck", x.Task})
		}
	}
}

// troubled keeps one. Caller must hold mu.
func (b *book) troubled(of trouble, x view.Trouble) {
	if b.troubles == nil {
		b.troubles = map[trouble]view.Trouble{}
	}
	b.troubles[of] = x
}

// lost writes down what was lost with a node.
func (b *book) lost(l *node.Loss) {
	e := view.Error{
		Topology: l.Topology, Component: l.Component, Task: l.Tasks[0], Node: oneLine(l.Node, 60), Kind: "died", Text: cutText(l.String(), mostError),
		Last: time.Now(), Count: 1,
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors.Add(e)
	b.troubled(trouble{"died", e.Component}, view.Trouble{Kind: e.Kind, Component: e.Component, Task: e.Task, Text: cutText(l.Why, mostTuple), At: e.Last})
}

// take takes over what is in another book. That is left empty, for who still writes into it.
func (b *book) take(o *book) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b.errors, b.troubles = o.errors, o.troubles
	o.errors, o.troubles = view.Errors{}, nil
}

// allTroubles returns them in order.
func (b *book) allTroubles() (all []view.Trouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.troubles {
		all = append(all, x)
	}
	slices.SortFunc(all, func(x, y view.Trouble) int { return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Task, y.Task)) })
	return all
}

// note writes an event into the book: each one, so that its counts are those of the metrics.
// What differs each time is no part of the text, so that the same error is counted.
func (v *events) note(e task.Event) {
	n := view.Error{Topology: v.topology, Node: v.node, Last: time.Now(), Count: 1}
	switch e := e.(type) {
	case *task.Died:
		n.Kind, n.Task, n.Text = "died", e.Task, e.Err.Error()
		if p, ok := errors.AsType[*task.PanicError](e.Err); ok {
			n.Text, n.Tuple, n.Stack = fmt.Sprintf("panic in %s: %v", p.During, p.Value), p.Tuple, userStack(p.Stack)
		}
	case *task.Stuck:
		n.Kind, n.Task, n.Text = "stuck", e.Task, "does not come back from "+e.During
		n.Tuple, n.Stack = e.Tuple, usersPart(e.Stack)
		if e.Again {
			n.Count = 0
		}
		if e.Others > 0 {
			n.Tuple += fmt.Sprintf(", or one of the %d behind it", e.Others)
		}
	case *task.Failure:
		n.Kind, n.Task, n.Text, n.Tuple = "failed", e.Task, e.Err, e.Tuple
		if e.Unsent {
			n.Kind = "unsent"
		}
	case *task.TimedOut:
		n.Kind, n.Task, n.Text, n.Count = "timed out", e.Task, e.Err, e.Messages
	case *task.Notice:
		n.Kind, n.Task, n.Text = "notice", e.Task, e.Text
	case *task.DeadLetter:
		n.Kind, n.Task, n.Text = "dead letter", e.Task, e.Err
		var values []string
		for _, a := range deadValues(e).Group() {
			values = append(values, a.Key+": "+a.Value.String())
		}
		n.Tuple = "{" + strings.Join(values, ", ") + "}"
	case *task.SourceError:
		n.Kind, n.Task, n.Text, n.Tuple = "source", e.Task, e.Err.Error(), fmt.Sprintf("split %s, position %q", e.Split, e.Position)
	case *task.QueueError:
		n.Kind, n.Task, n.Text = "queue", e.Task, e.Err.Error()
	case *task.StoreError:
		n.Kind, n.Text = "state", "cannot "+e.Doing+": "+e.Err.Error()
	}
	n.Component, _, _ = strings.Cut(n.Task, "/")
	n.Text, n.Tuple, n.Stack = cutText(n.Text, mostError), cutText(n.Tuple, mostTuple), cutText(n.Stack, mostStack)
	v.book.add(n)
	v.book.trouble(e, &n)
}

// cutText keeps text short.
func cutText(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
