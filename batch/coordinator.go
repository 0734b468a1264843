package batch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// A RoleKind says what a task does with batches.
type RoleKind uint8

const (
	Bystander RoleKind = iota // nothing, as the coordinator's own task
	Spout
	Bolt
	Stateful
)

// A Role is what the coordinator must know of a task.
type Role struct {
	Component string
	Kind      RoleKind
	// Behind: a state is on a way to the task, so that a batch is complete there only when
	// that state has written it.
	Behind bool
	// Transactional: the spout can give what a batch has of it once more (T13).
	Transactional bool
	// Settled: the task wants to know what is committed; it may keep batches back until the
	// one before is (T17).
	Settled bool
}

// answers Ready, and answers Wrote.
func (r *Role) readies() bool { return (r.Kind == Bolt || r.Kind == Stateful) && !r.Behind }
func (r *Role) writes() bool  { return r.Kind == Stateful || r.Kind == Bolt && r.Behind }

// Settings of a Coordinator. Zero values stand for the defaults, but for MaxReplays.
type Settings struct {
	Ahead    int           // batches that are under way at most; default 3
	Patience time.Duration // without progress, then a new round begins (T7); default 30 s
	Again    time.Duration // without progress, then what has no answer is said again; default 1 s
	// MaxReplays is how often a batch comes again after user code has failed in it, before
	// the topology stops (T19); -1: for ever. Deaths do not count.
	MaxReplays int
}

// After a batch has failed by user code the next one begins after a pause, twice as long
// each time: what has failed may be a service that is away.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 10 * time.Second
)

// mostPatience is how many times Patience the patience grows to, see Coordinator.patience.
const mostPatience = 16

// A Coordinator decides about the batches of one topology: when they begin, write and
// are committed, and when everything that is not committed begins anew.
//
// Whoever hosts it calls Take after each call of another method, sends the orders, has
// the request done and tells its outcome: exactly one call of Recovered for each Begin,
// and of Appended for each Append. Times are since the host began.
//
// Owner: the coordinator's task. A Coordinator is not safe for concurrent use.
//
// Invariants:
//
//   - batches are those from record.Committed+1 on, without a gap, at most Ahead, and none
//     but in phase Running
//   - one request is under way at a time, and no round begins meanwhile (T2)
//   - only the first of batches is past Processing
type Coordinator struct {
	set   Settings
	roles []Role

	members, emitters, readiers, writers int // tasks that answer Joined, Emitted, Ready, Wrote
	fixes                                bool

	phase  Phase
	record *Record // nil before the first Recovered; later what it is unless somebody else coordinates
	asked  Request // under way
	retry  time.Duration
	sum    Event // of the commit that was asked for last

	rival rival // why an epoch is asked for; zero: for another reason

	lives     []tuple.Incarnation // as far as is known; zero: not
	cause     Cause               // of the next round
	who       []tuple.TaskID
	attempt   tuple.Attempt
	view      []tuple.Incarnation
	positions map[string]Positions // given away with Join, so it is never changed
	last      map[string][]tuple.BatchID
	joined    []bool
	unjoined  int
	inputs    []input

	batches  []*work
	failures map[tuple.TxID]int // by user code, of batches that are not committed
	resume   time.Duration      // no batch begins before, for one has failed; 0: now
	held     bool
	draining bool

	moved time.Duration // when there was progress last
	again time.Duration // when to say again what has no answer
	// patience is Settings.Patience, doubled by each round that ends for the want of it, until
	// a batch is committed: what takes longer than Patience must come to an end too.
	patience time.Duration

	rounds [causes]int
	stale  int
	out    Effects
}

// An input is what a spout task has said of its input.
type input struct {
	said        tuple.TxID // it was after this batch
	more, ended bool
	full        int // batches in succession behind which there was more
}

