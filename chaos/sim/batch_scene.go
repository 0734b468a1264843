package sim

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
)

// A batchScene is what a seed draws of an exactly-once topology: its parts, settings, the
// network, and what is done to it.
type batchScene struct {
	seed   uint64
	mood   string
	faults bool
	parts  []batchPart   // senders before receivers
	flood  bool          // more comes at once than there is room for
	span   time.Duration // over which the sources give what they do not hold back
	keys   int
	set    task.Settings
	net    Links
	cost   time.Duration
	wait   time.Duration // before a call that may wait
	disk   time.Duration // most, until what is written is durable
	late   time.Duration // most, that one call in four waits longer while things go wrong
	deeds  []batchDeed
}

// A batchKind is what a part does with what it gets.
type batchKind uint8

const (
	spouting  batchKind = iota
	handing             // each tuple on
	copying             // 0 to 2 of each
	leaving             // one of every other one out
	gathering           // one for each key, when the batch is complete
	looking             // each on, with what a state has of its key
	writing             // into a state, and on when that is written
)

var batchKindNames = [...]string{"spout", "hand on", "copy", "leave out", "gather", "look", "keep"}

// A batchPart is one component.
type batchPart struct {
	name     string
	kind     batchKind
	parallel int
	inputs   []batchEdge
	rekey    bool // what it emits has keys of its own
	reads    int  // the state that it reads for each tuple; -1: none
	plain    bool // a state without values before (T13)
	spend    time.Duration

	// Of a spout.
	splits []int // messages of each
	gates  []int // those that are not held back until all is healed
	replay topology.Replay
	most   int // messages in a call of Next
	pause  time.Duration
	prompt bool
}

type batchEdge struct {
	from     int
	grouping topology.Grouping
	settled  bool
}

func (p *batchPart) spout() bool { return p.kind == spouting }
func (p *batchPart) state() bool { return p.kind == writing }

func drawBatch(seed uint64, o *BatchOptions) *batchScene {
	r := rand.New(rand.NewPCG(seed, 0x62617463686573))
	s := &batchScene{seed: seed, keys: one(r, 1, 3, 10, 40)}
	mood := batchMoods[[]int{0, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 7, 7}[r.IntN(13)]]
	s.mood, s.faults = mood.name, mood.kinds != nil
	s.set = task.Settings{
		ParcelSize: one(r, 1, 2, 4, 8, 64), Linger: one(r, 100*time.Microsecond, time.Millisecond, 10*time.Millisecond),
		MaxPending: 1000, PendingBytes: 64 << 20, QueuedBytes: 64 << 20, TreeSize: 64,
		MessageTimeout: one(r, time.Second, 3*time.Second, 10*time.Second), MaxReplays: one(r, -1, 8, 0), AlwaysEncode: chance(r, 25),
		BatchSize: one(r, 1, 4, 10, 30), BatchInterval: one(r, 2*time.Millisecond, 20*time.Millisecond, 200*time.Millisecond), MaxBatches: one(r, 1, 2, 3, 3, 5),
		Began: time.Unix(1_000_000_000, 0).UTC(), Logger: slog.New(slog.DiscardHandler),
	}
	if s.flood = chance(r, 20); s.flood {
		s.set.BatchSize, s.set.BatchInterval, s.set.ParcelSize = one(r, 60, 150), 200*time.Millisecond, one(r, 1, 2, 4, 8)
	}
	if !s.flood {
		s.span = one[time.Duration](r, 0, 2*time.Second, 5*time.Second, 8*time.Second)
	}
	s.cost = one[time.Duration](r, -1, 5*time.Microsecond, 50*time.Microsecond)
	s.net = one(r, Links{}, Links{Quick: -1, LateEvery: -1, FreezeEvery: -1}, Links{Quick: 500 * time.Microsecond, Late: 20 * time.Millisecond, LateEvery: 20}, Links{LateEvery: 3, FreezeEvery: 50})
	s.wait = one[time.Duration](r, 0, time.Millisecond, 20*time.Millisecond)
	s.disk = one(r, 100*time.Microsecond, time.Millisecond, 20*time.Millisecond, 100*time.Millisecond)
	s.late = one(r, 0, 20*time.Millisecond, 500*time.Millisecond)
	s.drawParts(r)
	for range len(mood.kinds) {
		if len(s.deeds) > 0 && chance(r, 30) {
			break
		}
		s.deeds = append(s.deeds, s.drawDeed(r, one(r, mood.kinds...)))
	}
	if losses := rand.New(rand.NewPCG(seed, 0x6c6f73657273)); losses.IntN(10) == 0 {
		s.drawLosses(losses)
	}
	if o.only {
		s.deeds = slices.Clone(o.deeds)
		s.faults = s.faults || len(s.deeds) > 0
	}
	if s.does("hang") {
		// A store is rarely slower than that: one that often is ends a run, as it should,
		// after six lives in a row that it has taken.
		s.set.StuckAfter, s.set.Replace = 200*time.Millisecond, true
		s.late = min(s.late, 220*time.Millisecond)
	}
	return s
}

