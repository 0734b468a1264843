package live

import (
	"math"
	"slices"
	"strings"
	"time"
)

func recoveries(all []*harm) (found []Recovery) {
	near := together(all)
	times := map[string][][2]time.Duration{}
	for n, h := range all {
		what := h.what()
		i := slices.IndexFunc(found, func(r Recovery) bool { return r.What == what })
		if i < 0 {
			i = len(found)
			found = append(found, Recovery{What: what})
		}
		r := &found[i]
		r.Faults++
		if near[n] {
			r.Close++
		}
		if h.cost == 0 {
			continue
		}
		r.Costly++
		r.Messages += h.cost
		r.Open += h.open
		if h.first > 0 && h.open == 0 {
			times[what] = append(times[what], [2]time.Duration{h.first - h.At, h.last - h.At})
		}
	}
	for i := range found {
		var first, last []time.Duration
		for _, t := range times[found[i].What] {
			first, last = append(first, t[0]), append(last, t[1])
		}
		found[i].First, found[i].Last = spread(first), spread(last)
	}
	return found
}

func spread(all []time.Duration) (s Spread) {
	if len(all) == 0 {
		return s
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return Spread{at(0.5), at(0.99), all[len(all)-1], len(all)}
}

// what is the kind of a harm and the component that it was done to.
func (h *harm) what() string {
	component, _, _ := strings.Cut(h.Task, "/")
	return string(h.Fault.Kind) + " " + component
}

// apart is how far apart faults are to be told which one has cost a message.
const apart = 50 * time.Millisecond

// together says of each harm whether one of another kind, or on another component, was
// done close to it.
func together(all []*harm) []bool {
	near := make([]bool, len(all))
	last := -apart // when the last other one was done
	for i := range all {
		if i > 0 && all[i-1].what() != all[i].what() {
			last = all[i-1].At
		}
		near[i] = all[i].At-last < apart
	}
	last = math.MaxInt64
	for i := len(all) - 2; i >= 0; i-- {
		if all[i+1].what() != all[i].what() {
			last = all[i+1].At
		}
		near[i] = near[i] || last-all[i].At < apart
	}
	return near
}
