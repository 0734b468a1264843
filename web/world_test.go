package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// A world is a source that does what a test says, and remembers what was done to it.
type world struct {
	mu      sync.Mutex
	now     *view.Sample
	err     error // of Sample
	samples int
	hang    bool // of Sample, until its context ends
	acted   []view.Action
	settled [][]string
	trees   []view.OpenTree // of one node
	sought  []view.Sought   // that it was asked for
	tap     func(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error
}

// change changes what is the case.
func (w *world) change(f func(w *world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

func (w *world) Sample(ctx context.Context) (*view.Sample, error) {
	w.mu.Lock()
	w.samples++
	now, err, hang := w.now, w.err, w.hang
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	s := *now
	s.At = time.Now()
	return &s, nil
}

func (w *world) known(topology string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.now.Runs {
		if w.now.Runs[i].Topology == topology {
			return nil
		}
	}
	return &Error{Unknown, fmt.Sprintf("there is no topology %q", topology)}
}

func (w *world) Errors(_ context.Context, topology string) ([]view.Error, error) {
	return []view.Error{{Topology: topology, Component: "count", Task: "count/0", Kind: "died", Text: "<b>", Stack: "f()", Tuple: "(1)", First: time.Unix(1, 0), Last: time.Unix(2, 0), Count: 7}}, w.known(topology)
}

func (w *world) Oldest(_ context.Context, topology string, n int) ([]view.Tree, error) {
	all := []view.Tree{
		{Task: "lines/0", Node: "local", Tree: 1 << 60, Messages: 3, Replay: true, Message: "(a)", Age: time.Minute, Silent: time.Second, Places: []view.Place{{Task: "count/1", Node: "local", Queued: 1, Held: 2, Unsent: 3, Inside: time.Second}}},
		{Task: "lines/0", Node: "local", Tree: 2, Messages: 1},
	}
	return all[:min(n, len(all))], w.known(topology)
}

func (w *world) Open(_ context.Context, topology string, n int) ([]view.OpenTree, error) {
	return w.trees[:min(n, len(w.trees))], w.known(topology)
}

func (w *world) Places(_ context.Context, topology string, of []view.Sought) ([]view.OpenPlace, error) {
	w.change(func(w *world) { w.sought = of })
	return []view.OpenPlace{{Of: 1, Place: view.Place{Task: "count/1", Held: 2}}}, w.known(topology)
}

func (w *world) Tap(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error {
	if err := w.known(tap.Topology); err != nil || w.tap == nil {
		return err
	}
	return w.tap(ctx, tap, yield)
}

func (w *world) Letters(_ context.Context, topology, component string, n int) ([]view.Letter, error) {
	return []view.Letter{{ID: "1", Component: component, Task: "lines/0", Stream: "default", Fields: []string{"n"}, Values: []json.RawMessage{[]byte(`{"a":[1]}`)}, Error: "e", History: []string{"failed: e"}, Node: "local", Failures: 1, Losses: 2, Died: time.Unix(3, 0)}}, w.known(topology)
}

func (w *world) Settle(_ context.Context, topology string, ids []string, replay bool) (*view.Effect, error) {
	if err := w.known(topology); err != nil {
		return nil, err
	}
	w.change(func(w *world) { w.settled = append(w.settled, ids) })
	return &view.Effect{Done: true, Text: "done"}, nil
}

func (w *world) Act(_ context.Context, a *view.Action) (*view.Effect, error) {
	if a.Topology == "broken" {
		return nil, errors.New("the disk is away")
	}
	w.change(func(w *world) { w.acted = append(w.acted, *a) })
	return &view.Effect{Done: !a.Preview, Text: "done", Moves: []view.Move{{Task: "count/0", From: "a", To: "b"}}}, nil
}

// deeds is how often something was done.
func (w *world) deeds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acted) + len(w.settled)
}

// wordcount is a sample of one topology that has acked so many messages.
func wordcount(acked int64) *view.Sample {
	d := &graph.Drawing{Width: 10, Height: 10, About: "two", Components: []graph.Box{{Component: "lines", Kind: "spout", Tasks: 1}, {Component: "count", Kind: "bolt", Tasks: 1}},
		Edges: []graph.Edge{{From: "lines", Stream: "default", To: "count", Fields: []string{"line"}}}}
	h := func(n int64) *view.Histogram {
		return &view.Histogram{Sum: float64(n) * 1e6, Buckets: []view.Bucket{{Longest: time.Millisecond, Count: n}}}
	}
	return &view.Sample{
		Quorum: true, Nodes: []view.Node{{Node: "local", Alive: true, Tasks: 2, Cores: 2}},
		Runs: []view.Run{{
			Topology: "wordcount", Guarantee: "at-least-once", Status: "running", Began: time.Unix(0, 0).UTC(), Graph: d,
			Settings: map[string]string{"file": "x"}, Streams: []view.Stream{{Component: "lines", Stream: "default", Fields: []string{"line"}}},
			Tasks: []view.Task{
				{Task: "lines/0", Component: "lines", Node: "local", Known: true, Emitted: []int64{acked}, Counts: view.Counts{Messages: acked + 3, Acked: acked, Open: 3}, Complete: h(acked)},
				{Task: "count/0", Component: "count", Node: "local", Known: true, Executed: []int64{acked}, Execute: h(acked),
					Own: []view.Own{{Name: "size_bytes", Help: "Size.", Kind: "gauge", Value: 1.5}}},
			},
		}},
	}
}

// batches are those of an exactly-once topology.
func batches() *view.Batches {
	return &view.Batches{Last: 3, Committed: 3, Messages: 30, Keys: 4, Rounds: map[string]int64{"start": 1}, Now: &metrics.BatchesNow{Batches: []metrics.BatchInfo{}}}
}

// serve returns a server of a world, which is closed at the end of the test.
func serve(t *testing.T, w *world) *Server {
	if w.now == nil {
		w.now = wordcount(0)
	}
	s := New(Config{Source: w, Metrics: prometheus.NewRegistry(), Log: quiet})
	t.Cleanup(s.Close)
	return s
}

// asked asks a handler once.
func asked(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// refusal is the error that an answer is.
func refusal(t *testing.T, w *httptest.ResponseRecorder) *Error {
	t.Helper()
	var e errorAnswer
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e), "%s", w.Body)
	require.NotNil(t, e.Error, "%s", w.Body)
	require.NotEmpty(t, e.Error.Text)
	require.NotEmpty(t, e.Error.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	return e.Error
}

const asJSON = "Content-Type\x00application/json"

// post asks with JSON.
func post(h http.Handler, target, body string, headers ...string) *httptest.ResponseRecorder {
	kind, value, _ := strings.Cut(asJSON, "\x00")
	return asked(h, "POST", target, body, append([]string{kind, value}, headers...)...)
}

func unmarshal(text string, into any) error { return json.Unmarshal([]byte(text), into) }
