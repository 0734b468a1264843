// Package aftershocks is a topology that finds the aftershocks of strong earthquakes:
// it joins a stream with itself, by place and time, though it comes in no order of
// time.
package aftershocks

import (
	"embed"
	"fmt"
	"math"
	"time"

	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
)

//go:embed earthquakes.ndjson.gz
var week embed.FS

// Topology returns the topology earthquakes.
func Topology() *topology.Topology { return topology.New("earthquakes", earthquakes) }

func earthquakes(b *topology.Builder) {
	r := flags(b)
	quake := []string{"id", "time", "mag", "place", "lat", "lon"}
	inCell := append([]string{"cell"}, quake...)

	quakes := b.Spout("quakes", source(b)).Emits(quake...)
	grid := b.Bolt("grid", r.newGrid, quakes.Shuffle()).Emits(inCell...).EmitsTo("strong", inCell...)
	pairs := b.Bolt("join", r.newJoin, grid.By("cell"), grid.Stream("strong").By("cell")).
		Emits("id", "time", "mag", "place", "aftershock", "size").EmitsTo("late", "id").
		Parallel(b.Int("joins", 2, "tasks that join")).Holds(r.window + r.lateness + sweeping)
	table := b.Bolt("table", r.newTable, pairs.Global(), pairs.Stream("late").Global()).Emits("line")
	b.Bolt("print", to.Stdout(), table.Global())
}

// A rule says what an aftershock is, and for how long to wait for one.
type rule struct {
	strong, within   float64 // magnitude, km
	window, lateness time.Duration
}

const (
	greatest = 20                         // magnitude there could be; far beyond any that was
	longest  = 100 * 365 * 24 * time.Hour // so that sums of such times fit
)

func flags(b *topology.Builder) rule {
	r := rule{
		strong:   b.Float("strong", 4.5, "magnitude from which on a quake is strong"),
		within:   b.Float("within", 100, "km between a strong quake and an aftershock, at most"),
		window:   b.Duration("window", 24*time.Hour, "time between a strong quake and an aftershock, at most"),
		lateness: b.Duration("lateness", 7*24*time.Hour, "how far a quake may be behind the latest that has come before it; until then what may belong to it is held"),
	}
	if !(math.Abs(r.strong) <= greatest) {
		b.Check(fmt.Errorf("--strong is %v: it must be a magnitude, from %d to %d", r.strong, -greatest, greatest))
	}
	if !(r.within > 0 && r.within <= halfway) {
		b.Check(fmt.Errorf("--within is %v: it must be more than 0 and at most %d km, which is halfway around the earth", r.within, halfway))
	}
	if r.window <= 0 || r.window > longest {
		b.Check(fmt.Errorf("--window is %v: it must be more than 0 and at most %v", r.window, longest))
	}
	if r.lateness < 0 || r.lateness > longest {
		b.Check(fmt.Errorf("--lateness is %v: it must be at least 0 and at most %v", r.lateness, longest))
	}
	return r
}

// source is what the flags ask to be read.
func source(b *topology.Builder) (quakes spout.Source) {
	records := from.JSONLinesFS(week, "earthquakes.ndjson.gz")
	if files := b.Strings("file", nil, "a file of JSON lines with id, time in ms, mag, place, lat and lon, plain or .gz, or - for standard input; may be repeated (default: a week of 2018)"); len(files) > 0 {
		records = from.JSONLines(files...)
	}
	quakes = records.Text("id", "place").Int("time").Float("mag", "lat", "lon")
	if rate := b.Float("rate", 0, "at most so many quakes a second; 0: as many as go through"); rate != 0 {
		quakes = from.Paced(quakes, rate)
	}
	return quakes
}