// does reports whether a kind of deed is among those of the scene.
func (s *batchScene) does(kind string) bool {
	return slices.ContainsFunc(s.deeds, func(d batchDeed) bool { return d.kind == kind })
}

func (s *batchScene) drawParts(r *rand.Rand) {
	spouts := one(r, 1, 1, 1, 2, 2, 3)
	messages := one(r, 40, 100, 200) / spouts
	if s.flood {
		messages = 600 / spouts
	}
	for k := range spouts {
		s.parts = append(s.parts, s.drawBatchSpout(r, k, messages))
	}
	bolts := one(r, 0, 1, 1, 2, 2, 3)
	for k := range bolts {
		p := batchPart{name: "b" + strconv.Itoa(k), kind: one(r, handing, handing, copying, leaving, gathering, gathering), parallel: 1 + r.IntN(3), reads: -1}
		p.rekey = p.kind != gathering && chance(r, 40)
		p.spend = one[time.Duration](r, 0, 0, 100*time.Microsecond, 2*time.Millisecond, 15*time.Millisecond)
		if s.flood {
			p.spend = one(r, 500*time.Microsecond, 2*time.Millisecond, 4*time.Millisecond)
		}
		s.listen(r, &p, 1+r.IntN(2))
		s.parts = append(s.parts, p)
	}
	s.drawState(r, "k0", false)
	switch r.IntN(6) {
	case 0, 1: // one state behind another
		s.drawState(r, "k1", true)
	case 2: // two of their own
		s.drawState(r, "k1", false)
	case 3, 4: // one that is fed by what is read of the other
		s.drawReader(r)
	}
	s.connect()
}

func (s *batchScene) drawBatchSpout(r *rand.Rand, k, messages int) batchPart {
	p := batchPart{
		name: "s" + strconv.Itoa(k), parallel: 1 + r.IntN(3), reads: -1, replay: one(r, topology.Opaque, topology.Opaque, topology.Transactional),
		most: one(r, 1, 3, 10), pause: around(r, 200*time.Microsecond, 100*time.Millisecond), prompt: chance(r, 40),
	}
	if s.flood {
		p.most, p.pause = 60, around(r, 200*time.Microsecond, 20*time.Millisecond)
	}
	if p.prompt {
		p.pause = min(p.pause, 2*time.Millisecond)
	}
	n := one(r, 1, 2, 2, 4)
	late := k > 0 && chance(r, 25) // it has nothing at first
	if k > 0 && chance(r, 15) {
		n = 0 // or ever
	}
	for range n {
		m := r.IntN(2*messages/n + 1)
		gate := m - m/4
		if late {
			gate = 0
		}
		p.splits, p.gates = append(p.splits, m), append(p.gates, gate)
	}
	return p
}

// listen has a part listen to so many others that nobody listens to, or to any if they
// are too few.
func (s *batchScene) listen(r *rand.Rand, p *batchPart, n int) {
	for range n {
		from := r.IntN(len(s.parts))
		if alone := s.unheard(); len(alone) > 0 && chance(r, 80) {
			from = one(r, alone...)
		}
		if !slices.ContainsFunc(p.inputs, func(e batchEdge) bool { return e.from == from }) {
			p.inputs = append(p.inputs, batchEdge{from: from, grouping: s.batchGrouping(r, p)})
		}
	}
}

func (s *batchScene) batchGrouping(r *rand.Rand, p *batchPart) topology.Grouping {
	switch {
	case p.state():
		return topology.Fields
	case p.kind == gathering && chance(r, 60):
		return topology.Fields
	}
	return one(r, topology.Shuffle, topology.Shuffle, topology.LocalOrShuffle, topology.Fields, topology.Global)
}

// unheard returns who is heard by nobody, but for states.
func (s *batchScene) unheard() (alone []int) {
	for i := range s.parts {
		if !s.parts[i].state() && !s.heard(i) {
			alone = append(alone, i)
		}
	}
	return alone
}

func (s *batchScene) heard(from int) bool {
	return slices.ContainsFunc(s.parts, func(p batchPart) bool {
		return slices.ContainsFunc(p.inputs, func(e batchEdge) bool { return e.from == from })
	})
}

func (s *batchScene) drawState(r *rand.Rand, name string, behind bool) {
	p := batchPart{name: name, kind: writing, parallel: 1 + r.IntN(3), reads: -1}
	p.spend = one[time.Duration](r, 0, 0, 500*time.Microsecond, 10*time.Millisecond)
	if s.flood {
		p.spend = one(r, 500*time.Microsecond, 2*time.Millisecond, 4*time.Millisecond)
	}
	if behind {
		p.inputs = append(p.inputs, batchEdge{from: len(s.parts) - 1, grouping: topology.Fields})
	}
	if !behind || chance(r, 30) {
		s.listen(r, &p, 1+r.IntN(2))
	}
	// Without values before it takes spouts whose batches come again as they were.
	p.plain = chance(r, 40) && !slices.ContainsFunc(s.parts, func(q batchPart) bool { return q.spout() && q.replay != topology.Transactional })
	s.parts = append(s.parts, p)
}

