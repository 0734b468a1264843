package aftershocks

import (
	"context"
	"slices"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// A join finds the aftershocks of strong quakes in its cells. Whoever comes first
// of two that belong together is held until the other comes: its tuple is retained,
// and so neither acked nor failed. Should the task die, then all that it holds is
// replayed; and what it emits for a pair is anchored to both, so that both come
// again if that fails.
//
// How long is somebody held? The clock is the time of the quakes: what comes can be
// behind the latest that has come by the lateness, but not by more. So a tuple is
// let go of when the latest has moved on by the lateness since it came, and by the
// window for a strong one. And when nothing more comes the engine calls Flush.
//
// The lateness has to cover more than the order of the source: what is replayed comes
// late, and so does what a slow task before this one has in hand; and the two streams
// of one task can overtake each other by a parcel.
type join struct {
	rule
	late   bolt.Output
	cells  map[int64]*cell
	latest time.Time // of all quakes that have come
	swept  time.Time // latest as it was when the cells were last swept
}

// sweeping is how far the latest moves between two looks at all cells: to look at
// them for each quake would take too long.
const sweeping = time.Hour

// A cell is what is held of one.
type cell struct{ strong, quakes []*waiting }

// A waiting is a quake that others may belong to which have not come.
type waiting struct {
	*bolt.Held
	until time.Time // of join.latest
	met   bool
}

func (r rule) newJoin() bolt.Bolt { return &join{rule: r, cells: map[int64]*cell{}} }

func (j *join) Prepare(_ context.Context, task *bolt.Task) error {
	j.late = task.Output("late")
	return nil
}

func (j *join) Execute(in tuple.Tuple, out *bolt.Collector) error {
	at := in.Time("time")
	if at.Before(j.latest.Add(-j.lateness)) {
		out.To(j.late).Emit(in.String("id")) // what belongs to it may be gone
	}
	if at.After(j.latest) {
		j.latest = at
	}
	c := j.cells[in.Int64("cell")]
	if c == nil {
		c = &cell{}
		j.cells[in.Int64("cell")] = c
	}
	w := &waiting{Held: out.Retain(in), until: j.latest.Add(j.lateness)}
	if in.Stream() == "strong" {
		w.until = w.until.Add(j.window)
		c.strong = append(c.strong, w)
		for _, quake := range c.quakes {
			j.meet(w, quake, out)
		}
	} else {
		c.quakes = append(c.quakes, w)
		for _, strong := range c.strong {
			j.meet(strong, w, out)
		}
	}
	if j.latest.Sub(j.swept) > sweeping {
		j.sweep(false, out)
	}
	return nil
}

// meet emits a pair if it is one.
func (j *join) meet(strong, quake *waiting, out *bolt.Collector) {
	after := quake.Time("time").Sub(strong.Time("time"))
	if after > 0 && after <= j.window && distance(strong.Tuple, quake.Tuple) <= j.within {
		strong.met = true
		emit(out.Anchor(strong.Held, quake.Held), strong, quake.String("id"), quake.Float64("mag"))
	}
}

func emit(out *bolt.Collector, strong *waiting, aftershock, size any) {
	out.Emit(strong.String("id"), strong.Time("time"), strong.Float64("mag"), strong.Value("place"), aftershock, size)
}

// sweep lets go of what has waited long enough, or of all. Strong quakes that have
// met nobody are emitted alone.
func (j *join) sweep(all bool, out *bolt.Collector) {
	over := func(w *waiting) bool {
		if !all && !w.until.Before(j.latest) {
			return false
		}
		if w.Stream() == "strong" && !w.met {
			emit(out.Anchor(w.Held), w, nil, nil)
		}
		w.Ack()
		return true
	}
	for key, c := range j.cells {
		c.strong, c.quakes = slices.DeleteFunc(c.strong, over), slices.DeleteFunc(c.quakes, over)
		if len(c.strong)+len(c.quakes) == 0 {
			delete(j.cells, key)
		}
	}
	j.swept = j.latest
}

// Flush is called when nothing more comes, before the input ends: all that has been
// read waits for what is held. Replays may come after it.
func (j *join) Flush(out *bolt.Collector) error {
	j.sweep(true, out)
	return nil
}

// Finish is for runs at most once: there nobody waits for what is held, and Flush is
// not called. Otherwise nothing is left to do.
func (j *join) Finish(out *bolt.Collector) error { return j.Flush(out) }
