package egret

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/live"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// harmed runs a topology in which time is made up, and does to it what a plan says: for
// two seconds, with one before and one after. change may break the engine.
func harmed(t *testing.T, top *topology.Topology, plan string, config Config, change func(*topology.Plan, *task.Settings), options ...func(*live.Options)) (r *live.Report) {
	t.Helper()
	p, err := chaos.Parse(plan)
	require.NoError(t, err)
	config.Logger = slog.New(slog.DiscardHandler)
	synctest.Test(t, func(t *testing.T) {
		start := starter(top, config)
		o := live.Options{
			Plan: p, Seed: 1, Before: time.Second, For: 2 * time.Second, After: time.Second, Settle: 10 * time.Second,
			Start: func(ctx context.Context) (*live.Engine, error) {
				return start(task.WithHook(ctx, func(plan *topology.Plan, set *task.Settings) error {
					err := task.Hook(ctx, plan, set)
					if err == nil && change != nil {
						change(plan, set)
					}
					return err
				}))
			},
		}
		for _, f := range options {
			f(&o)
		}
		r, err = live.Run(t.Context(), o)
		require.NoError(t, err)
	})
	return r
}

// ticking gives 20 messages each 20 ms, for ever or n times.
func ticking(n int64) spout.Source {
	return from.Schedule(50, n, func(i int64, _ time.Time, out *spout.Out) {
		for k := range int64(20) {
			out.Emit(20*i + k)
		}
	})
}

// twice is a topology with a bolt that emits each number two times.
func twice(source spout.Source, last bolt.Factory) *topology.Topology {
	return topology.New("twice", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("n")
		two := b.Bolt("two", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"))
			out.Emit(in.Int64("n"))
			return nil
		}), in.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("last", last, two.By("n")).Parallel(3)
	})
}

func nothing() bolt.Bolt {
	return bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil })()
}

// slowly takes half a millisecond for each tuple, so that there is something to lose.
func slowly() bolt.Bolt {
	return bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
		time.Sleep(500 * time.Microsecond)
		return nil
	})()
}

func clean(t *testing.T, r *live.Report) {
	t.Helper()
	require.NoError(t, r.Err)
	require.Zero(t, r.Lost, "%v", r.LostOnes)
	require.Empty(t, r.Violations)
	require.NoError(t, liveOutcome(r))
	require.Equal(t, r.Seen, r.Folded.Messages)
}

// Where no harm comes of a plan, the record has exactly what was done.
func TestLiveWithoutHarm(t *testing.T) {
	r := harmed(t, twice(ticking(0), nothing), "at 0s stall last/0 for 1ns", Config{}, nil)
	clean(t, r)
	require.InDelta(t, 4000, r.Seen, 20)
	require.Equal(t, []int64{0, r.Seen}, r.Folded.Attempts)
	require.Equal(t, []int64{0, r.Seen}, r.Folded.Ends)
	require.Equal(t, []int64{0, 0, r.Seen}, r.Folded.Executions, "3 of each: two and last twice")
	require.Equal(t, 3*r.Seen, r.Folded.All)
	require.Equal(t, []live.Rate{1000, 1000, 1000}, []live.Rate{r.Rates.Before, r.Rates.During, r.Rates.After})
	require.Empty(t, r.Cut)
}

// A bolt's task that is killed loses what it had; all of it comes again, and is done
// without a pause. The time is made up, so each number is what the engine takes of it.
func TestLiveKill(t *testing.T) {
	r := harmed(t, twice(ticking(0), slowly), "at 501ms kill last/*; at 1s kill two/0 again 1", Config{}, nil)
	clean(t, r)
	var done []string
	for _, d := range r.Done {
		done = append(done, fmt.Sprintf("%v %s %s %d", d.At.Round(100*time.Millisecond), d.Fault.Kind, d.Task, d.Life))
	}
	require.Equal(t, []string{"1.5s kill last/0 1", "1.5s kill last/1 1", "1.5s kill last/2 1", "2s kill two/0 1", "2s kill two/0 2"}, done)
	require.Equal(t, "kill last", r.Recoveries[0].What)
	require.Positive(t, r.Recoveries[0].Messages)
	require.Zero(t, r.Recoveries[0].Open)
	require.Equal(t, r.Folded.Replayed, r.Folded.Messages-r.Folded.Attempts[1])
	require.Positive(t, r.Folded.Replayed)
	require.Less(t, r.Recoveries[0].Last.Max, 20*time.Millisecond)
}

