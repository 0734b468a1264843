// Command wordcount counts the words of a book, or of any text it is given, and
// prints the most frequent ones.
//
// This is all of a program; its topology is in package counting, so that other programs
// can run it too.
package main

import (
	"github.com/egretstream/egret"
	"github.com/egretstream/egret/examples/wordcount/counting"
)

func main() { egret.Main(counting.Topology()) }
