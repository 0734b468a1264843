package sim

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
)

// A scene is what a seed draws: a topology, what its parts do, the settings of
// the engine, the network, and the faults. Nothing is drawn later but what the
// faults hit, so that a scene can be shown before it is played.
type scene struct {
	seed      uint64
	guarantee topology.Guarantee
	own       bool   // the topology is the user's: of its parts only names and numbers are known
	parts     []part // senders come before receivers
	set       task.Settings
	net       Links
	cost      time.Duration
	wait      time.Duration // before a call that may wait
	texts     texts
	slow      bool        // somebody is a hundred times as slow as who sends to him
	last      chaos.Fault // how the run ends when endless sources have given enough
	plan      chaos.Plan
}

// act is what a bolt does with a tuple that it likes.
type act uint8

const (
	passing   act = iota // emits one tuple
	flatting             // 0 to 3
	filtering            // one of every other tuple
	counting             // one, and some more of its own in Finish
	ticking              // one, and some more of its own in Tick
	holding              // one, when it holds enough of them or is ticked
	calling              // one, when a call comes back
	inOrder              // the same, in the order of the calls
)

var actNames = [...]string{"pass", "flatmap", "filter", "count", "tick", "hold", "call", "call in order"}

func (a act) String() string { return actNames[a] }

// A part is one component.
type part struct {
	name     string
	parallel int
	streams  int
	direct   []int                     // by stream: the tasks that its direct subscriber has, 0: none; nil: of no stream
	inputs   []edge                    // none: a spout
	mourns   map[int]topology.Grouping // parts to whose dead letters it listens; then it has no inputs

	// Of a spout.
	splits  []int // messages of each; of an endless one, when it has given enough
	gates   []int // by split: messages that are not held back until all is healed; nil: all
	endless bool
	prompt  bool
	perCall int // most messages in one Next
	wait    time.Duration
	stall   time.Duration // most time in which it has nothing
	stallIn int           // one in so many calls
	again   int           // messages that it gives out again when it is opened
	queue   *queuePlan    // nil: it is a source

	// Of a bolt.
	act   act
	spend time.Duration // most time for one tuple
	least time.Duration // least time
	every time.Duration // between ticks

	hold     int  // tuples that it retains at most, or calls at the same time
	together bool // what it emits is anchored to all that it holds
}

// An edge is one subscription.
type edge struct {
	from, stream int
	grouping     topology.Grouping
	several      bool // a key is of two fields
}

func (s *scene) String() string {
	text := fmt.Sprintf("seed %d, %v, parcels of %d, pending %d, trees of %d, timeout %v, replays %d",
		s.seed, s.guarantee, s.set.ParcelSize, s.set.MaxPending, s.set.TreeSize, s.set.MessageTimeout, s.set.MaxReplays)
	if s.set.StuckAfter > 0 {
		text += fmt.Sprintf(", stuck after %v, replaced %v", s.set.StuckAfter, s.set.Replace)
	}
	text += "\n"
	text += fmt.Sprintf("  texts %+v, queued bytes %d\n", s.texts, s.set.QueuedBytes)
	for i := range s.parts {
		p := &s.parts[i]
		text += fmt.Sprintf("  %s x%d", p.name, p.parallel)
		if s.own {
			text += "\n"
			continue
		}
		if p.queue != nil {
			text += fmt.Sprintf(": %d messages, up to %d a call, %v\n", p.splits[0], p.perCall, p.queue)
			continue
		}
		if p.spout() {
			text += fmt.Sprintf(": splits of %v messages, %v before all is healed, endless %v, up to %d a call, prompt %v, nothing for up to %v one in %d, %d again\n",
				p.splits, p.gates, p.endless, p.perCall, p.prompt, p.stall, p.stallIn, p.again)
			continue
		}
		for _, e := range p.inputs {
			text += fmt.Sprintf(" <-%s.%s(%v)", s.parts[e.from].name, streamName(e.stream), e.text())
		}
		if p.mourns != nil {
			text += fmt.Sprintf(" <- dead letters %v", p.mourns)
		}
		text += fmt.Sprintf(": %v, %v to %v", p.act, p.least, p.spend)
		if p.act.retains() {
			text += fmt.Sprintf(", %d at most, together %v", p.hold, p.together)
		}
		text += "\n"
	}
	if !s.stores() {
		text += "  no store\n"
	}
	return text + "plan " + s.plan.String() + "\n"
}

