package egret_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// letters returns the dead letters of a topology, which may be running.
func letters(t *testing.T, dir, topology string) []disk.Entry {
	t.Helper()
	l, err := disk.OpenLetters(dir, topology)
	require.NoError(t, err)
	all, err := l.List()
	require.NoError(t, err)
	return all
}

// replay asks for all dead letters to be replayed.
func replay(t *testing.T, dir, topology string) int {
	t.Helper()
	l, err := disk.OpenLetters(dir, topology)
	require.NoError(t, err)
	n, err := l.Replay(nil, func(*task.DeadLetter) error { return nil })
	require.NoError(t, err)
	return n
}

// A run that is interrupted again and again reads each message once, whatever the
// parallelism; the one after the last has nothing to do.
func TestStateGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		seen := newTally()
		for n := 1; ; n++ {
			require.Less(t, n, 50)
			ctx, stop := context.WithCancel(context.Background())
			in := 0
			top := topology.New("straight", func(b *topology.Builder) {
				s := b.Spout("in", &numbers{splits: 5, n: 200, chunk: 7}).Emits("n").Parallel(1 + n%3)
				b.Bolt("out", bolt.Each(func(x tuple.Tuple, _ *bolt.Collector) error {
					time.Sleep(time.Millisecond)
					seen.add(x.String("n"))
					if in++; in == 150 {
						stop()
					}
					return nil
				}), s.Shuffle())
			})
			s, err := egret.Run(ctx, top, quiet(egret.Config{StateDir: dir, MaxPending: 20}))
			stop()
			require.NoError(t, err)
			settled(t, s, err)
			if s.Input == 0 {
				break
			}
		}
		require.Len(t, seen.get(), 1000)
		require.Equal(t, 1000, seen.sum(), "no message twice")
	})
}

// Reset begins anew, and a run of the same directory at the same time is refused.
func TestStateResetAndLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		top := straight(&numbers{n: 10}, func(tuple.Tuple, *bolt.Collector) error { return nil })
		for _, tt := range []struct {
			reset bool
			want  int64
		}{{false, 10}, {false, 0}, {true, 10}, {false, 0}} {
			s, err := run(t, top, egret.Config{StateDir: dir, Reset: tt.reset})
			require.NoError(t, err)
			require.Equal(t, tt.want, s.Input)
		}
		hold := make(chan struct{})
		r, err := egret.Start(context.Background(), straight(&numbers{n: 20}, func(tuple.Tuple, *bolt.Collector) error { <-hold; return nil }), quiet(egret.Config{StateDir: dir}))
		require.NoError(t, err)
		_, err = egret.Start(context.Background(), top, quiet(egret.Config{StateDir: dir}))
		require.ErrorIs(t, err, egret.ErrState)
		require.ErrorContains(t, err, "in process "+strconv.Itoa(os.Getpid()))
		close(hold)
		_, err = r.Wait()
		require.NoError(t, err)
		_, err = run(t, top, egret.Config{Reset: true})
		require.ErrorContains(t, err, "Reset forgets the positions in StateDir")
	})
}

// A source hears of a position only when it is durable: it may then throw away what
// is before it.
func TestStateBeforeCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		commits := newTally() // of each split
		source := &numbers{splits: 2, n: 300, chunk: 5}
		source.commit = func(_ context.Context, split string, at int) error {
			b, err := os.ReadFile(filepath.Join(dir, "straight", "positions"))
			require.NoError(t, err)
			require.Contains(t, string(b), fmt.Sprintf("split \"in\" %q 1.1 %q\n", split, strconv.Itoa(at)))
			commits.add(split)
			return nil
		}
		_, err := run(t, straight(committing{source}, func(tuple.Tuple, *bolt.Collector) error {
			time.Sleep(2 * time.Millisecond)
			return nil
		}), egret.Config{StateDir: dir, MaxPending: 20})
		require.NoError(t, err)
		require.Greater(t, commits.sum(), 4)
	})
}

