package egret_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// What is logged of executions that fail has the tuple, cut short, and how many
// have failed in this life of the task.
func TestFailedExecutionsAreTold(t *testing.T) {
	for _, guarantee := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		for name, err := range map[string]error{"fails": errors.New("bad"), "is rejected": bolt.Reject(errors.New("bad")), "misuses": nil} {
			t.Run(guarantee.String()+" "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					top := topology.New("told", func(b *topology.Builder) {
						in := b.Spout("in", spout.Rows([]any{1, strings.Repeat("x", 1000)}, []any{2, strings.Repeat("y", 1000)})).Emits("n", "text")
						b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
							if in.Int64("n") == 1 {
								return nil
							}
							if err == nil {
								in.String("nothing")
							}
							return err
						}), in.Shuffle())
					})
					var log logbook
					_, _ = run(t, top, egret.Config{Logger: log.logger(), Guarantee: &guarantee, MaxReplays: egret.NoReplays})
					lines := log.with("execution failed")
					require.Len(t, lines, 1)
					require.Contains(t, lines[0], "failed_so_far=1")
					require.Contains(t, lines[0], "tuple={n: 2, text: \""+strings.Repeat("y", 99))
					require.Less(t, len(lines[0]), 600)
				})
			})
		}
	}
}
