package view

import "github.com/egretstream/egret/tuple"

// What nodes ask each other of open messages: each which trees its own tasks have open, and
// then all what they have of those that are the oldest of all.

// A Sought is a tree that is looked for on all nodes.
type Sought struct {
	Task tuple.TaskID      `json:"task"` // that emitted it
	Life tuple.Incarnation `json:"life"`
	Tree uint64            `json:"tree"`
	Mask uint64            `json:"mask"` // bits of the tasks that have had something of it
}

// An OpenTree is a tree of a node's own task. Its Places are those that the task knows of.
type OpenTree struct {
	Tree   Tree   `json:"tree"`
	Sought Sought `json:"sought"`
}

// An OpenPlace is what a task of a node has of one of the trees that it was asked for.
type OpenPlace struct {
	Of    int   `json:"of"` // index
	Place Place `json:"place"`
}
