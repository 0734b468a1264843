// Package delays is a topology that says how late flights are, by airport and hour of
// departure.
package delays

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

//go:embed flights.csv.gz
var january embed.FS

// Topology returns the topology flights.
func Topology() *topology.Topology { return topology.New("flights", flights) }

func flights(b *topology.Builder) {
	every := b.Duration("every", time.Second, "interval of the standings; they are seen with --rate")
	airports := b.Int("airports", 8, "airports to print, the busiest first")
	if airports < 0 {
		b.Check(fmt.Errorf("--airports is %d: it must be at least 0", airports))
	}
	departures := b.Spout("flights", source(b)).Emits("scheduled", "origin", "delay_min")
	delays := b.Bolt("delays", newDelays, departures.By("origin")).Emits("origin", "hour", "flights", "minutes").
		Parallel(b.Int("delays", 2, "tasks that add up delays")).Every(every)
	table := b.Bolt("board", newBoard(airports), delays.Global()).Emits("line").Every(every)
	b.Bolt("print", to.Stdout(), table.Global()).Every(every)
}

// source is what the flags ask to be read.
func source(b *topology.Builder) (flights spout.Source) {
	records := from.CSVFS(january, "flights.csv.gz")
	if files := b.Strings("file", nil, "a CSV file with the columns scheduled, origin and delay_min, plain or .gz, or - for standard input; may be repeated (default: four days of 2001)"); len(files) > 0 {
		records = from.CSV(files...)
	}
	flights = records.Time("2006-01-02T15:04", "scheduled").Int("delay_min")
	if rate := b.Float("rate", 0, "at most so many flights a second; 0: as many as go through"); rate != 0 {
		flights = from.Paced(flights, rate)
	}
	return flights
}

// A sum is the flights of an airport or of all in one hour of the day.
type sum struct{ flights, minutes int64 }

func (s sum) plus(o sum) sum { return sum{s.flights + o.flights, s.minutes + o.minutes} }

type day [24]sum

// delays adds up by airport. Each task has airports of its own.
type delays struct {
	days map[string]*day
	told map[string]day // when it was last emitted
}

func newDelays() bolt.Bolt { return &delays{map[string]*day{}, map[string]day{}} }

func (d *delays) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	origin := in.String("origin")
	if in.Value("delay_min").IsNil() {
		return nil // did not fly
	}
	if d.days[origin] == nil {
		d.days[strings.Clone(origin)] = &day{} // kept, so cloned
	}
	hour := &d.days[origin][in.Time("scheduled").Hour()]
	*hour = hour.plus(sum{1, in.Int64("delay_min")})
	return nil
}

// Tick emits the sums that have changed, as they are now: one that came twice
// would do no harm.
func (d *delays) Tick(out *bolt.Collector) error {
	for origin, hours := range d.days {
		for h, s := range hours {
			if s != d.told[origin][h] {
				out.Emit(origin, h, s.flights, s.minutes)
			}
		}
		d.told[origin] = *hours
	}
	return nil
}

func (d *delays) Finish(out *bolt.Collector) error { return d.Tick(out) }

// board knows the last sums of all airports.
type board struct {
	airports int
	days     map[string]*day
	shown    int64 // flights in the last standing
}

func newBoard(airports int) bolt.Factory {
	return func() bolt.Bolt { return &board{airports: airports, days: map[string]*day{}} }
}

func (b *board) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	origin := in.String("origin")
	if b.days[origin] == nil {
		b.days[strings.Clone(origin)] = &day{}
	}
	b.days[origin][in.Int64("hour")] = sum{in.Int64("flights"), in.Int64("minutes")}
	return nil
}

// total adds up an airport, or all of them for "".
func (b *board) total(airport string) (s sum) {
	for name, hours := range b.days {
		if airport == "" || name == airport {
			for _, h := range hours {
				s = s.plus(h)
			}
		}
	}
	return s
}

// Tick emits a standing in one line, if there is news.
func (b *board) Tick(out *bolt.Collector) error {
	if s := b.total(""); s.flights != b.shown {
		b.shown = s.flights
		out.Emit(fmt.Sprintf("%d flights so far, %.1f minutes late on average", s.flights, float64(s.minutes)/float64(s.flights)))
	}
	return nil
}

// Finish emits the table: a column for each of the busiest airports and one for
// all, a row for each hour and one for the day.
func (b *board) Finish(out *bolt.Collector) error {
	names := slices.SortedFunc(maps.Keys(b.days), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.total(y).flights, b.total(x).flights), strings.Compare(x, y))
	})
	names = names[:min(len(names), b.airports)]
	out.Emit(fmt.Sprintf("average delay in minutes of %d flights, by hour of departure", b.total("").flights))
	out.Emit(row("hour", append(names, "all"), func(name string) string { return name }))
	for h := range 24 {
		inHour := func(name string) sum { return b.days[name][h] }
		var all sum
		for name := range b.days {
			all = all.plus(inHour(name))
		}
		if all.flights > 0 {
			out.Emit(row(fmt.Sprintf("%02d:00", h), names, func(name string) string { return average(inHour(name)) }) + cell(average(all)))
		}
	}
	out.Emit(row("day", names, func(name string) string { return average(b.total(name)) }) + cell(average(b.total(""))))
	return nil
}

func row(head string, names []string, text func(name string) string) string {
	line := fmt.Sprintf("%-6s", head)
	for _, name := range names {
		line += cell(text(name))
	}
	return line
}

func cell(text string) string { return fmt.Sprintf("%7s", text) }

// average is what stands in a cell: a point for no flights.
func average(s sum) string {
	if s.flights == 0 {
		return "."
	}
	text := fmt.Sprintf("%.1f", float64(s.minutes)/float64(s.flights))
	if text == "-0.0" {
		return "0.0"
	}
	return text
}
