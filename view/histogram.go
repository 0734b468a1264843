package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/egretstream/egret/metrics"
)

// A Histogram is what histograms of durations held at a moment.
type Histogram struct {
	Sum     float64  `json:"sum_ns"`
	Buckets []Bucket `json:"buckets"` // none is empty, in rising order
}

// A Bucket counts the durations of about one length: Longest is the longest that falls
// into it, and at most 6 % longer than any other.
type Bucket struct {
	Longest time.Duration `json:"longest_ns"`
	Count   int64         `json:"count"`
}

// read returns what a histogram holds, or nil if that is nothing.
func read(h *metrics.Histogram) *Histogram {
	var r metrics.Reading
	r.Add(h)
	if r.Count == 0 {
		return nil
	}
	x := &Histogram{Sum: r.Sum}
	for up, n := range r.Buckets() {
		x.Buckets = append(x.Buckets, Bucket{time.Duration(up), n})
	}
	return x
}

// merge adds times times o to h. Nil is an empty one.
func (h *Histogram) merge(o *Histogram, times int64) {
	if o == nil {
		return
	}
	h.Sum += o.Sum * float64(times)
	for _, b := range o.Buckets {
		at, there := slices.BinarySearchFunc(h.Buckets, b, func(x, y Bucket) int { return cmp.Compare(x.Longest, y.Longest) })
		if !there {
			h.Buckets = slices.Insert(h.Buckets, at, Bucket{Longest: b.Longest})
		}
		h.Buckets[at].Count += b.Count * times
	}
}

// Latency returns quantiles of h. What is less than nothing, because a task has begun
// again, does not count.
func (h *Histogram) Latency() (l metrics.Latency) {
	for _, b := range h.Buckets {
		if b.Count > 0 {
			l.Count += b.Count
			l.Longest = b.Longest
		}
	}
	at := func(q float64) time.Duration {
		left := int64(float64(l.Count) * q)
		for _, b := range h.Buckets {
			if left -= max(0, b.Count); left < 0 {
				return b.Longest
			}
		}
		return l.Longest
	}
	l.P50, l.P99, l.P999 = at(0.50), at(0.99), at(0.999)
	return l
}
