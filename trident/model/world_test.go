package model

import (
	"fmt"
	"io"
	"math/rand/v2"
)

const (
	splits     = 3
	perSplit   = 10 // messages
	keys       = 5
	groups     = 3 // of keys
	maxBatches = 3
	maxReplays = 3
	patience   = 4000  // steps without progress before the backstop
	budget     = 60000 // steps of a run
)

// An attempt is one for all batches in flight. The zero value is before all others.
type attempt struct{ epoch, round int }

// A stamp is what a store keeps of the last write of a key group.
type stamp struct {
	at   attempt
	txid int
}

type span struct{ from, to int }

// A shape is what the topology has behind its bolts.
type shape uint8

const (
	plain  shape = iota // a state
	behind              // a state that emits its new values to another
	reads               // readers of a state, who feed it and another one
	shapes
)

// A config is what a seed has drawn, or a test has set.
type config struct {
	seed      uint64
	off       set
	shape     shape
	fixed     bool // states {txid, value} and a transactional spout; else previous values
	faults    int  // how many
	likely    harm // half of them are like this
	pace      int  // between faults, in 16 steps
	window    int  // tuples that a link lets through
	stores    bool // stores may lose what they have acknowledged
	memory    bool // stores end with their task
	resets    bool // the record is lost once, and one that has nothing takes its place
	unfix     bool // once, the record is put back as it was before it had ranges
	poison    int  // id that fails, or -1
	poisonFor int  // times, or -1 for ever
}

func draw(seed uint64, off set) config {
	r := rand.New(rand.NewPCG(seed, 1))
	c := config{seed: seed, off: off, shape: shape(r.IntN(int(shapes))), fixed: r.IntN(4) == 0, faults: r.IntN(8), likely: harm(r.IntN(int(harms))), pace: 4 << r.IntN(4), window: 1 + r.IntN(3), poison: -1}
	c.stores = r.IntN(8) == 0
	c.memory = r.IntN(16) == 0
	if r.IntN(4) == 0 {
		c.poison = r.IntN(splits * perSplit)
		c.poisonFor = r.IntN(maxReplays+1) - 1
	}
	return c
}

// A kind is what a task does.
type kind uint8

const (
	spout kind = iota
	bolt
	reader
	state
)

const maxTasks = 10

// A graph says who sends to whom. Its tasks are numbers; two of each component.
type graph struct {
	tasks int
	kind  [maxTasks]kind
	next  [maxTasks][]int
	from  [maxTasks]uint // senders
	a, b  int            // first task of state A, and of B; b is 0 if there is none
	// Sets of tasks, as bits.
	all, spouts, readers, states, ends uint // ends say ready
}

func newGraph(s shape) *graph {
	g := &graph{}
	add := func(k kind, senders ...int) int {
		first := g.tasks
		for i := first; i < first+2; i++ {
			g.kind[i] = k
			for _, f := range senders {
				for j := f; j < f+2; j++ {
					g.next[j] = append(g.next[j], i)
					g.from[i] |= 1 << j
				}
			}
		}
		g.tasks += 2
		return first
	}
	s0 := add(spout)
	b0 := add(bolt, s0)
	switch s {
	case plain:
		g.a = add(state, b0)
	case behind:
		g.a = add(state, b0)
		g.b = add(state, g.a)
	case reads:
		r0 := add(reader, b0)
		g.a = add(state, r0)
		g.b = add(state, r0)
	}
	for i := range g.tasks {
		g.all |= 1 << i
		switch g.kind[i] {
		case spout:
			g.spouts |= 1 << i
		case reader:
			g.readers |= 1 << i
		case state:
			g.states |= 1 << i
			if s != behind || i < g.b {
				g.ends |= 1 << i
			}
		}
	}
	return g
}

// slot says which state (0 for A, 1 for B) a task is of.
func (g *graph) slot(task int) int {
	if g.b > 0 && task >= g.b {
		return 1
	}
	return 0
}

func keyOf(id int) int      { return id % keys }
func keyBehind(key int) int { return key / 2 } // of state B
func groupOf(key int) int   { return key % groups }
func owner(first, key int) int {
	return first + groupOf(key)%2
}

