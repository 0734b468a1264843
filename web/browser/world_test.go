package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// evil is what a topology may say anywhere: it has to stay text.
const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>`

// A world is a made-up cluster whose numbers move: a count of words with a bolt that is too
// slow, an exactly-once one, one that does nothing, one that nobody runs yet, and one with
// hostile names.
type world struct {
	began  time.Time
	curve  []second // from an hour before it began
	graphs map[string]*graph.Drawing
	stream map[string][]view.Stream
	tables map[string]map[string]int // tasks of components

	mu       sync.Mutex
	local    bool // one process, and no cluster
	empty    bool
	quorum   bool
	silent   bool // the third node does not answer
	ended    bool
	deaths   int64 // of top
	changes  bool  // a rebalance waits
	kills    bool  // it is being killed
	stops    bool  // it is being stopped
	stopped  bool  // and has been
	gone     bool  // the second node is dead
	troubles []view.Trouble
	errors   []view.Error
	letters  []view.Letter
	acted    []view.Action // but for previews
	asked    []view.Action // previews
	settled  []string
	taps     int           // that are open
	held     chan struct{} // if there is one nothing is told before it is closed
	skips    int64         // moments that nobody is told of, before the next one
	since    []string      // from when on histories were asked for
}

// A second has totals of the count of words.
type second struct{ messages, slow, failed, open float64 }

const history = 3600

func newWorld() *world {
	w := &world{began: time.Now(), quorum: true, graphs: map[string]*graph.Drawing{}, stream: map[string][]view.Stream{}, tables: map[string]map[string]int{}}
	w.draw()
	w.play()
	w.err("split", "failed", "line 4711: invalid UTF-8 after \"Call me \"", "", `{"line": "Call me \xff"}`, 12)
	w.err("count", "died", "runtime error: index out of range [7] with length 7", "counting.(*counts).Execute(...)\n\t/src/counting/count.go:41\ntask.(*boltTask).execute(...)\n\t/src/task/bolt.go:212", `{"word": "whale"}`, 3)
	w.err("count", "timed out", "3 trees got no verdict in 30s", "", "", 3)
	w.err("top", "failed", evil, evil, evil, 1)
	for i := range w.errors {
		w.errors[i].Last = w.errors[i].Last.Add(-12 * time.Minute) // no news
	}
	for i := range 3 {
		w.letters = append(w.letters, view.Letter{
			ID: fmt.Sprint("lines/0-", 17+i), Component: "split", Task: fmt.Sprint("split/", i%2), Stream: "default", Fields: []string{"line", "number"},
			Values: []json.RawMessage{text(evil), json.RawMessage("9007199254740993")}, Error: "invalid UTF-8", Failures: 4, Losses: 1, Replayed: i, Died: w.began.Add(-time.Duration(i) * time.Minute),
			History: []string{"failed: invalid UTF-8 after \"Call me \"", "lost: split/1 died", "failed: " + evil},
		})
	}
	return w
}

func text(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func (w *world) err(component, kind, message, stack, tuple string, n int64) {
	w.errors = append([]view.Error{{
		Topology: "wordcount", Component: component, Task: component + "/0", Node: "10.0.0.2:7070", Kind: kind, Text: message, Stack: stack, Tuple: tuple,
		First: time.Now().Add(-40 * time.Minute), Last: time.Now().Add(-12 * time.Second), Count: n,
	}}, w.errors...)
}

// draw makes plans, of which only the picture is needed.
func (w *world) draw() {
	nothing := bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil })
	words := topology.New("wordcount", func(b *topology.Builder) {
		lines := b.Spout("lines", spout.Slice("call me")).Emits("line", "number")
		split := b.Bolt("split", nothing, lines.Shuffle()).Emits("word").EmitsTo("rejects", "line", "why").Parallel(2)
		count := b.Bolt("count", nothing, split.By("word")).Emits("word", "count").Parallel(4)
		b.Bolt("top", nothing, count.Global())
		b.Bolt("complaints", nothing, split.Stream("rejects").Shuffle()).Every(90 * time.Second).Holds(5 * time.Minute)
	})
	uses := trident.StateOf[string, int64]("uses", memory.New(), trident.Opaque)
	once := trident.New("uses", func(b *trident.Builder) {
		lines := trident.From[string](b, "lines", spout.Slice("call me"))
		split := trident.FlatMap(lines, func(string, func(string)) {}).Name("split").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(split, trident.Identity), uses, trident.Count[string]()).Parallel(3)
	})
	idle := topology.New("idle", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice("x")).Emits("x")
		b.Bolt("out", nothing, in.Shuffle())
	})
	for _, t := range []*topology.Topology{words, once, idle} {
		p, err := t.Build(topology.Options{})
		if err != nil {
			panic(err)
		}
		w.graphs[p.Topology], w.stream[p.Topology], w.tables[p.Topology] = graph.Draw(p), view.Streams(p), map[string]int{}
		for i := range p.Components {
			w.tables[p.Topology][p.Components[i].Name] = p.Components[i].Parallel
		}
	}
	for i := range w.stream["wordcount"] {
		if s := &w.stream["wordcount"][i]; s.Component == "lines" {
			s.Masked = []string{"number"}
		} else if s.Stream == "rejects" {
			s.Masked = []string{"line", "why"}
		}
	}
	w.stream["idle"][0].NoTap = true
	hostile := *w.graphs["idle"]
	hostile.Components = []graph.Box{hostile.Components[0], hostile.Components[1]}
	hostile.Edges = []graph.Edge{hostile.Edges[0]}
	hostile.Components[1].Component, hostile.Edges[0].To, hostile.Edges[0].Label = evil, evil, evil[:12]
	w.graphs[evil] = &hostile
	w.stream[evil] = []view.Stream{{Component: "in", Stream: "default", Fields: []string{evil}}}
	w.tables[evil] = map[string]int{"in": 1, evil: 2}
}

// play makes up an hour and ten minutes, with half a minute of trouble in it.
func (w *world) play() {
	rng := rand.New(rand.NewPCG(1, 2))
	var s second
	for i := range history + 600 {
		rate := 12400 + 1500*math.Sin(float64(i)/211) + 700*math.Sin(float64(i)/17) + 400*rng.NormFloat64()
		s.open, s.slow = 2800+900*math.Sin(float64(i)/97)+150*rng.NormFloat64(), s.slow+rate*0.02
		if i > 2300 && i < 2420 {
			rate, s.open = rate*0.35, 9000+500*rng.NormFloat64()
			s.slow, s.failed = s.slow+rate*0.3, s.failed+rate*0.004
		}
		if i%40 < 3 {
			s.failed += 2
		}
		s.messages += rate
		w.curve = append(w.curve, s)
	}
}

// at returns the totals of a moment.
func (w *world) at(t time.Time) second {
	x := t.Sub(w.began).Seconds() + history
	i := min(max(int(x), 0), len(w.curve)-2)
	part := x - float64(i)
	mix := func(a, b float64) float64 { return a + (b-a)*part }
	a, b := w.curve[i], w.curve[i+1]
	return second{mix(a.messages, b.messages), mix(a.slow, b.slow), mix(a.failed, b.failed), mix(a.open, b.open)}
}

// latencies has n durations of about most, and some that are slow.
func latencies(n, slow, mean float64) *view.Histogram {
	at := func(x float64) time.Duration { return time.Duration(mean * x) }
	return &view.Histogram{Sum: n * mean, Buckets: []view.Bucket{
		{Longest: at(0.5), Count: int64(0.3 * (n - slow))}, {Longest: at(0.9), Count: int64(0.5 * (n - slow))}, {Longest: at(1.8), Count: int64(0.2 * (n - slow))},
		{Longest: at(6), Count: int64(0.8 * slow)}, {Longest: at(15), Count: int64(0.2 * slow)},
	}}
}

func (w *world) Sample(context.Context) (*view.Sample, error) { return w.sample(time.Now()), nil }

func (w *world) sample(now time.Time) *view.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	up := now.Sub(w.began) + history*time.Second
	s := &view.Sample{At: now, Cluster: "egret-5f3a", Quorum: w.quorum, Nodes: []view.Node{}, Runs: []view.Run{}}
	for i := range 3 {
		s.Nodes = append(s.Nodes, view.Node{
			Node: fmt.Sprintf("10.0.0.%d:7070", i+1), ID: fmt.Sprint(i), Alive: true, Leads: i == 0, Votes: true, Draining: i == 1, Version: "0.9.0",
			Up: up, CPU: time.Duration(float64(up) * (1.4 - 0.4*float64(i))), Memory: int64(1.3e9 - 2e8*float64(i)), Cores: 2,
		})
	}
	if w.silent {
		s.Nodes[2].Silent = "it has not answered within 1s"
	}
	if w.gone {
		s.Nodes[1].Alive, s.Nodes[1].Silent = false, "it is dead"
	}
	if w.local {
		s.Cluster, s.Nodes = "", s.Nodes[:1]
		s.Nodes[0].Node, s.Nodes[0].Leads, s.Nodes[0].Votes = "local", false, false
	}
	if w.empty {
		return s
	}
	s.Runs = append(s.Runs, w.wordcount(now), w.uses(now), w.run("idle", "inactive", now), w.run(evil, "running", now))
	s.Runs = append(s.Runs, view.Run{Topology: "waiting", Guarantee: "at-least-once", Status: "waiting", Reason: "no node runs a program that has it: start one with egret node"})
	for i := range s.Nodes {
		for k := range s.Runs {
			for j := range s.Runs[k].Tasks {
				t := &s.Runs[k].Tasks[j]
				if w.local {
					t.Node = "local"
				}
				if t.Node == s.Nodes[i].Node && !s.Runs[k].Ended {
					s.Nodes[i].Tasks++
				}
			}
		}
	}
	return s
}

// run is a run whose tasks do nothing.
func (w *world) run(name, status string, now time.Time) view.Run {
	r := view.Run{Topology: name, Run: name + "-1", Guarantee: "at-least-once", Status: status, Began: w.began.Add(-history * time.Second), Graph: w.graphs[name], Streams: w.stream[name]}
	for _, b := range r.Graph.Components {
		for i := range w.tables[name][b.Component] {
			r.Tasks = append(r.Tasks, view.Task{Task: fmt.Sprintf("%s/%d", b.Component, i), Component: b.Component, Node: fmt.Sprintf("10.0.0.%d:7070", (len(r.Tasks))%3+1), Life: "1", Known: true})
		}
	}
	return r
}

// each changes the tasks of a component.
func each(r *view.Run, component string, change func(i int, t *view.Task)) {
	i := 0
	for k := range r.Tasks {
		if t := &r.Tasks[k]; t.Component == component {
			change(i, t)
			i++
		}
	}
}

func (w *world) wordcount(now time.Time) view.Run {
	r := w.run("wordcount", "running", now)
	r.Settings = map[string]string{"file": "moby_dick.txt.gz", "spouts": "1", "top": "20", "timeout": "30s", "max-pending": "10000"}
	switch {
	case w.kills:
		r.Status = "ending"
	case w.stopped:
		r.Status, r.Ended = "stopped", true
	case w.stops:
		r.Status = "stopping"
	case w.changes:
		r.Status, r.Reason = "changing", "rebalance waits until nothing is open (6 tasks)"
	}
	r.Troubles = w.troubles
	if w.ended {
		r.Status, r.Reason, r.Ended = "failed", "count/2 died 11 times in a minute", true
	}
	s, up := w.at(now), float64(now.Sub(w.began)+history*time.Second)
	each(&r, "lines", func(_ int, t *view.Task) {
		t.Emitted = []int64{int64(s.messages)}
		t.Messages, t.Acked, t.Open = int64(s.messages), int64(s.messages-s.open), int64(s.open)
		t.Failed, t.Lost, t.TimedOut, t.ReplayedFailed, t.ReplayedLost, t.Dead = int64(s.failed*0.8), int64(s.failed*0.2)+534*w.deaths, 3, int64(s.failed*0.8)-3, int64(s.failed*0.2), int64(len(w.letters))
		t.Throttled, t.WaitsFor = time.Duration(up*0.71), "split/0"
		t.Complete = latencies(s.messages, s.slow, 3.4e6)
	})
	each(&r, "split", func(i int, t *view.Task) {
		n := s.messages * (0.5 + 0.04*float64(i))
		t.Executed, t.Emitted, t.FailedTuples = []int64{int64(n)}, []int64{int64(9.3 * n), int64(n / 300)}, int64(s.failed*0.8/2)
		t.Throttled, t.WaitsFor, t.Queued, t.Execute = time.Duration(up*0.62), "count/2", int64(s.open/3), latencies(n, 0, 0.31e9/12400*2)
	})
	each(&r, "count", func(i int, t *view.Task) {
		part := []float64{0.17, 0.16, 0.5, 0.17}[i]
		n := 9.3 * s.messages * part
		t.Executed, t.Emitted, t.Queued = []int64{int64(n)}, []int64{int64(n / 40)}, int64(s.open*part*3)
		t.Execute = latencies(n, n/300, []float64{0.33, 0.31, 0.985, 0.34}[i]*1e9/(9.3*12400*part))
		t.Restarts, t.Stuck = int64(i%3), int64(i%2)
		t.Own = []view.Own{{Name: "distinct_words", Help: "words that it has seen", Kind: "gauge", Value: view.Number(4000 * part)}, {Name: "hits", Help: "of its cache", Kind: "counter", Value: view.Number(n)}}
		if i == 3 && w.silent {
			t.Known = false
		}
	})
	each(&r, "top", func(_ int, t *view.Task) {
		t.Executed, t.Execute = []int64{int64(9.3 * s.messages / 40)}, latencies(9.3*s.messages/40, 0, 2e3)
		t.Restarts = w.deaths
	})
	each(&r, "complaints", func(_ int, t *view.Task) {
		t.Executed, t.Execute = []int64{int64(s.messages / 300)}, latencies(s.messages/300, 0, 9e4)
	})
	return r
}

func (w *world) uses(now time.Time) view.Run {
	r := w.run("uses", "running", now)
	r.Guarantee = "exactly-once"
	n := w.at(now).messages / 4
	tx := uint64(n / 5000)
	r.Batches = &view.Batches{
		Last: int64(tx), Committed: int64(tx), Messages: int64(tx) * 5000, Keys: int64(tx) * 1900, Failed: 2, Replayed: 17, Rounds: map[string]int64{"start": 1, "death": 1, "failure": 2},
		Latency: metrics.Latency{Count: int64(tx), P50: 84 * time.Millisecond, P99: 260 * time.Millisecond, P999: 400 * time.Millisecond, Longest: time.Second},
		Now: &metrics.BatchesNow{Attempt: "3.2", Phase: "running", Missing: []string{"uses/1"}, Batches: []metrics.BatchInfo{
			{Tx: tx + 1, Stage: "writing", Messages: 5000, Age: 61 * time.Millisecond}, {Tx: tx + 2, Stage: "processing", Messages: 5000, Age: 22 * time.Millisecond},
		}},
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if b := r.Graph.Components; t.Component == b[0].Component {
			t.Messages, t.Open = int64(n), 10000
		} else if strings.Contains(t.Component, "coordinator") {
			t.Complete = latencies(n, n/50, 9e7)
		} else {
			t.Executed, t.Execute = []int64{int64(n)}, latencies(n, n/100, 4e4)
		}
	}
	return r
}

func (w *world) Errors(_ context.Context, topology string) ([]view.Error, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if topology != "wordcount" {
		return nil, nil
	}
	return append([]view.Error{}, w.errors...), nil
}

func (w *world) Oldest(_ context.Context, topology string, n int) ([]view.Tree, error) {
	if topology != "wordcount" {
		return nil, nil
	}
	age := time.Since(w.began) + 93*time.Second
	all := []view.Tree{
		{Task: "lines/0", Node: "10.0.0.1:7070", Tree: 1<<63 + 5, Messages: 1, Message: `("Call me Ishmael.", 4711)`, Age: age, Silent: age, Places: []view.Place{{Task: "count/2", Node: "10.0.0.3:7070", During: "Execute", Inside: age, Hand: true}}},
		{Task: "lines/0", Node: "10.0.0.1:7070", Tree: 77, Messages: 8, Replay: true, Message: `("` + evil + `", 4712)`, Age: 4 * time.Second, Silent: 400 * time.Millisecond, Places: []view.Place{{Task: "count/2", Node: "10.0.0.3:7070", Queued: 12}, {Task: "split/1", Node: "10.0.0.2:7070", Unsent: 40}}},
		{Task: "lines/0", Node: "10.0.0.1:7070", Tree: 78, Messages: 8, Message: `("Some years ago", 4713)`, Age: time.Second, Silent: time.Second, Places: []view.Place{}},
	}
	for i := range 35 {
		all = append(all, view.Tree{
			Task: "lines/0", Node: "10.0.0.1:7070", Tree: uint64(100 + i), Messages: 1, Replay: true, Message: fmt.Sprintf(`("whale %d", %d)`, i, 5000+i), Error: "failed: no whales, please", Age: time.Second,
			Silent: time.Second, Places: []view.Place{{Task: "split/1", Node: "10.0.0.2:7070", Queued: 1}},
		})
	}
	return all, nil
}

func (w *world) Tap(ctx context.Context, t view.Tap, yield func(*view.Tapped) bool) error {
	if strings.Contains(t.Where, "nosuch") {
		return &web.Error{Code: web.Invalid, Text: `where: column 1: the stream split.default has no field "nosuch", only: word`}
	}
	w.mu.Lock()
	w.taps++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.taps--
		w.mu.Unlock()
	}()
	words := []string{"call", "me", "ishmael", evil, "whale", "the", "9007199254740993"}
	for n := int64(1); ; n++ {
		word := words[int(n)%len(words)]
		if t.Where != "" {
			word = "whale"
		}
		x := &view.Tapped{At: time.Now(), Task: t.Component + "/1", Node: "10.0.0.2:7070", Values: []json.RawMessage{text(word)}}
		if t.Component == "count" {
			x.Values = append(x.Values, json.RawMessage("9007199254740993"))
		}
		if !yield(x) {
			return nil
		}
		if n%5 == 0 && !yield(&view.Tapped{At: time.Now(), Emitted: 231_000 * n, Looked: 1000 * n, Matched: 3 * n, Shown: n}) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (w *world) Letters(_ context.Context, topology, _ string, _ int) ([]view.Letter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if topology != "wordcount" {
		return nil, &web.Error{Code: web.NotHere, Text: "this run keeps no dead letters: give it a state directory with --state"}
	}
	return append([]view.Letter{}, w.letters...), nil
}

func (w *world) Settle(_ context.Context, _ string, ids []string, replay bool) (*view.Effect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(w.settled, ids...)
	w.letters = nil
	return &view.Effect{Done: true, Text: fmt.Sprintf("%d dead letters are settled, replayed: %v.", len(ids), replay)}, nil
}

func (w *world) Act(_ context.Context, a *view.Action) (*view.Effect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.Preview {
		w.asked = append(w.asked, *a)
	} else {
		w.acted = append(w.acted, *a)
	}
	switch a.Do {
	case "cancel":
		w.changes = w.changes && a.Preview
		return &view.Effect{Done: !a.Preview, Text: a.Topology + ": its tasks stay where they are."}, nil
	case "stop":
		w.stops = !a.Preview && !w.local
	case "kill":
		w.kills = !a.Preview
		return &view.Effect{Done: !a.Preview, Text: "All 9 tasks of " + a.Topology + " end at once. 2,841 messages are open and will not be finished."}, nil
	case "rebalance":
		return &view.Effect{Done: !a.Preview, Text: "count gets 6 tasks instead of 4. The topology becomes quiet first; 3 tasks move.", Moves: []view.Move{
			{Task: "count/4", To: "10.0.0.1:7070"}, {Task: "count/5", To: "10.0.0.2:7070"}, {Task: "count/3", From: "10.0.0.1:7070", To: "10.0.0.3:7070"},
		}}, nil
	case "drain":
		return nil, &web.Error{Code: web.Refused, Text: "node " + a.Node + " cannot be drained: no other node has room"}
	}
	return &view.Effect{Done: !a.Preview, Text: a.Do + " of " + a.Topology + evil}, nil
}
