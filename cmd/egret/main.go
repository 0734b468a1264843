// Command egret runs the topologies of the examples, and those that Egret is measured
// with. A program of one's own gets the same commands for its own topologies from
// egret.Main.
package main

import (
	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bench"
	"github.com/egretstream/egret/examples/earthquakes/aftershocks"
	"github.com/egretstream/egret/examples/flights/delays"
	"github.com/egretstream/egret/examples/speeches/portraits"
	"github.com/egretstream/egret/examples/wordcount/counting"
	"github.com/egretstream/egret/examples/wordcount/exact"
	_ "github.com/egretstream/egret/state/pebble" // for bench --state disk
	"github.com/egretstream/egret/topology"
)

func main() {
	egret.Main(append([]*topology.Topology{
		counting.Topology(), exact.Topology(), delays.Topology(), portraits.Topology(), aftershocks.Topology(),
	}, bench.Topologies()...)...)
}