// Positions of splits that are gone are kept, and told once.
func TestStateStrangers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		nothing := func(tuple.Tuple, *bolt.Collector) error { return nil }
		_, err := run(t, straight(&numbers{splits: 6, n: 10}, nothing), egret.Config{StateDir: dir})
		require.NoError(t, err)
		var log logbook
		s, err := run(t, straight(&numbers{splits: 1, n: 12}, nothing), egret.Config{StateDir: dir, Logger: log.logger()})
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Input)
		require.Equal(t, []string{`WARN spout in: kept 5 positions of splits that the source does not list (["1" "2" "3"] and others) topology=straight component=in task=0`}, log.with("positions"))
		s, err = run(t, straight(&numbers{splits: 6, n: 12}, nothing), egret.Config{StateDir: dir})
		require.NoError(t, err)
		require.EqualValues(t, 10, s.Input)
	})
}

// fussy rejects the numbers that bad says.
func fussy(bad func(n int) bool) func(tuple.Tuple, *bolt.Collector) error {
	return func(in tuple.Tuple, _ *bolt.Collector) error {
		n, err := strconv.Atoi(in.String("n"))
		if err == nil && bad(n) {
			return bolt.Reject(fmt.Errorf("%d is bad", n))
		}
		return err
	}
}

func odd(n int) bool { return n%2 == 1 }

// While the disk fails, dead messages are open and nothing moves past them; then
// they are stored, in few files.
func TestStateDiskFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		dead := filepath.Join(dir, "straight", "dead")
		var log logbook
		gone := false
		r, err := egret.Start(context.Background(), straight(&numbers{n: 1000}, func(in tuple.Tuple, out *bolt.Collector) error {
			if !gone {
				gone = true
				require.NoError(t, os.Rename(dead, dead+".away"))
			}
			return fussy(odd)(in, out)
		}), egret.Config{StateDir: dir, Logger: log.logger()})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		s := r.Stats()
		require.EqualValues(t, 0, s.Dead, "not before they are stored")
		require.EqualValues(t, 500, s.Open)
		require.Greater(t, len(log.with("ERROR cannot store 500 dead letters of in/0: ")), 5)
		_, err = os.ReadFile(filepath.Join(dir, "straight", "positions"))
		require.ErrorIs(t, err, os.ErrNotExist, "number 1 is the second")

		require.NoError(t, os.Rename(dead+".away", dead))
		s, err = r.Wait()
		require.ErrorIs(t, err, egret.ErrDead)
		settled(t, s, err)
		require.EqualValues(t, 500, s.Dead)
		all := letters(t, dir, "straight")
		require.Len(t, all, 500)
		require.Equal(t, "in/0", all[0].Task)
		require.Equal(t, "bolt out: 1 is bad", all[0].DeadLetter.Err)
		files, err := os.ReadDir(dead)
		require.NoError(t, err)
		require.LessOrEqual(t, len(files), 2)
		require.Len(t, log.with("id=1-10 "), 1)

		s, err = run(t, straight(&numbers{n: 1000}, fussy(odd)), egret.Config{StateDir: dir})
		require.NoError(t, err)
		require.Zero(t, s.Input)
	})
}

// A run without room for a letter fails, and the next one reads its message again.
func TestStateFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		top := straight(&numbers{n: 1000, chunk: 10}, fussy(odd))
		s, err := run(t, top, egret.Config{StateDir: dir, MaxDeadLetterBytes: 5000, MaxPending: 10})
		require.ErrorContains(t, err, "the store of dead letters is full")
		require.ErrorContains(t, err, "deadletters drop")
		stored := len(letters(t, dir, "straight"))
		require.Positive(t, stored)
		require.GreaterOrEqual(t, stored, int(s.Dead))
		_, err = run(t, top, egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		numbers := map[string]bool{}
		for _, l := range letters(t, dir, "straight") {
			numbers[l.Values[0].String()] = true
		}
		require.Len(t, numbers, 500, "none is lost")
	})
}

// listening is a topology of a spout of numbers, a fussy bolt, and one that listens
// to the spout's dead letters.
func listening(n int, bad func(int) bool, listen func(tuple.Tuple, *bolt.Collector) error, finish func()) *topology.Topology {
	return topology.New("listening", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{n: n}).Emits("n").Parallel(2)
		b.Bolt("out", bolt.Each(fussy(bad)), in.Shuffle())
		b.Bolt("listen", factory(func() *made {
			return &made{execute: listen, finish: func(*bolt.Collector) error { finish(); return nil }}
		}), in.DeadLetters().Global())
	})
}