// once is a message in a value of state A: two bits for each message, which count it.
func once(id int) uint64 { return 1 << (2 * id) }

// mix makes a value that depends on all of x and y.
func mix(x uint64, y int) uint64 {
	x = (x ^ uint64(y+1)*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	return x ^ x>>31
}

// A message travels on a link.
type message struct {
	at     attempt
	txid   int
	marker bool
	key    int
	id     int    // of the message it comes from; -1 in new values
	value  uint64 // what it adds
}

// A world is one run.
type world struct {
	config
	*graph
	r     *rand.Rand
	log   io.Writer // of the story; nil for none
	steps int

	record    record
	entries   []entry   // on their way to the record
	history   [][]int   // ids of each committed txid, from 1
	observed  []reading // by who reads for output
	attempted int       // rounds
	appointed int       // coordinators

	coordinators []*coordinator // those that have not ended; the last one is the present one
	bag          []control      // on their way, in no order
	busy         []*link        // with something on the wire

	current [maxTasks]*task
	lives   [maxTasks][]*task // who runs: the current one, and zombies
	copies  [maxTasks][]*store
	ops     []*op

	left       int // faults to come
	unreadable [splits]bool
	unlisted   [splits]bool
	corrupt    int  // tuples to come that cannot be read
	moving     int  // state task that is to move, or 0
	idle       bool // the backstop was needed
	markers    int  // most markers of one round on one link
	storeFault bool
	saw        map[string]int // what has happened, to see that a run is not idle
	wrong      string         // a claim of the rules that does not hold
}

func newWorld(c config, log io.Writer) *world {
	if c.shape == reads {
		c.fixed = c.off.has(readNewest) // T13: what is read for a write keeps previous values
	}
	w := &world{config: c, graph: newGraph(c.shape), r: rand.New(rand.NewPCG(c.seed, 2)), log: log, left: c.faults, saw: map[string]int{}}
	for i := range w.tasks {
		if w.kind[i] == state {
			w.copies[i] = []*store{{}}
		}
		w.current[i] = w.newTask(i, 1)
		w.lives[i] = []*task{w.current[i]}
	}
	w.appoint()
	return w
}

func (w *world) tell(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%6d  "+format+"\n", append([]any{w.steps}, args...)...)
	}
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.r.IntN(n) == 0 }

// life returns an incarnation that runs.
func (w *world) life(id, inc int) *task {
	for _, t := range w.lives[id] {
		if t.inc == inc {
			return t
		}
	}
	return nil
}

// step does one thing.
func (w *world) step() {
	w.steps++
	switch n := w.r.IntN(16); {
	case n < 5:
		if len(w.busy) > 0 {
			w.deliver(w.busy[w.r.IntN(len(w.busy))])
		}
	case n < 9:
		if len(w.bag) > 0 {
			i := w.r.IntN(len(w.bag))
			c := w.bag[i]
			w.bag[i] = w.bag[len(w.bag)-1]
			w.bag = w.bag[:len(w.bag)-1]
			w.receive(c)
		}
	case n < 10:
		if len(w.ops) > 0 && w.chance(2) {
			w.work(w.r.IntN(len(w.ops)))
		}
	case n < 11:
		if len(w.entries) > 0 {
			w.apply(w.r.IntN(len(w.entries)))
		}
	case n < 13:
		w.coordinate(w.coordinators[w.r.IntN(len(w.coordinators))])
	case n < 15:
		i := w.r.IntN(w.tasks)
		if w.kind[i] == spout || w.kind[i] == reader {
			w.turn(w.lives[i][w.r.IntN(len(w.lives[i]))])
		}
	default:
		if w.coordinators[len(w.coordinators)-1].over {
			w.appoint()
		}
		if w.left > 0 && w.chance(w.pace) {
			w.left--
			w.fault()
			if w.left == 0 {
				w.heal()
			}
		}
		w.observe()
	}
}

// run goes on until all input is committed, or it is stopped, or the budget is used up.
func (w *world) run() result {
	for w.steps < budget && w.wrong == "" && w.record.stopped == "" {
		if w.left == 0 && len(w.ops) == 0 && w.record.done() {
			break
		}
		w.step()
	}
	return w.judge()
}
