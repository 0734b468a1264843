package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A clusterBook is what really happened in a cluster, as sources, bolts and models have
// seen it: see record, which is that of one supervisor.
type clusterBook struct {
	c        *clusterRun
	bad      *Violation
	checks   map[chaos.Checker]*checked
	features map[string]bool
	runs     map[cluster.Run]*clusterRunBook
	order    []*clusterRunBook
	lives    map[*proc]*taskLife
	all      []*taskLife
	owners   map[lifeKey]*taskLife
	plans    map[planKey]string
	links    linkBook
	stopped  map[*clusterTop]*clusterRunBook // the last run that was
	severed  []severed
}

type lifeKey struct {
	run  cluster.Run
	task tuple.TaskID
	life tuple.Incarnation
}

type planKey struct {
	run   cluster.Run
	epoch uint32
}

// A taskLife is one incarnation of a task.
type taskLife struct {
	run  *clusterRunBook
	task tuple.TaskID
	life tuple.Incarnation
	proc *proc
	in   *process
}

func (l *taskLife) String() string {
	return fmt.Sprintf("task %d life %v of run %d on %s", l.task, l.life, l.run.run, l.in.name)
}

// living reports whether it may still do something.
func (l *taskLife) living() bool { return l.proc.state != ended && l.in.killed == never }

// A clusterRunBook is about one run of a topology.
type clusterRunBook struct {
	book   *clusterBook
	run    cluster.Run
	top    *clusterTop
	splits map[execKey]*clusterSplit // by part and split
	all    []*clusterMessage
	byID   map[uint64]*clusterMessage
	execs  map[execKey]*clusterExec
	forced bool            // a plan was put in force that did not wait
	before *clusterRunBook // it goes on where that was stopped
}

type execKey struct {
	part int
	id   uint64
}

type clusterSplit struct {
	part, index, messages, gate int
	all                         []*clusterMessage
	below                       int // all before is done
	stored                      int
	life                        tuple.Incarnation
}

type clusterMessage struct {
	id    uint64
	name  string
	split *clusterSplit
	index int
	all   []*clusterExec
	acked bool
	born  time.Duration // when it was read first
	out   bool          // it was emitted
}

type clusterExec struct {
	part  int
	id    uint64
	fails int
	dies  int // of a panic
	oks   []moment
}

func newClusterBook(c *clusterRun) *clusterBook {
	return &clusterBook{
		c: c, checks: map[chaos.Checker]*checked{}, features: map[string]bool{}, runs: map[cluster.Run]*clusterRunBook{},
		lives: map[*proc]*taskLife{}, owners: map[lifeKey]*taskLife{}, plans: map[planKey]string{}, links: newLinkBook(), stopped: map[*clusterTop]*clusterRunBook{},
	}
}

func (b *clusterBook) tally(c chaos.Checker) *checked {
	if b.checks[c] == nil {
		b.checks[c] = &checked{}
	}
	return b.checks[c]
}

func (b *clusterBook) check(c chaos.Checker) { b.tally(c).safety++ }
func (b *clusterBook) twin(c chaos.Checker)  { b.tally(c).twin++ }

func (b *clusterBook) counted() (safety, twins map[chaos.Checker]int) {
	return (&record{checks: b.checks}).counted()
}

func (b *clusterBook) violate(c chaos.Checker, format string, args ...any) {
	if b.bad == nil {
		b.bad = &Violation{c, fmt.Sprintf(format, args...), b.c.w.Now()}
	}
}

func (b *clusterBook) saw(feature string) { b.features[feature] = true }

// here is the life whose code is running.
func (b *clusterBook) here() *taskLife { return b.lives[b.c.w.running] }

func (b *clusterBook) moment() moment {
	p := b.c.w.running
	if p.state == ended && p.silent != never {
		return moment{never, p}
	}
	return moment{b.c.w.Now(), p}
}

// settings has the book told what happens in a run on a node.
func (b *clusterBook) settings(p *process, run cluster.Run, spec *cluster.Spec, set *task.Settings) {
	r := b.runs[run]
	if r == nil {
		i := slices.IndexFunc(b.c.s.tops, func(t *clusterTop) bool { return t.name == spec.Topology })
		r = &clusterRunBook{
			book: b, run: run, top: b.c.s.tops[i], splits: map[execKey]*clusterSplit{}, byID: map[uint64]*clusterMessage{}, execs: map[execKey]*clusterExec{},
		}
		r.before = b.stopped[r.top]
		b.runs[run] = r
		b.order = append(b.order, r)
	}
	set.Tree = func(_ tuple.TreeID, batch *spout.Batch, first, n int) { r.emits(p, batch, first, n) }
	set.Event = func(e task.Event) {
		b.check(chaos.Panics)
		if d, is := e.(*task.Died); is && strings.Contains(d.Err.Error(), errBroken.Error()) {
			b.saw("task panics")
		} else if is {
			b.violate(chaos.Panics, "on %s: %s life %v has died: %v", p.name, d.Task, d.Life, d.Err)
		}
	}
	set.Verdict = func(v *task.Verdict) { r.verdict(v) }
}

