package egret_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// scraped reads a registry: the families, and each number by "name{label=value,...}".
// Of a histogram that is the count, and "name{...} sum".
func scraped(t *testing.T, r prometheus.Gatherer) (map[string]*dto.MetricFamily, map[string]float64) {
	t.Helper()
	all, err := r.Gather()
	require.NoError(t, err)
	families, numbers := map[string]*dto.MetricFamily{}, map[string]float64{}
	for _, f := range all {
		families[f.GetName()] = f
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				numbers[name] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				numbers[name] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				numbers[name] = float64(m.Histogram.GetSampleCount())
				numbers[name+" sum"] = m.Histogram.GetSampleSum()
			default:
				t.Fatal(f)
			}
		}
	}
	return families, numbers
}

// waiting are the numbers below n, and then nothing until the run is stopped.
func waiting(n int) *numbers {
	return &numbers{n: n + 1, chunk: n, next: func(ctx context.Context, _ string, at int) error {
		if at == n {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
}

// ownName is a bolt's counter, which is made in each life.
const ownName = "seen_total"

// mixed is a topology in which everything happens: two streams, a subscription in
// two groupings, failures, rejects, a death and messages of a bolt's own.
func mixed(source *numbers, seen *atomic.Int64) *topology.Topology {
	return topology.New("mixed", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("n")
		var died atomic.Bool
		mid := b.Bolt("mid", factory(func() *made {
			var own *metrics.Counter
			var level *metrics.Gauge
			var took *metrics.Histogram
			var odd bolt.Output
			failed := map[string]bool{}
			return &made{
				prepare: func(_ context.Context, task *bolt.Task) error {
					own = task.Counter(ownName, "Tuples that were seen.")
					level = task.Gauge("level_bytes", "A level.")
					took = task.Histogram("took_seconds", "What it took.", metrics.Seconds)
					task.Histogram("page_bytes", "Pages.", metrics.Bytes).Observe(100)
					odd = task.Output("odd")
					return nil
				},
				execute: func(in tuple.Tuple, out *bolt.Collector) error {
					n := in.String("n")
					seen.Add(1)
					own.Add(1)
					level.Set(1.5)
					took.Record(250*time.Millisecond, 1)
					time.Sleep(time.Millisecond)
					i, _ := strconv.Atoi(n)
					switch {
					case i == 40 && died.CompareAndSwap(false, true):
						panic("once")
					case i%20 == 7 && !failed[n]:
						failed[strings.Clone(n)] = true
						return errors.New("once")
					case i%50 == 9:
						return bolt.Reject(errors.New("never"))
					case i%2 == 1:
						out.To(odd).Emit(n)
					}
					out.Emit(n)
					return nil
				},
				tick: func(out *bolt.Collector) error { out.Emit("tick"); return nil },
			}
		}), in.Shuffle(), in.All()).Parallel(2).Every(time.Second)
		mid = mid.Emits("n").EmitsTo("odd", "n")
		b.Bolt("out", factory(func() *made { return new(made) }), mid.Global(), mid.Stream("odd").Global())
	})
}

// What is exported is what Stats say, and what a bolt has counted itself.
func TestMetricsAgreeWithStats(t *testing.T) {
	for _, perTask := range []bool{false, true} {
		t.Run(fmt.Sprint(perTask), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := prometheus.NewRegistry()
				var seen atomic.Int64
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				running, err := egret.Start(ctx, mixed(waiting(100), &seen), quiet(egret.Config{Metrics: r, MetricsPerTask: perTask}))
				require.NoError(t, err)
				time.Sleep(time.Minute)
				synctest.Wait()
				s := running.Stats()
				require.Positive(t, s.Dead*s.Failed*s.Lost*s.Restarts)
				_, got := scraped(t, r)
				agree(t, s, got, perTask)
				own := 0.0
				for name, v := range got {
					if strings.HasPrefix(name, "egret_own_"+ownName) {
						own += v
					}
				}
				require.EqualValues(t, seen.Load(), own, "through all lives")
				if !perTask {
					const mid = "{component=mid,topology=mixed}"
					require.Equal(t, 3.0, got["egret_own_level_bytes"+mid], "gauges are added up")
					require.EqualValues(t, seen.Load(), got["egret_own_took_seconds"+mid])
					require.InEpsilon(t, float64(seen.Load())/4, got["egret_own_took_seconds"+mid+" sum"], 1e-9)
					require.Equal(t, 60.0, got["egret_uptime_seconds{topology=mixed}"])
				}
				problems, err := testutil.GatherAndLint(r)
				require.NoError(t, err)
				require.Empty(t, problems)

				cancel()
				_, err = running.Wait()
				require.ErrorIs(t, err, egret.ErrDead)
				families, _ := scraped(t, r)
				require.Empty(t, families, "taken back at the end")
			})
		})
	}
}

