package aftershocks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// A table has a row for each strong quake. What is replayed comes again, and so does
// a quake without aftershocks from each of the cells near it: all is kept by id, and
// twice is the same as once.
type table struct {
	rule
	rows map[string]*row
	late map[string]bool
}

type row struct {
	id, place   string
	at          time.Time
	mag         float64
	aftershocks map[string]float64 // magnitude by id
}

func (r rule) newTable() bolt.Bolt {
	return &table{rule: r, rows: map[string]*row{}, late: map[string]bool{}}
}

func (t *table) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	id := strings.Clone(in.String("id")) // kept, so cloned
	if in.Stream() == "late" {
		t.late[id] = true
		return nil
	}
	r := t.rows[id]
	if r == nil {
		r = &row{id: id, at: in.Time("time"), mag: in.Float64("mag"), aftershocks: map[string]float64{}}
		if place := in.Value("place"); !place.IsNil() {
			r.place = strings.Clone(place.String())
		}
		t.rows[id] = r
	}
	if !in.Value("aftershock").IsNil() {
		r.aftershocks[strings.Clone(in.String("aftershock"))] = in.Float64("size")
	}
	return nil
}

// Finish emits the rows, the strongest quakes first.
func (t *table) Finish(out *bolt.Collector) error {
	out.Emit(fmt.Sprintf("%d quakes of magnitude %v and more, and their aftershocks: within %v km and %v hours", len(t.rows), t.strong, t.within, t.window.Hours()))
	for _, r := range slices.SortedFunc(maps.Values(t.rows), func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.mag, a.mag), a.at.Compare(b.at), strings.Compare(a.id, b.id))
	}) {
		aftershocks := "none"
		if n := len(r.aftershocks); n > 0 {
			largest := slices.Max(slices.Collect(maps.Values(r.aftershocks)))
			aftershocks = fmt.Sprintf("%d, up to %.1f", n, largest)
		}
		out.Emit(fmt.Sprintf("%4.1f  %s  %-12s  %s", r.mag, r.at.Format("2006-01-02 15:04"), aftershocks, r.place))
	}
	if len(t.late) > 0 {
		out.Emit(fmt.Sprintf("%d quakes came later than %v hours behind the latest: pairs with them may be missing", len(t.late), t.lateness.Hours()))
	}
	return nil
}
