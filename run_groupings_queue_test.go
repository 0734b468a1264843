package egret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A queue chooses tasks like a spout, and is told of what its grouping rejects.
func TestQueueDirectAndCustom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 100, emit: func(out *spout.QueueOut, id string, i int) {
			if i%2 == 0 {
				out.EmitDirectTo(id, "to", i/2%out.Tasks("to"), id)
			} else {
				out.Emit(id, id)
			}
		}}
		var direct, custom census
		top := topology.New("queue", func(b *topology.Builder) {
			in := b.Queue("in", q.queue).Emits("n").EmitsTo("to", "n")
			b.Bolt("direct", direct.factory(), in.Stream("to").Direct()).Parallel(5)
			b.Bolt("custom", custom.factory(), in.Custom("c", func(topology.Sender) topology.Chooser {
				return func(t tuple.Tuple, to []int) []int {
					switch t.String("n") {
					case "33":
						return append(to, 9)
					case "35":
						return to
					}
					return append(to, 1)
				}
			})).Parallel(2)
		})
		s, err := run(t, top, egret.Config{})
		require.NoError(t, err)
		q.settled(t)
		require.Equal(t, []int{10, 10, 10, 10, 10}, direct.sizes(5))
		require.Equal(t, []int{0, 48}, custom.sizes(2))
		require.Equal(t, "rejected: queue in: custom grouping c of stream in.default: it chose task 9, and there are tasks 0 to 1", q.why("33"))
		require.Equal(t, "acked", q.why("35"))
		require.EqualValues(t, 99, s.Acked)
	})
}

// A queue whose custom grouping gives no chooser ends the run.
func TestQueueWithoutChooser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 100}
		var got census
		_, err := run(t, topology.New("queue", func(b *topology.Builder) {
			in := b.Queue("in", q.queue).Emits("n")
			b.Bolt("out", got.factory(), in.Custom("c", func(topology.Sender) topology.Chooser { return nil }))
		}), egret.Config{})
		require.ErrorContains(t, err, "in/0: custom grouping c of stream in.default: its function has returned no chooser")
		require.Empty(t, got.got)
	})
}