// agree compares every number that Stats and metrics both have.
func agree(t *testing.T, s *egret.Stats, got map[string]float64, perTask bool) {
	want := map[string]float64{}
	for _, x := range s.Tasks {
		labels := func(names ...string) string {
			_, index, _ := strings.Cut(x.Task, "/")
			names = append(names, "component="+x.Component, "topology="+s.Topology)
			if perTask {
				names = append(names, "task="+index)
			}
			slices.Sort(names)
			return "{" + strings.Join(names, ",") + "}"
		}
		add := func(name string, v int64, names ...string) { want[name+labels(names...)] += float64(v) }
		for _, o := range x.Streams {
			add("egret_emitted_tuples_total", o.Emitted, "stream="+o.Stream)
			add("egret_transferred_tuples_total", o.Transferred, "stream="+o.Stream)
		}
		for _, in := range x.Inputs {
			from, stream, _ := strings.Cut(in.From, ".")
			add("egret_executed_tuples_total", in.Acked, "from="+from, "stream="+stream, "result=acked")
			add("egret_executed_tuples_total", in.Failed, "from="+from, "stream="+stream, "result=failed")
		}
		add("egret_room_tuples", x.Room)
		add("egret_restarts_total", x.Restarts)
		add("egret_refused_total", x.Refused)
		add("egret_stuck_calls_total", x.Stuck)
		add("egret_abandoned_calls_total", x.AbandonedCalls)
		want["egret_throttled_seconds_total"+labels()] += x.Throttled.Seconds()
		if x.Component != "in" {
			add("egret_queued_tuples", x.Queued)
			add("egret_held_tuples", x.Held)
			add("egret_execute_latency_seconds", x.Execute.Count)
		}
		if x.Messages == 0 {
			continue
		}
		add("egret_messages_total", x.Messages)
		add("egret_messages_settled_total", x.Acked, "outcome=acked")
		add("egret_messages_settled_total", x.Dead, "outcome=dead")
		add("egret_messages_settled_total", x.Abandoned, "outcome=abandoned")
		add("egret_messages_settled_total", x.HandedBack, "outcome=handed_back")
		add("egret_messages_open", x.Messages-x.Acked-x.Dead-x.HandedBack-x.Abandoned)
		add("egret_attempts_total", x.Attempts)
		add("egret_attempts_ended_total", x.Acked, "outcome=acked")
		add("egret_attempts_ended_total", x.Failed, "outcome=failed")
		add("egret_attempts_ended_total", x.Lost, "outcome=lost")
		add("egret_attempts_ended_total", x.TimedOut, "outcome=timed_out")
		add("egret_attempts_trying", x.Trying)
		add("egret_replays_total", x.ReplayedFailed, "cause=failed")
		add("egret_replays_total", x.ReplayedLost, "cause=lost")
		add("egret_replays_total", x.ReplayedTimeout, "cause=timed_out")
	}
	for name, v := range want {
		have, ok := got[name]
		require.True(t, ok, "%s is not exported", name)
		require.InDelta(t, v, have, 1e-9, name)
	}
	checked := regexp.MustCompile(`^egret_(own|up|uptime|build|max|tasks|kept|complete)`)
	for name := range got {
		_, ok := want[name]
		require.True(t, ok || checked.MatchString(name) || strings.HasSuffix(name, " sum"), "%s is in no statistics", name)
	}
}

