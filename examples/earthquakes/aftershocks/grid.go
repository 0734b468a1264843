package aftershocks

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

const (
	radius  = 6371                       // of the earth, in km
	degree  = 2 * math.Pi * radius / 360 // of a great circle, in km
	halfway = 20015                      // km to the other side of the earth
)

// A grid divides the earth into cells, so that several tasks can share them. Each
// quake goes to the cell that it lies in, and a strong one also, on a stream of its
// own, to all cells that come near enough. So it meets each of its aftershocks, and
// each of them once.
type grid struct {
	rule
	size   float64 // of a cell, in degrees
	strong bolt.Output
}

// newGrid makes cells as large as the distance, so that there are about nine near a
// strong quake; but not smaller than a degree, or there were very many at a pole.
func (r rule) newGrid() bolt.Bolt { return &grid{rule: r, size: max(1, r.within/degree)} }

func (g *grid) Prepare(_ context.Context, task *bolt.Task) error {
	g.strong = task.Output("strong")
	return nil
}

func (g *grid) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if in.Value("mag").IsNil() {
		return nil // has not been measured
	}
	mag, lat, lon := in.Float64("mag"), in.Float64("lat"), in.Float64("lon")
	if !(math.Abs(lat) <= 90 && math.Abs(lon) <= 180 && math.Abs(mag) <= greatest) {
		return bolt.Reject(fmt.Errorf("quake %s of magnitude %v at latitude %v, longitude %v cannot be", in.String("id"), mag, lat, lon))
	}
	tell := func(cell int64, out *bolt.Collector) {
		out.Emit(cell, in.String("id"), time.UnixMilli(in.Int64("time")), mag, in.Value("place"), lat, lon)
	}
	tell(g.cell(g.row(lat), g.column(lon)), out)
	if mag >= g.rule.strong {
		for _, cell := range g.around(lat, lon) {
			tell(cell, out.To(g.strong))
		}
	}
	return nil
}

func (g *grid) row(lat float64) int { return int((lat + 90) / g.size) }

// column takes any longitude, also one that is more than once around.
func (g *grid) column(lon float64) int {
	east := math.Mod(lon+180, 360)
	if east < 0 {
		east += 360
	}
	return min(int(east/g.size), g.columns()-1)
}

func (g *grid) columns() int { return int(math.Ceil(360 / g.size)) }

func (g *grid) cell(row, column int) int64 { return int64(row*g.columns() + column) }

// around returns the cells with points within the distance, and maybe a few more:
// those of the rectangle around the circle.
func (g *grid) around(lat, lon float64) (cells []int64) {
	reach := g.within/degree + 1e-9 // degrees; a hair more, so that rounding loses nobody
	first, n := 0, g.columns()
	if math.Abs(lat)+reach < 90 { // no pole is in the circle, so it is no wider than half of the way around
		wide := math.Asin(min(1, math.Sin(reach*math.Pi/180)/math.Cos(lat*math.Pi/180)))*180/math.Pi + 1e-9
		first = g.column(lon - wide)
		n = (g.column(lon+wide)-first+n)%n + 1
	}
	for row := g.row(max(lat-reach, -90)); row <= g.row(min(lat+reach, 90)); row++ {
		for i := range n {
			cells = append(cells, g.cell(row, (first+i)%g.columns()))
		}
	}
	return cells
}

// distance is that between two quakes over the surface of the earth, in km.
func distance(a, b tuple.Tuple) float64 {
	const rad = math.Pi / 180
	lat1, lat2 := a.Float64("lat")*rad, b.Float64("lat")*rad
	north, east := math.Sin((lat1-lat2)/2), math.Sin((a.Float64("lon")-b.Float64("lon"))*rad/2)
	h := north*north + math.Cos(lat1)*math.Cos(lat2)*east*east // the haversine
	return 2 * radius * math.Asin(math.Sqrt(min(h, 1)))
}
