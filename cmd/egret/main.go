// Command egret runs the topologies that Egret is measured with. A program of
// one's own gets the same commands for its own topologies from egret.Main.
package main

import (
	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bench"
)

func main() { egret.Main(bench.Topologies()...) }