// docs/metrics.md lists what is exported, and nothing else.
func TestDocumentListsTheMetrics(t *testing.T) {
	text, err := os.ReadFile("docs/metrics.md")
	require.NoError(t, err)
	listed := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(egret_[a-z_]+)` \\| ([a-z]+) \\| ([a-z]*) ?\\| ([a-z, ]*?) ?\\| (.+) \\|$").FindAllStringSubmatch(string(text), -1) {
		labels := strings.FieldsFunc(row[4], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		listed[row[1]] = append([]string{row[2]}, labels...)
		for _, unit := range []string{"seconds", "bytes", "tuples", "messages", "attempts"} {
			if strings.Contains(row[1], "_"+unit) {
				require.Equal(t, unit, row[3], row[1])
			}
		}
	}
	require.Equal(t, strings.Count(string(text), "\n| `egret_"), len(listed), "each row is understood")
	for name := range listed {
		if strings.HasPrefix(name, "egret_cluster_") {
			delete(listed, name) // of nodes, and held against what they show elsewhere
		}
	}
	bubble(t, func(t *testing.T) {
		r := prometheus.NewRegistry()
		ctx, cancel := context.WithCancel(context.Background())
		running, err := egret.Start(ctx, mixed(waiting(10), new(atomic.Int64)), quiet(egret.Config{Metrics: r}))
		require.NoError(t, err)
		batches, err := egret.Start(ctx, topology.New("batches", func(b *topology.Builder) {
			b.Guarantee(topology.ExactlyOnce)
			b.Bolt("pass", func() bolt.Bolt { return &passing{} }, b.Spout("in", waiting(10)).Emits("n").Shuffle())
		}), quiet(egret.Config{Metrics: r}))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		families, _ := scraped(t, r)
		require.Equal(t, 10.0, families["egret_batch_messages_total"].Metric[0].GetCounter().GetValue())
		cancel()
		running.Wait()
		batches.Wait()
		exported := map[string][]string{}
		for name, f := range families {
			if strings.HasPrefix(name, "egret_own_") {
				continue
			}
			labels := []string{strings.ToLower(f.GetType().String())}
			for _, l := range f.Metric[0].Label {
				if l.GetName() != "topology" {
					labels = append(labels, l.GetName())
				}
			}
			exported[name] = labels
		}
		require.Equal(t, exported, listed)
	})
}

// Runs share a registry, as they like it; a second one of the same name is refused
// as long as the first one runs.
func TestRunsShareARegistry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := prometheus.NewRegistry()
		start := func(name string, perTask bool) (*egret.Running, error) {
			top := topology.New(name, func(b *topology.Builder) {
				in := b.Spout("in", waiting(10)).Emits("n")
				b.Bolt("out", factory(func() *made {
					return &made{prepare: func(_ context.Context, task *bolt.Task) error {
						task.Counter("x_total", "X.").Add(1)
						return nil
					}}
				}), in.Shuffle())
			})
			return egret.Start(context.Background(), top, quiet(egret.Config{Metrics: r, MetricsPerTask: perTask}))
		}
		a, err := start("a", false)
		require.NoError(t, err)
		b, err := start("b", true)
		require.NoError(t, err)
		_, err = start("a", false)
		require.EqualError(t, err, "config: Metrics has a topology a already, which is running: use another registry or another name")
		synctest.Wait()
		_, got := scraped(t, r)
		require.Equal(t, 10.0, got["egret_messages_total{component=in,topology=a}"])
		require.Equal(t, 10.0, got["egret_messages_total{component=in,task=0,topology=b}"])
		require.Equal(t, 1.0, got["egret_own_x_total{component=out,topology=a}"])
		require.Equal(t, 1.0, got["egret_own_x_total{component=out,task=0,topology=b}"])
		a.Drain()
		_, err = a.Wait()
		require.NoError(t, err)
		a, err = start("a", true)
		require.NoError(t, err, "the name is free again")
		synctest.Wait()
		families, _ := scraped(t, r)
		require.Len(t, families["egret_up"].Metric, 2)
		for _, x := range []*egret.Running{a, b} {
			x.Drain()
			_, err = x.Wait()
			require.NoError(t, err)
		}
	})
}

// A scrape at any moment of a busy run shows no count that goes back and no level
// below zero. The race detector looks on.
func TestScrapesDuringARun(t *testing.T) {
	r := prometheus.NewRegistry()
	var seen atomic.Int64
	running, err := egret.Start(context.Background(), mixed(&numbers{n: 300}, &seen), quiet(egret.Config{Metrics: r}))
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := running.Wait()
		ended <- err
	}()
	last := map[string]float64{}
	for scrapes := 0; ; scrapes++ {
		select {
		case err := <-ended:
			require.ErrorIs(t, err, egret.ErrDead)
			require.Positive(t, scrapes)
			return
		default:
		}
		families, got := scraped(t, r)
		for name, v := range got {
			require.GreaterOrEqual(t, v, 0.0, name)
			family, _, _ := strings.Cut(name, "{")
			if families[family].GetType() != dto.MetricType_GAUGE {
				require.GreaterOrEqual(t, v, last[name], name)
			}
		}
		last = got
	}
}

