package egret

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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
	mu     sync.Mutex
	errors view.Errors
}

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
}

// cutText keeps text short.
func cutText(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