// NewCoordinator returns the coordinator of tasks with these roles, by TaskID. It wants
// to know their lives, and the record.
func NewCoordinator(roles []Role, set Settings) *Coordinator {
	if set.Ahead == 0 {
		set.Ahead = 3
	}
	if set.Patience == 0 {
		set.Patience = 30 * time.Second
	}
	if set.Again == 0 {
		set.Again = time.Second
	}
	c := &Coordinator{
		set: set, roles: slices.Clone(roles), patience: set.Patience,
		lives: make([]tuple.Incarnation, len(roles)), failures: map[tuple.TxID]int{},
	}
	var states, transactional bool
	for i := range c.roles {
		r := &c.roles[i]
		if r.Kind != Bystander {
			c.members++
		}
		if r.Kind == Spout {
			c.emitters++
		}
		if r.readies() {
			c.readiers++
		}
		if r.writes() {
			c.writers++
		}
		states = states || r.Kind == Stateful
		transactional = transactional || r.Kind == Spout && r.Transactional
	}
	c.fixes = states && transactional
	c.pump(0)
	return c
}

// Take returns what is to be done since the last call. It is the caller's.
func (c *Coordinator) Take() Effects {
	e := c.out
	c.out = Effects{}
	return e
}

// Lives takes in who lives, by TaskID; zero stands for a life that is not known, or has
// ended. Another life than that of the round ends it (T4), and the next one begins when
// all lives are known.
func (c *Coordinator) Lives(now time.Duration, lives []tuple.Incarnation) {
	if len(lives) != len(c.roles) {
		panic(fmt.Sprintf("batch: %d lives of %d tasks", len(lives), len(c.roles)))
	}
	copy(c.lives, lives)
	if c.phase == Joining || c.phase == Running {
		var who []tuple.TaskID
		cause := Death
		for i, life := range lives {
			if c.roles[i].Kind != Bystander && life != c.view[i] {
				who = append(who, tuple.TaskID(i))
				if life.Epoch() > c.view[i].Epoch() {
					cause = Moved
				}
			}
		}
		if len(who) > 0 {
			if mutation.Is(mutation.DeathsCount) && len(c.batches) > 0 {
				c.failures[c.batches[0].tx]++
			}
			c.end(cause, who)
		}
	}
	c.pump(now)
}

// Recovered takes in the outcome of Records.Begin. r is the coordinator's from now on.
func (c *Coordinator) Recovered(now time.Duration, r *Record, err error) {
	c.asked = Request{}
	if c.phase != Recovering {
		return
	}
	if errors.Is(err, ErrReplaced) {
		c.stop(Event{Kind: Replaced, Err: err})
		return
	}
	if err != nil {
		c.retry = now + c.set.Again
		c.event(Event{Kind: RecordFailed, Err: err})
		return
	}
	if c.rival != (rival{}) && c.foreign(r) {
		return
	}
	if old := c.record; old != nil && r.Epoch == old.Epoch+1 && r.Committed == c.sum.Tx && r.Committed > old.Committed {
		c.sum.Took = now - c.sum.Began
		c.event(c.sum) // its outcome was not known, and nobody else was there
	}
	c.record, c.attempt, c.phase = r, tuple.Attempt{Epoch: r.Epoch}, Waiting
	c.forget()
	c.pump(now)
}

// Appended takes in the outcome of Records.Append.
func (c *Coordinator) Appended(now time.Duration, err error) {
	e := c.asked.Append
	c.asked = Request{}
	if c.phase == Stopped {
		return
	}
	if err == nil {
		err = c.record.Apply(e)
	}
	switch {
	case err == nil:
		c.progress(now)
		c.appended(e)
	case errors.Is(err, ErrStale):
		c.stop(Event{Kind: Replaced, Err: err})
	case mutation.Is(mutation.EpochKept):
		c.end(Unknown, nil)
	default:
		// Only the record knows what has become of it, and a new epoch keeps out what may
		// still be on its way there (T2).
		c.end(Unknown, nil)
		c.phase, c.retry = Recovering, now
		c.event(Event{Kind: RecordFailed, Err: err})
	}
	c.pump(now)
}