// drawReader adds what reads the state before it, and feeds a second one: that itself, or
// a bolt before it.
func (s *batchScene) drawReader(r *rand.Rand) {
	of := len(s.parts) - 1
	s.parts[of].plain = false // it may not be read for a write (T13)
	p := batchPart{name: "r0", kind: looking, parallel: 1 + r.IntN(2), reads: of}
	if chance(r, 40) {
		p.name, p.kind = "k1", writing
	}
	s.listen(r, &p, 1)
	if chance(r, 25) && p.inputs[0].from != of { // it also hears what it reads
		p.inputs = append(p.inputs, batchEdge{from: of, grouping: topology.Fields})
	}
	for i := range p.inputs {
		p.inputs[i].settled = true
	}
	s.parts = append(s.parts, p)
	if p.kind == looking {
		s.parts = append(s.parts, batchPart{name: "k1", kind: writing, parallel: 1 + r.IntN(3), reads: -1, inputs: []batchEdge{{from: len(s.parts) - 1, grouping: topology.Fields}}})
	}
}

// connect has the last state hear whom nobody hears.
func (s *batchScene) connect() {
	for _, from := range s.unheard() {
		to := slices.IndexFunc(s.parts, func(p batchPart) bool { return p.state() })
		if from > to {
			continue // it is a reader behind it, with a state of its own
		}
		p := &s.parts[to]
		p.inputs = append(p.inputs, batchEdge{from: from, grouping: topology.Fields})
	}
}

func (s *batchScene) String() string {
	text := fmt.Sprintf("seed %d, %s, %d keys, parcels of %d, batches of %d, of %v, %d ahead, timeout %v, replays %d, encoded %v, wait %v, disk %v, late %v, over %v\n",
		s.seed, s.mood, s.keys, s.set.ParcelSize, s.set.BatchSize, s.set.BatchInterval, s.set.MaxBatches, s.set.MessageTimeout, s.set.MaxReplays, s.set.AlwaysEncode, s.wait, s.disk, s.late, s.span)
	for i := range s.parts {
		p := &s.parts[i]
		text += fmt.Sprintf("  %s x%d", p.name, p.parallel)
		if p.spout() {
			text += fmt.Sprintf(": %v, splits of %v, %v before all is healed, up to %d a call of %v, prompt %v\n", p.replay, p.splits, p.gates, p.most, p.pause, p.prompt)
			continue
		}
		for _, e := range p.inputs {
			text += fmt.Sprintf(" <-%s (%v", s.parts[e.from].name, e.grouping)
			if e.settled {
				text += ", settled"
			}
			text += ")"
		}
		text += ": " + batchKindNames[p.kind]
		if p.rekey {
			text += " with other keys"
		}
		if p.plain {
			text += " without values before"
		}
		if p.reads >= 0 {
			text += ", reads " + s.parts[p.reads].name
		}
		text += fmt.Sprintf(", %v\n", p.spend)
	}
	var deeds []string
	for _, d := range s.deeds {
		deeds = append(deeds, d.String())
	}
	return text + "deeds " + strings.Join(deeds, "; ") + "\n"
}

// key is the key of a tuple.
func (s *batchScene) key(id uint64) string {
	return strconv.FormatUint(mix(id, 'k', 0)%uint64(s.keys), 10)
}

// next returns the id of what comes at a part of another one.
func (s *batchScene) next(part int, id uint64, n int) uint64 {
	return mix(id, uint64(part+1)<<32, uint64(n))
}

// copies are how many tuples a part emits for one.
func (s *batchScene) copies(part int, id uint64) int {
	switch s.parts[part].kind {
	case copying:
		return int(mix(id, 'f', 0) % 3)
	case leaving:
		return int(mix(id, 'f', 1) % 2)
	}
	return 1
}

// A batchClaim says what number comes with an id: how many ids a state has of a key,
// before the batch or behind it. The zero value says that it is 0.
type batchClaim struct {
	state  int // +1
	key    string
	behind bool
}

// descend calls f for each id that comes to a state of one.
func (s *batchScene) descend(from int, key string, id uint64, claim batchClaim, f func(state int, key string, id uint64, claim batchClaim)) {
	for to := range s.parts {
		p := &s.parts[to]
		for _, e := range p.inputs {
			if e.from != from {
				continue
			}
			claim := claim
			if p.reads >= 0 {
				claim = batchClaim{p.reads + 1, key, false}
			}
			if p.state() {
				f(to, key, id, claim)
				claim = batchClaim{to + 1, key, true}
			}
			for n := range s.copies(to, id) {
				c := s.next(to, id, n)
				k := key
				if p.rekey {
					k = s.key(c)
				}
				s.descend(to, k, c, claim, f)
			}
		}
	}
}
