package scrape

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/metrics"
)

var units = []metrics.Unit{metrics.None, metrics.Seconds, metrics.Bytes}

// buckets returns the native buckets by key.
func buckets(t require.TestingT, h *dto.Histogram) map[int32]int64 {
	all := map[int32]int64{}
	next, count, at := int32(0), int64(0), 0
	for i, s := range h.PositiveSpan {
		if i > 0 {
			require.Positive(t, s.GetOffset(), "spans that touch are one")
		}
		next += s.GetOffset()
		for range s.GetLength() {
			count += h.PositiveDelta[at]
			require.Positive(t, count, "an empty bucket costs a place")
			all[next] = count
			at, next = at+1, next+1
		}
	}
	require.Len(t, h.PositiveDelta, at)
	return all
}

// Never may a value be lost on the way, counted twice, or look smaller than it was.
func TestHistogramKeepsWhatWasCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		values := rapid.SliceOfN(rapid.OneOf(
			rapid.Int64Range(0, 300), rapid.Int64Range(0, int64(time.Minute)), rapid.Int64Range(0, math.MaxInt64),
			rapid.Map(rapid.SampledFrom(bounds[unit]), func(b uint64) int64 { return int64(b) }),
		), 0, 200).Draw(t, "values")
		var h metrics.Histogram
		sum := 0.0
		for _, v := range values {
			h.Observe(v)
			sum += float64(v)
		}
		var r metrics.Reading
		r.Add(&h)
		got := histogram(&r, unit)
		require.EqualValues(t, len(values), got.GetSampleCount())
		require.InEpsilon(t, 1+sum/per(unit), 1+got.GetSampleSum(), 1e-9)

		last := uint64(0)
		require.Len(t, got.Bucket, len(bounds[unit]))
		for i, b := range got.Bucket {
			if i > 0 {
				require.Greater(t, b.GetUpperBound(), got.Bucket[i-1].GetUpperBound())
			}
			require.GreaterOrEqual(t, b.GetCumulativeCount(), last, "cumulative")
			last = b.GetCumulativeCount()
			bound, atMost, atLeast := int64(bounds[unit][i]), 0, 0
			for _, v := range values {
				if v <= bound {
					atMost++
				}
				if u := uint64(v); u+u/16 <= uint64(bound) {
					atLeast++
				}
			}
			require.LessOrEqual(t, last, uint64(atMost), "nothing looks smaller than it was: below %d", bound)
			require.GreaterOrEqual(t, last, uint64(atLeast), "nor more than a sixteenth larger: below %d", bound)
		}
		require.LessOrEqual(t, last, got.GetSampleCount())

		total := int64(got.GetZeroCount())
		zeros := 0
		for _, v := range values {
			if v == 0 {
				zeros++
			}
		}
		require.EqualValues(t, zeros, total)
		native := buckets(t, got)
		for _, n := range native {
			total += n
		}
		require.EqualValues(t, got.GetSampleCount(), total, "native buckets and count agree")
		if len(values) == 0 {
			return
		}
		// Every quantile, wherever in its bucket it is taken, is near the true one.
		slices.Sort(values)
		keys := slices.Sorted(func(yield func(int32) bool) {
			for k := range native {
				if !yield(k) {
					return
				}
			}
		})
		at := zeros
		for _, k := range keys {
			lower, upper := math.Exp2(float64(k-1)/8)*per(unit), math.Exp2(float64(k)/8)*per(unit)
			for range native[k] {
				v := float64(values[at])
				require.GreaterOrEqual(t, lower, 0.91*v, "at most 9 %% below")
				require.LessOrEqual(t, upper, 1.16*v, "at most 16 %% above")
				at++
			}
		}
	})
}

// The keys are those of the library, at every bound and beside it.
func TestNativeBucketsAreTheLibrarys(t *testing.T) {
	check := func(t require.TestingT, v float64) {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: prometheus.NativeHistogramZeroThresholdZero})
		h.Observe(v)
		var m dto.Metric
		require.NoError(t, h.Write(&m))
		require.EqualValues(t, schema, m.Histogram.GetSchema())
		require.Equal(t, map[int32]int64{key(v): 1}, buckets(t, m.Histogram), "%v", v)
	}
	for i := -300; i < 100; i++ {
		v := math.Exp2(float64(i) / 8)
		if i%8 != 0 { // there the last digit is a matter of taste
			v = math.Nextafter(math.Nextafter(v, 0), 0)
		}
		check(t, v)
		check(t, v*1.0001)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Float64Range(1e-9, 1e10).Draw(t, "v")) })
}

// What has no value yet is a native histogram for those who ask for one.
func TestHistogramOfNothing(t *testing.T) {
	h := histogram(new(metrics.Reading), metrics.Seconds)
	require.Zero(t, h.GetSampleCount())
	require.EqualValues(t, schema, h.GetSchema())
	require.Positive(t, h.GetZeroThreshold())
	require.Len(t, h.Bucket, 18)
	require.Equal(t, 0.0025, h.Bucket[4].GetUpperBound(), "bounds are read by people")
}
