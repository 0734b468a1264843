package bench

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/topology"
)

func TestMeasure(t *testing.T) {
	for _, tt := range []struct {
		topology string
		tuples   float64 // a message
		words    float64
	}{{"null", 1, 0}, {"identity", 2, 0}, {"wordcount", 1 + wordsPerLine, wordsPerLine}} {
		for _, g := range []topology.Guarantee{topology.AtMostOnce, topology.AtLeastOnce} {
			t.Run(tt.topology+" "+g.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := Setup{Topology: tt.topology, Guarantee: g, Spouts: 2, Bolts: 2, Latency: true}
					r, err := Measure(t.Context(), runToy, s, 100*time.Millisecond)
					require.NoError(t, err)
					require.Equal(t, 0.1, r.Seconds)
					// The turn at either end may fall on this or that side of it.
					within := 4 * turnRate / 100
					require.InDelta(t, 2*turnRate, r.MessagesPerS, within)
					require.InDelta(t, 2*turnRate*tt.tuples, r.TuplesPerS, within*tt.tuples)
					require.InDelta(t, 2*turnRate*tt.words, r.WordsPerS, within*tt.words)
					require.Positive(t, r.AllocsPerTuple, "the toy allocates")
					require.Positive(t, r.BytesPerTuple)
					require.NotNil(t, r.Latency)
					sinks := max(1, tt.words) // tuples a message that reach the last bolt
					require.InEpsilon(t, r.MessagesPerS*r.Seconds/sampleEvery*sinks, r.Latency.Count, 0.15)
					require.Nil(t, r.Due)
					if g == topology.AtMostOnce {
						require.Zero(t, r.AckedPerS)
						require.Nil(t, r.AckLatency)
					} else {
						require.Equal(t, r.MessagesPerS, r.AckedPerS)
						require.NotNil(t, r.AckLatency)
						require.InEpsilon(t, 1000, r.AckLatency.P99, 0.07)
					}
				})
			})
		}
	}
}

func TestMeasureWithoutLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Measure(t.Context(), runToy, Setup{Topology: "wordcount", Spouts: 1, Bolts: 1}, 10*time.Millisecond)
		require.NoError(t, err)
		require.Nil(t, r.Latency)
		require.Positive(t, r.WordsPerS)
	})
}

func TestDigest(t *testing.T) {
	for _, spouts := range []int{1, 2} {
		got, err := Digest(t.Context(), runHurried, Setup{Spouts: spouts, Bolts: 2})
		require.NoError(t, err)
		require.Equal(t, wantDigest(spouts), got)
	}
	require.NotEqual(t, wantDigest(1), wantDigest(2))
}

func TestDigestOfAStoppedRunIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 20*turn)
		defer stop()
		_, err := Digest(ctx, func(ctx context.Context, tp *topology.Topology, g topology.Guarantee, dir string, _ bool) Running {
			run := runToy(ctx, tp, g, dir, false)
			return Running{Stats: run.Stats, Wait: func() (Counts, error) {
				c, _ := run.Wait() // a run that was told to stop has not failed
				return c, nil
			}}
		}, Setup{Spouts: 1, Bolts: 1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestMeasureTellsWhatWentWrong(t *testing.T) {
	broken := errors.New("bolt null: broken")
	after := func(d time.Duration, err error) Runner {
		return func(ctx context.Context, _ *topology.Topology, _ topology.Guarantee, _ string, _ bool) Running {
			return Running{Stats: func() Counts { return Counts{} }, Wait: func() (Counts, error) {
				select {
				case <-time.After(d):
					return Counts{}, err
				case <-ctx.Done():
					return Counts{}, errors.Join(err, ctx.Err())
				}
			}}
		}
	}
	for _, tt := range []struct {
		name string
		run  Runner
		is   error
		want string
	}{
		{"fails in the warm-up", after(0, broken), broken, "topology bench-null: bolt null: broken"},
		{"fails in the timed phase", after(warmUp+1, broken), broken, "topology bench-null: bolt null: broken"},
		{"ends", after(warmUp+1, nil), nil, "topology bench-null: it ended before the timed phase was over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := Measure(t.Context(), tt.run, Setup{Topology: "null", Spouts: 1, Bolts: 1}, time.Second)
				require.EqualError(t, err, tt.want)
				if tt.is != nil {
					require.ErrorIs(t, err, tt.is)
				}
			})
		})
	}
	t.Run("is interrupted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), warmUp+time.Millisecond)
			defer stop()
			_, err := Measure(ctx, runToy, Setup{Topology: "null", Spouts: 1, Bolts: 1}, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("cannot be built", func(t *testing.T) {
		_, err := Measure(t.Context(), runToy, Setup{Topology: "nul", Spouts: 1, Bolts: 1}, time.Second)
		require.EqualError(t, err, `--topology is "nul": use null, identity or wordcount`)
	})
}

func TestResultAsJSON(t *testing.T) {
	keys := func(v any) []string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(b, &m))
		return slices.Sorted(maps.Keys(m))
	}
	always := []string{"acked_per_s", "ack_latency_us", "allocs_per_tuple", "bolts", "bytes_per_tuple", "cores", "failed", "latency_us", "messages_per_s", "seconds", "spouts", "topology", "tuples_per_s"}
	require.Equal(t, slices.Sorted(slices.Values(always)), keys(Result{}))
	full := append(always, "guarantee", "rate", "words_per_s", "due_us", "digest")
	require.Equal(t, slices.Sorted(slices.Values(full)), keys(Result{Guarantee: "x", Rate: 1, WordsPerS: 1, Due: &Latency{}, Digest: "x"}))
	require.Equal(t, []string{"count", "p50", "p99", "p999"}, keys(Latency{}))
}

func TestTopologies(t *testing.T) {
	for _, tp := range Topologies() {
		p, err := tp.Build(topology.Options{})
		require.NoError(t, err, tp.Name())
		require.Equal(t, tp.Name(), p.Topology)
		for _, rate := range []string{"0", "1000"} {
			p, err = tp.Build(topology.Options{Params: map[string][]string{"spouts": {"3"}, "bolts": {"5"}, "rate": {rate}, "passes": {"1"}}})
			require.NoError(t, err)
			require.Equal(t, 3, p.Components[0].Parallel)
			require.Equal(t, 5, p.Components[1].Parallel)
		}
		for name, bad := range map[string]string{"spouts": "0", "bolts": "5000", "rate": "-1", "passes": "-1"} {
			_, err = tp.Build(topology.Options{Params: map[string][]string{name: {bad}}})
			require.Error(t, err, "%s %s", name, bad)
		}
	}
	// They are real topologies: run to their end they count right.
	synctest.Test(t, func(t *testing.T) {
		word := topology.New("wc", func(b *topology.Builder) {
			shapes["wordcount"](b, &Setup{Topology: "wordcount", Spouts: 2, Bolts: 2, passes: 1}, newProbe())
		})
		c, err := runToy(t.Context(), word, topology.AtLeastOnce, "", false).Wait()
		require.NoError(t, err)
		require.EqualValues(t, 2*lineCount*wordsPerLine, c.ExecutedBy["count"])
	})
}
