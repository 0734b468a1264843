package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// A Grouping says which tasks of a component get a tuple.
type Grouping uint8

const (
	Shuffle        Grouping = iota // any one task, of those with room
	LocalOrShuffle                 // a task of the same node if there is one
	Fields                         // the owner of the key's group
	Global                         // the first task
	All                            // every task
	PartialKey                     // that of two for the key which this sender gave fewer
	None                           // no matter which: as Shuffle
	Direct                         // the one that the emitter names
	Custom                         // those that a Chooser says
)

var groupingNames = [...]string{"shuffle", "local-or-shuffle", "fields", "global", "all", "partial-key", "none", "direct", "custom"}

func (g Grouping) String() string { return nameOf(groupingNames[:], g, "grouping") }

// A Guarantee says what happens to a message that fails or is lost.
type Guarantee uint8

const (
	AtLeastOnce Guarantee = iota // tracked and replayed
	AtMostOnce                   // not tracked
	ExactlyOnce                  // in batches, which are committed in order, with states that know of them
)

var guaranteeNames = [...]string{"at-least-once", "at-most-once", "exactly-once"}

// String returns the name that the flag --guarantee takes.
func (g Guarantee) String() string { return nameOf(guaranteeNames[:], g, "guarantee") }

// nameOf is what String returns, also of a number that nothing has.
func nameOf[T ~uint8](names []string, i T, what string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return what + " " + strconv.Itoa(int(i))
}

// ParseGuarantee reads what String has written; nil for empty text.
func ParseGuarantee(text string) (*Guarantee, error) {
	if text == "" {
		return nil, nil
	}
	if g := Guarantee(slices.Index(guaranteeNames[:], text)); int(g) < len(guaranteeNames) {
		return &g, nil
	}
	return nil, fmt.Errorf("there is no guarantee %q: %s", text, strings.Join(guaranteeNames[:], ", "))
}

// A Plan is a topology made ready to run: every name is a number. It is read by
// all tasks at the same time and never changed.
type Plan struct {
	Topology   string
	Guarantee  Guarantee
	NoTaps     bool // nobody may look at tuples
	Epoch      uint32
	Components []Node   // in topological order, spouts and queues first where the order is free
	Tasks      []Task   // by TaskID
	Dropped    []string // components that earlier versions had
}

// A Task is one instance of a component.
type Task struct {
	Component int // in Plan.Components
	Index     int // among the tasks of its component
}

// A Node is one component of a plan.
type Node struct {
	Name     string
	Source   spout.Source       // of a spout, else nil
	Queue    spout.QueueFactory // of a queue, else nil
	Bolt     bolt.Factory       // of a bolt, else nil
	Parallel int
	First    tuple.TaskID  // its tasks are First to First+Parallel-1
	Every    time.Duration // the interval of Tick; 0 for none
	Holds    time.Duration // how long a tuple may be retained without a word of its message
	Streams  []*tuple.Schema
	Inputs   []Input
	Outputs  []Route // ordered by stream
	Dead     bool    // somebody subscribes to its dead letters: their stream is the last of Streams

	// Of exactly-once topologies:
	Coordinates bool   // it is the coordinator of the batches, and has no code of its own
	Stateful    bool   // its bolt is a bolt.Stateful
	Local       bool   // what that writes is in the memory or on the disk of one node
	FromHere    bool   // and may begin in the middle of the input
	Batches     Replay // how batches of a spout come again
}

// Declared returns the streams that the component's own code emits to.
func (n *Node) Declared() []*tuple.Schema {
	if n.Dead {
		return n.Streams[:len(n.Streams)-1]
	}
	return n.Streams
}

// Reads reports whether n is a spout or a queue: messages come in by it.
func (n *Node) Reads() bool { return n.kind().reads() }

// An Input is one subscription, seen by the component that has it.
type Input struct {
	From    int // component
	Stream  *tuple.Schema
	Settled bool // a batch is executed when the one before it is committed
}

// A Route is the same subscription, seen by the component that emits.
type Route struct {
	Stream   int // in Node.Streams
	To       int // component
	Input    int // in the Inputs of To
	Grouping Grouping
	Fields   []int                // positions of the key, for Fields and PartialKey
	Custom   string               // its name, for Custom
	Choose   func(Sender) Chooser // for Custom
}

// TaskName returns the name of a task for people: "count/2".
func (p *Plan) TaskName(id tuple.TaskID) string {
	if int(id) >= len(p.Tasks) {
		return "task " + strconv.Itoa(int(id))
	}
	t := p.Tasks[id]
	return p.Components[t.Component].Name + "/" + strconv.Itoa(t.Index)
}

// Node returns the component of a task.
func (p *Plan) Node(id tuple.TaskID) *Node { return &p.Components[p.Tasks[id].Component] }

// Senders returns the tasks that send to component c, in order.
func (p *Plan) Senders(c int) []tuple.TaskID {
	var ids []tuple.TaskID
	for i := range p.Components {
		n := &p.Components[i]
		for _, r := range n.Outputs {
			if r.To == c {
				for k := range n.Parallel {
					ids = append(ids, n.First+tuple.TaskID(k))
				}
				break
			}
		}
	}
	return ids
}

// Coordinator returns the component that coordinates the batches, or -1.
func (p *Plan) Coordinator() int {
	return slices.IndexFunc(p.Components, func(n Node) bool { return n.Coordinates })
}

// Origins returns the components whose messages can reach component c: the ones
// its reports go to.
func (p *Plan) Origins(c int) []int {
	seen := make([]bool, len(p.Components))
	var walk func(int)
	walk = func(c int) {
		for _, in := range p.Components[c].Inputs {
			if !seen[in.From] {
				seen[in.From] = true
				walk(in.From)
			}
		}
	}
	walk(c)
	var from []int
	for i, yes := range seen {
		if yes {
			from = append(from, i)
		}
	}
	return from
}
