package egret_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// A looker follows a run by its API, as a page does.
type looker struct {
	t      *testing.T
	url    string
	client *http.Client
	lines  *bufio.Scanner
	body   io.Closer
}

// followed begins to follow a topology.
func followed(t *testing.T, url, topology string) *looker {
	l := &looker{t: t, url: url, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	resp, err := l.client.Get(url + "/api/v1/live?topology=" + topology)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	l.lines, l.body = bufio.NewScanner(resp.Body), resp.Body
	l.lines.Buffer(nil, 16<<20)
	return l
}

// next returns the next event that has a detail.
func (l *looker) next() (event string, d view.Detail) {
	l.t.Helper()
	for l.lines.Scan() {
		name, ok := strings.CutPrefix(l.lines.Text(), "event: ")
		if !ok || name != "detail" && name != "ended" {
			continue
		}
		require.True(l.t, l.lines.Scan())
		text := strings.TrimPrefix(l.lines.Text(), "data: ")
		require.NotContains(l.t, text, `:null`, "a list is never null")
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		require.NoError(l.t, decoder.Decode(&d))
		return name, d
	}
	l.t.Fatalf("there is no detail: %v", l.lines.Err())
	return "", d
}

func (l *looker) get(path string) string {
	resp, err := l.client.Get(l.url + path)
	require.NoError(l.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	require.Equal(l.t, 200, resp.StatusCode, "%s", body)
	return string(body)
}

// served reads /metrics as scraped reads a registry.
func (l *looker) served() map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(l.get("/metrics")) {
		at := strings.LastIndex(line, " ")
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		require.NoError(l.t, err)
		name := strings.ReplaceAll(line[:at], `"`, "")
		if !strings.Contains(name, "{") {
			name += "{}"
		}
		all[name] = n
	}
	return all
}

// same holds a detail against statistics of the same moment.
func same(t *testing.T, s *egret.Stats, d *view.Detail) {
	t.Helper()
	c := d.Counts
	require.Equal(t, []int64{s.Messages, s.Acked, s.Dead, s.HandedBack, s.Abandoned, s.Open, s.Failed, s.Lost, s.TimedOut, s.Restarts},
		[]int64{c.Messages, c.Acked, c.Dead, c.HandedBack, c.Abandoned, c.Open, c.Failed, c.Lost, c.TimedOut, c.Restarts})
	if s.Batches == nil {
		require.Equal(t, s.Acked, s.Latency.Count)
	}
	require.Equal(t, s.Replayed, c.ReplayedFailed+c.ReplayedLost+c.ReplayedTimeout)
	require.Len(t, d.TasksNow, len(s.Tasks))
	for i, x := range s.Tasks {
		n := d.TasksNow[i]
		require.Equal(t, x.Task, n.Task)
		require.Equal(t, []int64{x.Messages, x.Acked, x.Queued, x.Restarts, x.Stuck}, []int64{n.Counts.Messages, n.Counts.Acked, n.Counts.Queued, n.Counts.Restarts, n.Counts.Stuck}, x.Task)
	}
	for _, e := range d.Edges {
		var total int64
		for _, x := range s.Tasks {
			if x.Component == e.To {
				total += x.Inputs[e.Input].Executed
			}
		}
		require.Equal(t, total, e.Total, "%s to %s", e.From, e.To)
	}
}

// The page's numbers, Stats, Prometheus's, and what the sink has counted itself are the
// same when the run is at rest and when it has ended; in between they are possible.
func TestNumbersAgree(t *testing.T) {
	const n = 20_000
	var executed atomic.Int64
	var died atomic.Bool
	source := waiting(n)
	source.chunk = 100 // so that all are emitted before it waits
	top := topology.New("agree", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("n")
		mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			i, err := strconv.Atoi(in.String("n"))
			switch {
			case i == n/2 && died.CompareAndSwap(false, true):
				panic("half of it")
			case i%1000 == 7:
				return bolt.Reject(errors.New("never"))
			}
			out.Emit(in.String("n"))
			return err
		}), in.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { executed.Add(1); return nil }), mid.By("n")).Parallel(3)
	})
	registry := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := egret.Start(ctx, top, quiet(egret.Config{HTTP: egret.HTTP{Address: "0"}, Metrics: registry, Parallel: map[string]int{"out": 2}}))
	require.NoError(t, err)
	l := followed(t, r.URL(), "agree")
	defer l.body.Close()

	var last view.Detail
	for last.Counts.Acked+last.Counts.Dead < n { // in between
		event, d := l.next()
		require.Equal(t, "detail", event)
		require.Equal(t, "running", d.Status)
		c, w := d.Counts, d.Window.Seconds()
		require.GreaterOrEqual(t, c.Acked, last.Counts.Acked)
		require.GreaterOrEqual(t, c.Open, int64(0))
		require.LessOrEqual(t, c.Acked+c.Dead, int64(n))
		require.LessOrEqual(t, d.DoneRate*w, float64(c.Acked)+0.5, "more than there was cannot have been done in the window")
		for i, e := range d.Edges {
			require.GreaterOrEqual(t, e.Rate, 0.0)
			require.LessOrEqual(t, e.Rate*w, float64(e.Total)+0.5)
			if last.Edges != nil {
				require.GreaterOrEqual(t, e.Total, last.Edges[i].Total)
			}
		}
		last = d
	}
	_, d := l.next() // at rest: all that could be executed was, and no one counts any more
	s := r.Stats()
	same(t, s, &d)
	edge := d.Edges[len(d.Edges)-1]
	require.Equal(t, "out", edge.To)
	require.Equal(t, executed.Load(), edge.Total, "the sink's own count")
	require.EqualValues(t, n/1000, d.Counts.Dead)
	require.EqualValues(t, 1, d.Counts.Restarts)
	_, own := scraped(t, registry)
	served := l.served()
	for name, want := range map[string]int64{
		"egret_messages_total{component=in,topology=agree}":                                              s.Messages,
		"egret_messages_settled_total{component=in,outcome=acked,topology=agree}":                        s.Acked,
		"egret_messages_settled_total{component=in,outcome=dead,topology=agree}":                         s.Dead,
		"egret_attempts_ended_total{component=in,outcome=lost,topology=agree}":                           s.Lost,
		"egret_restarts_total{component=mid,topology=agree}":                                             1,
		"egret_executed_tuples_total{component=out,from=mid,result=acked,stream=default,topology=agree}": executed.Load(),
	} {
		require.EqualValues(t, want, own[name], name)
		require.EqualValues(t, want, served[name], name)
	}
	require.EqualValues(t, s.Latency.Count, served["egret_complete_latency_seconds_count{component=in,topology=agree}"])
	require.Contains(t, served, "process_start_time_seconds{}")

	var all []view.Error
	require.NoError(t, json.Unmarshal([]byte(l.get("/api/v1/topologies/agree/errors")), &all))
	kinds := map[string]view.Error{}
	for _, e := range all {
		kinds[e.Kind] = e
	}
	require.Equal(t, "panic in Execute: half of it", kinds["died"].Text)
	require.Contains(t, kinds["died"].Stack, "TestNumbersAgree")
	require.NotContains(t, kinds["died"].Stack, "egret/task.")
	require.Equal(t, `{n: "`+strconv.Itoa(n/2)+`"}`, kinds["died"].Tuple)
	require.EqualValues(t, n/1000, kinds["dead letter"].Count, "also those that the log leaves out")
	require.Equal(t, "local", kinds["dead letter"].Node)

	cancel()
	event := ""
	for event != "ended" {
		event, d = l.next()
	}
	stats, err := r.Wait()
	require.ErrorIs(t, err, egret.ErrDead)
	same(t, stats, &d)
	require.Equal(t, "failed", d.Status)
	require.Contains(t, d.Reason, "messages are dead")
	require.False(t, l.lines.Scan() && l.lines.Text() != "", "that was the last event")
	_, err = l.client.Get(r.URL() + "/healthz")
	require.Error(t, err, "nobody listens any more")
}

// A run that cannot be looked at where it should be is not started.
func TestHTTPRefuses(t *testing.T) {
	started := false
	top := straight(&numbers{n: 1, split: func(context.Context) error { started = true; return nil }}, func(tuple.Tuple, *bolt.Collector) error { return nil })
	for address, want := range map[string]string{"0.0.0.0:0": "beyond this machine's loopback", "there": "is no address"} {
		_, err := egret.Run(t.Context(), top, quiet(egret.Config{HTTP: egret.HTTP{Address: address, Token: "0123456789abcdef"}, StateDir: t.TempDir()}))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "0123456789abcdef")
	}
	require.False(t, started)
}