// The ledger and all values of a spout's task die with it. Its next life reads on from
// the position, and its messages are the same ones.
func TestLiveKillSpout(t *testing.T) {
	r := harmed(t, twice(ticking(0), slowly), "every 300ms from 301ms kill in", Config{MaxPending: 10_000}, nil)
	clean(t, r)
	require.Len(t, r.Done, 6)
	require.Positive(t, r.Recoveries[0].Messages)
	require.Zero(t, r.Recoveries[0].Open)
	require.Positive(t, r.Folded.Replayed)
	require.Less(t, r.Folded.Replayed, r.Seen/2, "it goes on, and does not begin anew")
}

// Who is killed again and again from outside is neither given up nor made to wait.
func TestLiveKillAgainAndAgain(t *testing.T) {
	for who, most := range map[string]time.Duration{"last/0": 40 * time.Millisecond, "in/0": 100 * time.Millisecond, "*": 100 * time.Millisecond} {
		r := harmed(t, twice(ticking(0), slowly), "every 200ms kill "+who, Config{}, nil, func(o *live.Options) { o.For = 10 * time.Second })
		clean(t, r)
		require.Len(t, r.Done, 49)
		for _, c := range r.Recoveries {
			require.Less(t, c.Last.Max, most, c.What)
		}
		require.InDelta(t, 1, float64(r.Rates.During/r.Rates.Before), 0.1)
	}
}

func TestLiveFaults(t *testing.T) {
	for _, tt := range []struct {
		plan   string
		config Config
		check  func(t *testing.T, r *live.Report)
	}{
		{plan: "at 1s stall last/0 for 700ms", check: func(t *testing.T, r *live.Report) {
			require.Equal(t, r.Seen, r.Folded.Attempts[1], "waiting is no loss")
		}},
		{plan: "at 500ms stall last/* for 900ms", config: Config{MaxPending: 100, MessageTimeout: 200 * time.Millisecond}, check: func(t *testing.T, r *live.Report) {
			require.Positive(t, r.Folded.Replayed, "who does not come back from Execute times out")
			require.Zero(t, r.Rates.Least)
		}},
		{plan: "at 500ms stall in/0 for 900ms", check: func(t *testing.T, r *live.Report) {
			require.Zero(t, r.Rates.Least)
			require.Equal(t, r.Seen, r.Folded.Attempts[1])
		}},
		{plan: "from 500ms to 1500ms slow last/* by 4", check: func(t *testing.T, r *live.Report) {
			require.Less(t, r.Rates.Least, live.Rate(800), "3 tasks of 2ms each take 750")
			require.InDelta(t, 1000, float64(r.Rates.After), 1)
		}},
		{plan: "at 500ms panic last/2 on 3; at 1s panic in/0 on 2", check: func(t *testing.T, r *live.Report) {
			require.Positive(t, r.Folded.Replayed)
			require.Equal(t, []string{"panic last", "panic in"}, []string{r.Recoveries[0].What, r.Recoveries[1].What})
			require.Positive(t, r.Recoveries[0].Messages)
		}},
		{plan: "from 500ms to 1s pause in", check: func(t *testing.T, r *live.Report) {
			require.Zero(t, r.Rates.Least)
			require.Equal(t, r.Seen, r.Folded.Attempts[1])
		}},
		{plan: "every 200ms break in; pause in/0", check: func(t *testing.T, r *live.Report) {
			require.Zero(t, r.Rates.During)
			require.GreaterOrEqual(t, r.Rates.After, live.Rate(1000), "and what was due meanwhile")
		}},
	} {
		t.Run(tt.plan, func(t *testing.T) {
			r := harmed(t, twice(ticking(0), slowly), tt.plan, tt.config, nil)
			clean(t, r)
			tt.check(t, r)
		})
	}
}

