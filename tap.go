package egret

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/view/where"
	"github.com/egretstream/egret/web"
)

const (
	mostTaps  = 8                      // of a run at a time
	tapMost   = 10                     // tuples a second, if nobody says how many
	tapAtMost = 1000                   // and at most
	tapKept   = 256                    // tuples that wait for who looks
	tapBurst  = 100 * time.Millisecond // so much of a time without tuples is made up for
	tapNote   = time.Second
)

// taps are those of a run on this node. Its methods may be called from any goroutine.
type taps struct {
	node    string // its name
	plan    func() *topology.Plan
	emitted func(component, stream int) int64 // tuples, so far
	set     func(task.Taps)                   // tells the run's tasks
	mu      sync.Mutex                        // also held while they are told, so that they hear of the last ones last
	now     task.Taps
}

// tap is Tap of web.Source.
func (r *Running) tap(ctx context.Context, want view.Tap, yield func(*view.Tapped) bool) error {
	if want.Topology != r.plan.Topology {
		return &web.Error{Code: web.Unknown, Text: fmt.Sprintf("there is no topology %q: here runs %s", want.Topology, r.plan.Topology)}
	}
	return r.taps.look(ctx, r.over, want, yield)
}

// tapable makes the taps of the run ready.
func (r *Running) tapable() {
	r.taps.node, r.taps.plan = localNode, func() *topology.Plan { return r.plan }
	r.taps.set = func(now task.Taps) { r.host.Send(r.sup, now) }
	r.taps.emitted = func(component, stream int) (n int64) {
		c := &r.plan.Components[component]
		for i := range c.Parallel {
			n += r.ms[int(c.First)+i].Streams[stream].Emitted.Load()
		}
		return n
	}
}

// look looks at a stream until yield returns false, or ctx or the run ends.
func (t *taps) look(ctx context.Context, ended <-chan struct{}, want view.Tap, yield func(*view.Tapped) bool) error {
	k, err := newTapping(t.plan(), want)
	if err != nil {
		return err
	}
	k.before = t.emitted(k.component, k.stream)
	if !t.add(k.tap) {
		return &web.Error{Code: web.Busy, Text: fmt.Sprintf("there are %d taps of the topology %s already: close one", mostTaps, want.Topology)}
	}
	defer t.remove(k.tap)
	k.serve(ctx, ended, t, yield)
	return nil
}

func (t *taps) add(k *task.Tap) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now) == mostTaps {
		return false
	}
	t.now = append(slices.Clone(t.now), k)
	t.set(t.now)
	return true
}

func (t *taps) remove(k *task.Tap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = slices.DeleteFunc(slices.Clone(t.now), func(o *task.Tap) bool { return o == k })
	t.set(t.now)
}

// A tapping is one who looks at a stream, and what waits for it.
//
//	tasks --Seen--> is it time? --> kept, or missed --serve--> yield
type tapping struct {
	tap       *task.Tap
	schema    *tuple.Schema
	component int   // of the plan
	stream    int   // of the component
	before    int64 // tuples emitted
	began     time.Time
	each      time.Duration // between tuples, on average
	next      atomic.Int64  // when the next one may be passed on, as a time since began
	some      chan struct{} // has one when something is kept

	mu                             sync.Mutex // held for moments: tasks wait for it
	kept                           []seen
	looked, matched, shown, missed int64
	failures                       int64
	last                           string // why Where has failed, the last time
	failed                         string // and the first time; empty if that was told
	told                           bool
}

// A seen is a tuple that a task has emitted.
type seen struct {
	at     time.Time
	task   string
	values []tuple.Value
}

// newTapping finds what is to be looked at. The error is a *web.Error.
func newTapping(p *topology.Plan, want view.Tap) (*tapping, error) {
	if p.NoTaps {
		return nil, &web.Error{Code: web.Forbidden, Text: "the topology " + p.Topology + " forbids taps (NoTaps)"}
	}
	if want.Most < 0 || want.Most > tapAtMost || math.IsNaN(want.Most) {
		return nil, &web.Error{Code: web.Invalid, Text: fmt.Sprintf("%v tuples a second cannot be shown: ask for at most %d", want.Most, tapAtMost)}
	}
	if want.Most == 0 {
		want.Most = tapMost
	}
	k := &tapping{began: time.Now(), each: time.Duration(float64(time.Second) / max(want.Most, 0.001)), some: make(chan struct{}, 1)}
	var err *web.Error
	if k.component, k.stream, err = findStream(p, want.Component, want.Stream); err != nil {
		return nil, err
	}
	n := &p.Components[k.component]
	k.schema = n.Streams[k.stream]
	if !slices.ContainsFunc(n.Outputs, func(r topology.Route) bool { return r.Stream == k.stream }) {
		return nil, &web.Error{Code: web.Invalid, Text: fmt.Sprintf("nobody subscribes to the stream %s.%s: nothing is sent on it, so there is nothing to see", n.Name, k.schema.Stream)}
	}
	k.tap = &task.Tap{Component: n.Name, Stream: k.schema.Stream, Seen: k.seen, Looked: k.looks}
	if want.Where != "" {
		f, err := where.Compile(want.Where, k.schema)
		if err != nil {
			return nil, &web.Error{Code: web.Invalid, Text: fmt.Sprintf("where %q: %v", want.Where, err)}
		}
		k.tap.Where = f.New
	}
	return k, nil
}