// spawned books that a life of a task begins. No two processes have the same one, and
// no two have the same task in the same epoch.
func (b *clusterBook) spawned(p *process, r *clusterRunBook, peer task.Peer) {
	l := &taskLife{run: r, task: peer.Task, life: peer.Life, proc: b.c.w.find(peer.Ref), in: p}
	b.check(chaos.Lives)
	for _, key := range []lifeKey{{r.run, peer.Task, peer.Life}, {r.run, peer.Task, tuple.NewIncarnation(peer.Life.Epoch(), 0)}} {
		if other := b.owners[key]; other != nil && (other.in != p || key.life == peer.Life) {
			b.violate(chaos.Lives, "%s begins, and there was %s", l, other)
		}
		b.owners[key] = l
	}
	b.lives[l.proc] = l
	b.all = append(b.all, l)
	b.twin(chaos.Lives)
	if b.check(chaos.Quiet); b.c.s.exact() && peer.Life.Restart() > 1 {
		b.violate(chaos.Quiet, "%s begins, and nothing was wrong", l)
	}
}

// started books that a node goes over to a plan. All that act in an epoch have the same.
func (b *clusterBook) started(p *process, run cluster.Run, plan *topology.Plan) {
	b.check(chaos.Plans)
	key := planKey{run, plan.Epoch}
	text := fmt.Sprint(plan.Tasks, plan.Fingerprint())
	for i := range plan.Components {
		text += fmt.Sprint(" ", plan.Components[i].First, plan.Components[i].Parallel)
	}
	if was, known := b.plans[key]; known && was != text {
		b.violate(chaos.Plans, "in epoch %d of run %d, %s has the plan %s, and another node has %s", plan.Epoch, run, p.name, text, was)
	} else if known {
		b.twin(chaos.Plans)
	}
	b.plans[key] = text
}

// entered books an entry of the log: positions are of messages that are done, and no
// older life takes the place of a later one.
func (b *clusterBook) entered(before, after *cluster.State, entry []byte, result *cluster.Result) {
	var e cluster.Entry
	if err := json.Unmarshal(entry, &e); err != nil {
		b.violate(chaos.Ending, "an entry cannot be read: %v", err)
		return
	}
	if b.c.w.log != nil {
		b.c.w.note(fmt.Sprintf("entry %d %s %v", after.Applied, entry, result.Err), nil, nil, nil)
	} else {
		b.c.w.note(fmt.Sprintf("entry %d %s", after.Applied, entry), nil, nil, nil)
	}
	switch {
	case result.Err != nil:
		return
	case e.Finish != nil && e.Finish.Status == cluster.Failed:
		b.violate(chaos.Ending, "run %d has failed: %s", e.Finish.Run, e.Finish.Reason)
	case e.Finish != nil && e.Finish.Status == cluster.Stopped:
		if r := b.runs[e.Finish.Run]; r != nil {
			b.stopped[r.top] = r
			r.stopped()
		}
	case e.Finish != nil:
		if r := b.runs[e.Finish.Run]; r != nil {
			r.finished(after)
		}
	case e.Commit != nil:
		r := b.runs[e.Commit.Run]
		for _, at := range e.Commit.Positions {
			b.check(chaos.Positions)
			s := r.split(r.top.find(at.Component), at.Split)
			now, _ := after.Submission(e.Commit.Topology).Positions.At(at.Component, at.Split)
			n := b.position(s, now.Position)
			if now.Life < s.life || now.Life == s.life && n < s.stored {
				b.violate(chaos.Positions, "split %s of %s is committed at %d by life %v, and was at %d by life %v", at.Split, at.Component, n, now.Life, s.stored, s.life)
			}
			if now.Life > at.Life {
				b.saw("position refused")
			}
			s.stored, s.life = n, now.Life
			r.passed(s, n, "committed at")
		}
	case e.SetPlan != nil && e.SetPlan.Base != 0:
		b.saw("tasks moved at once")
		if r := b.runs[e.SetPlan.Run]; r != nil {
			r.forced = true
		}
		if b.c.s.exact() {
			b.violate(chaos.Quiet, "a plan is put in force at once, and nothing was wrong: %s", entry)
		}
	case e.Switch != nil:
		b.saw("quiet switch")
		b.twin(chaos.Quiet)
	case e.CancelNext != nil:
		b.saw("switch cancelled")
	}
}

