package task

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Store keeps what survives a run. Its methods may wait, so they are called on
// no task's turn, and several at the same time.
type Store interface {
	// Save makes positions durable, and then forgets the dead letters with the given
	// IDs, which were replayed. A position is refused, and counted, if the store has
	// one of the same split by a later incarnation (R12). When an error is returned
	// everything may be said again.
	Save(positions []Position, replayed []string) (refused int, err error)
	// Bury makes dead letters durable, and gives an ID to those that have none. With an
	// error only the first so many are stored, and it may be called again with the
	// others. An error that wraps ErrFull says that no other try will help.
	Bury(letters []*DeadLetter) (stored int, err error)
	// Replays returns dead letters that people have asked to be replayed, each once. If
	// there are many, more says that others are there now, for another call. An error
	// says what could not be read and stays; what is returned with it holds.
	Replays() (letters []*DeadLetter, more bool, err error)
}

// ErrFull reports that a store takes no more dead letters.
var ErrFull = errors.New("the store of dead letters is full")

// A Position says that everything before it is done.
type Position struct {
	Component, Split, Position string
	Life                       tuple.Incarnation // of the spout's task
}

// A StoreError says that a store has failed and, if Again is not 0, will be asked
// again.
type StoreError struct {
	Doing string
	Err   error
	Again time.Duration
}

// A keeper is the part of the supervisor that remembers what survives a task, and
// with a store what survives the run.
//
// Invariants:
//
//   - one Save is under way at a time; what is said meanwhile waits in changed and
//     done, where a later position takes the place of an earlier one
//   - a letter is in given from when a task gets it until it is done or dead again
//   - one look for letters is under way at a time, and none while inHand is at its
//     bound; no task ends before the letters that waited at the start were given
type keeper struct {
	s         *Supervisor
	positions []map[string]string // committed, by component and split

	changed  map[place]change
	done     []string // letters that were replayed
	save     map[place]change
	letters  []string
	busy     bool // a Save is under way
	waiting  bool // a timer for the next one is set
	began    time.Duration
	failures int // in a row
	closing  bool

	given   map[string]given
	inHand  int  // bytes of given, about
	turn    int  // whose turn it is to get a letter
	looking bool // Replays is under way
	more    bool // it has said that there are more
	backlog bool // the letters that waited at the start have not all been given
}

type place struct {
	component int
	split     string
}

type change struct {
	position string
	task     tuple.TaskID
	life     tuple.Incarnation
	index    int
}

// A given is a letter that a task replays.
type given struct {
	letter *DeadLetter
	task   tuple.TaskID
}

// Between the supervisor, its store and the tasks.
type (
	// kept tells a spout task that its position is durable.
	kept struct {
		index    int
		position string
	}
	// replayed tells the supervisor that a letter's message is done or dead again.
	replayed struct {
		task tuple.TaskID
		life tuple.Incarnation
		id   string
	}
	saved struct {
		refused int
		err     error
	}
	saveAgain   struct{}
	lookAgain   struct{}
	replaysRead struct {
		letters []*DeadLetter
		more    bool
		err     error
	}
)

const (
	lookEvery    = time.Second // for letters that people want replayed
	mostGiven    = 32 << 20    // bytes of letters in hand, then no look for others
	lastSaves    = 3           // tries at the end of a run
	saveShare    = 9           // times its length is the pause behind a Save, so that many splits do not keep a disk busy
	longestPause = time.Second // behind positions that went through the log
	strangers    = 3           // splits that are named
)

func (k *keeper) start(s *Supervisor) {
	k.s = s
	k.changed, k.given = map[place]change{}, map[string]given{}
	k.positions = make([]map[string]string, len(s.plan.Components))
	for i := range s.plan.Components {
		k.positions[i] = map[string]string{}
		for split, position := range s.set.Positions[s.plan.Components[i].Name] {
			k.positions[i][split] = position
		}
	}
	if s.set.Store == nil {
		return
	}
	k.backlog = true
	k.look()
	s.ctx.After(lookEvery, lookAgain{})
}

// look asks the store for letters to replay.
func (k *keeper) look() {
	if k.looking || k.inHand >= mostGiven || k.s.stopping > 0 || k.s.draining {
		return
	}
	k.looking = true
	store := k.s.set.Store
	k.s.ctx.Block(func() any {
		letters, more, err := store.Replays()
		return replaysRead{letters, more, err}
	})
}

func (k *keeper) looked(m replaysRead) {
	k.looking = false
	if m.err != nil {
		k.s.set.Event(&StoreError{Doing: "replay dead letters, which stay", Err: m.err})
	}
	if k.closing {
		k.finish()
		return
	}
	k.give(m.letters)
	if k.more = m.more; k.more {
		k.look()
	} else {
		k.noBacklog()
	}
}

// noBacklog lets tasks end.
func (k *keeper) noBacklog() {
	if !k.backlog {
		return
	}
	k.backlog = false
	for id := range k.s.children {
		if c := &k.s.children[id]; k.s.plan.Node(tuple.TaskID(id)).Queue == nil && !c.far && c.ref != nil {
			k.s.ctx.Send(c.ref, &Letters{Last: true})
		}
	}
}

