package metrics

import (
	"iter"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	fine    = 4 // bits of a value below its highest: 16 buckets an octave, 6 % wide
	buckets = (64 - fine) << fine
)

// A Histogram counts values, mostly durations in nanoseconds, in buckets about 6 %
// wide, from 0 to the largest int64. It has one writer and takes 8 KB.
type Histogram struct {
	sum    atomic.Uint64 // the bits of a float64: an int64 of nanoseconds would run over within days
	counts [buckets]atomic.Int64
}

func bucket(v uint64) int {
	if v < 1<<fine {
		return int(v)
	}
	e := bits.Len64(v) - 1 - fine
	return (e+1)<<fine + int(v>>e) - 1<<fine
}

// upper returns the largest value of a bucket.
func upper(i int) uint64 {
	if i < 1<<fine {
		return uint64(i)
	}
	e := i>>fine - 1
	return (uint64(i&(1<<fine-1))+1<<fine+1)<<e - 1
}

// Record counts d n times; less than zero counts as zero. Only the owner calls it.
func (h *Histogram) Record(d time.Duration, n int64) { h.add(int64(d), n) }

// Observe counts v once, in the histogram's unit: bytes, or whatever else it is of.
// Durations are given to Record. Less than zero counts as zero. Only the owner calls it.
func (h *Histogram) Observe(v int64) { h.add(v, 1) }

func (h *Histogram) add(v, n int64) {
	v = max(v, 0)
	c := &h.counts[bucket(uint64(v))]
	c.Store(c.Load() + n)
	h.sum.Store(math.Float64bits(math.Float64frombits(h.sum.Load()) + float64(v)*float64(n)))
}

// A Reading is what histograms held a moment ago, added up. The count is that of
// the buckets; the sum may be of a moment later.
type Reading struct {
	Count  int64
	Sum    float64
	counts [buckets]int64
}

// Add adds what a histogram holds now.
func (r *Reading) Add(h *Histogram) {
	for i := range h.counts {
		n := h.counts[i].Load()
		r.counts[i] += n
		r.Count += n
	}
	r.Sum += math.Float64frombits(h.sum.Load())
}

// Buckets yields the buckets that are not empty, in rising order: the largest
// value that falls into each, and how many did.
func (r *Reading) Buckets() iter.Seq2[uint64, int64] {
	return func(yield func(uint64, int64) bool) {
		for i, n := range r.counts {
			if n > 0 && !yield(upper(i), n) {
				return
			}
		}
	}
}

// A Latency is a reading of histograms: some quantiles and how many values they
// come of. Each quantile is at most 6 % above the true one.
type Latency struct {
	Count   int64         `json:"count"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	P999    time.Duration `json:"p999_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// Read sums up histograms of durations.
func Read(hs ...*Histogram) Latency {
	var r Reading
	for _, h := range hs {
		r.Add(h)
	}
	l := Latency{Count: r.Count}
	at := func(q float64) time.Duration {
		left := int64(float64(l.Count) * q)
		for up, n := range r.Buckets() {
			if left -= n; left < 0 {
				return time.Duration(up)
			}
		}
		return l.Longest
	}
	for up := range r.Buckets() {
		l.Longest = time.Duration(up)
	}
	l.P50, l.P99, l.P999 = at(0.50), at(0.99), at(0.999)
	return l
}
