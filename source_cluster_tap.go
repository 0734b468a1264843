package egret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	t := &clusterTap{want: want, each: time.Duration(float64(time.Second) / max(want.Most, 0.001)), some: make(chan struct{}, 1), from: map[cluster.Home]*tapFrom{}}
	defer t.under.Wait()
	defer cancel()
	notes, again, next := time.NewTicker(tapNote), time.NewTicker(tapAgain), time.NewTimer(time.Hour)
	defer notes.Stop()
	defer again.Stop()
	defer next.Stop()
	t.begin(ctx, s, v, sub)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.some:
			if more, err := t.pass(yield, next); !more || err != nil {
				return err
			}
		case <-next.C:
			if more, err := t.pass(yield, next); !more || err != nil {
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
				for t.ready() {
					if more, err := t.pass(yield, next); !more || err != nil {
						return err
					}
				}
				yield(t.note())
				return nil
			default:
				return err
			}
		}
	}
}

// tappedComponent finds the component of a tap, which may have the stream behind a dot or slash.
func tappedComponent(sub *cluster.Submission, want *view.Tap) error {
	var have []string
	for _, c := range sub.Components {
		if c.Name == want.Component {
			return nil
		}
		have = append(have, c.Name)
	}
	for _, name := range have {
		stream, is := strings.CutPrefix(want.Component, name)
		if is && want.Stream == "" && (stream[0] == '.' || stream[0] == '/') {
			want.Component, want.Stream = name, stream[1:]
			return nil
		}
	}
	return &web.Error{Code: web.Unknown, Text: fmt.Sprintf("there is no component %q in the topology %s: it has %s", want.Component, want.Topology, strings.Join(have, ", "))}
}

// A clusterTap is one who looks at a stream of a cluster, and what waits for it. Nodes take
// turns, so that the one that is asked does not hide the others.
type clusterTap struct {
	want  view.Tap
	each  time.Duration // between tuples, on average
	some  chan struct{} // has one when something is kept, or is wrong
	under sync.WaitGroup
	next  time.Time // when the next tuple may be shown

	mu     sync.Mutex
	from   map[cluster.Home]*tapFrom
	before view.Tapped // notes of taps that are over
	busy   bool        // who looks is being shown something
	missed int64
	shown  int64
	failed string // why Where has failed; empty: that was told
	told   bool
	silent []string // nodes, and why, that was not told yet
	err    error    // that ends it
}

// A tapFrom is what comes from one node.
type tapFrom struct {
	note view.Tapped    // the last one
	over bool           // it is tapped no more
	kept []*view.Tapped // that may yet be shown
	turn time.Time      // when it was its turn last
	told bool           // that it is silent
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
		f := t.from[m.Home]
		if has && m.Alive && (f == nil || f.over) {
			if f == nil {
				f = &tapFrom{}
				t.from[m.Home] = f
			}
			f.over = false
			at, name := s.at(v, m), names[m.Node]
			t.under.Go(func() {
				t.over(m.Home, name, at.Tap(ctx, t.want, func(x *view.Tapped) bool { return t.take(m.Home, name, x) }))
			})
		}
		t.mu.Unlock()
	}
}

// take takes what a node shows. What there is no time to show is left out, the oldest first.
func (t *clusterTap) take(from cluster.Home, name string, x *view.Tapped) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.from[from]
	if x.Values == nil {
		f.note = *x
		t.fail(x.Error)
		return true
	}
	if len(f.kept) >= max(1, int(tapBurst/t.each)) {
		f.kept = f.kept[1:]
		if t.busy {
			t.missed++
		}
	}
	x.Node = name
	f.kept = append(f.kept, x)
	t.wake()
	return true
}

// over takes in that a node is tapped no more. If it should be, that is tried again.
func (t *clusterTap) over(from cluster.Home, name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.from[from]
	addNote(&t.before, &f.note)
	f.note, f.over = view.Tapped{}, true
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
	if f.told {
		return
	}
	f.told = true
	text := fmt.Sprintf("node %s: %v", name, err)
	if _, is := errors.AsType[net.Error](err); is || errors.Is(err, io.ErrUnexpectedEOF) {
		text = fmt.Sprintf("node %s is gone, or cannot be reached any more: the tap goes on with the others, and with its tasks where they begin anew", name)
	}
	t.silent = append(t.silent, text)
}

// fail keeps what is to be told once. Caller must hold mu.
func (t *clusterTap) fail(text string) {
	if text != "" && !t.told {
		t.failed, t.told = text, true
	}
}

// pass shows one tuple that is kept, if it is time to: who is slow hears the notes in between.
// It sets next to when there is more to do. more is false when nobody looks any more.
func (t *clusterTap) pass(yield func(*view.Tapped) bool, next *time.Timer) (more bool, err error) {
	x, err := t.turn(time.Now())
	if err != nil {
		return true, err
	}
	if x != nil {
		more := yield(x)
		t.mu.Lock()
		t.busy = false
		t.mu.Unlock()
		if !more {
			return false, nil
		}
	}
	if wait := time.Until(t.next); x != nil || wait > 0 {
		next.Reset(max(0, wait))
	}
	return true, nil
}

// ready reports whether there is something to be shown now.
func (t *clusterTap) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.from {
		if len(f.kept) > 0 {
			return !time.Now().Before(t.next)
		}
	}
	return false
}

// turn returns what is to be shown now, of the node whose last turn is the longest ago; nil:
// nothing, or not yet.
func (t *clusterTap) turn(now time.Time) (*view.Tapped, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || now.Before(t.next) {
		return nil, t.err
	}
	var first *tapFrom
	for _, f := range t.from {
		if len(f.kept) > 0 && (first == nil || f.turn.Before(first.turn)) {
			first = f
		}
	}
	if first == nil {
		return nil, nil
	}
	x := first.kept[0]
	first.kept, first.turn = first.kept[1:], now
	t.next = later(t.next, now.Add(-tapBurst)).Add(t.each)
	t.shown++
	t.busy = true
	return x, nil
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
	for _, f := range t.from {
		addNote(&n, &f.note)
	}
	if t.failed != "" {
		t.silent = append(t.silent, t.failed)
	}
	n.At, n.Shown, n.Error = time.Now(), t.shown, strings.Join(t.silent, "; ")
	n.Missed += t.missed
	t.failed, t.silent = "", nil
	return &n
}

// addNote adds what a node has said of a tap there.
func addNote(all, x *view.Tapped) {
	all.Emitted += x.Emitted
	all.Looked += x.Looked
	all.Matched += x.Matched
	all.Missed += x.Missed
	all.Failed += x.Failed
	if x.FailedWith != "" {
		all.FailedWith = x.FailedWith
	}
}

// wake has the owner look. Caller must hold mu.
func (t *clusterTap) wake() {
	select {
	case t.some <- struct{}{}:
	default: // it has one
	}
}
