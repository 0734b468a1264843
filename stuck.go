package egret

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/egretstream/egret/actor/host"
	"github.com/egretstream/egret/task"
)

// How a run tells of code that does not come back.

// stuck logs that a task is stuck.
func stuck(log *slog.Logger, e *task.Stuck) {
	attrs := []any{"life", e.Life.String(), "for", e.For, "replaced", e.Replaced}
	if e.Tuple != "" {
		text := e.Tuple
		if e.Others > 0 {
			text = fmt.Sprintf("%s, or one of the %d behind it", text, e.Others)
		}
		attrs = append(attrs, "tuple", text)
	}
	if e.Stack != "" {
		attrs = append(attrs, "stack", usersPart(e.Stack))
	}
	log.Error("task stuck: "+e.Task+" does not come back from "+e.During, attrs...)
}

// leftBehind logs what had not come back when the run was over. The goroutines are
// the user's from then on.
func (r *Running) leftBehind(all []host.Left) {
	for _, l := range all {
		_, name, ofTask := strings.Cut(l.Name, "/supervisor/")
		what := "task " + name
		switch {
		case !ofTask:
			what = "a call of Egret's own, of the state directory," // the supervisor's
		case l.Call:
			what = "a call that task " + name + " has made"
		}
		if log := r.events.about(name, "left behind"); log != nil {
			log.Error(what+" did not come back; its goroutine is left behind", "stack", usersPart(l.Stack))
		}
	}
}

// usersPart cuts a stack where Egret called.
func usersPart(stack string) string {
	if i := strings.Index(stack, "github.com/egretstream/egret/task."); i > 0 {
		stack = stack[:i]
	}
	return strings.TrimRight(stack, "\n")
}