func (e edge) text() string {
	if e.several {
		return e.grouping.String() + " by " + strings.Join(e.by(), ", ")
	}
	return e.grouping.String()
}

// directTasks returns how many tasks a direct tuple is for one of; 0: the stream
// is not direct.
func (p *part) directTasks(stream int) int {
	if p.direct == nil {
		return 0
	}
	return p.direct[stream]
}

func (p *part) spout() bool { return len(p.inputs) == 0 && p.mourns == nil }

func streamName(i int) string {
	if i == 0 {
		return "default"
	}
	return "side" + strconv.Itoa(i)
}

// one returns one of the choices.
func one[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// chance reports true in p of 100 cases.
func chance(r *rand.Rand, p int) bool { return r.IntN(100) < p }

// around draws a time, short ones as often as long ones.
func around(r *rand.Rand, least, most time.Duration) time.Duration {
	d := least
	for d*2 < most && r.IntN(4) > 0 {
		d *= 2
	}
	return d + time.Duration(r.Int64N(int64(d)+1))
}

// draw makes the scene of a seed.
func draw(seed uint64, o *Options) *scene {
	r := rand.New(rand.NewPCG(seed, 0x7363656e65))
	s := &scene{seed: seed}
	if chance(r, 12) {
		s.guarantee = topology.AtMostOnce
	}
	s.drawSettings(r)
	s.drawTexts(r)
	s.drawParts(r)
	s.drawQueues()
	s.fit(o.messages())
	s.drawGates()
	s.drawMourner()
	s.drawStuck()
	if o.Plan != nil {
		s.plan = *o.Plan
	} else if !o.Peaceful {
		s.drawPlan()
	}
	return s
}

func (s *scene) drawSettings(r *rand.Rand) {
	s.set = task.Settings{
		ParcelSize:     one(r, 1, 2, 3, 4, 4, 8, 16, 64, 256),
		Linger:         one(r, time.Microsecond, 100*time.Microsecond, time.Millisecond, 20*time.Millisecond),
		MaxPending:     one(r, 1, 2, 8, 50, 500, 500, 65536),
		PendingBytes:   one(r, 200, 20_000, 64<<20, 64<<20),
		TreeSize:       one(r, 1, 2, 8, 64, 256, 256),
		MessageTimeout: one(r, time.Second, time.Second, 5*time.Second, 30*time.Second),
		MaxReplays:     one(r, 0, 1, 2, 8, 8, -1),
		AlwaysEncode:   chance(r, 25),
		Began:          time.Unix(1_000_000_000, 0).UTC(),
		Logger:         slog.New(slog.DiscardHandler),
	}
	s.cost = one[time.Duration](r, -1, 5*time.Microsecond, 50*time.Microsecond, 500*time.Microsecond)
	s.net = one(r,
		Links{},
		Links{Quick: -1, LateEvery: -1, FreezeEvery: -1},
		Links{Quick: 500 * time.Microsecond, Late: 50 * time.Millisecond, LateEvery: 10},
		Links{LateEvery: 3, FreezeEvery: 50},
		Links{Quick: time.Microsecond, Late: 100 * time.Millisecond, LateEvery: 200, Freeze: 100 * time.Millisecond, FreezeEvery: 100},
	)
}

func (s *scene) drawBolt(r *rand.Rand, p *part) {
	p.act = act(r.IntN(len(actNames)+1) % len(actNames))
	p.spend = one[time.Duration](r, 0, 0, time.Microsecond, 100*time.Microsecond, 2*time.Millisecond, 30*time.Millisecond, 30*time.Millisecond)
	if p.act == ticking {
		p.every = around(r, 10*time.Millisecond, time.Second)
	}
	s.drawHold(r, p)
}

// A place is where and as what a tuple is executed.
type place struct {
	part int
	task int // in its part; anyTask unless the tuple alone decides
	id   uint64
}

const anyTask = -1

// An arrival is a place, and the edge on which a tuple comes there.
type arrival struct {
	place
	on edge
}

// descend returns where everything that comes of a tuple is executed. It is a
// pure function of the scene: what a bolt emits depends on nothing else than the
// tuple and, if each task gets one, the task.
func (s *scene) descend(from int, id uint64, stream int) (all []arrival) {
	type sent struct {
		from, stream int
		id           uint64
	}
	todo := []sent{{from, stream, id}}
	for len(todo) > 0 {
		t := todo[0]
		todo = todo[1:]
		for to := range s.parts {
			for _, e := range s.parts[to].inputs {
				if e.from != t.from || e.stream != t.stream {
					continue
				}
				for _, k := range s.tasks(e, to, t.id) {
					at := place{to, k, t.id}
					all = append(all, arrival{at, e})
					for n := range s.children(at) {
						c := child(at, n)
						todo = append(todo, sent{to, streamOf(c, s.parts[to].streams), c})
					}
				}
			}
		}
	}
	return all
}

// decides reports whether a tuple alone decides which tasks get it.
func (e edge) decides() bool {
	return e.grouping == topology.All || e.grouping == topology.Direct || e.grouping == topology.Custom
}

// tasks returns which tasks of a part get a tuple: those of a custom grouping are
// none, some or all of them.
func (s *scene) tasks(e edge, to int, id uint64) (all []int) {
	n := s.parts[to].parallel
	switch e.grouping {
	case topology.Direct:
		return []int{directTask(id, n)}
	case topology.All, topology.Custom:
		for k := range n {
			if e.grouping == topology.All || mix(id, uint64(k), uint64(to))&1 != 0 {
				all = append(all, k)
			}
		}
		return all
	}
	return []int{anyTask}
}

func directTask(id uint64, tasks int) int { return int(mix(id, 'd', 1) % uint64(tasks)) }

// children returns how many tuples a bolt emits for a tuple.
func (s *scene) children(at place) int {
	p := &s.parts[at.part]
	switch {
	case p.streams == 0:
		return 0
	case p.act == flatting:
		return int(mix(at.id, 'f', 0) % 4)
	case p.act == filtering:
		return int(mix(at.id, 'f', 1) % 2)
	}
	return 1
}

func child(at place, n int) uint64 {
	return mix(at.id, uint64(at.part+1)<<32|uint64(at.task+1), uint64(n))
}

func streamOf(id uint64, streams int) int {
	if streams == 0 {
		return 0
	}
	return int(mix(id, 's', 0) % uint64(streams))
}

// mix makes one number of three.
func mix(a, b, c uint64) uint64 {
	x := uint64(0)
	for _, y := range [...]uint64{a, b, c} {
		x = (x ^ y) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// topology declares the parts, which keep their books in l.
func (s *scene) topology(rec *record) *topology.Topology {
	return topology.New("simulated", func(b *topology.Builder) {
		b.Guarantee(s.guarantee)
		declared := make([]*topology.Component, len(s.parts))
		for i := range s.parts {
			p := &s.parts[i]
			var c *topology.Component
			if p.queue != nil {
				c = b.Queue(p.name, rec.queues[i].queue)
			} else if p.spout() {
				c = b.Spout(p.name, rec.source(i))
			} else {
				subs := s.mournings(p, declared)
				for _, e := range p.inputs {
					from := declared[e.from].Stream(streamName(e.stream))
					switch e.grouping {
					case topology.Shuffle:
						subs = append(subs, from.Shuffle())
					case topology.LocalOrShuffle:
						subs = append(subs, from.LocalOrShuffle())
					case topology.Fields:
						subs = append(subs, from.By(e.by()...))
					case topology.All:
						subs = append(subs, from.All())
					case topology.Global:
						subs = append(subs, from.Global())
					case topology.PartialKey:
						subs = append(subs, from.PartialBy(e.by()...))
					case topology.None:
						subs = append(subs, from.None())
					case topology.Direct:
						subs = append(subs, from.Direct())
					case topology.Custom:
						subs = append(subs, from.Custom("drawn", rec.chooser(e, i)))
					}
				}
				c = b.Bolt(p.name, rec.factory(i), subs...)
				if p.every > 0 {
					c.Every(p.every)
				}
				if p.act.retains() && !s.plans(chaos.Forget, p) {
					c.Holds(mostTime)
				}
			}
			for k := range p.streams {
				c.EmitsTo(streamName(k), fields...)
			}
			declared[i] = c.Parallel(p.parallel)
		}
	})
}
