package view

import (
	"time"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
)

// An Overview is what is there.
type Overview struct {
	At         time.Time     `json:"at"`
	Window     time.Duration `json:"window_ns"` // of rates, loads and latencies
	Cluster    string        `json:"cluster,omitempty"`
	Quorum     bool          `json:"quorum"`
	Nodes      []NodeNow     `json:"nodes"`
	Topologies []Summary     `json:"topologies"`
}

// A NodeNow is a node, and what it does.
type NodeNow struct {
	Node
	Load float64     `json:"load"` // share of its cores that its process used in the window, 0 to 1
	Has  []NodeTasks `json:"has"`  // its tasks, by the topologies that have not ended
}

// A NodeTasks is which tasks of a topology a node has.
type NodeTasks struct {
	Topology string   `json:"topology"`
	Tasks    []string `json:"tasks"` // "count/2", in the order of the plan
}

// A Summary is a topology in a line.
type Summary struct {
	Topology   string          `json:"topology"`
	Run        string          `json:"run,omitempty"`
	Guarantee  string          `json:"guarantee"`
	Status     string          `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	Began      time.Time       `json:"began"`
	Ended      bool            `json:"ended,omitempty"`
	Tasks      int             `json:"tasks"`
	Silent     int             `json:"silent,omitempty"` // tasks of which nothing is known
	Rate       float64         `json:"rate"`             // messages of spouts and queues a second
	DoneRate   float64         `json:"done_rate"`        // messages of which everything is done, or committed, a second
	FailedRate float64         `json:"failed_rate"`      // attempts that failed, were lost or timed out, a second
	Complete   metrics.Latency `json:"complete"`         // of messages that were done in the window
	Counts     Counts          `json:"counts"`
}

// A Detail is a topology, looked at closely.
type Detail struct {
	At      time.Time     `json:"at"`
	Window  time.Duration `json:"window_ns"`
	Cluster string        `json:"cluster,omitempty"`
	Quorum  bool          `json:"quorum"`
	Summary
	Settings   map[string]string `json:"settings,omitempty"`
	Graph      *graph.Drawing    `json:"graph,omitempty"`
	Streams    []Stream          `json:"streams"`
	Components []ComponentNow    `json:"components"` // in the order of the graph
	Edges      []EdgeNow         `json:"edges"`      // in the order of the graph
	TasksNow   []TaskNow         `json:"per_task"`
	Batches    *Batches          `json:"batches,omitempty"`
	Verdict    Verdict           `json:"verdict"`
	Troubles   []Trouble         `json:"troubles,omitempty"`
}

// A Verdict says in a sentence or two what holds a topology up, or that nothing does.
type Verdict struct {
	Tone string `json:"tone"` // bad, warn, good, or empty
	Text string `json:"text"`
}

// Doing is what tasks do.
type Doing struct {
	Rate       float64         `json:"rate"`        // tuples executed, or messages emitted, a second
	FailedRate float64         `json:"failed_rate"` // tuples or attempts at messages that failed, a second
	Load       float64         `json:"load"`        // share of the window spent in the user's code, 0 to 1; of several tasks the mean
	Throttled  float64         `json:"throttled"`   // share of the window in which it waited for room, 0 to 1; of several tasks the mean
	Execute    metrics.Latency `json:"execute"`     // of tuples of the window
	Complete   metrics.Latency `json:"complete"`    // of messages that were done in the window
	Counts     Counts          `json:"counts"`
}

// A ComponentNow is a component, and what it does.
type ComponentNow struct {
	Component string `json:"component"`
	Kind      string `json:"kind"`
	Tasks     int    `json:"tasks"`
	Silent    int    `json:"silent,omitempty"`
	Doing
	Busiest float64 `json:"busiest"` // load of the busiest task
	// Cause is the component at the end of those that wait for each other, which it waits for;
	// empty: it does not wait, for more than a twentieth of its time.
	Cause string `json:"cause,omitempty"`
	Own   []Own  `json:"own_metrics,omitempty"` // added up
}

// A TaskNow is a task, and what it does.
type TaskNow struct {
	Task      string `json:"task"`
	Component string `json:"component"`
	Node      string `json:"node"`
	Life      string `json:"life,omitempty"`
	Known     bool   `json:"known"`
	WaitsFor  string `json:"waits_for,omitempty"`
	Doing
}

// An EdgeNow is what travels on a subscription.
type EdgeNow struct {
	From   string  `json:"from"`
	Stream string  `json:"stream"`
	To     string  `json:"to"`
	Input  int     `json:"input"`
	Rate   float64 `json:"rate"`  // tuples executed a second
	Total  int64   `json:"total"` // tuples executed
	Full   bool    `json:"full"`  // its receiver holds up its sender
}