func (t *clusterTop) find(component string) int {
	return slices.IndexFunc(t.parts, func(p clusterPart) bool { return p.name == component })
}

func (b *clusterBook) position(s *clusterSplit, text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > s.messages {
		b.violate(chaos.Positions, "split %d has the position %q, which it never gave out", s.index, text)
	}
	return n
}

func (r *clusterRunBook) split(part int, name string) *clusterSplit {
	k, err := strconv.Atoi(name)
	if err != nil || part < 0 || k >= len(r.top.splits[part]) {
		r.book.violate(chaos.Positions, "%s is asked for split %q of part %d", r.top.name, name, part)
		k, part = 0, 0
	}
	at := execKey{part, uint64(k)}
	s := r.splits[at]
	if s == nil {
		n := r.top.splits[part][k]
		s = &clusterSplit{part: part, index: k, messages: n, gate: n - n/gated}
		if r.top.early {
			s.gate = n
		}
		if r.before != nil {
			old := r.before.split(part, name)
			s.stored, s.life = old.stored, old.life
		}
		r.splits[at] = s
	}
	return s
}

// read returns message n of a split.
func (r *clusterRunBook) read(s *clusterSplit, n int) *clusterMessage {
	for len(s.all) <= n {
		k := len(s.all)
		m := &clusterMessage{
			id: mix(uint64(s.part), uint64(s.index), uint64(k)), split: s, index: k, born: r.book.c.w.Now(),
			name: fmt.Sprintf("message %d of split %d of %s of run %d", k, s.index, r.top.parts[s.part].name, r.run),
		}
		r.top.descend(s.part, m.id, func(part int, id uint64) {
			key := execKey{part, id}
			e := &clusterExec{part: part, id: id}
			if r.before != nil && r.before.execs[key] != nil {
				e.oks = slices.Clone(r.before.execs[key].oks)
			}
			r.execs[key] = e
			m.all = append(m.all, e)
		})
		s.all = append(s.all, m)
		r.all = append(r.all, m)
		r.byID[m.id] = m
	}
	return s.all[n]
}

// missing returns what has not been executed of a message.
func (m *clusterMessage) missing(now time.Duration) *clusterExec {
	for _, e := range m.all {
		if !happened(e.oks, now) {
			return e
		}
	}
	return nil
}

// passed checks that all before a position is done.
func (r *clusterRunBook) passed(s *clusterSplit, n int, how string) {
	r.book.check(chaos.Positions)
	for ; s.below < n; s.below++ {
		m := r.read(s, s.below)
		if e := m.missing(r.book.c.w.Now()); e != nil {
			r.book.violate(chaos.Positions, "split %d of %s is %s %d, and of %s is missing: %s at %s",
				s.index, r.top.parts[s.part].name, how, n, m.name, r.where(e), r.top.parts[e.part].name)
			return
		}
	}
}

// emits checks that no new message is read and emitted when a node knows for long that
// its run is inactive. What was read before is emitted as there is room.
func (r *clusterRunBook) emits(p *process, batch *spout.Batch, first, n int) {
	b := r.book
	for i := range n {
		s, cells := batch.Message(first + i)
		m := r.byID[tuple.CloneRow(cells[:1], s.Kinds[:1])[0].Uint64()]
		b.check(chaos.Drained)
		if since := p.inactive[r.run]; !m.out && since > 0 && m.born-since > 2*time.Second {
			b.violate(chaos.Drained, "%s is emitted on %s, which knows since %v that the run is inactive", m.name, p.name, since)
		}
		m.out = true
	}
}

func (r *clusterRunBook) where(e *clusterExec) string {
	return fmt.Sprintf("%x, %d times failed", e.id, e.fails)
}

