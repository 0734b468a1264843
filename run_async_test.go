package egret_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// calls is a topology that asks a service about numbers.
func calls(n int, ask bolt.Factory, sink func(tuple.Tuple, *bolt.Collector) error) *topology.Topology {
	return topology.New("calls", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{n: n}).Emits("n")
		asked := b.Bolt("ask", ask, in.Shuffle()).Emits("n", "answer")
		b.Bolt("out", bolt.Each(sink), asked.Global())
	})
}

// Calls wait beside each other, up to the limit, and what they yield is emitted as
// they come back, or in order if that was asked for.
func TestAsync(t *testing.T) {
	// The first call takes 5 s, the others 1 s; three at a time.
	ask := func(_ context.Context, in tuple.Tuple, yield func(...any)) error {
		took := time.Second
		if in.String("n") == "0" {
			took = 5 * time.Second
		}
		time.Sleep(took)
		yield(in.String("n"), took)
		return nil
	}
	for _, tt := range []struct {
		name string
		ask  bolt.Factory
		want []string
	}{
		{"as they come", bolt.Async(3, ask), []string{"1s 1", "1s 2", "2s 3", "2s 4", "3s 5", "3s 6", "4s 7", "5s 0"}},
		// While the first takes its time two more are called, and no others.
		{"in order", bolt.AsyncInOrder(3, ask), []string{"5s 0", "5s 1", "5s 2", "6s 3", "6s 4", "6s 5", "7s 6", "7s 7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDiary()
				s, err := run(t, calls(8, tt.ask, func(in tuple.Tuple, _ *bolt.Collector) error {
					d.at("%s", in.String("n"))
					return nil
				}), egret.Config{})
				require.NoError(t, err)
				require.EqualValues(t, 8, s.Acked)
				got := d.entries()
				if tt.name == "as they come" { // those of one moment come in any order
					require.ElementsMatch(t, tt.want, got)
				} else {
					require.Equal(t, tt.want, got)
				}
			})
		})
	}
}

// At no time are there more calls than the limit, whatever waits, and what waits
// does not time out.
func TestAsyncLimit(t *testing.T) {
	for _, guarantee := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		bubble(t, func(t *testing.T) {
			var now, most atomic.Int64
			got := newTally()
			s, err := run(t, calls(2000, bolt.Async(7, func(_ context.Context, in tuple.Tuple, yield func(...any)) error {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Second)
				now.Add(-1)
				yield(in.String("n"), 1)
				return nil
			}), func(in tuple.Tuple, _ *bolt.Collector) error {
				got.add(in.String("n"))
				return nil
			}), egret.Config{MessageTimeout: 2 * time.Second, Guarantee: &guarantee})
			require.NoError(t, err)
			require.EqualValues(t, 7, most.Load())
			require.Zero(t, s.Replayed)
			require.Len(t, got.get(), 2000)
			require.Equal(t, 2000, got.sum())
		})
	}
}

// An error, a misuse and a panic of a call fail its message and no other, and emit
// nothing.
func TestAsyncFails(t *testing.T) {
	for _, factory := range []func(int, func(context.Context, tuple.Tuple, func(...any)) error) bolt.Factory{bolt.Async, bolt.AsyncInOrder} {
		bubble(t, func(t *testing.T) {
			log, tries, got := &logbook{}, newTally(), newTally()
			s, err := run(t, calls(50, factory(4, func(_ context.Context, in tuple.Tuple, yield func(...any)) error {
				n := in.String("n")
				try := tries.add(n)
				yield(n, "first")
				time.Sleep(time.Millisecond)
				switch {
				case n == "10":
					return bolt.Reject(errors.New("never"))
				case n == "20" && try < 3:
					return errors.New("not yet")
				case n == "30":
					yield(n) // one value is missing
				case n == "40":
					panic("in a call")
				}
				return nil
			}), func(in tuple.Tuple, _ *bolt.Collector) error {
				got.add(in.String("n"))
				return nil
			}), egret.Config{Logger: log.logger(), MaxReplays: 2})
			require.ErrorIs(t, err, egret.ErrDead)
			require.EqualValues(t, 3, s.Dead)
			for n := range 50 {
				text := strconv.Itoa(n)
				if n == 10 || n == 30 || n == 40 {
					require.Zero(t, got.get()[text], text)
				} else {
					require.Positive(t, got.get()[text], text)
				}
			}
			require.Equal(t, 3, tries.get()["20"])
			require.Equal(t, 3, tries.get()["40"])
			require.Len(t, log.with("message is dead: bolt ask: never"), 1)
			require.Len(t, log.with("message is dead: bolt ask: stream ask.default has 2 fields"), 1)
			require.Len(t, log.with("message is dead: bolt ask: panic in a call of Async: in a call"), 1)
			require.NotEmpty(t, log.with("stack=goroutine"))
		})
	}
}

// A call that ends its goroutine ends the life of the task, and is replayed.
func TestAsyncGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries, got := newTally(), newTally()
		s, err := run(t, calls(50, bolt.Async(4, func(_ context.Context, in tuple.Tuple, yield func(...any)) error {
			if n := in.String("n"); n == "20" && tries.add(n) < 3 {
				goexit()
			}
			yield(in.String("n"), 1)
			return nil
		}), func(in tuple.Tuple, _ *bolt.Collector) error {
			got.add(in.String("n"))
			return nil
		}), egret.Config{})
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Restarts)
		require.Len(t, got.get(), 50)
	})
}

// A stop ends the context of the calls that are under way.
func TestAsyncStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := newTally()
		r, err := egret.Start(t.Context(), calls(100, bolt.Async(5, func(ctx context.Context, in tuple.Tuple, _ func(...any)) error {
			<-ctx.Done()
			ended.add("call")
			return ctx.Err()
		}), func(tuple.Tuple, *bolt.Collector) error { return nil }), quiet(egret.Config{}))
		require.NoError(t, err)
		time.Sleep(time.Second)
		r.Stop()
		_, err = r.Wait()
		require.ErrorIs(t, err, egret.ErrDrain)
		require.Equal(t, 5, ended.sum())
	})
}

func TestAsyncMistakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, err := run(t, calls(1, bolt.Async(0, nil), func(tuple.Tuple, *bolt.Collector) error { return nil }), egret.Config{})
		require.ErrorContains(t, err, "component ask allows 0 calls at a time: it must be at least 1")
	})
}

func ExampleAsync() {
	// lookup stands for a call of a service.
	lookup := func(_ context.Context, in tuple.Tuple, yield func(...any)) error {
		word := in.String("word")
		if word == "" {
			return bolt.Reject(errors.New("no word"))
		}
		yield(word, strings.ToUpper(word))
		return nil
	}
	t := topology.New("lookup", func(b *topology.Builder) {
		words := b.Spout("words", spout.Slice("whale", "egret")).Emits("word")
		found := b.Bolt("lookup", bolt.AsyncInOrder(10, lookup), words.Shuffle()).Emits("word", "found")
		b.Bolt("print", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			fmt.Println(in.String("word"), in.String("found"))
			return nil
		}), found.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// whale WHALE
	// egret EGRET
}