// findStream returns a component and its stream. Without a stream it is the first one of
// the component, which may also be named "component.stream" or "component/stream".
func findStream(p *topology.Plan, component, stream string) (c, s int, err *web.Error) {
	find := func(name string) int {
		return slices.IndexFunc(p.Components, func(n topology.Node) bool { return n.Name == name && !n.Coordinates })
	}
	c = find(component)
	for at := len(component) - 1; at > 0 && c < 0 && stream == ""; at-- { // names may have dots
		if component[at] == '.' || component[at] == '/' {
			if c = find(component[:at]); c >= 0 {
				component, stream = component[:at], component[at+1:]
			}
		}
	}
	if c < 0 {
		var have []string
		for _, n := range p.Components {
			if len(n.Streams) > 0 {
				have = append(have, n.Name)
			}
		}
		return 0, 0, &web.Error{Code: web.Unknown, Text: fmt.Sprintf("there is no component %q in the topology %s: those that emit are %s", component, p.Topology, strings.Join(have, ", "))}
	}
	n := &p.Components[c]
	if len(n.Streams) == 0 {
		return 0, 0, &web.Error{Code: web.Invalid, Text: fmt.Sprintf("%s emits nothing", n.Name)}
	}
	if stream == "" {
		return c, 0, nil
	}
	if s = slices.IndexFunc(n.Streams, func(s *tuple.Schema) bool { return s.Stream == stream }); s < 0 {
		var have []string
		for _, s := range n.Streams {
			have = append(have, s.Stream)
		}
		return 0, 0, &web.Error{Code: web.Unknown, Text: fmt.Sprintf("%s has no stream %q: it has %s", n.Name, stream, strings.Join(have, ", "))}
	}
	return c, s, nil
}

// seen is called by tasks.
func (k *tapping) seen(name string, t tuple.Tuple) (more bool) {
	now := time.Now()
	if now.Sub(k.began) < time.Duration(k.next.Load()) {
		return false
	}
	values := view.Copy(k.schema, t)
	k.mu.Lock()
	defer k.mu.Unlock()
	since, next := now.Sub(k.began), time.Duration(k.next.Load())
	if since < next { // another task was quicker
		return false
	}
	next = max(next, since-tapBurst) + k.each
	k.next.Store(int64(next))
	if len(k.kept) == tapKept {
		k.missed++
	} else {
		k.kept = append(k.kept, seen{now, name, values})
	}
	select {
	case k.some <- struct{}{}:
	default: // it has one
	}
	return since >= next
}

// looks is called by tasks.
func (k *tapping) looks(looked, matched, failed int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked += int64(looked)
	k.matched += int64(matched)
	if err == nil {
		return
	}
	k.failures += int64(failed)
	k.last = err.Error()
	if !k.told {
		k.failed, k.told = k.last, true
	}
}

// serve passes on what tasks have seen. It is the only one who calls yield.
func (k *tapping) serve(ctx context.Context, ended <-chan struct{}, t *taps, yield func(*view.Tapped) bool) {
	ticks := time.NewTicker(tapNote)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			for more := true; more; {
				ok := false
				if ok, more = k.pass(t.node, yield); !ok || ctx.Err() != nil {
					return
				}
			}
			yield(k.note(t.emitted(k.component, k.stream)))
			return
		case <-k.some: // one tuple, so that who is slow hears the notes as well
			if ok, _ := k.pass(t.node, yield); !ok {
				return
			}
		case <-ticks.C:
			if !yield(k.note(t.emitted(k.component, k.stream))) {
				return
			}
		}
	}
}

// note says what was looked at since the tap began.
func (k *tapping) note(emitted int64) *view.Tapped {
	k.mu.Lock()
	defer k.mu.Unlock()
	// The counters are a little behind, and what had not left before counts as well.
	n := &view.Tapped{At: time.Now(), Emitted: max(emitted-k.before, k.looked), Looked: k.looked, Matched: k.matched, Shown: k.shown, Missed: k.missed, Failed: k.failures, FailedWith: k.last, Error: k.failed}
	k.failed = ""
	return n
}

// pass calls yield for one tuple that is kept, if there is one, and says whether there are
// more. ok is false when nobody looks any more.
func (k *tapping) pass(node string, yield func(*view.Tapped) bool) (ok, more bool) {
	k.mu.Lock()
	if len(k.kept) == 0 {
		k.mu.Unlock()
		return true, false
	}
	s := k.kept[0]
	k.kept[0] = seen{}
	k.kept = k.kept[1:]
	k.shown++
	if more = len(k.kept) > 0; more {
		select {
		case k.some <- struct{}{}:
		default: // it has one
		}
	}
	k.mu.Unlock()
	return yield(&view.Tapped{At: s.at, Task: s.task, Node: node, Values: view.Values(k.schema, s.values)}), more
}