// A topology with everything that changes what comes of a message: copies for all,
// custom and direct groupings, retained tuples that are joined, calls of services, ticks.
func TestLiveEveryWayOfATuple(t *testing.T) {
	define := func(b *topology.Builder) {
		in := b.Spout("in", from.Schedule(400, 0, func(i int64, _ time.Time, out *spout.Out) {
			out.Emit(i)
			out.EmitTo("side", i)
		})).Emits("n").EmitsTo("side", "n")
		chosen := in.Custom("both-of-even-ones", func(topology.Sender) topology.Chooser {
			return func(t tuple.Tuple, to []int) []int {
				if to = append(to, 1); t.Int64("n")%2 == 0 {
					to = append(to, 0)
				}
				return to
			}
		})
		pass := func(in tuple.Tuple, out *bolt.Collector) error { out.Emit(in.Int64("n")); return nil }
		all := b.Bolt("all", bolt.Each(pass), in.All()).Emits("n").Parallel(2)
		custom := b.Bolt("custom", bolt.Each(pass), chosen).Emits("n").Parallel(2)
		direct := b.Bolt("direct", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.EmitDirect(int(in.Int64("n")%2), in.Int64("n"))
			return nil
		}), in.Stream("side").Shuffle()).Emits("n")
		asked := b.Bolt("ask", bolt.Async(5, func(ctx context.Context, in tuple.Tuple, yield func(...any)) error {
			time.Sleep(time.Millisecond)
			yield(in.Int64("n"))
			return nil
		}), custom.Shuffle()).Emits("n").Parallel(2)
		pairs := b.Bolt("pairs", func() bolt.Bolt { return &pairing{} }, direct.Direct(), all.By("n")).Emits("n").Parallel(2).Every(50 * time.Millisecond)
		b.Bolt("last", slowly, pairs.Custom("all", func(s topology.Sender) topology.Chooser {
			return func(_ tuple.Tuple, to []int) []int {
				for i := range s.Tasks {
					to = append(to, i)
				}
				return to
			}
		}), asked.PartialBy("n")).Parallel(2)
	}
	r := harmed(t, topology.New("every", define), "at 1s stall last/0 for 1ms", Config{}, nil)
	clean(t, r)
	require.Equal(t, []int64{0, r.Seen}, r.Folded.Ends)
	require.Positive(t, r.Own.Messages)
	r = harmed(t, topology.New("every", define), "every 100ms kill *; every 500ms kill */*; at 500ms panic pairs on 7; at 600ms stall last/* for 150ms; at 740ms kill pairs/*", Config{}, nil, func(o *live.Options) { o.For = time.Second })
	clean(t, r)
	require.Positive(t, r.Folded.Replayed)
	require.Positive(t, r.Own.Gone, "what ticks had emitted died with its task")
}

// A pairing retains a tuple until the next one comes, and emits one for both.
type pairing struct{ waits *bolt.Held }

func (p *pairing) Execute(in tuple.Tuple, out *bolt.Collector) error {
	h := out.Retain(in)
	if p.waits == nil {
		p.waits = h
		return nil
	}
	out.Anchor(p.waits, h).Emit(in.Int64("n"))
	p.waits.Ack()
	h.Ack()
	p.waits = nil
	return nil
}

func (p *pairing) Tick(out *bolt.Collector) error { out.Emit(int64(-1)); return nil }

func (p *pairing) Flush(*bolt.Collector) error {
	if p.waits != nil {
		p.waits.Ack()
		p.waits = nil
	}
	return nil
}

// The messages of a queue are told apart by nobody, so what is checked is that none is
// acked too early. Those of a task that is killed come again, from the queue.
func TestLiveQueue(t *testing.T) {
	var memory *from.Memory
	top := topology.New("queue", func(b *topology.Builder) {
		jobs := b.Queue("jobs", memory.Queue).Emits("n").Parallel(2)
		two := b.Bolt("two", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"))
			out.Emit(in.Int64("n"))
			return nil
		}), jobs.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("last", slowly, two.By("n")).Parallel(3)
	})
	r := harmed(t, top, "every 20ms kill *", Config{}, nil, func(o *live.Options) {
		memory = from.NewMemory(100).Redeliver(10 * time.Millisecond)
		go func() { // ends with the bubble
			for i := range int64(2000) {
				time.Sleep(time.Millisecond)
				if _, err := memory.Push(context.Background(), i); err != nil {
					return
				}
			}
			memory.Close()
		}()
	})
	require.NoError(t, r.Err)
	require.Empty(t, r.Violations)
	require.GreaterOrEqual(t, r.Own.Done, int64(2000))
	require.Positive(t, r.Own.HandedBack)
	require.Len(t, memory.Acked(), 2000)
	require.Zero(t, r.Seen)
}

// Dead messages are none that were lost: Egret has said so.
func TestLiveDead(t *testing.T) {
	refuse := bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
		if in.Int64("n")%500 == 7 {
			return bolt.Reject(errors.New("no"))
		}
		return nil
	})
	r := harmed(t, twice(ticking(0), refuse), "every 100ms kill *", Config{}, nil)
	require.ErrorIs(t, r.Err, ErrDead)
	require.ErrorIs(t, liveOutcome(r), ErrDead)
	require.Zero(t, r.Lost, "%v", r.LostOnes)
	require.Empty(t, r.Violations)
	require.Equal(t, (r.Seen+492)/500, r.Dead)
}

