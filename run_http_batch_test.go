package egret_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/view"
)

// Of an exactly-once topology the page's numbers, Stats and Prometheus's are the same, also
// of what came again, and its messages are those that the state has counted.
func TestNumbersAgreeExactlyOnce(t *testing.T) {
	const n, keys = 9000, 10
	var died atomic.Bool
	source := waiting(n)
	source.chunk = 100
	kept := trident.StateOf[string, int64]("kept", memory.New(), trident.Opaque)
	top := trident.New("once", func(b *trident.Builder) {
		in := trident.From[string](b, "in", source)
		key := trident.Map(in, func(s string) string {
			if s == strconv.Itoa(n/2) && died.CompareAndSwap(false, true) {
				panic("half of it")
			}
			return s[len(s)-1:]
		}).Name("key").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(key, trident.Identity), kept, trident.Count[string]()).Parallel(3)
	})
	registry := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := egret.Start(ctx, top, quiet(egret.Config{HTTP: egret.HTTP{Address: "0"}, Metrics: registry}))
	require.NoError(t, err)
	l := followed(t, r.URL(), "once")
	defer l.body.Close()

	var last *view.Batches
	for last == nil || last.Messages < n { // in between
		event, d := l.next()
		require.Equal(t, "detail", event)
		require.NotNil(t, d.Batches)
		require.LessOrEqual(t, d.Batches.Messages, int64(n), "no message counts twice")
		require.LessOrEqual(t, d.DoneRate*d.Window.Seconds(), float64(d.Batches.Messages)+0.5)
		if last != nil {
			require.GreaterOrEqual(t, d.Batches.Messages, last.Messages)
			require.GreaterOrEqual(t, d.Batches.Last, last.Last)
		}
		last = d.Batches
	}
	_, d := l.next() // at rest: there is nothing for another batch
	s := r.Stats()
	same(t, s, &d)
	sameBatches(t, s.Batches, d.Batches)
	require.Equal(t, s.Latency, d.Batches.Latency)
	require.EqualValues(t, n, s.Latency.Count)
	require.EqualValues(t, n, s.Batches.Messages)
	require.EqualValues(t, 1, s.Restarts)
	require.Positive(t, s.Batches.Causes["death"])
	require.Positive(t, s.Batches.Replayed)
	_, own := scraped(t, registry)
	served := l.served()
	require.EqualValues(t, n, served["egret_complete_latency_seconds_count{component=coordinator,topology=once}"])
	acked := map[string]int64{}
	for _, x := range s.Tasks {
		for _, in := range x.Inputs {
			acked[x.Component] += in.Acked
		}
	}
	require.Greater(t, acked["key"], int64(n), "what came again was executed again")
	require.Equal(t, acked["key"]+1, d.Edges[0].Total, "and there is the one that a task died of")
	for name, want := range map[string]int64{
		"egret_batches_total{component=coordinator,topology=once}":                                       s.Batches.Committed,
		"egret_batch_last{component=coordinator,topology=once}":                                          s.Batches.Last,
		"egret_batch_messages_total{component=coordinator,topology=once}":                                n,
		"egret_batch_keys_total{component=coordinator,topology=once}":                                    s.Batches.Keys,
		"egret_batches_failed_total{component=coordinator,topology=once}":                                s.Batches.Failed,
		"egret_batches_replayed_total{component=coordinator,topology=once}":                              s.Batches.Replayed,
		"egret_batch_rounds_total{cause=death,component=coordinator,topology=once}":                      s.Batches.Causes["death"],
		"egret_messages_total{component=in,topology=once}":                                               s.Messages,
		"egret_restarts_total{component=key,topology=once}":                                              1,
		"egret_messages_open{component=in,topology=once}":                                                d.Counts.Open,
		"egret_executed_tuples_total{component=kept,from=key,result=acked,stream=default,topology=once}": acked["kept"],
		"egret_executed_tuples_total{component=key,from=in,result=acked,stream=default,topology=once}":   acked["key"],
	} {
		require.Contains(t, own, name)
		require.EqualValues(t, want, own[name], name)
		require.EqualValues(t, want, served[name], name)
	}
	counted := func() (sum int64) {
		states, err := kept.Open(t.Context(), "once", trident.Latest)
		require.NoError(t, err)
		defer states.Close()
		for i := range keys {
			v, _, err := states.Get(t.Context(), strconv.Itoa(i))
			require.NoError(t, err)
			sum += v
		}
		return sum
	}
	require.Equal(t, d.Batches.Messages, counted(), "the state's own count")

	cancel()
	for event := ""; event != "ended"; {
		event, d = l.next()
	}
	stats, err := r.Wait()
	require.NoError(t, err)
	same(t, stats, &d)
	sameBatches(t, stats.Batches, d.Batches)
	require.Equal(t, d.Batches.Messages, counted())
}

// sameBatches holds what is shown of batches against statistics of the same moment.
func sameBatches(t *testing.T, s *egret.BatchStat, b *view.Batches) {
	t.Helper()
	require.Equal(t, []int64{s.Last, s.Committed, s.Messages, s.Keys, s.Failed, s.Replayed}, []int64{b.Last, b.Committed, b.Messages, b.Keys, b.Failed, b.Replayed})
	for cause, n := range s.Causes {
		require.Equal(t, n, b.Rounds[cause], cause)
	}
	var rounds int64
	for cause, n := range b.Rounds {
		if cause != "start" {
			rounds += n
		}
	}
	require.Equal(t, s.Rounds, rounds)
}