// The dead letters of a component are a stream, which ends behind the last of them.
func TestDeadLetterStream(t *testing.T) {
	for name, dir := range map[string]string{"stored": t.TempDir(), "not stored": ""} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var heard []string
				finished := 0
				began := time.Now()
				top := listening(500, odd, func(in tuple.Tuple, _ *bolt.Collector) error {
					require.Zero(t, finished)
					time.Sleep(time.Millisecond)
					require.False(t, in.Time("time").Before(began.UTC()))
					require.Equal(t, "in/0", in.String("task"))
					require.Equal(t, "in", in.String("component"))
					require.Equal(t, topology.DeadLetterStream, in.Stream())
					require.Equal(t, "default", in.String("stream"))
					require.EqualValues(t, 1, in.Int64("failures"))
					require.EqualValues(t, 0, in.Int64("losses"))
					require.Equal(t, dir != "", in.String("id") != "")
					var history []string
					require.NoError(t, json.Unmarshal([]byte(in.String("history")), &history))
					require.Equal(t, []string{"rejected: " + in.String("error")}, history)
					heard = append(heard, in.String("values"))
					return nil
				}, func() { finished++ })
				s, err := run(t, top, egret.Config{StateDir: dir, AlwaysEncode: true})
				require.ErrorIs(t, err, egret.ErrDead)
				require.EqualValues(t, 250, s.Dead)
				require.EqualValues(t, 500, s.Input, "letters are no input")
				require.Equal(t, 1, finished)
				var want []string
				for i := 1; i < 500; i += 2 {
					want = append(want, fmt.Sprintf(`{"n":"%d"}`, i))
				}
				slices.Sort(want)
				slices.Sort(heard)
				require.Equal(t, want, heard)
			})
		})
	}
}

// A message is settled only when its letter was heard: until then its position does
// not move, so a crash would not make the listener miss it.
func TestDeadLetterHoldsItsMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		hold := make(chan struct{})
		r, err := egret.Start(context.Background(), listening(100, odd, func(tuple.Tuple, *bolt.Collector) error {
			<-hold
			return nil
		}, func() {}), quiet(egret.Config{StateDir: dir}))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, letters(t, dir, "listening"), 50)
		require.Zero(t, r.Stats().Dead)
		_, err = os.ReadFile(filepath.Join(dir, "listening", "positions"))
		require.ErrorIs(t, err, os.ErrNotExist)
		close(hold)
		s, err := r.Wait()
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 50, s.Dead)
	})
}

// A letter that dies makes no other, and its message is settled all the same.
func TestDeadLetterOfALetter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		top := listening(10, odd, func(in tuple.Tuple, _ *bolt.Collector) error {
			return bolt.Reject(errors.New("bad news"))
		}, func() {})
		s, err := run(t, top, egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 10, s.Dead, "five messages and five letters")
		streams := map[string]int{}
		for _, l := range letters(t, dir, "listening") {
			streams[l.Stream]++
		}
		require.Equal(t, map[string]int{"default": 5, topology.DeadLetterStream: 5}, streams)
	})
}

// The dead letters of a bolt are those of what it says in Tick and Finish, which can
// be heard and replayed like others.
func TestDeadLettersOfABolt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		bad := true
		heard := newTally()
		got := newTally()
		top := topology.New("own", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 10}).Emits("n")
			sums := b.Bolt("sum", factory(func() *made {
				return &made{finish: func(out *bolt.Collector) error {
					out.Emit("sum", 45)
					return nil
				}}
			}), in.Shuffle()).Emits("what", "n").Parallel(2)
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				if bad {
					return bolt.Reject(errors.New("not now"))
				}
				got.add(fmt.Sprint(in.String("what"), in.Int64("n")))
				return nil
			}), sums.Shuffle())
			b.Bolt("listen", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				heard.add(in.String("task") + in.String("values"))
				return nil
			}), sums.DeadLetters().Shuffle())
		})
		s, err := run(t, top, egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 2, s.Dead)
		require.Equal(t, map[string]int{`sum/0{"what":"sum","n":45}`: 1, `sum/1{"what":"sum","n":45}`: 1}, heard.get())
		require.Equal(t, 2, replay(t, dir, "own"))
		bad = false
		_, err = run(t, top, egret.Config{StateDir: dir})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"sum45": 4}, got.get(), "two replayed, two by Finish of this run")
		require.Empty(t, letters(t, dir, "own"))
	})
}

