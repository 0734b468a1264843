package egret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// tapAgain is how often it is looked where the tasks of a component are.
const tapAgain = time.Second

// Tap taps the tasks of a component on all nodes that have some, also those that come to
// have some, and shows at most as many tuples a second in all.
func (s *clusterSource) Tap(ctx context.Context, want view.Tap, yield func(*view.Tapped) bool) error {
	v, sub, err := s.submission(ctx, want.Topology)
	if err != nil {
		return err
	}
	if err := tappedComponent(sub, &want); err != nil {
		return err
	}
	if !sub.Status.Runs() || sub.Plan == nil {
		return &web.Error{Code: web.Refused, Text: fmt.Sprintf("the topology %s has no tasks: there is nothing to see", want.Topology)}
	}
	if want.Most == 0 {
		want.Most = tapMost
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &clusterTap{want: want, each: time.Duration(float64(time.Second) / max(want.Most, 0.001)), some: make(chan struct{}, 1), from: map[cluster.Home]*view.Tapped{}}
	defer t.under.Wait()
	defer cancel()
	notes, again := time.NewTicker(tapNote), time.NewTicker(tapAgain)
	defer notes.Stop()
	defer again.Stop()
	t.begin(ctx, s, v, sub)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.some:
			if more, err := t.pass(yield); !more || err != nil {
				return err
			}
		case <-notes.C:
			if !yield(t.note()) {
				return nil
			}
		case <-again.C:
			run := sub.Run
			v, sub, err = s.submission(ctx, want.Topology)
			switch _, gone := errors.AsType[*web.Error](err); {
			case err == nil && sub.Run == run && sub.Status.Runs():
				t.begin(ctx, s, v, sub)
			case err == nil, gone: // it has ended
				if more, err := t.pass(yield); !more || err != nil {
					return err
				}
				yield(t.note())
				return nil
			default:
				return err
			}
		}
	}
}

// tappedComponent finds the component of a tap, which may have the stream behind a dot.
func tappedComponent(sub *cluster.Submission, want *view.Tap) error {
	var have []string
	for _, c := range sub.Components {
		if c.Name == want.Component {
			return nil
		}
		have = append(have, c.Name)
	}
	for _, name := range have {
		if stream, is := strings.CutPrefix(want.Component, name+"."); is && want.Stream == "" {
			want.Component, want.Stream = name, stream
			return nil
		}
	}
	return &web.Error{Code: web.Unknown, Text: fmt.Sprintf("there is no component %q in the topology %s: it has %s", want.Component, want.Topology, strings.Join(have, ", "))}
}

// A clusterTap is one who looks at a stream of a cluster, and what waits for it.
type clusterTap struct {
	want  view.Tap
	each  time.Duration // between tuples, on average
	some  chan struct{} // has one when something is kept, or is wrong
	under sync.WaitGroup
	next  time.Time // when the next tuple may be shown

	mu     sync.Mutex
	from   map[cluster.Home]*view.Tapped // the last note of those that are tapped
	before view.Tapped                   // notes of those that were
	kept   []*view.Tapped
	missed int64
	shown  int64
	failed string // why Where has failed, or a node is silent; empty: that was told
	told   bool
	err    error // that ends it
}

// begin taps the nodes that have tasks and are not tapped.
func (t *clusterTap) begin(ctx context.Context, s *clusterSource, v *node.View, sub *cluster.Submission) {
	names := nodeNames(v)
	for i := range v.Members {
		m := &v.Members[i]
		has := slices.ContainsFunc(sub.Plan.Tasks, func(x cluster.Task) bool {
			return x.Home == m.Home && sub.Components[x.Component].Name == t.want.Component
		})
		t.mu.Lock()
		_, tapped := t.from[m.Home]
		if has && m.Alive && !tapped {
			t.from[m.Home] = &view.Tapped{}
			at, name := s.at(v, m), names[m.Node]
			t.under.Go(func() {
				t.over(m.Home, name, at.Tap(ctx, t.want, func(x *view.Tapped) bool { return t.take(m.Home, name, x) }))
			})
		}
		t.mu.Unlock()
	}
}

// take takes what a node shows.
func (t *clusterTap) take(from cluster.Home, name string, x *view.Tapped) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case x.Values == nil:
		t.from[from] = x
		t.fail(x.Error)
		return true
	case len(t.kept) == tapKept:
		t.missed++
	default:
		x.Node = name
		t.kept = append(t.kept, x)
	}
	t.wake()
	return true
}

// over takes in that a node is tapped no more. If it should be, that is tried again.
func (t *clusterTap) over(from cluster.Home, name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	addNote(&t.before, t.from[from])
	delete(t.from, from)
	if err == nil {
		return
	}
	if e, is := errors.AsType[*web.Error](err); is && e.Code != web.NotHere && e.Code != web.Broken {
		if t.err == nil {
			t.err = err
		}
		t.wake()
		return
	}
	t.fail(fmt.Sprintf("node %s: %v", name, err))
}

// fail keeps what is to be told once. Caller must hold mu.
func (t *clusterTap) fail(text string) {
	if text != "" && !t.told {
		t.failed, t.told = text, true
	}
}

// pass shows what is kept and is to be shown. more is false when nobody looks any more.
func (t *clusterTap) pass(yield func(*view.Tapped) bool) (more bool, err error) {
	for {
		t.mu.Lock()
		if t.err != nil || len(t.kept) == 0 {
			defer t.mu.Unlock()
			return true, t.err
		}
		x := t.kept[0]
		t.kept = t.kept[1:]
		now := time.Now()
		show := !now.Before(t.next)
		if show {
			t.next = later(t.next, now.Add(-tapBurst)).Add(t.each)
			t.shown++
		}
		t.mu.Unlock()
		if show && !yield(x) {
			return false, nil
		}
	}
}

func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// note says what was looked at since the tap began, on all nodes.
func (t *clusterTap) note() *view.Tapped {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.before
	for _, x := range t.from {
		addNote(&n, x)
	}
	n.At, n.Shown, n.Error = time.Now(), t.shown, t.failed
	n.Missed += t.missed
	t.failed = ""
	return &n
}

// addNote adds what a node has said of a tap there.
func addNote(all, x *view.Tapped) {
	all.Emitted += x.Emitted
	all.Looked += x.Looked
	all.Matched += x.Matched
	all.Missed += x.Missed
}

// wake has the owner look. Caller must hold mu.
func (t *clusterTap) wake() {
	select {
	case t.some <- struct{}{}:
	default: // it has one
	}
}