// committed returns what a task begins with.
func (k *keeper) committed(component int) map[string]string {
	all := make(map[string]string, len(k.positions[component]))
	for split, position := range k.positions[component] {
		all[split] = position
	}
	return all
}

// lettersOf returns the letters that a new life of a task has to replay.
func (k *keeper) lettersOf(task tuple.TaskID) (all []*DeadLetter) {
	for _, g := range k.given {
		if g.task == task && !k.s.draining {
			all = append(all, g.letter)
		}
	}
	slices.SortFunc(all, func(a, b *DeadLetter) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// commit takes a position of a present life.
func (k *keeper) commit(m *committed) {
	c := k.s.plan.Tasks[m.task].Component
	k.positions[c][m.split] = m.position
	if k.s.set.Store != nil || k.s.part != nil {
		k.changed[place{c, m.split}] = change{m.position, m.task, m.life, m.index}
		k.write()
	}
}

// write begins a Save, or sees to it that one will begin.
func (k *keeper) write() {
	wait := k.waiting && !k.closing && k.s.halted == 0 // everybody waits for a run that comes to rest
	if k.busy || wait || len(k.changed)+len(k.done) == 0 {
		return
	}
	k.busy, k.began = true, k.s.ctx.Now()
	k.save, k.changed = k.changed, map[place]change{}
	k.letters, k.done = k.done, nil
	positions := make([]Position, 0, len(k.save))
	for p, c := range k.save {
		positions = append(positions, Position{k.s.plan.Components[p.component].Name, p.split, c.position, c.life})
	}
	slices.SortFunc(positions, func(a, b Position) int {
		if a.Component != b.Component {
			return strings.Compare(a.Component, b.Component)
		}
		return strings.Compare(a.Split, b.Split)
	})
	if share := k.s.part; share != nil && len(positions) > 0 {
		k.s.ctx.Send(share.Over, &SavePositions{share.Run, positions})
		return
	}
	k.store(positions)
}

// store gives the store what is to be saved.
func (k *keeper) store(positions []Position) {
	store, letters := k.s.set.Store, k.letters
	k.s.ctx.Block(func() any {
		refused, err := store.Save(positions, letters)
		return saved{refused, err}
	})
}

// receive handles what the store and letters bring. It returns false for anything
// else.
func (k *keeper) receive(msg any) bool {
	switch msg := msg.(type) {
	case saved:
		k.saved(msg)
	case saveAgain:
		k.waiting = false
		k.write()
	case replayed:
		if g, is := k.given[msg.id]; is && g.task == msg.task && msg.life == k.s.children[msg.task].life {
			delete(k.given, msg.id)
			k.inHand -= g.letter.size()
			k.done = append(k.done, msg.id)
			k.write()
			if k.more {
				k.look()
			}
		}
	case lookAgain:
		if k.s.stopping == 0 && !k.s.draining {
			k.look()
			k.s.ctx.After(lookEvery, lookAgain{})
		}
	case replaysRead:
		k.looked(msg)
	default:
		return false
	}
	return true
}

func (k *keeper) saved(m saved) {
	k.busy = false
	now := k.s.ctx.Now()
	if m.err != nil {
		for p, c := range k.save {
			if _, later := k.changed[p]; !later || mutation.Is(mutation.StaleSave) {
				k.changed[p] = c
			}
		}
		k.done = append(k.letters, k.done...)
		k.failures++
		if k.closing && k.failures >= lastSaves {
			k.s.err = errors.Join(k.s.err, fmt.Errorf("the positions of this run could not be saved, so the next one reads some messages again: %w", m.err))
			k.changed, k.done, k.failures = map[place]change{}, nil, 0
			k.finish()
			return
		}
		pause := backoff(k.failures)
		k.s.set.Event(&StoreError{Doing: "save positions", Err: m.err, Again: pause})
		k.pause(pause)
		return
	}
	k.failures = 0
	places := make([]place, 0, len(k.save))
	for p := range k.save {
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.component != b.component {
			return a.component - b.component
		}
		return strings.Compare(a.split, b.split)
	})
	for _, p := range places {
		c := k.save[p]
		child := &k.s.children[c.task]
		if _, is := k.s.plan.Node(c.task).Source.(spout.Committer); is && child.life == c.life && !child.gone {
			k.s.ctx.Send(child.ref, kept{c.index, c.position})
		}
	}
	if len(places) > 0 && m.refused > 0 {
		task := k.s.ms[k.save[places[0]].task]
		task.Stale.Add(int64(m.refused))
		// On several nodes they are those of lives that went on elsewhere, until this node has
		// read of that: as with any life that is over, they are counted, and nobody has to act.
		if k.s.part == nil {
			k.s.set.Event(&Notice{Task: task.Name, Text: fmt.Sprintf("positions refused by the store: %d; it has later ones of the same splits, which another run must have saved: see that no other run uses the same state directory, and start this one again", m.refused)})
		}
	}
	k.save, k.letters = nil, nil
	if k.closing {
		k.finish()
		return
	}
	pause := max(commitEvery, saveShare*(now-k.began))
	if k.s.set.Share != nil {
		pause = min(pause, longestPause) // nobody led for a while: that was no slow disk
	}
	k.pause(pause)
}

// savedFar is told that the positions which were asked to be saved are durable.
func (k *keeper) savedFar(m Saved) {
	if !k.busy {
		return
	}
	if len(k.letters) > 0 && k.s.set.Store != nil {
		k.store(nil)
		return
	}
	k.saved(saved{refused: m.Refused})
}

// renew takes in positions that other nodes have committed.
func (k *keeper) renew(all map[string]map[string]string) {
	for i := range k.s.plan.Components {
		for split, position := range all[k.s.plan.Components[i].Name] {
			p := place{i, split}
			if _, own := k.changed[p]; own {
				continue
			}
			if _, own := k.save[p]; own {
				continue
			}
			k.positions[i][split] = position
		}
	}
}

func (k *keeper) pause(d time.Duration) {
	k.waiting = true
	k.s.ctx.After(d, saveAgain{})
}

// finish ends the run when everything is saved.
func (k *keeper) finish() {
	k.closing = true
	if k.looking {
		return // its result brings us here again
	}
	if !k.busy && len(k.changed)+len(k.done) == 0 {
		k.s.done(k.s.err)
		if share := k.s.part; share != nil {
			k.s.ctx.Send(share.Over, Over{share.Run, k.s.err})
		}
		return
	}
	if k.failures == 0 {
		k.write()
	} // else its timer does
}

// give gives letters to tasks of their components.
func (k *keeper) give(letters []*DeadLetter) {
	if k.s.stopping > 0 || k.s.draining {
		return // they stay where they are, for the next run
	}
	refused := map[[2]string]int{} // by component and why
	for _, l := range letters {
		if _, is := k.given[l.ID]; is {
			continue
		}
		task, err := k.home(l)
		if err != nil {
			refused[[2]string{l.Component, err.Error()}]++
			continue
		}
		if k.s.children[task].ended || k.s.children[task].gone {
			continue
		}
		k.given[l.ID] = given{l, task}
		k.inHand += l.size()
		if ref := k.s.children[task].ref; ref != nil {
			k.s.ctx.Send(ref, &Letters{Letters: []*DeadLetter{l}})
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(refused), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }) {
		k.s.set.Event(&Notice{Task: r[0], Text: fmt.Sprintf("%d dead letters cannot be replayed and stay: %s", refused[r], r[1])})
	}
}

// home finds a task for a letter: one that has not ended its input, in turn.
func (k *keeper) home(l *DeadLetter) (task tuple.TaskID, err error) {
	if err := Replayable(k.s.plan, l); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(k.s.plan.Components, func(n topology.Node) bool { return n.Name == l.Component })
	n := &k.s.plan.Components[i]
	// How many tasks there are is the run's affair, so Replayable does not look at it.
	switch tasks := n.Streams[streamOf(n, l)].Direct; {
	case l.Direct > tasks && tasks > 0:
		return 0, fmt.Errorf("it is for task %d, and stream %s.%s has tasks 0 to %d", l.Direct-1, l.Component, l.Stream, tasks-1)
	case (l.Direct > 0) != (tasks > 0):
		return 0, fmt.Errorf("stream %s.%s was direct and is not, or is and was not", l.Component, l.Stream)
	}
	for range n.Parallel {
		k.turn++
		task = n.First + tuple.TaskID(k.turn%n.Parallel)
		if c := &k.s.children[task]; !c.ended && !c.gone {
			break
		}
	}
	return task, nil
}

// Replayable says why a letter cannot be replayed by a run of a plan, if so.
func Replayable(p *topology.Plan, l *DeadLetter) error {
	if p.Guarantee != topology.AtLeastOnce {
		return errors.New("the topology is not tracked, so nobody would know whether its message comes through")
	}
	for i := range p.Components {
		n := &p.Components[i]
		if n.Name != l.Component {
			continue
		}
		if n.Queue != nil {
			return fmt.Errorf("component %s is a queue now, whose messages are its own", l.Component)
		}
		if streamOf(n, l) < 0 {
			return fmt.Errorf("component %s has no stream %s with the fields %q any more", l.Component, l.Stream, l.Fields)
		}
		return nil
	}
	return fmt.Errorf("there is no component %s any more", l.Component)
}

// tellStrangers tells once of positions whose splits the source no longer lists.
func (t *spoutTask) tellStrangers(splits []spout.Split) {
	if t.plan.Tasks[t.id].Index != 0 || t.life.Restart() > 1 || len(t.committed) == 0 {
		return
	}
	listed := make(map[string]bool, len(splits))
	for _, s := range splits {
		listed[string(s)] = true
	}
	var names []string
	for split := range t.committed {
		if !listed[split] {
			names = append(names, split)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	text := fmt.Sprintf("spout %s: kept %s of splits that the source does not list (%q", t.node.Name, amount.Of(len(names), "position"), names[:min(len(names), strangers)])
	if len(names) > strangers {
		text += " and others"
	}
	t.set.Event(&Notice{Task: t.m.Name, Text: text + ")"})
}