func TestMistakesAboutDeadLetters(t *testing.T) {
	_, err := topology.New("t", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{n: 1}).Emits("n")
		b.Bolt("sink", bolt.Each(fussy(odd)), in.Shuffle())
		b.Bolt("a", bolt.Each(fussy(odd)), b.Component("sink").DeadLetters().Shuffle())
		b.Bolt("b", bolt.Each(fussy(odd)), in.Shuffle()).EmitsTo(topology.DeadLetterStream, "x")
		b.Bolt("c", bolt.Each(fussy(odd)), in.DeadLetters().By("nothing"))
		b.Bolt("e", bolt.Each(fussy(odd)), in.DeadLetters().Direct())
		q := b.Queue("q", func() spout.Queue { return nil }).Emits("n")
		b.Bolt("d", bolt.Each(fussy(odd)), q.DeadLetters().Shuffle())
	}).Build(topology.Options{})
	require.ErrorContains(t, err, "component sink emits nothing, so it has no dead letters")
	require.ErrorContains(t, err, `the stream name "dead-letters" is that of the component's dead letters`)
	require.ErrorContains(t, err, `has no field "nothing"`)
	require.ErrorContains(t, err, "it subscribes to dead letters direct, but nobody chooses a task for them")
	require.ErrorContains(t, err, "queue q has no dead letters: what is given up is handed back to it")

	bubble(t, func(t *testing.T) { // nobody but the engine emits on that stream
		top := topology.New("t", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(1, func(i int64, out *spout.Out) { out.EmitTo(topology.DeadLetterStream, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) })).Emits("n")
			b.Bolt("c", bolt.Each(fussy(odd)), in.DeadLetters().Shuffle())
		})
		_, err := run(t, top, egret.Config{})
		require.ErrorContains(t, err, "spout has no stream dead-letters")
	})
}

// A letter that is replayed goes where its message went, and is gone when it comes
// through; if it dies again it is a letter again, with the longer story.
func TestReplayByTheNextRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		_, err := run(t, straight(&numbers{n: 20}, fussy(odd)), egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		require.Equal(t, 10, replay(t, dir, "straight"))

		got := newTally()
		s, err := run(t, straight(&numbers{n: 22}, func(in tuple.Tuple, out *bolt.Collector) error {
			got.add(in.String("n"))
			return fussy(func(n int) bool { return n == 7 })(in, out)
		}), egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 1, s.Dead)
		require.EqualValues(t, 2, s.Input)
		want := map[string]int{"20": 1, "21": 1}
		for i := 1; i < 20; i += 2 {
			want[strconv.Itoa(i)] = 1
		}
		require.Equal(t, want, got.get())
		all := letters(t, dir, "straight")
		require.Len(t, all, 1)
		l := all[0]
		require.False(t, l.Waiting)
		require.Equal(t, "1-4", l.ID, "it keeps its ID")
		require.Equal(t, []string{"rejected: bolt out: 7 is bad", "replayed", "rejected: bolt out: 7 is bad"}, l.History)
		require.Equal(t, 2, l.Failures)
		require.Equal(t, 2, l.Deaths)
	})
}

// A run under way finds what is to be replayed within a second, also when the task
// that has it dies.
func TestReplayByTheRunUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		d := newDiary()
		bad, kill := true, false
		source := &numbers{n: 1 << 30, chunk: 1}
		source.next = func(ctx context.Context, _ string, at int) error {
			if kill {
				kill = false
				panic("the source is ill")
			}
			if at == 10 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		r, err := egret.Start(context.Background(), straight(source, func(in tuple.Tuple, out *bolt.Collector) error {
			if !bad {
				d.at("%s", in.String("n"))
				time.Sleep(100 * time.Millisecond)
			}
			return fussy(func(n int) bool { return bad && n > 6 })(in, out)
		}), quiet(egret.Config{StateDir: dir, TreeSize: 1}))
		require.NoError(t, err)
		time.Sleep(10*time.Second + time.Millisecond)
		require.Len(t, letters(t, dir, "straight"), 3)
		bad = false
		require.Equal(t, 3, replay(t, dir, "straight"))
		require.Empty(t, d.entries())
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"11s 7", "11.1s 8", "11.2s 9"}, d.entries())
		require.Empty(t, letters(t, dir, "straight"))
		r.Drain()
		s, err := r.Wait()
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 10, s.Input)
	})
}