// Answer takes in what a life of a task says. It may be said again, come in any order,
// or be of an attempt or a life that has been replaced: that is dropped and counted, and
// taken is false. a is not kept.
func (c *Coordinator) Answer(now time.Duration, from tuple.TaskID, life tuple.Incarnation, a *Answer) (taken bool) {
	switch {
	case c.phase != Joining && c.phase != Running, int(from) >= len(c.roles),
		(a.Attempt != c.attempt && !mutation.Is(mutation.AnyAttempt)) || life != c.view[from],
		!c.take(from, a):
		c.stale++
		return false
	}
	c.progress(now)
	c.pump(now)
	return true
}

// Hold keeps batches from beginning while it is on. When what is under way is
// committed, Idle reports true.
func (c *Coordinator) Hold(now time.Duration, on bool) {
	c.held = on
	c.pump(now)
}

// Idle reports whether all tasks have joined and nothing is under way: no batch, and no
// request. Every state then has what the record has, if it can be undone.
func (c *Coordinator) Idle() bool {
	return c.phase == Running && len(c.batches) == 0 && c.asked == Request{}
}

// Drain has no more batches begin: what is under way is finished, and then all tasks
// are told to end. A batch with fixed ranges that spout tasks have not given again is left
// for the next run, for they read no more.
func (c *Coordinator) Drain(now time.Duration) {
	c.draining = true
	if len(c.batches) > 0 && c.record.Fixed != nil && c.batches[0].stage == Emitting && c.batches[0].unemitted > 0 {
		c.batches = nil
	}
	c.pump(now)
}

// Tick says what time it is. It does something from the time on that Next returns.
func (c *Coordinator) Tick(now time.Duration) {
	if at, ok := c.impatient(); ok && now >= at {
		c.patience = min(2*c.patience, mostPatience*c.set.Patience)
		c.end(Timeout, c.missing())
	} else if c.waits() && now >= c.again {
		c.again = now + c.set.Again
		c.repeat()
	}
	c.pump(now)
}

// Next returns when Tick is to be called, if nothing else happens before.
func (c *Coordinator) Next() (at time.Duration, ok bool) {
	if c.phase == Recovering && c.asked == (Request{}) {
		return c.retry, true
	}
	if !c.waits() {
		return c.resume, c.phase == Running && c.resume > 0
	}
	if at, ok := c.impatient(); ok {
		return min(at, c.again), true
	}
	return c.again, true
}

// waits reports whether there may be orders without an answer.
func (c *Coordinator) waits() bool {
	switch c.phase {
	case Joining:
		return true
	case Running:
		return len(c.batches) > 0
	case Finishing:
		return slices.ContainsFunc(c.lives, func(life tuple.Incarnation) bool { return life != 0 })
	}
	return false
}

// impatient returns when a round ends that makes no progress. While the record is
// waited for it does not.
func (c *Coordinator) impatient() (at time.Duration, ok bool) {
	return c.moved + c.patience, c.asked == Request{} && (c.phase == Joining || c.phase == Running && len(c.batches) > 0)
}

func (c *Coordinator) progress(now time.Duration) { c.moved, c.again = now, now+c.set.Again }

// forget drops what is kept of batches that are committed by now.
func (c *Coordinator) forget() {
	for tx := range c.failures {
		if tx <= c.record.Committed {
			delete(c.failures, tx)
		}
	}
}

// stop ends the coordinator for good.
func (c *Coordinator) stop(e Event) {
	c.phase, c.batches = Stopped, nil
	c.event(e)
}

func (c *Coordinator) event(e Event) {
	if e.Attempt == (tuple.Attempt{}) {
		e.Attempt = c.attempt
	}
	c.out.Events = append(c.out.Events, e)
}
