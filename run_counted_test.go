package egret

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// What people read of errors is as many as the metrics have, and no text is lost, however
// many come at once: only the log leaves some out.
func TestErrorsAreCountedAsInMetrics(t *testing.T) {
	const n = 3000
	for _, guarantee := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		t.Run(guarantee.String(), func(t *testing.T) {
			var rows [][]any
			for i := range n {
				rows = append(rows, []any{i})
			}
			top := topology.New("counted", func(b *topology.Builder) {
				in := b.Spout("in", spout.Rows(rows...)).Emits("n")
				b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					switch i := in.Int64("n"); {
					case i == 7 || i == 1234:
						return bolt.Reject(fmt.Errorf("rejected %d", i))
					case i%3 == 0:
						return errors.New("bad")
					case i%100 == 1:
						in.String("nothing") // a mistake of the bolt
					}
					return nil
				}), in.Shuffle()).Parallel(2)
			})
			r, err := Start(t.Context(), top, Config{Logger: slog.New(slog.DiscardHandler), Guarantee: &guarantee, MaxReplays: NoReplays})
			require.NoError(t, err)
			_, err = r.Wait()
			require.Equal(t, guarantee == topology.AtMostOnce, err == nil, "%v", err)
			s := newRunSource(r)
			sample, err := s.Sample(t.Context())
			require.NoError(t, err)
			var counts view.Counts
			for i := range sample.Runs[0].Tasks {
				counts.FailedTuples += sample.Runs[0].Tasks[i].FailedTuples
				counts.Dead += sample.Runs[0].Tasks[i].Dead
			}
			all, err := s.Errors(t.Context(), "counted")
			require.NoError(t, err)
			byKind, byText := map[string]int64{}, map[string]int64{}
			for _, e := range all {
				byKind[e.Kind] += e.Count
				byText[e.Kind+" "+e.Text] += e.Count
			}
			require.EqualValues(t, 1000+2+20, counts.FailedTuples)
			require.Equal(t, counts.FailedTuples, byKind["failed"])
			require.EqualValues(t, 1000, byText["failed bolt out: bad"])
			require.EqualValues(t, 1, byText["failed bolt out: rejected 7"], byText)
			require.EqualValues(t, 1, byText["failed bolt out: rejected 1234"])
			require.Equal(t, counts.Dead, byKind["dead letter"])
		})
	}
}

// A tree that times out counts with each of its messages.
func TestTimeoutsAreCountedAsInMetrics(t *testing.T) {
	top := topology.New("slow", func(b *topology.Builder) {
		in := b.Spout("in", spout.Rows([]any{1}, []any{2}, []any{3}, []any{4}, []any{5})).Emits("n")
		b.Bolt("out", func() bolt.Bolt { return &dropping{} }, in.Shuffle())
	})
	r, err := Start(t.Context(), top, Config{Logger: slog.New(slog.DiscardHandler), MessageTimeout: 300 * time.Millisecond})
	require.NoError(t, err)
	s := newRunSource(r)
	_, err = r.Wait()
	require.NoError(t, err)
	sample, err := s.Sample(t.Context())
	require.NoError(t, err)
	var timedOut, told int64
	for i := range sample.Runs[0].Tasks {
		timedOut += sample.Runs[0].Tasks[i].TimedOut
	}
	all, err := s.Errors(t.Context(), "slow")
	require.NoError(t, err)
	for _, e := range all {
		if e.Kind == "timed out" {
			told += e.Count
		}
	}
	require.EqualValues(t, 5, timedOut)
	require.Equal(t, timedOut, told)
}

// A dropping retains what it gets for the first time, and forgets it.
type dropping struct{ seen map[int64]bool }

func (d *dropping) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if d.seen == nil {
		d.seen = map[int64]bool{}
	}
	if n := in.Int64("n"); !d.seen[n] {
		d.seen[n] = true
		out.Retain(in)
	}
	return nil
}