func (r *clusterRunBook) verdict(v *task.Verdict) {
	bad := map[int]bool{}
	for _, f := range v.Fails {
		bad[int(f.Index)] = true
	}
	if v.Outcome != acker.Done {
		r.book.saw(v.Outcome.String())
		if r.book.c.s.exact() {
			r.book.violate(chaos.Quiet, "a tree of task %d of run %d is %v, and nothing was wrong", v.Tree.Task, r.run, v.Outcome)
		}
		return
	}
	for i := range v.N {
		s, cells := v.Batch.Message(v.First + i)
		m := r.byID[tuple.CloneRow(cells[:1], s.Kinds[:1])[0].Uint64()]
		if bad[i] {
			continue
		}
		r.book.check(chaos.Acks)
		if e := m.missing(r.book.c.w.Now()); e != nil {
			r.book.violate(chaos.Acks, "%s is acked, but missing is: %s at %s", m.name, r.where(e), r.top.parts[e.part].name)
		}
		m.acked = true
	}
}

// finished checks that nothing is lost of a run that is done.
func (r *clusterRunBook) finished(s *cluster.State) {
	b := r.book
	b.saw("run done")
	for part := range r.top.splits {
		for k, n := range r.top.splits[part] {
			split := r.split(part, strconv.Itoa(k))
			if n > 0 {
				r.read(split, n-1)
			}
		}
	}
	for _, m := range r.all {
		b.twin(chaos.Executions)
		b.twin(chaos.Acks)
		if e := m.missing(b.c.w.Now()); e != nil {
			b.violate(chaos.Executions, "run %d is done, and of %s is missing: %s at %s", r.run, m.name, r.where(e), r.top.parts[e.part].name)
			return
		}
		if !m.acked && m.index >= m.split.stored {
			b.violate(chaos.Acks, "run %d is done, and %s was never acked", r.run, m.name)
			return
		}
		for _, e := range m.all {
			if b.check(chaos.Executions); b.c.s.exact() && len(e.oks) != 1 && r.top.fails == 0 {
				b.violate(chaos.Quiet, "%x of %s was executed %d times at %s, and nothing was wrong", e.id, m.name, len(e.oks), r.top.parts[e.part].name)
			}
		}
	}
}

// stopped checks that one that nobody disturbs has finished all that it has emitted, and said so,
// when it is stopped.
func (r *clusterRunBook) stopped() {
	b := r.book
	b.saw("run stopped")
	for _, m := range r.all {
		if b.check(chaos.Quiet); b.c.s.exact() && m.out && m.index >= m.split.stored {
			b.violate(chaos.Quiet, "run %d is stopped, and %s was emitted, but its split is committed at %d, and nothing was wrong", r.run, m.name, m.split.stored)
		}
	}
}

// stored checks that all positions of a run that is done are saved when it is let go of,
// unless who should have done that was killed.
func (r *clusterRunBook) saved() {
	b := r.book
	for part := range r.top.splits {
		for k, n := range r.top.splits[part] {
			b.twin(chaos.Positions)
			if split := r.split(part, strconv.Itoa(k)); split.stored != n && b.c.kills == 0 {
				b.violate(chaos.Positions, "run %d is done, and split %d of %s with %d messages is at %d", r.run, k, r.top.parts[part].name, n, split.stored)
			}
		}
	}
}

func (r *clusterRunBook) stuck(now time.Duration) string {
	for _, m := range r.all {
		if e := m.missing(now); e != nil {
			return fmt.Sprintf(": of %s is missing %s at %s", m.name, r.where(e), r.top.parts[e.part].name)
		}
	}
	return fmt.Sprintf(": of %d messages that were read nothing is missing", len(r.all))
}

// living counts lives of tasks.
func (b *clusterBook) living() (n int) {
	b.all = slices.DeleteFunc(b.all, func(l *taskLife) bool { return !l.living() })
	return len(b.all)
}

// has reports whether a machine has tasks, by the log or in fact.
func (b *clusterBook) has(m *machine) bool {
	b.living()
	for _, l := range b.all {
		if l.in.machine == m {
			return true
		}
	}
	for _, sub := range b.c.log.state().Submissions {
		if sub.Status.Runs() && sub.Plan != nil && slices.ContainsFunc(sub.Plan.Tasks, func(t cluster.Task) bool { return t.Home.Node == m.id }) {
			return true
		}
	}
	return false
}

func (b *clusterBook) killed(p *process) {
	b.living()
	for _, l := range b.all {
		if l.in == p {
			b.saw("tasks killed")
		}
	}
}

// thawed books a process that has hung and goes on.
func (b *clusterBook) thawed(p *process) {
	b.living()
	for _, sub := range b.c.log.state().Submissions {
		if sub.Plan == nil {
			continue
		}
		for _, l := range b.all {
			if l.in == p && l.run.run == sub.Run && int(l.task) < len(sub.Plan.Tasks) && sub.Plan.Tasks[l.task].Home != p.home {
				b.saw("zombie whose tasks have moved")
			}
		}
	}
}
