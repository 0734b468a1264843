package egret

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/task"
)

// The events of a topology's tasks, as they are logged. Its methods may be called from
// any goroutine.
type events struct {
	topology string
	node     string // "": a run without a cluster
	logger   *slog.Logger
	book     book   // all of them
	stacks   panics // whose stacks were logged
	noise    noise  // and what was not
}

// Panics with values of their own are all of another kind: so many are remembered, by so
// much of them.
const (
	mostPanics = 256
	mostPanic  = 256 // bytes
)

// panics are those that were seen, by where and why. The zero value is ready.
type panics struct {
	mu   sync.Mutex
	seen map[string]bool
}

// add reports whether it is a new one. When there are too many all are forgotten.
func (p *panics) add(text string) bool {
	text = cutText(text, mostPanic)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[text] {
		return false
	}
	if p.seen == nil || len(p.seen) == mostPanics {
		p.seen = map[string]bool{}
	}
	p.seen[text] = true
	return true
}

// tell logs what people should hear of, and keeps it for those who look.
func (v *events) tell(e task.Event) {
	v.note(e)
	if quiet(e) {
		return
	}
	switch e := e.(type) {
	case *task.Died:
		if log := v.about(e.Task, "task died"); log != nil {
			attrs := []any{"life", e.Life.String(), "again_in", e.Again}
			if p, ok := errors.AsType[*task.PanicError](e.Err); ok && v.unseen(p) {
				attrs = append(attrs, "stack", userStack(p.Stack))
			}
			log.Error("task died: "+e.Err.Error(), attrs...)
		}
	case *task.Stuck:
		if log := v.about(e.Task, "task stuck "+e.Task); log != nil {
			stuck(log, e)
		}
	case *task.Failure:
		if log := v.about(e.Task, "execution failed"); log != nil {
			attrs := []any{"failed_so_far", e.Failed}
			if e.Tuple != "" {
				attrs = append(attrs, "tuple", e.Tuple)
			}
			log.Warn("execution failed: "+e.Err, attrs...)
		}
	case *task.TimedOut:
		if log := v.about(e.Task, "messages timed out"); log != nil {
			log.Warn("messages timed out and are replayed: "+e.Err, "timed_out_so_far", e.TimedOut)
		}
	case *task.Notice:
		if log := v.about(e.Task, "notice"); log != nil {
			log.Warn(e.Text)
		}
	case *task.DeadLetter:
		if log := v.about(e.Task, "message is dead"); log != nil {
			if e.ID != "" {
				log = log.With("id", e.ID)
			}
			log.Warn("message is dead: "+e.Err, "stream", e.Stream,
				"values", deadValues(e), "failures", e.Failures, "losses", e.Losses)
		}
	case *task.SourceError:
		if log := v.about(e.Task, "source failed"); log != nil {
			log.Warn("source failed: "+e.Err.Error(), "split", e.Split, "position", e.Position, "again_in", e.Again)
		}
	case *task.QueueError:
		switch log := v.about(e.Task, "queue failed"); {
		case log == nil:
		case e.Again > 0:
			log.Warn("queue failed: "+e.Err.Error(), "again_in", e.Again)
		default:
			log.Warn("queue was not answered: "+e.Err.Error(), "answers_lost", e.Lost)
		}
	case *task.StoreError:
		attrs := []any{"topology", v.topology}
		if e.Again > 0 {
			attrs = append(attrs, "again_in", e.Again)
		}
		v.logger.Error("cannot "+e.Doing+": "+e.Err.Error(), attrs...)
	}
}

// quiet reports whether an event only is to be counted.
func quiet(e task.Event) bool {
	switch e := e.(type) {
	case *task.Failure:
		return e.Quiet
	case *task.TimedOut:
		return e.Quiet
	case *task.QueueError:
		return e.Quiet
	}
	return false
}

// unseen reports whether p is the first panic of its kind: the stack of the others
// would say the same.
func (v *events) unseen(p *task.PanicError) bool {
	if len(p.Stack) == 0 {
		return false
	}
	return v.stacks.add(fmt.Sprint(p.Component, p.During, p.Value))
}

// about returns the logger for something that a task has met, or nil if enough of
// it has been logged.
func (v *events) about(task, what string) *slog.Logger {
	component, index, _ := strings.Cut(task, "/")
	more, ok := v.noise.pass(topic{component, what}, time.Now())
	if !ok {
		return nil
	}
	log := v.of(component)
	if i, err := strconv.Atoi(index); err == nil {
		log = log.With("task", i)
	}
	if more > 0 {
		log = log.With("unlogged", more)
	}
	return log
}

func (v *events) of(component string) *slog.Logger {
	return v.logger.With("topology", v.topology, "component", component)
}

// quiet says at the end of the run what was not logged.
func (v *events) quiet() {
	n := &v.noise
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range slices.SortedFunc(maps.Keys(n.bursts), func(a, b topic) int {
		return strings.Compare(a.component+"/"+a.what, b.component+"/"+b.what)
	}) {
		if more := n.bursts[t].more; more > 0 {
			v.of(t.component).Warn("and "+amount.Digits(more)+" more: "+t.what, "unlogged", more)
		}
	}
}
