package view

import (
	"encoding/json"
	"time"
)

// An Error is something that went wrong, as often as it did in the same way. What failed is
// counted as the metrics do: each execution, each message that timed out.
type Error struct {
	Topology  string    `json:"topology"`
	Component string    `json:"component"`
	Task      string    `json:"task"` // of the last time
	Node      string    `json:"node"` // of tasks that have died with their node: that one
	Kind      string    `json:"kind"` // died, failed, unsent, stuck, timed out, dead letter, source, queue, state, notice
	Text      string    `json:"text"`
	Stack     string    `json:"stack,omitempty"`
	Tuple     string    `json:"tuple,omitempty"` // in hand, cut short
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Count     int64     `json:"count"` // of failed and timed out at least: a task tells one in a while, and counts all in Counts
}

// A Tree is a tree of messages that is open: one, or several that are tracked together.
type Tree struct {
	Task     string        `json:"task"` // that emitted it
	Node     string        `json:"node"`
	Tree     uint64        `json:"tree"` // a number of the task's life; of a message between two attempts that of the last
	Messages int           `json:"messages"`
	Replay   bool          `json:"replay,omitempty"`  // it is a message that comes again
	Message  string        `json:"message,omitempty"` // the first one, cut short
	Error    string        `json:"error,omitempty"`   // of a replay: how the last attempt has ended
	Age      time.Duration `json:"age_ns"`            // since it was first emitted
	Silent   time.Duration `json:"silent_ns"`         // since it was last heard of; after the message timeout it is replayed
	Places   []Place       `json:"places"`            // where it is; none: on its way, or lost
	Unknown  bool          `json:"unknown,omitempty"` // Task does not say which messages it has open, only how many; Places says why
}

// A Place is a task that has something of a tree. A tuple counts once for each message of
// the tree that it comes of.
type Place struct {
	Task   string        `json:"task"`
	Node   string        `json:"node"`
	Queued int           `json:"queued,omitempty"`    // tuples that wait for it
	Held   int           `json:"held,omitempty"`      // that it retains
	Unsent int           `json:"unsent,omitempty"`    // that it has emitted and that wait for room
	Waits  time.Duration `json:"waits_ns,omitempty"`  // until its next life begins, or until it emits the message again
	During string        `json:"during,omitempty"`    // it does not answer, since it is in this call of user code: Execute, Next, ...
	Inside time.Duration `json:"inside_ns,omitempty"` // for so long
	Hand   bool          `json:"hand,omitempty"`      // and a tuple that it executes is one of the tree
	Others int           `json:"others,omitempty"`    // or another one of so many: quick ones are executed together
	Maybe  bool          `json:"maybe,omitempty"`     // it does not answer, and has had something of the tree: there may be some yet
}

// A Tap asks for a sample of the tuples of a stream.
type Tap struct {
	Topology  string  `json:"topology"`
	Component string  `json:"component"`
	Stream    string  `json:"stream"`
	Where     string  `json:"where,omitempty"` // an expression; empty: all
	Most      float64 `json:"most,omitempty"`  // tuples a second; 0: 10
}

// A Tapped is a tuple that was seen on a stream, or from time to time what was looked at.
type Tapped struct {
	At     time.Time         `json:"at"`
	Task   string            `json:"task,omitempty"` // that has emitted it
	Node   string            `json:"node,omitempty"`
	Values []json.RawMessage `json:"values,omitempty"` // by the fields of the stream
	// Of a note that has no values: since the tap began
	Emitted int64 `json:"emitted,omitempty"` // on the stream
	Looked  int64 `json:"looked,omitempty"`  // of these at so many
	Matched int64 `json:"matched,omitempty"` // of these, Where was true
	Shown   int64 `json:"shown,omitempty"`   // and of these so many were passed on
	Missed  int64 `json:"missed,omitempty"`  // that were not, since who looks is slow
	// Of Looked, for so many Where could not be asked. If that is all, it fits no tuple.
	Failed     int64  `json:"failed,omitempty"`
	FailedWith string `json:"failed_with,omitempty"` // the last time
	Error      string `json:"error,omitempty"`       // told once: what Where has failed with first, or a node that is silent
}

// An Action changes something.
type Action struct {
	Do       string         `json:"do"` // activate, deactivate, stop, kill, rebalance, cancel (a rebalance that waits), drain, undrain
	Topology string         `json:"topology,omitempty"`
	Node     string         `json:"node,omitempty"`
	Parallel map[string]int `json:"parallel,omitempty"`
	Preview  bool           `json:"preview,omitempty"` // say what would happen, and do nothing
}

// An Effect is what an action does, or would do.
type Effect struct {
	Done  bool   `json:"done"`
	Text  string `json:"text"` // a sentence
	Moves []Move `json:"moves,omitempty"`
}

// A Move is a task's.
type Move struct {
	Task string `json:"task"`
	From string `json:"from,omitempty"` // node; empty: it is new
	To   string `json:"to,omitempty"`   // node; empty: it ends
}

// A Letter is a dead letter.
type Letter struct {
	ID        string            `json:"id"`      // in a cluster with its node: "00d2...04/7-42"
	Node      string            `json:"node"`    // that keeps it
	Waiting   bool              `json:"waiting"` // to be replayed
	Component string            `json:"component"`
	Task      string            `json:"task"`
	Stream    string            `json:"stream"`
	Fields    []string          `json:"fields"`
	Values    []json.RawMessage `json:"values"` // none if they cannot be read
	Error     string            `json:"error"`
	History   []string          `json:"history"` // how attempts have ended: after each replay of the letter the last 4, and 64 in all; Failures and Losses count all
	Failures  int               `json:"failures"`
	Losses    int               `json:"losses"`
	Replayed  int               `json:"replayed"` // so often, in vain
	Died      time.Time         `json:"died"`
}
