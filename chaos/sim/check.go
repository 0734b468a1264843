package sim

import (
	gocontext "context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A record is what really happened in a run: it is kept by the simulated sources
// and bolts themselves, and no counter of Egret's has a part in it.
//
// What an actor did after it was killed, in the rest of its call, did not happen:
// see moment.
type record struct {
	w       *World
	adv     *adversary
	scene   *scene
	plan    *topology.Plan
	ms      []*metrics.Task
	edges   *edgeBook
	store   *simStore      // nil: nothing survives
	splits  [][]*splitBook // by part
	queues  []*queueBook   // by part; nil: no queue
	roots   map[uint64]*root
	all     []*root // in the order in which they were made
	places  map[place]*execution
	keys    map[routeKey][]int // the tasks that a key has come to
	heard   map[[2]int64]int64 // the last number that has come of an incarnation's on a stream
	bolts   []*simBolt
	deaths  []death
	readers int    // open
	calls   uint64 // of Next
	bad     *Violation
	checks  map[chaos.Checker]*checked
	// features are what there was in the run that seeds are to have.
	features map[string]bool
	trees    treeBooks
	pairs    creditBook
	outs     *outBook
	blames   map[tuple.TaskID]time.Duration // the last hang of each task
	progress progress
	kept     []int64 // by component: mostKept, once it was asked

	// What happened that explains more than the usual.
	kills, crashes, panics, broken int
	harm                           map[*proc]bool // by a panic
	forgot                         int            // entries of reports that were dropped
	hung                           int            // calls
	hangsOf                        []hangBook

	twist func(b *simBolt, row []any) // of tests: changes what a bolt emits

	drained, stopped bool // the run was asked to end before its input had ended
	drainedAt        time.Duration
	short            bool // a drain had a deadline
	drainFor         time.Duration
	jumps            []jump
	deaf             bool          // a Commit may have been left behind
	took             time.Duration // until its end
	halved           bool          // and has ended with messages open
}

// A splitBook is one split of a source.
type splitBook struct {
	part, index int
	messages    int // of an endless one, when it has given enough
	gate        int // messages that are not held back until all is healed
	endless     bool
	roots       []*root // those that were read
	onces       map[string]bool
	below       int // everything before was found to be settled
	commits     int // the last position that Commit was told
}

func (b *splitBook) number() uint64 { return uint64(b.part)<<32 | uint64(b.index) }

// over reports whether a reader at message n is at the end.
func (b *splitBook) over(n int) bool { return n >= b.messages && !b.endless }

func (b *splitBook) String() string { return fmt.Sprintf("split %d of part %d", b.index, b.part) }

// once reports true the first time.
func (b *splitBook) once(what string, n int) bool {
	k := what + strconv.Itoa(n)
	if b.onces[k] {
		return false
	}
	b.onces[k] = true
	return true
}

// A root is a message, of a spout or of a bolt's own, and all that comes of it.
type root struct {
	id       uint64
	part     int
	split    *splitBook // that it was read from; nil: none
	index    int        // in it
	name     string
	stream   int
	all      []*execution
	delivery *delivery // nil: not of a queue
	owner    *proc     // of a bolt's own message: the incarnation, with which it dies
	born     time.Duration

	reads                int // each may become an attempt
	attempts             int
	causes               int   // for attempts that were not made yet
	reader               *proc // that has read or made it last
	openIn               *proc // whose open messages it is one of
	verdicts             int
	lost                 int
	timedOut             int
	fails                int // tuples that were refused or panicked
	failed               int // verdicts
	rejects              int
	strays               int // rejects by a grouping that has chosen a task that is not there
	dead                 []moment
	letters              letterBook
	replays              int // of its dead letter
	replayed             int // of those, that are done
	acked                bool
	accidents            int   // panics with it in hand
	held                 int   // tuples that were retained
	fresh                bool  // first read when all was healed, and not done yet
	kin                  *root // to whose tuples these are anchored too; nil: see head
	kinFails, kinRejects int   // of all kin, if this is the head
	kinFailed            time.Duration
	kinHangs             int
	kinForgets           int
	death                int // by which it was lost last; -1: none that is not made good
}

// An execution is one tuple's at one place.
type execution struct {
	arrival
	root      *root
	tries     int
	fails     int
	accidents int // panics with it, each in an attempt of its own
	hangs     int
	oks       []moment
}

// worst is how often bolts have died of the worst tuple of a message.
func (m *root) worst() (n int) {
	for _, e := range m.all {
		n = max(n, e.accidents)
	}
	return n
}

// A moment is when an actor did something, by its own clock. It was killed before
// it came to that if its silence is earlier.
type moment struct {
	at time.Duration
	by *proc
}

func (m moment) happened(now time.Duration) bool {
	return m.at != never && m.at <= now && m.at <= min(m.by.silent, m.by.left)
}

// moment is now, in the call of a proc; never, if that was killed in this call.
func (rec *record) moment(p *proc) moment {
	if p.state == ended && p.silent != never {
		return moment{never, p}
	}
	return moment{rec.w.Now(), p}
}

func happened(ms []moment, now time.Duration) bool {
	return slices.ContainsFunc(ms, func(m moment) bool { return m.happened(now) })
}

// A death is the end of an incarnation, and until when its loss was felt.
type death struct {
	task       string
	at, mended time.Duration
}

// A Violation is an invariant that did not hold.
type Violation struct {
	Invariant chaos.Checker `json:"invariant"`
	What      string        `json:"what"`
	At        time.Duration `json:"at_ns"` // in made-up time
}

func (v *Violation) String() string { return fmt.Sprintf("%s: %s (at %v)", v.Invariant, v.What, v.At) }

func newRecord(w *World, s *scene) *record {
	rec := &record{
		w: w, scene: s,
		roots: map[uint64]*root{}, places: map[place]*execution{}, keys: map[routeKey][]int{}, heard: map[[2]int64]int64{}, harm: map[*proc]bool{},
		checks: map[chaos.Checker]*checked{}, features: map[string]bool{},
		trees: treeBooks{open: map[tuple.TreeID]*openTree{}, ended: map[tuple.TreeID]bool{}, pend: map[*proc]*pending{}}, pairs: newCreditBook(),
		blames: map[tuple.TaskID]time.Duration{},
	}
	rec.outs = newOutBook(rec)
	for i := range s.parts {
		rec.splits, rec.queues = append(rec.splits, nil), append(rec.queues, nil)
		if s.parts[i].queue != nil {
			rec.queues[i] = rec.newQueueBook(i)
			continue
		}
		for k, n := range s.parts[i].splits {
			b := &splitBook{part: i, index: k, messages: n, gate: n, endless: s.parts[i].endless, onces: map[string]bool{}}
			if gates := s.parts[i].gates; gates != nil {
				b.gate = gates[k]
			}
			rec.splits[i] = append(rec.splits[i], b)
		}
	}
	return rec
}

// read returns message n of a split.
func (rec *record) read(b *splitBook, n int) *root {
	for len(b.roots) <= n {
		k := len(b.roots)
		id := mix(uint64(b.part), uint64(b.index), uint64(k))
		name := fmt.Sprintf("%s message %d of split %d", rec.scene.parts[b.part].name, k, b.index)
		m := rec.add(b.part, id, name)
		m.split, m.index = b, k
		b.roots = append(b.roots, m)
	}
	return b.roots[n]
}

func (rec *record) add(part int, id uint64, name string) *root {
	m := &root{id: id, part: part, name: name, stream: streamOf(id, rec.scene.parts[part].streams), death: -1}
	for _, at := range rec.scene.descend(part, id, m.stream) {
		e := &execution{arrival: at, root: m}
		rec.places[at.place] = e
		m.all = append(m.all, e)
	}
	rec.roots[id] = m
	rec.all = append(rec.all, m)
	return m
}

// readFrom books that a message was read, or made, by a life that may emit it once.
func (rec *record) readFrom(m *root, by *proc) {
	if m.reads++; m.reads == 1 {
		rec.progress.read(m)
		if rec.scene.guarantee == topology.AtMostOnce && len(m.all) == 0 {
			rec.progress.settled(m, rec.w.Now())
		}
	}
	if m.reader != by {
		m.causes, m.reader = 0, by // what another life has read of it is nothing to this one
	}
	m.causes++
}

// own makes a message of a bolt's own.
func (rec *record) own(b *simBolt) *root {
	id := mix(uint64(b.number), 'o', uint64(len(rec.all)))
	m := rec.add(b.part, id, fmt.Sprintf("own message of %s", b.name()))
	m.owner, m.born = b.proc, rec.w.Now()
	rec.readFrom(m, b.proc)
	return m
}

// begin books that a tuple is about to be executed, and checks how it came.
func (rec *record) begin(b *simBolt, in tuple.Tuple) *execution {
	rec.check(chaos.Routing)
	rec.taken(b)
	rec.outs.mayGoOn(b, "executes")
	s, p := rec.scene, &rec.scene.parts[b.part]
	for _, e := range p.inputs {
		if s.parts[e.from].name != in.Component() || streamName(e.stream) != in.Stream() {
			continue
		}
		at := place{b.part, anyTask, in.Uint64("id")}
		if e.decides() {
			at.task = b.task
		}
		b.checkRoute(e, at.id)
		x := rec.places[at]
		if x != nil {
			rec.checkLate(b, in, x.root)
			b.checkOrder(e, in, x.root)
		}
		if x == nil || x.root.id != in.Uint64("root") {
			rec.violate(chaos.Routing, "%s gets a tuple that nothing has emitted", b.name())
			return nil
		}
		if !s.intact(in) && rec.twist == nil {
			rec.violate(chaos.Routing, "%s gets a tuple of %s with other values than were emitted: %v", b.name(), x.root.name, in.AppendValues(nil))
		}
		if !b.prepared || b.closed > 0 {
			rec.violate(chaos.Routing, "%s executes before Prepare or after Close", b.name())
		}
		rec.check(chaos.Finishes)
		if b.finished > 0 && rec.kills+rec.panics == 0 {
			rec.violate(chaos.Finishes, "%s executes a tuple after Finish, and nothing has died", b.name())
		}
		x.tries++
		if s.guarantee == topology.AtMostOnce {
			rec.progress.settled(x.root, rec.w.Now()) // nobody says more
		}
		return x
	}
	rec.violate(chaos.Routing, "%s gets a tuple of %s.%s, to which it does not subscribe", b.name(), in.Component(), in.Stream())
	return nil
}

// missing returns an execution that was to come of a message and has not
// succeeded by now, or nil.
func (m *root) missing(now time.Duration) *execution {
	for _, e := range m.all {
		if !happened(e.oks, now) {
			return e
		}
	}
	return nil
}

func (rec *record) where(e *execution) string {
	name := rec.scene.parts[e.part].name
	if e.task != anyTask {
		name += "/" + strconv.Itoa(e.task)
	}
	return fmt.Sprintf("its tuple %016x at %s (tried %d times, refused %d)", e.id, name, e.tries, e.fails)
}

// passed checks that all before a position may be forgotten.
func (rec *record) passed(b *splitBook, n int, how string) {
	rec.check(chaos.Positions)
	now := rec.w.Now()
	for ; b.below < n; b.below++ {
		if rec.scene.guarantee == topology.AtMostOnce {
			continue
		}
		if b.below >= len(b.roots) {
			rec.violate(chaos.Positions, "%v is %s %d, but only %d of it were read", b, how, n, len(b.roots))
			return
		}
		m := b.roots[b.below]
		e := m.missing(now)
		switch dead := happened(m.dead, now); {
		case e != nil && !dead:
			rec.violate(chaos.Positions, "%v is %s %d, but %s is neither done nor dead: %s is missing", b, how, n, m.name, rec.where(e))
			return
		case e != nil && !rec.told(m):
			rec.violate(chaos.Positions, "%v is %s %d, but %s is dead and nobody has heard of its letter", b, how, n, m.name)
			return
		}
	}
}

// committed checks what Commit is told. Only a dead incarnation's Commit may come
// late, and only the loss of a machine can lose what was committed.
func (rec *record) committed(b *splitBook, n int) {
	again := rec.kills+rec.panics == 0 && n == b.commits
	back := rec.crashes == 0 && rec.w.running.state == running && n < b.commits
	if again || back {
		rec.violate(chaos.Positions, "%v is committed at %d after %d", b, n, b.commits)
	}
	b.commits = max(n, b.commits)
}

// opened checks that a reader goes on from the last position that was committed.
// The news of it can be lost with a machine only.
func (rec *record) opened(b *splitBook, n int) {
	rec.check(chaos.Positions)
	if n < b.commits && rec.crashes == 0 && rec.w.running.state == running {
		rec.violate(chaos.Positions, "%v is opened at %d, and was committed at %d", b, n, b.commits)
	}
}

// verdict checks what the engine thinks of a tree.
func (rec *record) verdict(v *task.Verdict) {
	now := rec.w.Now()
	t := rec.ended(v)
	bad := map[int]acker.Fail{}
	for _, f := range v.Fails {
		bad[int(f.Index)] = f
	}
	defer rec.edges.forget(v.Tree)
	for i := range v.N {
		s, cells := v.Batch.Message(v.First + i)
		if isLetter(rec.plan.Node(v.Tree.Task).Streams[s.Stream].Stream) {
			rec.letterVerdict(t, v, i, cells, s.Kinds, bad)
			continue
		}
		m := rec.message(v.Tree.Task, v.Batch, v.First+i)
		m.verdicts++
		if m.delivery != nil {
			rec.closed(m) // it is answered, whatever has become of it
		}
		f, failed := bad[i]
		if v.Batch.Split >= 0 && (failed || v.Outcome != acker.Done) {
			m.causes++
		}
		if failed && f.Class == acker.Hung {
			rec.check(chaos.Hangs)
			if rec.hung == 0 {
				rec.violate(chaos.Hangs, "%s is a suspect (%s), and nothing has hung", m.name, f.Err)
			}
			if v.Outcome == acker.Done {
				continue
			}
		} else if failed {
			rec.refused(t, m, f.Err)
			continue
		}
		switch v.Outcome {
		case acker.Done:
			rec.check(chaos.Acks)
			if e := m.missing(now); e != nil {
				rec.violate(chaos.Acks, "%s is acked, but %s is missing", m.name, rec.where(e))
			}
			m.acked = true
			rec.closed(m)
			rec.progress.settled(m, now)
			if v.Batch.Split < 0 {
				m.replayed++
			}
			rec.mended(m)
		case acker.Lost:
			m.lost++
			m.death = len(rec.deaths) - 1
			rec.twin(chaos.Losses)
			rec.check(chaos.Losses)
			if !rec.edges.mayBeLost(v.Tree) {
				rec.violate(chaos.Losses, "%s is lost, but no tuple of its tree %v can have gone to a life that is over", m.name, v.Tree)
			}
		case acker.TimedOut:
			m.timedOut++
			rec.notLost(t, v, m)
			rec.timedOut(t, v, m)
		}
	}
}

// refused checks that a message that has failed was refused: since it was emitted,
// and each failure by a refusal of its own.
func (rec *record) refused(t *openTree, m *root, err string) {
	rec.check(chaos.Failures)
	head := m.head()
	m.failed++
	switch {
	case head.kinFails == 0:
		rec.violate(chaos.Failures, "%s has failed (%s), but nobody has refused a tuple of it", m.name, err)
	case m.failed > head.kinFails:
		rec.violate(chaos.Failures, "%s has failed %d times (%s), but only %d tuples of it were refused", m.name, m.failed, err, head.kinFails)
	case head.kinFailed < t.at-turnSlack:
		rec.violate(chaos.Failures, "%s has failed (%s), but nobody has refused a tuple of it since it was emitted at %v", m.name, err, t.at)
	}
}

// mended books that a message has come through after a loss.
func (rec *record) mended(m *root) {
	if m.death >= 0 {
		d := &rec.deaths[m.death]
		d.mended = max(d.mended, rec.w.Now())
		m.death = -1
	}
}

// died books the end of an incarnation.
func (rec *record) died(task string) {
	rec.deaths = append(rec.deaths, death{task: task, at: rec.w.Now()})
}

// panicked books a panic of a simulated part, whose actor ends by it.
func (rec *record) panicked(p *proc) {
	rec.panics++
	rec.harm[p] = true
	rec.died(p.ref.(address).name)
}

// event checks what people are told.
func (rec *record) event(e task.Event) {
	switch e := e.(type) {
	case *task.DeadLetter:
		if isLetter(e.Stream) {
			if rec.store == nil {
				rec.letterDead(e, rec.w.running)
			} else if m := rec.letterRoot(e.Values); !happened(m.letters.dead, rec.w.Now()) {
				rec.violate(chaos.DeadLetters, "the letter of %s is told to be dead and is not stored", m.name)
			}
			break
		}
		m := rec.roots[e.Values[0].Uint64()]
		if rec.store == nil {
			m.dead = append(m.dead, moment{rec.w.Now(), rec.w.running})
		} else if !happened(m.dead, rec.w.Now()) {
			rec.violate(chaos.DeadLetters, "%s is told to be dead and is not stored", m.name)
		}
		rec.check(chaos.DeadLetters)
		most := rec.scene.set.MaxReplays
		if strings.HasPrefix(e.Err, "hung ") {
			rec.hungDead(m, e.Err)
		} else if head := m.head(); head.kinRejects == 0 && (most < 0 || head.kinFails <= most) {
			rec.violate(chaos.DeadLetters, "%s is dead, but was refused only %d times and never rejected: %s", m.name, m.fails, e.Err)
		}
		rec.closed(m)
		rec.progress.settled(m, rec.w.Now())
		rec.mended(m)
	case *task.Died:
		rec.check(chaos.Panics)
		p, _ := e.Err.(*task.PanicError)
		switch {
		case p != nil && p.Value != panicText:
			rec.violate(chaos.Panics, "%s: %v\n%s", e.Task, p.Value, p.Stack)
		case p != nil && rec.panics+rec.broken == 0, p == nil && rec.kills+rec.hung == 0:
			rec.violate(chaos.Panics, "%s has died, and nothing was done to it: %v", e.Task, e.Err)
		}
	case *task.Notice:
		if strings.Contains(e.Text, "a retained tuple") {
			rec.violate(chaos.Retained, "%s", e.Text)
		}
	case *task.Stuck:
		rec.deaf = rec.deaf || strings.HasPrefix(e.During, "Commit")
	case *task.StoreError:
		if rec.store == nil || rec.store.failed == 0 {
			rec.violate(chaos.DeadLetters, "cannot %s: an error that no store has returned: %v", e.Doing, e.Err)
		}
	case *task.QueueError:
		rec.check(chaos.Sources)
		if rec.broken+rec.panics == 0 && !(errors.Is(e.Err, gocontext.Canceled) && (!rec.whole() || len(rec.deaths) > mostStrikes)) {
			rec.violate(chaos.Sources, "%s: an error that no queue has returned: %v", e.Task, e.Err)
		}
	case *task.SourceError:
		rec.check(chaos.Sources)
		if rec.broken == 0 {
			rec.violate(chaos.Sources, "%s: an error that no source has returned: %v", e.Task, e.Err)
		}
	}
}
