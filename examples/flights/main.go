// Command flights says how late flights are, by airport and hour of departure.
//
// This is all of a program; its topology is in package delays, so that other programs
// can run it too.
package main

import (
	"github.com/egretstream/egret"
	"github.com/egretstream/egret/examples/flights/delays"
)

func main() { egret.Main(delays.Topology()) }
