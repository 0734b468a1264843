package acker

import (
	"fmt"
	"testing"

	"github.com/egretstream/egret/tuple"
)

// BenchmarkLedger takes trees through their lives with about a thousand open
// and 64 entries to a report. Its ns/op are per tree.
func BenchmarkLedger(b *testing.B) {
	for _, entries := range []int{1, 6} {
		for _, stragglers := range []int{0, 100_000} {
			for deaths := range 2 {
				rate := "0"
				if stragglers != 0 {
					rate = "1e-5"
				}
				b.Run(fmt.Sprintf("entries=%d/stragglers=%s/deaths=%d", entries, rate, deaths), func(b *testing.B) {
					benchmark(b, entries, stragglers, deaths)
				})
			}
		}
	}
}

func benchmark(b *testing.B, entries, stragglers, deaths int) {
	const window, each = 1024, 64
	l := NewLedger[int](Config{Timeout: 30e9, Life: 1, Sends: func(from, to tuple.TaskID) bool { return to == from+1 }})
	r := &Report{From: 1, FromLife: 1, ToLife: 1}
	if deaths > 0 {
		r.View = []Death{{Task: 2, Life: 1}}
		l.Lost(0, r.View[0])
	}
	var verdicts []Verdict[int]
	tail := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		seq := l.Open(0, tuple.EdgeID(l.Next()), 1<<1, 0)
		if seq-tail < window+each {
			continue
		}
		// Entry k of tree s turns edge s+k into s+k+1, the last one into nothing.
		for k := range entries {
			r.Entries = r.Entries[:0]
			for s := tail; s < tail+each; s++ {
				if stragglers != 0 && s%uint64(stragglers) == 0 {
					continue
				}
				x := tuple.EdgeID(s + uint64(k)<<32)
				if k < entries-1 {
					x ^= tuple.EdgeID(s + uint64(k+1)<<32)
				}
				r.Entries = append(r.Entries, Entry{Seq: s, Xor: x, Mask: 1 << 2})
			}
			l.Report(0, r)
		}
		tail += each
		verdicts = l.Drain(verdicts[:0])
	}
}
