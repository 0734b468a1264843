package sim

import "testing"

// One op is 20 seeds, each run twice, on one core.
func BenchmarkSeeds(b *testing.B) {
	b.ReportAllocs()
	events := int64(0)
	for b.Loop() {
		s := Seeds(b.Context(), 1, 20, Options{}, nil)
		if len(s.Failures) > 0 {
			b.Fatal(s.Failures[0])
		}
		events += 2 * s.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
