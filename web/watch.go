package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/egretstream/egret/view"
)

const (
	sampleEvery   = time.Second
	sampleTime    = 2 * time.Second // for one
	window        = 5 * time.Second // that rates are of
	fresh         = 5 * time.Second // is a sample that is younger
	mostHistories = 100             // topologies of which there is one
	restAfter     = time.Minute     // without anybody who looks, if it may rest
)

// A watch samples a source as long as it is open. Who looks gets the newest moment, and
// holds up nothing: there is no queue before anybody.
type watch struct {
	source  Source
	log     *slog.Logger
	closing context.Context // ends when the watch is closed
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the goroutine has ended

	rest   bool          // it rests while nobody looks
	wanted chan struct{} // has one when somebody looks

	samples []*view.Sample // of a window and a little more, the oldest first; of who calls look

	mu        sync.Mutex
	latest    *moment   // nil: before the first, and of one that rests
	number    int64     // of the next moment
	looked    time.Time // when somebody looked last
	closed    bool
	changed   chan struct{} // closed when there is another latest, or the watch is closed
	histories map[string]*view.History
}

// newWatch begins to sample. close must be called.
func newWatch(source Source, log *slog.Logger, rest bool) *watch {
	w := unwatched(source, log)
	w.rest = rest
	ctx := w.closing
	go func() { // ends with close, which waits for it
		defer close(w.ended)
		beat := time.NewTicker(sampleEvery)
		defer beat.Stop()
		for ctx.Err() == nil {
			if w.rests(time.Now()) {
				select {
				case <-ctx.Done():
					return
				case <-w.wanted:
					beat.Reset(sampleEvery)
				}
			}
			w.look(ctx)
			select {
			case <-ctx.Done():
			case <-beat.C:
			}
		}
	}()
	return w
}

// unwatched returns a watch that does not sample by itself.
func unwatched(source Source, log *slog.Logger) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	return &watch{
		source: source, log: log, closing: ctx, cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{}),
		histories: map[string]*view.History{}, wanted: make(chan struct{}, 1),
	}
}

// rests reports whether nobody has looked for a while. What was known before is then
// forgotten, for it says nothing of later.
func (w *watch) rests(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.rest || now.Sub(w.looked) < restAfter {
		return false
	}
	w.latest, w.samples = nil, nil
	select {
	case <-w.wanted: // of before
	default:
	}
	return true
}

