package live

import (
	"encoding/json"
	"math"
	"slices"
	"time"
)

// Rates are messages done a second: medians of windows of 100 ms.
type Rates struct {
	Before Rate `json:"before"`
	During Rate `json:"during"`
	After  Rate `json:"after"`
	Least  Rate `json:"least_during"`
	// Good is the part of the windows with faults that had at least 80 % of Before.
	Good Rate `json:"at_80_percent"`
	// Again is the time from the last fault until a window had 90 % of Before; nil: none.
	Again *time.Duration `json:"again_ns"`
}

// A Rate is a number that may not have been measured: then it is no number, and null in
// JSON.
type Rate float64

var unmeasured = Rate(math.NaN())

// Measured reports whether there is one.
func (r Rate) Measured() bool { return r == r }

func (r Rate) MarshalJSON() ([]byte, error) {
	if !r.Measured() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(r))
}

func (r *Rate) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*r = unmeasured
		return nil
	}
	return json.Unmarshal(b, (*float64)(r))
}

// rates compares the windows of the three parts. The first one, in which the run begins,
// is left out.
func (r *run) rates() (rates Rates) {
	part := func(from, to time.Duration) []int64 {
		first := int((from + window - 1) / window)
		last := min(int(to/window), len(r.windows))
		if first >= last {
			return nil
		}
		return r.windows[first:last]
	}
	perSecond := func(n int64) Rate { return Rate(float64(n) / window.Seconds()) }
	median := func(of []int64) Rate {
		if len(of) == 0 {
			return unmeasured
		}
		sorted := slices.Sorted(slices.Values(of))
		return perSecond(sorted[len(sorted)/2])
	}
	at := r.phases
	if at[1] == 0 {
		at[1] = time.Duration(len(r.windows)) * window
	}
	during, after := part(at[1], at[2]), part(at[2], at[3])
	rates = Rates{Before: median(part(window, at[1])), During: median(during), After: median(after), Least: unmeasured, Good: unmeasured}
	if len(during) > 0 {
		rates.Least = perSecond(slices.Min(during))
	}
	if len(during) > 0 && rates.Before > 0 {
		good := 0
		for _, n := range during {
			if perSecond(n) >= 0.8*rates.Before {
				good++
			}
		}
		rates.Good = Rate(good) / Rate(len(during))
	}
	if all := r.record.harms.all; len(all) > 0 && rates.Before > 0 {
		last := all[len(all)-1].At
		for i := int(last/window) + 1; i < len(r.windows) && time.Duration(i)*window < at[3]; i++ {
			if perSecond(r.windows[i]) >= 0.9*rates.Before {
				again := time.Duration(i+1)*window - last
				rates.Again = &again
				break
			}
		}
	}
	return rates
}