// An engine that does what it must not is found out, whatever it says itself.
func TestLiveFindsABrokenEngine(t *testing.T) {
	for _, tt := range []struct {
		name   string
		breaks func(*topology.Plan, *task.Settings)
		lost   int64
		says   string
	}{
		{"a tuple is lost between Emit and its parcel", func(_ *topology.Plan, set *task.Settings) {
			emit, once := set.Probe.Emit, sync.Once{}
			set.Probe.Emit = func(id tuple.TaskID, stream int, r *tuple.Row) {
				emit(id, stream, r)
				once.Do(func() { emit(id, stream, r) }) // the record hears of one that there is not
			}
		}, 1, "Egret says that it is done, and it was not executed to the end"},
		{"what is lost counts as done", func(_ *topology.Plan, set *task.Settings) {
			verdict := set.Verdict
			set.Verdict = func(v *task.Verdict) {
				said := *v
				said.Outcome = acker.Done
				verdict(&said)
			}
		}, 0, "Egret says that it is done, and it was not executed to the end"},
		{"a position is committed too early", func(p *topology.Plan, _ *task.Settings) {
			p.Components[0].Source = &early{p.Components[0].Source}
		}, 0, "Egret has committed a position behind it, and it was not executed to the end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := harmed(t, twice(ticking(0), slowly), "at 1001ms kill last/*", Config{MaxPending: 1000}, tt.breaks)
			require.Equal(t, tt.lost, r.Lost)
			require.NotEmpty(t, r.Violations)
			require.Equal(t, tt.says, r.Violations[0].What)
			require.Equal(t, "in", r.Violations[0].Message.Component)
			require.True(t, r.Failed())
			require.ErrorContains(t, liveOutcome(r), "violation")
			var b strings.Builder
			r.Print(&b)
			require.Contains(t, b.String(), "in, split schedule, message ")
			if tt.lost > 0 {
				require.Equal(t, r.Violations[0].Message.Ordinal, r.LostOnes[0].Ordinal)
				require.ErrorContains(t, liveOutcome(r), "1 message never executed to the end")
			}
		})
	}
}

// early says of each position that it is done as soon as there is one.
type early struct{ spout.Source }

func (e *early) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	r, err := e.Source.Open(ctx, split, position)
	return &earlyReader{r, e, split}, err
}

func (e *early) Commit(ctx context.Context, split spout.Split, position string) error {
	return e.Source.(spout.Committer).Commit(ctx, split, position)
}

type earlyReader struct {
	spout.Reader
	of    *early
	split spout.Split
}

func (r *earlyReader) Next(ctx context.Context, out *spout.Out) error {
	err := r.Reader.Next(ctx, out)
	if out.Len() > 0 {
		err = errors.Join(err, r.of.Commit(ctx, r.split, r.Position()))
	}
	return err
}

// An input that ends, and an interrupt, end the run early; the report is of what there is.
func TestLiveEndsEarly(t *testing.T) {
	for ends, want := range map[int64]string{
		25:  "the input ended before the faults began",
		100: "the input ended while faults were done",
		175: "the input ended soon after the faults",
	} {
		r := harmed(t, twice(ticking(ends), slowly), "every 100ms kill *", Config{}, nil)
		if ends == 25 {
			require.True(t, r.Failed(), "nothing was tried")
			require.EqualError(t, liveOutcome(r), "no fault was done, so nothing was tried: "+want)
		} else {
			clean(t, r)
		}
		require.Equal(t, 20*ends, r.Seen)
		require.Equal(t, want, r.Cut)
	}
	interrupt := func(o *live.Options) {
		interrupted := make(chan int, 2)
		o.Interrupted = interrupted
		o.Told = func(d live.Done) {
			if d.At > 1500*time.Millisecond && len(interrupted) == 0 {
				interrupted <- 1
			}
		}
	}
	r := harmed(t, twice(ticking(0), slowly), "every 100ms kill *; every 100ms kill in", Config{}, nil, interrupt)
	clean(t, r)
	require.Equal(t, "interrupted", r.Cut)
	require.Less(t, len(r.Done), 20)

	verySlowly := bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
		time.Sleep(50 * time.Millisecond)
		return nil
	})
	r = harmed(t, twice(ticking(0), verySlowly), "at 500ms stall last/* for 1m", Config{StuckAfter: -1}, nil, func(o *live.Options) {
		interrupted := make(chan int, 2)
		o.Interrupted = interrupted
		o.Told = func(d live.Done) {
			if d.Task == "last/0" {
				interrupted <- 1
				interrupted <- 2
			}
		}
	})
	require.ErrorIs(t, r.Err, ErrDrain)
	require.True(t, r.Failed())
	require.Equal(t, r.Seen, r.Folded.Messages)
	require.Zero(t, r.Lost, "nobody has said that it was done")
	require.Positive(t, r.Open)
	var b strings.Builder
	r.Print(&b)
	require.Contains(t, b.String(), " open when it was stopped")
	require.Contains(t, b.String(), "ended by     topology twice: not drained")
}