// close ends the watch with a last sample.
func (w *watch) close() {
	w.cancel()
	<-w.ended
	w.mu.Lock()
	closed, rests := w.closed, w.rest && w.latest == nil
	w.mu.Unlock()
	if closed {
		return
	}
	if !rests {
		w.look(context.Background())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	close(w.changed)
}

// look takes one sample and makes it the latest.
func (w *watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	now, err := w.source.Sample(ctx)
	m := &moment{at: time.Now(), err: err}
	var before *view.Sample
	if err == nil {
		if n := len(w.samples); n > 0 {
			before = w.samples[n-1]
		}
		w.samples = append(w.samples, now)
		for len(w.samples) > 2 && now.At.Sub(w.samples[1].At) >= window {
			w.samples = w.samples[1:]
		}
		m.Comparison, m.sample = view.Compare(nil, now), now
		if len(w.samples) > 1 {
			m.Comparison = view.Compare(w.samples[0], now)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m.number = w.number
	w.number++
	if old := w.latest; old != nil {
		if err != nil {
			m.Comparison, m.sample, m.at = old.Comparison, old.sample, old.at
		}
		if err == nil && old.err != nil {
			w.log.Info("what runs can be looked at again")
		}
	}
	if err != nil && (w.latest == nil || w.latest.err == nil) {
		w.log.Warn("what runs cannot be looked at: " + err.Error())
	}
	if before != nil {
		m.points = w.remember(before, now, m.Comparison)
	}
	w.latest = m
	close(w.changed)
	w.changed = make(chan struct{})
}

// remember adds to the histories of the topologies of a sample, and forgets those of
// topologies that are gone if there are too many. Before is the sample before now, and c what
// is shown of now. Caller must hold mu.
func (w *watch) remember(before, now *view.Sample, c *view.Comparison) map[string]view.Point {
	points := map[string]view.Point{}
	for i := range now.Runs {
		r := &now.Runs[i]
		if r.Ended && (runOf(before, r.Topology) == nil || runOf(before, r.Topology).Ended) {
			continue // nothing happens any more
		}
		if p, ok := c.Point(r.Topology); ok {
			points[r.Topology] = p
		}
	}
	for name, p := range points {
		h := w.histories[name]
		if h == nil {
			for old := range w.histories {
				if _, here := points[old]; !here && len(w.histories) >= mostHistories {
					delete(w.histories, old)
				}
			}
			if len(w.histories) >= mostHistories {
				continue
			}
			h = &view.History{}
			w.histories[name] = h
		}
		h.Add(p)
	}
	return points
}

// now returns the latest moment that there was a sample of, and waits for the first.
func (w *watch) now(ctx context.Context) (*moment, error) {
	m, changed, _ := w.newest()
	if m == nil {
		select {
		case <-changed:
			m, _, _ = w.newest()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if m == nil || m.sample == nil {
		err := fmt.Errorf("what runs cannot be looked at")
		if m != nil {
			err = fmt.Errorf("%w: %w", err, m.err)
		}
		return nil, err
	}
	return m, nil
}

// until returns a context that ends with ctx, and with the watch.
func (w *watch) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// newest returns the latest moment, what is closed when there is another one, and whether
// there will be none.
func (w *watch) newest() (m *moment, changed <-chan struct{}, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = time.Now()
	if w.latest == nil {
		select {
		case w.wanted <- struct{}{}:
		default: // it has one
		}
	}
	return w.latest, w.changed, w.closed
}

// points returns the history of a topology since a moment; false: it has none.
func (w *watch) points(topology string, since time.Time) ([]view.Point, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.histories[topology]
	if h == nil {
		return nil, false
	}
	return h.Since(since), true
}

// stale says why what is shown is not of now; nil: it is.
func (w *watch) stale(now time.Time) error {
	m, _, closed := w.newest()
	switch {
	case closed:
		return fmt.Errorf("it has ended")
	case m == nil:
		return fmt.Errorf("there is no sample yet")
	case m.sample == nil:
		return fmt.Errorf("there is no sample yet: %w", m.err)
	case now.Sub(m.at) >= fresh && m.err != nil:
		return fmt.Errorf("the last sample is %v old: %w", now.Sub(m.at).Round(time.Second), m.err)
	case now.Sub(m.at) >= fresh:
		return fmt.Errorf("the last sample is %v old", now.Sub(m.at).Round(time.Second))
	}
	return nil
}

// A moment is a sample beside an earlier one, and what is said of it, which is written
// once for all who look.
type moment struct {
	number int64 // of this watch; rises by one
	at     time.Time
	err    error // why there is nothing newer; nil: the sample is of this moment
	sample *view.Sample
	*view.Comparison
	points map[string]view.Point // by topology

	mu    sync.Mutex
	texts map[string][]byte // details by topology, and "" is the overview
}

func (m *moment) has(topology string) bool { return runOf(m.sample, topology) != nil }

// runOf returns the run of a topology, or nil.
func runOf(s *view.Sample, topology string) *view.Run {
	for i := range s.Runs {
		if s.Runs[i].Topology == topology {
			return &s.Runs[i]
		}
	}
	return nil
}

// overview returns the overview as JSON.
func (m *moment) overview() ([]byte, error) {
	return m.text("", func() any { return m.Comparison.Overview() })
}

// detail returns that of a topology as JSON; nil: there is no such topology.
func (m *moment) detail(topology string) ([]byte, error) {
	if topology == "" || !m.has(topology) {
		return nil, nil
	}
	return m.text(topology, func() any { return m.Comparison.Detail(topology) })
}

func (m *moment) text(name string, make func() any) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text := m.texts[name]; text != nil {
		return text, nil
	}
	text, err := json.Marshal(make())
	if err != nil {
		return nil, err
	}
	if m.texts == nil {
		m.texts = map[string][]byte{}
	}
	m.texts[name] = text
	return text, nil
}
