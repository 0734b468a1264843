package metrics

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCounterHasOneWriterAndManyReaders(t *testing.T) {
	var c Counter
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			last := int64(0)
			for last < 1000 {
				n := c.Load()
				if n < last {
					t.Error("a counter has gone back")
					return
				}
				last = n
			}
		})
	}
	for range 1000 {
		c.Add(1)
	}
	readers.Wait()
	require.EqualValues(t, 1000, c.Load())
	c.Set(7)
	require.EqualValues(t, 7, c.Load())
}

// Every value is in the bucket whose bounds enclose it, and buckets are at most
// a sixteenth wide.
func TestBuckets(t *testing.T) {
	for i := range buckets - 1 {
		require.Equal(t, i, bucket(upper(i)), "upper bound of bucket %d", i)
		require.Equal(t, i+1, bucket(upper(i)+1), "one more than that")
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 1<<62).Draw(t, "v")
		up := upper(bucket(v))
		require.GreaterOrEqual(t, up, v)
		require.LessOrEqual(t, up-v, v/16)
	})
}

func TestReadIsCloseToTheQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 300).Draw(t, "values")
		var a, b Histogram
		for i, v := range values {
			h := &a
			if i%3 == 0 {
				h = &b
			}
			h.Record(time.Duration(v), 2)
		}
		slices.Sort(values)
		l := Read(&a, &b)
		require.EqualValues(t, 2*len(values), l.Count)
		for _, q := range []struct {
			q   float64
			got time.Duration
		}{{0.5, l.P50}, {0.99, l.P99}, {0.999, l.P999}} {
			exact := values[min(int(float64(len(values))*q.q), len(values)-1)]
			require.GreaterOrEqual(t, int64(q.got), exact)
			require.LessOrEqual(t, int64(q.got), exact+exact/16)
		}
		require.GreaterOrEqual(t, int64(l.Longest), values[len(values)-1])
	})
}

func TestNothingRecorded(t *testing.T) {
	require.Zero(t, Read())
	require.Zero(t, Read(new(Histogram)))
	var h Histogram
	h.Record(-time.Second, 1)
	require.Zero(t, Read(&h).Longest, "less than nothing is nothing")
}

// The end of an incarnation leaves both laws true.
func TestAbandon(t *testing.T) {
	m := NewTask("lines/0", 1, 0)
	m.Messages.Add(10)
	m.Acked.Add(4)
	m.Dead.Add(1)
	m.Attempts.Add(12)
	m.Failed.Add(2)
	m.Trying.Set(6)
	m.Queued.Set(3)
	require.EqualValues(t, 5, m.Open())
	m.Abandon()
	require.Zero(t, m.Open())
	require.Equal(t, m.Messages.Load(), m.Acked.Load()+m.Dead.Load()+m.Abandoned.Load())
	require.Equal(t, m.Attempts.Load(), m.Acked.Load()+m.Failed.Load()+m.Lost.Load()+m.TimedOut.Load())
	require.Zero(t, m.Trying.Load()+m.Queued.Load())
}
