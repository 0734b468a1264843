package view

import (
	"time"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
)

// A Sample is all that was known at a moment.
type Sample struct {
	At      time.Time `json:"at"`
	Cluster string    `json:"cluster,omitempty"` // its id; empty: a run without one
	Quorum  bool      `json:"quorum"`            // false: nothing can be changed, as far as the node knows
	Nodes   []Node    `json:"nodes"`
	Runs    []Run     `json:"runs"`
}

// A Node is one node, or the process of a run without a cluster.
type Node struct {
	Node     string        `json:"node"`           // its name: host:port if it was given none, or "local"
	Addr     string        `json:"addr,omitempty"` // host:port, of a cluster
	ID       string        `json:"id,omitempty"`
	Alive    bool          `json:"alive"`
	Leads    bool          `json:"leads,omitempty"`
	Votes    bool          `json:"votes,omitempty"`
	Draining bool          `json:"draining,omitempty"`
	Tasks    int           `json:"tasks"`
	Silent   string        `json:"silent,omitempty"` // why nothing is known of its tasks
	Version  string        `json:"version,omitempty"`
	Up       time.Duration `json:"up_ns"`
	CPU      time.Duration `json:"cpu_ns"` // that its process has used
	Memory   int64         `json:"memory"` // bytes that its process has from the system
	Cores    int           `json:"cores"`  // that it may use
}

// A Run is one run of a topology.
type Run struct {
	Topology  string            `json:"topology"`
	Run       string            `json:"run,omitempty"` // of a cluster
	Guarantee string            `json:"guarantee"`
	Status    string            `json:"status"` // running, waiting, inactive, changing, stopping, ending, stopped, done, failed
	Reason    string            `json:"reason,omitempty"`
	Began     time.Time         `json:"began"`
	Ended     bool              `json:"ended,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"` // parameters and flags, as text; no secrets
	Graph     *graph.Drawing    `json:"graph,omitempty"`    // nil: no node has been found for it yet
	Streams   []Stream          `json:"streams,omitempty"`
	Tasks     []Task            `json:"tasks"`
	Batches   *Batches          `json:"batches,omitempty"` // of an exactly-once topology
	Troubles  []Trouble         `json:"troubles,omitempty"`
}

// A Trouble is something that people should hear of first.
type Trouble struct {
	Kind      string    `json:"kind"` // died: how a component has done so the last time; stuck: a task is
	Component string    `json:"component"`
	Task      string    `json:"task"`
	Text      string    `json:"text"`
	At        time.Time `json:"at"` // stuck: since when
}

// A Stream is what a component emits.
type Stream struct {
	Component string   `json:"component"`
	Stream    string   `json:"stream"`
	Fields    []string `json:"fields"`
	Masked    []string `json:"masked,omitempty"` // fields whose values are shown to nobody
	NoTap     bool     `json:"no_tap,omitempty"` // it may not be tapped
}

// A Task is what one task has done where it is.
type Task struct {
	Task      string  `json:"task"` // "count/2"
	Component string  `json:"component"`
	Node      string  `json:"node"`
	Life      string  `json:"life,omitempty"`
	Known     bool    `json:"known"`              // false: its node has said nothing
	Emitted   []int64 `json:"emitted,omitempty"`  // by the streams of its component
	Executed  []int64 `json:"executed,omitempty"` // by its inputs
	Counts
	Throttled time.Duration `json:"throttled_ns"`          // in which it had to wait for room
	WaitsFor  string        `json:"waits_for,omitempty"`   // the task without room, if it waits now
	MostOpen  int64         `json:"most_open,omitempty"`   // messages that it may have open, and a tree of them (at most an eighth) more
	Execute   *Histogram    `json:"execute,omitempty"`     // of a tuple
	Complete  *Histogram    `json:"complete,omitempty"`    // of a message, from its first emission to the last ack, or to the commit of its batch
	Own       []Own         `json:"own_metrics,omitempty"` // of its bolt
	Past      *Past         `json:"past,omitempty"`        // nil: nothing
}

// A Past is what was done as a task before it came to its node, by nodes that still live;
// the first task of a component has what was done as tasks that it has no more. It is in
// totals, and in no rate.
type Past struct {
	Executed []int64 `json:"executed,omitempty"`
	Counts
	Own []Own `json:"own_metrics,omitempty"`
}

// Counts are totals of tasks, but for Open, Trying, Queued and Held, which are now.
//
// In a cluster a total is the sum of what the processes of living nodes have counted since they
// began, wherever the tasks are now. With a process that dies, or ends, goes what it has
// counted: totals fall by it, and do not come back. Nothing is counted twice, and of what is
// left Messages = Acked + Dead + HandedBack + Abandoned + Open holds at rest. Where a task of
// it begins anew its rate counts from zero. A node that does not answer is missing in the same
// way, until it answers. So after a death totals say nothing of how much a topology has done
// in all: positions, states and what it has written do.
type Counts struct {
	Messages        int64 `json:"messages"`
	Acked           int64 `json:"acked"` // messages, of which everything is done
	Dead            int64 `json:"dead"`
	HandedBack      int64 `json:"handed_back"`
	Abandoned       int64 `json:"abandoned"`
	Open            int64 `json:"open"`
	Failed          int64 `json:"failed"` // attempts at messages
	Lost            int64 `json:"lost"`
	TimedOut        int64 `json:"timed_out"`
	ReplayedFailed  int64 `json:"replayed_failed"`
	ReplayedLost    int64 `json:"replayed_lost"`
	ReplayedTimeout int64 `json:"replayed_timeout"`
	FailedTuples    int64 `json:"failed_tuples"` // executions
	Queued          int64 `json:"queued"`
	Held            int64 `json:"held"`
	Restarts        int64 `json:"restarts"`
	Refused         int64 `json:"refused"`
	Stuck           int64 `json:"stuck"`
}

// Batches are those of an exactly-once topology.
type Batches struct {
	Last      int64               `json:"last"`
	Committed int64               `json:"committed"`
	Messages  int64               `json:"messages"`
	Keys      int64               `json:"keys"`
	Failed    int64               `json:"failed"`
	Replayed  int64               `json:"replayed"`          // batches that have begun again since the coordinator came to its node, each time they did
	Rounds    map[string]int64    `json:"rounds"`            // by why they have begun
	Latency   metrics.Latency     `json:"latency"`           // from the beginning of a batch to its commit, of messages since its coordinator came to its node
	InWindow  metrics.Latency     `json:"latency_in_window"` // the same, of those that were committed in the window; of a Sample none
	Now       *metrics.BatchesNow `json:"now,omitempty"`     // nil: Last is known alone
}
