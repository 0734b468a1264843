package view

import "time"

// A Point is how a topology was at a moment, for charts. Its rates and latencies are those of
// the window that a Detail of that moment has, and so those of points overlap.
type Point struct {
	At         time.Time     `json:"at"`
	Window     time.Duration `json:"window_ns"` // of rates and latencies; 0: there was no moment before
	Rate       float64       `json:"rate"`
	DoneRate   float64       `json:"done_rate"`
	FailedRate float64       `json:"failed_rate"`
	Open       int64         `json:"open"`
	P50        time.Duration `json:"p50_ns"`
	P99        time.Duration `json:"p99_ns"`
	Batches    int           `json:"batches,omitempty"` // under way
}

// Point is how a topology is; false: there is none of that name.
func (c *Comparison) Point(topology string) (Point, bool) {
	for i := range c.now.Runs {
		if r := &c.now.Runs[i]; r.Topology == topology {
			s, _ := c.summary(r)
			p := Point{At: c.now.At, Window: c.window, Rate: s.Rate, DoneRate: s.DoneRate, FailedRate: s.FailedRate, Open: s.Counts.Open, P50: s.Complete.P50, P99: s.Complete.P99}
			if r.Batches != nil && r.Batches.Now != nil {
				p.Batches = len(r.Batches.Now.Batches)
			}
			return p, true
		}
	}
	return Point{}, false
}

// HistoryPoints is how many points are kept: one a second for an hour.
const HistoryPoints = 3600

// A History is the last points of a topology, the oldest first.
type History struct {
	ring []Point
	next int
}

// Add adds a point, and forgets the oldest if there are too many.
func (h *History) Add(p Point) {
	if len(h.ring) < HistoryPoints {
		h.ring = append(h.ring, p)
		return
	}
	h.ring[h.next] = p
	h.next = (h.next + 1) % HistoryPoints
}

// Since returns the points that are younger than a moment.
func (h *History) Since(at time.Time) []Point {
	all := []Point{}
	for i := range h.ring {
		if p := h.ring[(h.next+i)%len(h.ring)]; p.At.After(at) {
			all = append(all, p)
		}
	}
	return all
}
