package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// counted emits the numbers below n, and then nothing until it is stopped. The first attempt
// at one in a hundred fails, and one in a thousand is rejected.
func counted(n int64, sink *atomic.Int64) *topology.Topology {
	var next atomic.Int64
	var failed sync.Map
	return topology.New("counted", func(b *topology.Builder) {
		in := b.Spout("in", spout.Func(func(ctx context.Context, out *spout.Out) error {
			if i := next.Add(1) - 1; i < n {
				out.Emit(i)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})).Emits("n")
		mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			time.Sleep(time.Millisecond) // so that there are some rates to look at
			i := in.Int64("n")
			if i%1000 == 500 {
				return bolt.Reject(errors.New("never"))
			}
			if _, again := failed.LoadOrStore(i, true); i%100 == 7 && !again {
				return errors.New("not yet")
			}
			out.Emit(i)
			out.Emit(-i)
			return nil
		}), in.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
			sink.Add(1)
			return nil
		}), mid.By("n")).Parallel(2)
	})
}

// told hears what a page is told of a topology, from the first detail to the last.
type told struct {
	mu      sync.Mutex
	details []view.Detail
	missed  int64 // moments that were left out, since this machine is busy
	ended   chan struct{}
}

func hear(t *testing.T, url, topology string) *told {
	answer, err := http.Get(url + "/api/v1/live?topology=" + topology)
	require.NoError(t, err)
	l := &told{ended: make(chan struct{})}
	go func() { // ends with the run, which the test waits for
		defer close(l.ended)
		defer answer.Body.Close()
		lines, name := bufio.NewScanner(answer.Body), ""
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = event
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			var missed web.Missed
			if ok && name == "missed" && json.Unmarshal([]byte(data), &missed) == nil {
				l.mu.Lock()
				l.missed += missed.Missed
				l.mu.Unlock()
			}
			var d view.Detail
			if !ok || name != "detail" && name != "ended" || json.Unmarshal([]byte(data), &d) != nil {
				continue
			}
			l.mu.Lock()
			l.details = append(l.details, d)
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *told) all() []view.Detail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.details)
}

// figures are what the page says on top, of a moment: exactly, where one points at it.
const figures = `Object.fromEntries([...document.querySelectorAll(".figures > div")].filter((f) => f.querySelector(".big").textContent).map((f) => [f.querySelector("dt").textContent, (f.querySelector(".big").title || f.querySelector(".big").textContent) + " | " + f.querySelector(".soft").textContent]))`

// totals are what the page says of a component since the run began.
const totals = `Object.fromEntries([...document.querySelectorAll(".panel .facts:last-child > div")].map((f) => [f.firstChild.textContent, Number((f.lastChild.title || f.lastChild.textContent).replaceAll(",", ""))]))`

// shows requires all that the page shows of a run to be what statistics say.
func shows(p *page, s *egret.Stats, sink int64) {
	p.t.Helper()
	amount := func(n int64) string { return js[string](p, fmt.Sprintf(`(%d).toLocaleString("en-US")`, n)) }
	tasks := func(component string, of func(*egret.TaskStat) int64) (n int64) {
		for i := range s.Tasks {
			if s.Tasks[i].Component == component {
				n += of(&s.Tasks[i])
			}
		}
		return n
	}
	got := js[map[string]string](p, figures)
	delete(got, "Latency, p50") // of a window in which nothing was done, or not yet
	rest := func(figure string) string { return figure[strings.Index(figure, " | "):] }
	for _, name := range []string{"In", "Done", "Failed or lost attempts"} { // before it are rates
		got[name] = rest(got[name])
	}
	var failed, lost, late int64
	for _, x := range s.Tasks {
		failed, lost, late = failed+x.ReplayedFailed, lost+x.ReplayedLost, late+x.ReplayedTimeout
	}
	require.Equal(p.t, map[string]string{
		"In":                      " | " + amount(s.Messages) + " messages",
		"Done":                    " | " + amount(s.Acked) + " in all",
		"Open":                    amount(s.Open) + " | not done yet",
		"Failed or lost attempts": fmt.Sprintf(" | %s failed, %d lost, %d timed out", amount(s.Failed), s.Lost, s.TimedOut),
		"Replayed":                fmt.Sprintf("%s | %s failed, %d lost, %d timed out", amount(s.Replayed), amount(failed), lost, late),
		"Dead letters":            amount(s.Dead) + " | given up",
	}, got)
	for _, component := range []string{"in", "mid", "out"} {
		p.click(fmt.Sprintf(`.box[data-component=%s]`, component))
		p.until(fmt.Sprintf(`document.querySelector(".panel h2").textContent === %q`, component))
		want := map[string]int64{"Restarts": 0, "Stuck": 0, "Refused": 0}
		if component == "in" {
			for name, n := range map[string]int64{"Messages": s.Messages, "Done": s.Acked, "Failed attempts": s.Failed, "Lost attempts": s.Lost, "Timed out attempts": s.TimedOut, "Replayed": s.Replayed, "Dead": s.Dead, "Handed back": 0, "Abandoned": s.Abandoned} {
				want[name] = n
			}
		} else {
			want["Executed"] = tasks(component, func(x *egret.TaskStat) int64 { return x.Inputs[0].Executed })
			want["Failed executions"] = tasks(component, func(x *egret.TaskStat) int64 { return x.Inputs[0].Failed })
			want["Retained now"] = 0
			says := p.text(fmt.Sprintf(`.edge[data-to=%s] title`, component))
			require.Contains(p.t, says, " "+amount(want["Executed"])+" tuples in all")
		}
		require.Equal(p.t, want, js[map[string]int64](p, totals), component)
		if component == "out" {
			require.Equal(p.t, sink, want["Executed"], "the sink's own count")
		}
	}
}

