// Command earthquakes finds the aftershocks of strong earthquakes: it joins a
// stream with itself, by place and time, though it comes in no order of time.
//
// This is all of a program; its topology is in package aftershocks, so that other programs
// can run it too.
package main

import (
	"github.com/egretstream/egret"
	"github.com/egretstream/egret/examples/earthquakes/aftershocks"
)

func main() { egret.Main(aftershocks.Topology()) }
