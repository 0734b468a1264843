package egrettest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A join retains a tuple until its like comes from the other side.
type join map[string]*bolt.Held

func (j join) Execute(in tuple.Tuple, out *bolt.Collector) error {
	key := in.String("key")
	other := j[key]
	if other == nil || other.Component() == in.Component() {
		if j[key] = out.Retain(in); key == "fails" {
			return errBroken
		}
		return nil
	}
	delete(j, key)
	if key == "refused" {
		other.Fail(bolt.Reject(errBroken))
		return nil
	}
	out.Anchor(other, out.Retain(in)).Emit(key, other.Int64("n"), in.Int64("n"))
	other.Ack()
	out.Retain(in).Ack()
	return nil
}

func joined(b *topology.Builder) {
	left := b.Spout("left", spout.Rows()).Emits("key", "n")
	right := b.Spout("right", spout.Rows()).Emits("key", "n")
	both := b.Bolt("join", func() bolt.Bolt { return join{} }, left.By("key"), right.By("key")).Emits("key", "left", "right").Parallel(3)
	b.Bolt("end", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
		out.Emit(in.Value("key"))
		if in.String("key") == "fails later" {
			return errBroken
		}
		return nil
	}), both.Shuffle()).Emits("key").Parallel(2)
}

// What is retained lets the next row come, or a join would wait for ever, and what
// comes of it stands with it.
func TestHeld(t *testing.T) {
	first := ""
	for range 20 {
		r := egrettest.Run(t, topology.New("joined", joined),
			egrettest.Input("left", []any{"a", 1}, []any{"b", 2}, []any{"refused", 3}, []any{"fails later", 4}),
			egrettest.Input("right", []any{"b", 5}, []any{"fails", 6}, []any{"a", 7}, []any{"refused", 8}, []any{"fails later", 9}))
		require.Equal(t, []string{"a 1 7", "b 2 5", "fails later 4 9"}, r.Tuples("join").Lines())
		require.Equal(t, []string{"a 1", "b 2"}, r.Acked("left").Lines())
		require.Equal(t, []string{"b 5", "a 7", "refused 8"}, r.Acked("right").Lines())
		var dead []string
		for _, l := range r.Dead {
			dead = append(dead, fmt.Sprint(l.Tuple, ": ", l.Err))
		}
		require.Equal(t, []string{"refused 3: broken", "fails later 4: broken", "fails 6: broken", "fails later 9: bolt end: broken"}, dead)
		x := r.Executions("join")
		require.Len(t, x, 9)
		require.Equal(t, "a 1", x[0].In.String())
		require.Equal(t, []string{"a 1 7"}, x[0].Emitted.Lines())
		text := dump(r, "left", "right", "join", "end")
		if first == "" {
			first = text
		}
		require.Equal(t, first, text)
	}
}

func TestNeverLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := failed(t, func(t egrettest.T) {
			egrettest.Run(t, topology.New("joined", joined), egrettest.Input("left", []any{"a", 1}, []any{"b", 2}), egrettest.Within(20*time.Second))
		})
		require.Equal(t, "egrettest: topology joined has not come to rest within 20s:\n"+
			"\tmessage of left/0: left.default (a 1)\n"+
			"\tmessage of left/0: left.default (b 2)\n"+
			"\t2 tuples retained by join", text)
	})
}

// Calls of a service take virtual time in a bubble; the next row waits for them.
func TestAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		top := topology.New("async", func(b *topology.Builder) {
			b.Bolt("out", bolt.Async(3, func(ctx context.Context, in tuple.Tuple, yield func(...any)) error {
				n := in.Int64("n")
				time.Sleep(time.Duration(n) * time.Second)
				if n == 2 {
					return errBroken
				}
				yield(n, time.Since(began))
				return nil
			}), b.Spout("in", spout.Rows()).Emits("n").Shuffle()).Emits("n", "at")
		})
		r := egrettest.Run(t, top, egrettest.Input("in", 3, 2, 1))
		require.Equal(t, []string{"3 3s", "1 6s"}, r.Tuples("out").Lines())
		require.ErrorIs(t, r.Failed[0].Err, errBroken)
		require.Equal(t, []string{"3", "1"}, r.Acked("in").Lines())

		began = time.Now()
		r = egrettest.Run(t, top, egrettest.Input("in", 3, 2, 1), egrettest.AtOnce(), egrettest.Config(egret.Config{MaxReplays: 1}))
		require.Equal(t, []string{"3 3s", "1 1s"}, r.Tuples("out").Lines(), "in the order of the rows")
		require.Equal(t, 2, r.Dead[0].Failures)
		require.Equal(t, 4050*time.Millisecond, time.Since(began), "beside each other")
	})
}