// When a task dies, its successor replays the letters it had.
func TestReplayOutlivesATask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		_, err := run(t, straight(&numbers{n: 20}, fussy(odd)), egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		replay(t, dir, "straight")
		got := newTally()
		ill := true
		source := &numbers{n: 22}
		source.next = func(context.Context, string, int) error {
			if ill {
				ill = false
				time.Sleep(time.Second) // the letters are under way
				panic("the source is ill")
			}
			return nil
		}
		s, err := run(t, straight(source, func(in tuple.Tuple, _ *bolt.Collector) error {
			time.Sleep(300 * time.Millisecond)
			got.add(in.String("n"))
			return nil
		}), egret.Config{StateDir: dir})
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Restarts)
		require.Len(t, got.get(), 12)
		require.Empty(t, letters(t, dir, "straight"))
	})
}

// A message that its emitter has sent to one task goes there again.
func TestReplayOfADirectMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		bad := true
		got := newTally()
		define := func(tasks int) *topology.Topology {
			return topology.New("direct", func(b *topology.Builder) {
				in := b.Spout("in", spout.Generate(3, func(i int64, out *spout.Out) { out.EmitDirect(int(i), i) })).Emits("n")
				b.Bolt("out", factory(func() *made {
					index := 0
					return &made{
						prepare: func(_ context.Context, task *bolt.Task) error { index = task.Index; return nil },
						execute: func(in tuple.Tuple, _ *bolt.Collector) error {
							if bad {
								return bolt.Reject(errors.New("not now"))
							}
							got.add(fmt.Sprint(in.Int64("n"), " by ", index))
							return nil
						},
					}
				}), in.Direct()).Parallel(tasks)
			})
		}
		_, err := run(t, define(3), egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		require.Equal(t, 3, replay(t, dir, "direct"))
		bad = false
		var log logbook
		_, err = run(t, define(2), egret.Config{StateDir: dir, Logger: log.logger()})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"0 by 0": 1, "1 by 1": 1}, got.get())
		require.Len(t, log.with("1 dead letters cannot be replayed and stay: it is for task 2, and stream in.default has tasks 0 to 1"), 1)
		_, err = run(t, define(3), egret.Config{StateDir: dir})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"0 by 0": 1, "1 by 1": 1, "2 by 2": 1}, got.get())
		require.Empty(t, letters(t, dir, "direct"))
	})
}

// A letter that the topology has no stream for stays, and the run says so.
func TestReplayOfAStranger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		_, err := run(t, straight(&numbers{n: 4}, fussy(odd)), egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		replay(t, dir, "straight")
		for want, top := range map[string]*topology.Topology{
			`component in has no stream default with the fields ["n"] any more`: topology.New("straight", func(b *topology.Builder) {
				b.Bolt("out", bolt.Each(fussy(odd)), b.Spout("in", spout.Rows()).Emits("m").Shuffle())
			}),
			"there is no component in any more": topology.New("straight", func(b *topology.Builder) {
				b.Bolt("out", bolt.Each(fussy(odd)), b.Spout("other", spout.Rows()).Emits("n").Shuffle())
			}),
			"the topology is not tracked": topology.New("straight", func(b *topology.Builder) {
				b.Guarantee(topology.AtMostOnce)
				b.Bolt("out", bolt.Each(fussy(odd)), b.Spout("in", spout.Rows()).Emits("n").Shuffle())
			}),
		} {
			var log logbook
			_, err = run(t, top, egret.Config{StateDir: dir, Logger: log.logger()})
			require.NoError(t, err)
			require.Len(t, log.with("2 dead letters cannot be replayed and stay: "+want), 1, want)
			require.Len(t, letters(t, dir, "straight"), 2)
		}
	})
}

// Positions hold for a topology that is not tracked, too.
func TestStateAtMostOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, want := range []int64{10, 0} {
			s, err := run(t, straight(&numbers{n: 10}, fussy(odd)), egret.Config{StateDir: dir, Guarantee: new(topology.AtMostOnce)})
			require.NoError(t, err)
			require.Equal(t, want, s.Input)
		}
	})
}
