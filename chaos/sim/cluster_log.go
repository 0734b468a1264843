package sim

import (
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// An agreed is a log that machines agree on: what a raft log is to those who use it.
//
//	Propose --> taken by who leads --> entered, if a majority is there --> applied, later, by each
//	               |
//	               +-- it leads no more: comes to nothing, or is entered by the next one
//
// Entries are applied once, in here; a state never changes, so all processes share it.
type agreed struct {
	c       *clusterRun
	entries [][]byte
	states  []cluster.State // after so many entries
	results []cluster.Result
	term    uint64
	leader  *process // nil: none
	taken   []*proposal
	carried []*proposal // that the next leader enters first
	unfit   time.Duration
	limit   time.Duration
	elect   time.Duration // when there may be a leader again
}

type proposal struct {
	by     *process
	id     uint64
	entry  []byte
	spread bool // another voter may have it
	sent   time.Duration
	index  int
}

var errNotLeading = node.Refuse(node.ErrNoQuorum, "simulated: this node does not lead the log").Error

func (l *agreed) start(c *clusterRun) {
	l.c = c
	l.states, l.results = []cluster.State{{}}, []cluster.Result{{}}
}

// state is what was agreed on last.
func (l *agreed) state() *cluster.State { return &l.states[len(l.entries)] }

// Propose is that of [node.Log].
func (p *process) Propose(id uint64, entry []byte) {
	c := p.c
	x := &proposal{by: p, id: id, entry: entry, sent: c.w.Now()}
	c.after(100*time.Microsecond, 3*time.Millisecond, func() { c.log.take(x) })
}

func (l *agreed) take(x *proposal) {
	p, c := x.by, l.c
	switch {
	case x.sent > p.killed || p.killed != never:
	case p.hung > c.w.Now():
		c.after(p.hung-c.w.Now(), p.hung-c.w.Now()+time.Millisecond, func() { l.take(x) })
	case l.leader != p:
		if !c.oneIn(8) || c.healed { // else: the call is lost
			l.answer(x, cluster.Result{}, errNotLeading)
		}
	default:
		x.spread = l.others(p) > 0 || l.voters() == 1
		l.taken = append(l.taken, x)
		l.enterSoon(x)
	}
}

func (l *agreed) answer(x *proposal, r cluster.Result, err error) {
	l.c.after(0, 5*time.Millisecond, func() { x.by.send(x.by.agent, node.Proposed{ID: x.id, Result: r, Err: err}) })
}

func (l *agreed) enterSoon(x *proposal) {
	least, most := 200*time.Microsecond, 10*time.Millisecond
	if !l.c.healed && l.c.oneIn(30) {
		most = 500 * time.Millisecond
	}
	l.c.after(least, most, func() { l.enter(x) })
}

// enter enters what was taken up to x, if there still is a majority.
func (l *agreed) enter(x *proposal) {
	if x.index != 0 || l.leader != x.by {
		return
	}
	if !l.fit(l.leader) {
		l.c.after(50*time.Millisecond, 50*time.Millisecond, func() { l.enter(x) })
		return
	}
	for x.index == 0 && len(l.taken) > 0 {
		y := l.taken[0]
		l.taken = l.taken[1:]
		l.append(y)
		if unsure := !l.c.healed && l.c.s.faults && l.c.oneIn(25); !unsure {
			y.by.waits = append(y.by.waits, y)
		} else {
			l.unsure(y)
		}
	}
}

// unsure answers what was entered, or may have been, with an error or not at all.
func (l *agreed) unsure(x *proposal) {
	l.c.book.saw("unsure proposal")
	if l.c.oneIn(2) && x.by.killed == never {
		l.answer(x, cluster.Result{}, node.Refuse(node.ErrUnsure, "simulated: leadership lost while committing log").Error)
	}
}

func (l *agreed) append(x *proposal) {
	before := l.state()
	s := *before
	x.index = len(l.entries) + 1
	r := s.Apply(uint64(x.index), x.entry)
	l.entries, l.states, l.results = append(l.entries, x.entry), append(l.states, s), append(l.results, r)
	l.c.book.entered(before, l.state(), x.entry, &r)
	for _, p := range l.c.processes() {
		p.applies()
	}
}

// applies has a process apply what was entered.
func (p *process) applies() {
	c := p.c
	if p.apply || p.killed != never || p.applied >= len(c.log.entries) {
		return
	}
	p.apply = true
	least, most := 200*time.Microsecond, 10*time.Millisecond
	if c.s.late && !c.healed && c.oneIn(20) {
		least, most = 100*time.Millisecond, 3*time.Second
		c.book.saw("late apply")
	}
	c.after(least, most, p.applyNow)
}

func (p *process) applyNow() {
	c, l := p.c, &p.c.log
	p.apply = false
	if p.killed != never || p.applied >= len(l.entries) {
		return
	}
	if p.hung > c.w.Now() || l.leader == nil || l.leader != p && !c.joined(p.machine, l.leader.machine) {
		p.apply = true
		c.after(tickEvery, 2*tickEvery, p.applyNow)
		return
	}
	n := len(l.entries)
	if c.oneIn(2) {
		n = p.applied + 1 + c.chance.IntN(n-p.applied)
	}
	p.applied = n
	before := c.oneIn(2)
	if before {
		p.results()
	}
	p.logged()
	if !before {
		p.results()
	}
	p.applies()
}

func (p *process) logged() {
	for _, sub := range p.c.log.states[p.applied].Submissions {
		if sub.Status != cluster.Inactive {
			delete(p.inactive, sub.Run)
		} else if p.inactive[sub.Run] == 0 {
			p.inactive[sub.Run] = p.c.w.Now()
			p.c.book.saw("inactive")
		}
	}
	p.send(p.agent, node.Logged{State: p.c.log.states[p.applied]})
}

// results answers proposals of this process that it has applied.
func (p *process) results() {
	rest := p.waits[:0]
	for _, x := range p.waits {
		if x.index <= p.applied {
			p.send(p.agent, node.Proposed{ID: x.id, Result: p.c.log.results[x.index]})
		} else {
			rest = append(rest, x)
		}
	}
	p.waits = rest
}

func (l *agreed) voters() (n int) {
	for _, m := range l.c.machines {
		if m.votes {
			n++
		}
	}
	return n
}

// others counts the other voters that a process has a connection to.
func (l *agreed) others(p *process) (n int) {
	for _, q := range l.c.processes() {
		if q != p && q.votes && q.awake() && l.c.joined(p.machine, q.machine) {
			n++
		}
	}
	return n
}

// fit reports whether a process can lead.
func (l *agreed) fit(p *process) bool {
	return p.awake() && p.votes && 2*(l.others(p)+1) > l.voters()
}

// tick has leaders come and go, and who leads told.
func (l *agreed) tick() {
	c, now := l.c, l.c.w.Now()
	switch {
	case l.leader != nil && l.fit(l.leader):
		l.unfit = 0
	case l.leader != nil && l.unfit == 0:
		l.unfit, l.limit = now, now+c.draw(300*time.Millisecond, 2*time.Second)
	case l.leader != nil && now >= l.limit:
		l.depose()
	case l.leader == nil && now >= l.elect:
		l.choose()
	}
	for _, p := range c.processes() {
		if p.told != l.known(p) && !p.telling {
			p.telling = true
			c.after(max(p.hung-now, 0)+time.Millisecond, max(p.hung-now, 0)+500*time.Millisecond, p.tellLeader)
		}
	}
}

// known is what a process can know of who leads.
func (l *agreed) known(p *process) node.Leads {
	if l.leader == nil || l.leader != p && !l.c.joined(p.machine, l.leader.machine) {
		return node.Leads{}
	}
	return node.Leads{Node: l.leader.id, Me: l.leader == p, Term: l.term}
}

func (p *process) tellLeader() {
	p.telling = false
	if p.killed != never {
		return
	}
	p.told = p.c.log.known(p)
	p.send(p.agent, p.told)
}

// depose ends a term. What was taken and not entered comes to nothing, but for what
// another voter has, of which the next leader may enter a part.
func (l *agreed) depose() {
	c := l.c
	spread := 0
	for spread < len(l.taken) && l.taken[spread].spread {
		spread++
	}
	if spread > 0 {
		spread = c.chance.IntN(spread + 1)
	}
	l.carried = append(l.carried, l.taken[:spread]...)
	for _, x := range l.taken[:spread] {
		l.unsure(x)
	}
	for _, x := range l.taken[spread:] {
		if x.by.killed == never && c.oneIn(2) {
			l.answer(x, cluster.Result{}, errNotLeading)
		}
	}
	l.taken, l.leader, l.unfit = nil, nil, 0
	l.elect = c.w.Now() + c.draw(50*time.Millisecond, 500*time.Millisecond)
	c.book.saw("leader deposed")
}

// choose elects one of those that can lead.
func (l *agreed) choose() {
	var fit []*process
	for _, p := range l.c.processes() {
		if l.fit(p) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return
	}
	l.leader = fit[l.c.chance.IntN(len(fit))]
	l.term++
	for _, x := range l.carried {
		l.append(x)
	}
	l.carried = nil
}
