package scrape

import (
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/egretstream/egret/metrics"
)

const (
	schema = 3        // of native buckets: 2^3 an octave, each 9 % wide
	zero   = 0x1p-128 // what falls into the native bucket of zero; no other value is so small
	ms     = 1_000_000
)

// bounds are those of the classic buckets, by unit, in what histograms count:
// durations in nanoseconds.
var bounds = [...][]uint64{
	metrics.None: {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000},
	metrics.Seconds: {
		1000, 10_000, 100_000, ms, 2.5 * ms, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
		1000 * ms, 2500 * ms, 5000 * ms, 10_000 * ms, 30_000 * ms, 60_000 * ms,
	},
	metrics.Bytes: {1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28},
}

// per returns how much of what histograms count is one of the unit.
func per(u metrics.Unit) float64 {
	if u == metrics.Seconds {
		return 1e9
	}
	return 1
}

// histogram shows a reading in classic buckets, with native ones beside them.
//
// A bucket of the reading goes as a whole where its largest value belongs. So a
// value up to 6 % below a bound may be counted above it, and never the other way
// round: nothing looks faster or smaller than it was.
func histogram(r *metrics.Reading, u metrics.Unit) *dto.Histogram {
	h := &dto.Histogram{SampleCount: new(uint64(r.Count)), SampleSum: new(r.Sum / per(u))}
	below, at := uint64(0), 0 // what bounds[u][at] and those behind it have below them
	upTo := func(v uint64) {
		for ; at < len(bounds[u]) && bounds[u][at] < v; at++ {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(float64(bounds[u][at]) / per(u)), CumulativeCount: new(below)})
		}
	}
	native := native{h: h}
	h.Schema, h.ZeroThreshold, h.ZeroCount = new(int32(schema)), new(zero), new(uint64(0))
	for v, n := range r.Buckets() {
		upTo(v)
		below += uint64(n)
		if v == 0 {
			*h.ZeroCount += uint64(n)
			continue
		}
		native.add(key(float64(v)/per(u)), n)
	}
	upTo(math.MaxUint64)
	return h
}

// fractions are the bounds of the native buckets of one octave, as math.Frexp
// gives them.
var fractions = func() (all [1 << schema]float64) {
	for i := range all {
		all[i] = math.Exp2(float64(i)/float64(len(all)) - 1)
	}
	return all
}()

// key returns the native bucket of v: the smallest with v <= 2^(key/8).
func key(v float64) int32 {
	frac, exp := math.Frexp(v)
	i, _ := slices.BinarySearch(fractions[:], frac)
	return int32((exp-1)<<schema + i)
}

// A native adds the native buckets of a histogram, in rising order. They are
// written as spans without a gap, and each count as its difference to the one before.
type native struct {
	h     *dto.Histogram
	next  int32 // the key behind the last one
	count int64 // of the last one
}

func (b *native) add(key int32, n int64) {
	h := b.h
	if len(h.PositiveSpan) > 0 && key == b.next-1 {
		b.count += n
		h.PositiveDelta[len(h.PositiveDelta)-1] += n
		return
	}
	if len(h.PositiveSpan) == 0 || key > b.next {
		h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: new(key - b.next), Length: new(uint32(0))})
	}
	*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
	h.PositiveDelta = append(h.PositiveDelta, n-b.count)
	b.next, b.count = key+1, n
}
