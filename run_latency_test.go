package egret_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// How long a message takes is measured from its first emission to the last ack, whatever
// happened to it in between; Stats, the page's numbers and Prometheus's say the same.
func TestCompleteLatency(t *testing.T) {
	const (
		n, slow  = 1000, 10 // messages, and those of them that take a while
		while    = 50 * time.Millisecond
		slowest  = 3150 * time.Millisecond // six pauses: 50, 100, 200, 400, 800 and 1600 ms
		replayed = 6
	)
	until := func(ctx context.Context, i int) error {
		switch {
		case i == 0:
			time.Sleep(100 * time.Millisecond) // there is a sample from before
		case i == n:
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	took := func(i int) time.Duration {
		switch {
		case i == n-1:
			return slowest
		case i >= n-1-slow:
			return while
		}
		return 0
	}
	for name, top := range map[string]func() *topology.Topology{
		"replays": func() *topology.Topology {
			tries := newTally()
			return straight(&numbers{n: n + 1, chunk: n, next: func(ctx context.Context, _ string, i int) error { return until(ctx, i) }},
				func(in tuple.Tuple, _ *bolt.Collector) error {
					i, err := strconv.Atoi(in.String("n"))
					fails := map[time.Duration]int{while: 1, slowest: replayed}[took(i)]
					if tries.add(in.String("n")) <= fails {
						return errBad
					}
					return err
				})
		},
		"a queue": func() *topology.Topology {
			q := &broker{n: n + 1, chunk: 1, next: func(ctx context.Context, i int) error {
				if took(i) > 0 {
					time.Sleep(while) // the one before is done
				}
				return until(ctx, i)
			}}
			return queueing(q.queue, 1, func(in tuple.Tuple, _ *bolt.Collector) error {
				i, err := strconv.Atoi(in.String("n"))
				time.Sleep(took(i))
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var h metrics.Histogram
				for i := range n {
					h.Record(took(i), 1)
				}
				want := metrics.Read(&h)
				require.EqualValues(t, 0, want.P50)
				require.InEpsilon(t, while, want.P99, 0.07)
				require.InEpsilon(t, slowest, want.Longest, 0.07)

				registry := prometheus.NewRegistry()
				ctx, cancel := context.WithCancel(context.Background())
				r, err := egret.Start(ctx, top(), quiet(egret.Config{Metrics: registry}))
				require.NoError(t, err)
				server := web.New(web.Config{Source: egret.SourceOf(r), Metrics: registry, Log: slog.New(slog.DiscardHandler)})
				end := func() *egret.Stats {
					cancel()
					s, err := r.Wait()
					require.NoError(t, err)
					server.Close()
					return s
				}
				defer end()
				time.Sleep(5 * time.Second)
				synctest.Wait()

				s := r.Stats()
				require.EqualValues(t, n, s.Acked)
				require.Equal(t, want, s.Latency, "Stats")
				get := func(path string, into any) string {
					q := httptest.NewRequest("GET", path, nil)
					q.Host = "127.0.0.1"
					w := httptest.NewRecorder()
					server.ServeHTTP(w, q)
					require.Equal(t, 200, w.Code, w.Body)
					body, err := io.ReadAll(w.Body)
					require.NoError(t, err)
					if into != nil {
						require.NoError(t, json.Unmarshal(body, into))
					}
					return string(body)
				}
				var d view.Detail
				get("/api/v1/topologies/"+s.Topology, &d)
				require.Equal(t, 5*time.Second, d.Window)
				require.Equal(t, want, d.Complete, "the topology")
				require.Equal(t, want, d.Components[0].Complete, "its component")
				require.Equal(t, want, d.TasksNow[0].Complete, "and its task")
				var o view.Overview
				get("/api/v1/overview", &o)
				require.Equal(t, want, o.Topologies[0].Complete)
				var points []view.Point
				get("/api/v1/topologies/"+s.Topology+"/history", &points)
				last := points[len(points)-1]
				require.Equal(t, []time.Duration{want.P50, want.P99}, []time.Duration{last.P50, last.P99})

				const metric = "egret_complete_latency_seconds"
				labels := "{component=" + d.Components[0].Component + ",topology=" + s.Topology + "}"
				_, scraped := scraped(t, registry)
				require.EqualValues(t, n, scraped[metric+labels])
				sum := slow*while.Seconds() + slowest.Seconds()
				require.InDelta(t, sum, scraped[metric+labels+" sum"], 1e-9)
				text := strings.ReplaceAll(get("/metrics", nil), `"`, "")
				require.Contains(t, text, metric+"_sum"+labels+" "+strconv.FormatFloat(scraped[metric+labels+" sum"], 'g', -1, 64))
				require.Equal(t, want, end().Latency)
			})
		})
	}
}