// A mistake with an own metric ends the run at once, and says what to do.
func TestOwnMetricMisused(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(*bolt.Task)
		want string
	}{
		{"name", func(task *bolt.Task) { task.Counter("Seen", "Tuples.") }, `counter "Seen": a name is made of a-z`},
		{"end", func(task *bolt.Task) { task.Counter("seen", "Tuples.") }, `counter "seen": the name of a counter ends in _total`},
		{"help", func(task *bolt.Task) { task.Gauge("seen", "") }, `gauge "seen": say in a sentence what it counts`},
		{"kind", func(task *bolt.Task) {
			task.Gauge("seen", "Tuples.")
			task.Histogram("seen", "Tuples.", metrics.None)
		}, `histogram "seen": there is a gauge "seen" already`},
		{"other task", func(task *bolt.Task) { task.Gauge("seen", fmt.Sprint("By task ", task.Index)) }, "a name means one thing in a topology"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				top := topology.New("wrong", func(b *topology.Builder) {
					in := b.Spout("in", waiting(10)).Emits("n")
					b.Bolt("out", factory(func() *made {
						return &made{prepare: func(_ context.Context, task *bolt.Task) error { tt.make(task); return nil }}
					}), in.Shuffle()).Parallel(2)
				})
				s, err := run(t, top, egret.Config{})
				require.ErrorContains(t, err, tt.want)
				require.Zero(t, s.Restarts, "another try would not help")
			})
		})
	}
}

// Time without room is counted while it lasts, and once; what is kept meanwhile is
// seen, and gone when it is done.
func TestThrottledWhileItLasts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan bool)
		top := straight(waiting(1000), func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.String("n") == "0" {
				<-free
			}
			return nil
		})
		r := prometheus.NewRegistry()
		running, err := egret.Start(context.Background(), top, quiet(egret.Config{MessageTimeout: time.Hour, Metrics: r}))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		const kept = "egret_kept_bytes{component=in,topology=straight}"
		_, got := scraped(t, r)
		require.Positive(t, got[kept])
		require.Equal(t, 65_536.0, got["egret_max_pending_messages{component=in,topology=straight}"])
		require.InDelta(t, 10, stat(t, running.Stats(), "in/0").Throttled.Seconds(), 0.11)
		close(free)
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, stat(t, running.Stats(), "in/0").Throttled.Seconds(), 0.11)
		_, got = scraped(t, r)
		require.Zero(t, got[kept], "nothing is open any more")
		running.Drain()
		_, err = running.Wait()
		require.NoError(t, err)
	})
}

// Whatever happens again and again is logged ten times in ten seconds, and how often
// it was not is said.
func TestLogIsNotFlooded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logbook{}
		top := straight(&numbers{n: 1000}, func(in tuple.Tuple, _ *bolt.Collector) error {
			if n := in.String("n"); n == "500" {
				time.Sleep(11 * time.Second)
			}
			return bolt.Reject(errors.New("no"))
		})
		_, err := run(t, top, egret.Config{Logger: log.logger(), TreeSize: 1, MaxPending: 1})
		require.ErrorIs(t, err, egret.ErrDead)
		dead := log.with("WARN message is dead: ")
		require.Len(t, dead, 20)
		require.Contains(t, dead[0], "message is dead: bolt out: no topology=straight component=in task=0 stream=default")
		require.NotContains(t, dead[0], "unlogged")
		require.Contains(t, dead[10], "task=0 unlogged=490 ")
		require.NotContains(t, dead[11], "unlogged")
		require.Equal(t, []string{"WARN and 490 more: message is dead topology=straight component=in unlogged=490"}, log.with(" more: "))
	})
}

// What bolts log says where it comes from, in the same words as the engine.
func TestBoltsLogSaysWhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logbook{}
		top := topology.New("speaking", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 1}).Emits("n")
			b.Bolt("out", factory(func() *made {
				return &made{prepare: func(_ context.Context, task *bolt.Task) error { task.Logger.Info("hello", "a", 1); return nil }}
			}), in.Shuffle())
		})
		_, err := run(t, top, egret.Config{Logger: log.logger()})
		require.NoError(t, err)
		require.Equal(t, []string{"INFO hello topology=speaking component=out task=0 a=1"}, log.with("hello"))
	})
}