// What the page shows is what the API, Prometheus and Stats say, and what the sink has
// counted: totals when it stands still and when it has ended, and in between rates of the
// window that it names.
func TestPageAgrees(t *testing.T) {
	const n = 4000
	var sink atomic.Int64
	r, err := egret.Start(t.Context(), counted(n, &sink), egret.Config{HTTP: egret.HTTP{Address: "0"}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	l := hear(t, r.URL(), "counted")
	p := open(t, r.URL()+"/#/t/counted", desk)
	p.until(live + ` && document.querySelectorAll(".graph .box").length === 3`)

	seen := map[string]bool{}
	for s := r.Stats(); s.Acked+s.Dead < n; s = r.Stats() {
		seen[js[string](p, `(() => {
			const f = `+figures+`, window = document.querySelector(".head .soft").textContent.split("rates and latencies of the last ")[1] ?? "";
			return [f.In, f.Done, window].join("; ");
		})()`)] = true
		time.Sleep(20 * time.Millisecond)
	}
	p.until(`document.querySelector(".figures .big").title === "0 a second" && document.querySelectorAll(".figures .big")[1].title === "0 a second"`) // a window later
	s := r.Stats()
	require.EqualValues(t, n, s.Messages)
	require.EqualValues(t, n/1000, s.Dead)
	require.EqualValues(t, n/100, s.Replayed)
	d := l.all()[len(l.all())-1]
	require.Equal(t, []int64{s.Messages, s.Acked, s.Dead, s.Failed, s.Replayed, s.Open}, []int64{d.Counts.Messages, d.Counts.Acked, d.Counts.Dead, d.Counts.Failed, d.Counts.ReplayedFailed + d.Counts.ReplayedLost + d.Counts.ReplayedTimeout, d.Counts.Open})
	require.Equal(t, sink.Load(), d.Edges[1].Total)
	shows(p, s, sink.Load())
	scraped := scrape(t, r.URL())
	for name, want := range map[string]int64{
		`egret_messages_total{component="in",topology="counted"}`:                                                    s.Messages,
		`egret_messages_settled_total{component="in",outcome="acked",topology="counted"}`:                            s.Acked,
		`egret_messages_settled_total{component="in",outcome="dead",topology="counted"}`:                             s.Dead,
		`egret_replays_total{cause="failed",component="in",topology="counted"}`:                                      s.Replayed,
		`egret_attempts_ended_total{component="in",outcome="failed",topology="counted"}`:                             s.Failed,
		`egret_executed_tuples_total{component="out",from="mid",result="acked",stream="default",topology="counted"}`: sink.Load(),
		`egret_executed_tuples_total{component="mid",from="in",result="failed",stream="default",topology="counted"}`: s.Failed,
		`egret_executed_tuples_total{component="mid",from="in",result="acked",stream="default",topology="counted"}`:  n - s.Dead,
	} {
		require.Contains(t, scraped, name)
		require.EqualValues(t, want, scraped[name], name)
	}
	ratesAgree(p, l, seen)

	r.Drain()
	last, err := r.Wait()
	require.ErrorIs(t, err, egret.ErrDead)
	<-l.ended
	p.until(`document.querySelector("#connection").dataset.state === "ended" && document.querySelector(".status").textContent === "failed"`)
	shows(p, last, sink.Load())
	p.clean("ERR_", "Failed to load resource") // nobody listens any more
}

// ratesAgree requires each moment that the page has shown to be one that was told, and the
// rates of those to be what totals have grown by in their window.
func ratesAgree(p *page, l *told, seen map[string]bool) {
	p.t.Helper()
	details := l.all()
	text, err := json.Marshal(details)
	require.NoError(p.t, err)
	said := js[[]string](p, fmt.Sprintf(`import("/format.js").then(({rate, count, many, span}) => %s.map((d) => d.window_ns
		? rate(d.rate).exact + " | " + many(d.counts.messages, "message") + "; " + rate(d.done_rate).exact + " | " + count(d.counts.acked).short + " in all; " + span(d.window_ns)
		: "– | " + many(d.counts.messages, "message") + "; – | " + count(d.counts.acked).short + " in all; "))`, text))
	delete(seen, "; ; ") // it waits for its first numbers
	require.Greater(p.t, len(seen), 1, "it was looked at while it ran")
	var others []string
	for x := range seen {
		if !slices.Contains(said, x) {
			others = append(others, x)
		}
	}
	l.mu.Lock()
	require.LessOrEqual(p.t, int64(len(others)), l.missed, "shown %q, and told %q", others, said)
	l.mu.Unlock()
	held := 0
	for _, d := range details {
		before := slices.IndexFunc(details, func(b view.Detail) bool { return (d.At.Sub(b.At) - d.Window).Abs() < time.Millisecond }) // clocks may be set
		if d.Window == 0 || before < 0 {
			continue
		}
		b := details[before]
		held++
		require.InDelta(p.t, float64(d.Counts.Messages-b.Counts.Messages), d.Rate*d.Window.Seconds(), 1e-3)
		require.InDelta(p.t, float64(d.Counts.Acked-b.Counts.Acked), d.DoneRate*d.Window.Seconds(), 1e-3)
		for i, e := range d.Edges {
			require.InDelta(p.t, float64(e.Total-b.Edges[i].Total), e.Rate*d.Window.Seconds(), 1e-3)
		}
	}
	require.Positive(p.t, held)
}

// scrape is what Prometheus reads.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	answer, err := http.Get(url + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if at := strings.LastIndex(line, " "); at > 0 && line[0] != '#' {
			all[line[:at]], err = strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			require.NoError(t, err, line)
		}
	}
	return all
}
