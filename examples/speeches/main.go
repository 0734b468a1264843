// Command speeches shows by what words and how long sentences one can tell the
// presidents of the United States, from their messages to Congress.
//
// This is all of a program; its topology is in package portraits, so that other programs
// can run it too.
package main

import (
	"github.com/egretstream/egret"
	"github.com/egretstream/egret/examples/speeches/portraits"
)

func main() { egret.Main(portraits.Topology()) }
