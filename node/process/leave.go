package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

const (
	leavingFile = "leaving" // in the data directory: the node drains itself, and nobody else has asked for that
	leaveLook   = 50 * time.Millisecond
	together    = time.Second      // in it one without tasks hears whether all others leave as well
	goodbye     = 10 * time.Second // at most: it is short but on a machine that has no time
	dismissal   = 5 * time.Second
)

// asked is a wish that is made once.
type asked struct {
	once sync.Once
	made chan struct{} // closed with it
}

func (a *asked) make() { a.once.Do(func() { close(a.made) }) }

// LeaveAsked returns a channel that is closed when somebody asks the node to leave. Who
// has started it then calls Depart and Close.
func (p *Process) LeaveAsked() <-chan struct{} { return p.leave.made }

// Depart moves the tasks of this node to others, if there are any, and tells them that
// it goes. When ctx ends before, the node still has tasks and others do not know; the
// error says so. If all nodes depart, none waits for the others. Close ends the node in
// any case.
func (p *Process) Depart(ctx context.Context) error {
	v, err := p.view(ctx)
	if err != nil {
		return err
	}
	others, drained := 0, false
	for _, m := range v.Members {
		switch {
		case m.Home == p.self.Home:
			drained = m.Draining
		case m.Alive:
			others++
		}
	}
	switch {
	case others == 0 && v.Leader == 0 && len(v.Voters) > 1:
		return errors.New("the tasks cannot be moved: no other node can be reached, and there is no quorum")
	case others == 0:
		return nil
	}
	p.gossip.Depart()
	leaving, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { // ends with leaving
		for p.someStay(leaving) && pause(leaving) {
		}
		cancel(errTogether)
	})
	err = p.moveAway(leaving, drained)
	cancel(nil)
	watch.Wait()
	if context.Cause(leaving) == errTogether {
		return nil
	}
	return err
}

// errTogether ends what a node does to leave others behind, when there are none: they end
// together, and are a cluster again when they start again.
var errTogether = errors.New("all nodes leave")

// moveAway does what Depart says, while others stay.
func (p *Process) moveAway(ctx context.Context, drained bool) error {
	began, told, waits := time.Now(), false, false
	if !drained {
		if err := p.mark(); err != nil {
			return err
		}
		for err := p.drain(ctx, true); err != nil; err = p.drain(ctx, true) {
			// There may be a new leader soon, and who has just joined is not in the log yet.
			// To drain twice is to drain.
			if !slices.ContainsFunc([]cluster.Reason{node.ErrNoQuorum, node.ErrUnsure, node.ErrBusy, cluster.ErrUnknown}, func(why cluster.Reason) bool { return errors.Is(err, why) }) || !pause(ctx) {
				return fmt.Errorf("the tasks cannot be moved: %w", err)
			}
		}
	}
	for tasks := -1; ; {
		v, err := p.view(ctx)
		if err == nil {
			tasks = own(v)
			if !waits {
				waits = true
				for _, s := range v.Submissions {
					if s.Status.Runs() && s.Seat() == p.self.Node {
						p.log.Warn("a topology waits until this node is back, which alone has its states", "topology", s.Topology)
					}
				}
			}
			if who := p.onlyDrained(v); tasks > 0 && who != "" && !told && time.Since(began) > dismissal { // they may be about to leave as well
				told = true
				p.log.Warn("no other node may have the tasks of this one: all that stay are drained. egret drain NODE --off lets one of them have tasks again", "nodes", who)
			}
		}
		if tasks == 0 && time.Since(began) >= together {
			p.handOver(ctx)
			if context.Cause(ctx) == errTogether {
				return nil
			}
			if err := p.Leave(goodbye); err != nil { // it has no task any more, so that costs nothing
				p.log.Warn("this node goes, and the others may take it for dead: " + err.Error())
			}
			p.dismissed(ctx)
			p.warnOfQuorum(ctx)
			return nil
		}
		if !pause(ctx) {
			return fmt.Errorf("%d tasks are still here: %w", tasks, context.Cause(ctx))
		}
	}
}

// someStay reports whether another node stays, as far as is known. One that was drained
// by command stays.
func (p *Process) someStay(ctx context.Context) bool {
	v, err := p.view(ctx)
	return err != nil || slices.ContainsFunc(v.Members, func(m node.MemberView) bool { return m.Alive && m.Home != p.self.Home && !m.Departs })
}

// warnOfQuorum says that this node takes the quorum with it, if it still has a vote: the
// others have not agreed yet that it has none, nor that those which are gone have none.
func (p *Process) warnOfQuorum(ctx context.Context) {
	v, err := p.view(ctx)
	if err != nil || !slices.Contains(v.Voters, p.self.Node) {
		return
	}
	if left, of := quorumWithout(v, p.self.Node); 2*left <= of {
		p.log.Warn(fmt.Sprintf("when this node has gone there is no quorum: %d of %d voters are left. What runs goes on, and nothing can be changed until another voter is back", left, of))
	}
}

// quorumWithout returns how many voters are alive beside a node, and of how many. The
// node still counts, until the others have agreed that it is none any more.
func quorumWithout(v *node.View, gone cluster.NodeID) (left, of int) {
	for _, m := range v.Members {
		if m.Alive && m.Node != gone && slices.Contains(v.Voters, m.Node) {
			left++
		}
	}
	return left, len(v.Voters)
}

// onlyDrained names the other nodes that stay, if all of them are drained; else "".
func (p *Process) onlyDrained(v *node.View) string {
	var names []string
	for _, m := range v.Members {
		switch {
		case !m.Alive || m.Home == p.self.Home || m.Departs:
		case !m.Draining:
			return ""
		default:
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

// handOver lets another node lead, if this one does. Without it they would notice later.
// If none that may lead votes yet, one that keeps data gets a vote first.
func (p *Process) handOver(ctx context.Context) {
	p.mu.Lock()
	me := p.leads.Me
	p.mu.Unlock()
	if !me {
		return
	}
	v, err := p.view(ctx)
	if err != nil {
		return
	}
	wait := func(ask func(done func(error))) {
		done := make(chan error, 1)
		ask(func(err error) { done <- err })
		select {
		case err := <-done:
			if err != nil {
				p.log.Warn("another node could not be made to lead: " + err.Error())
			}
		case <-ctx.Done():
		}
	}
	voters := p.voters()
	next := heir(v.Members, p.self.Node, voters)
	if next == nil {
		return // nobody could keep the log, or all go
	}
	if !slices.Contains(voters, next.Node) {
		wait(func(done func(error)) { p.keeper.AddVoter(next.Node, next.Addr, done) })
	}
	wait(func(done func(error)) { p.keeper.TransferLeadership(next.Node, next.Addr, done) })
}

// heir returns who is to lead after self; nil: nobody. One that leaves as well is not asked:
// it would hand over in its turn, and who leads would change while nobody gains by it. Nor is
// one that is drained, if there is another.
func heir(members []node.MemberView, self cluster.NodeID, voters []cluster.NodeID) (best *node.MemberView) {
	rank := func(m *node.MemberView) (n int) {
		if m.Draining {
			n += 2
		}
		if !slices.Contains(voters, m.Node) {
			n++
		}
		return n
	}
	for i := range members {
		m := &members[i]
		if m.Node == self || !m.Alive || !m.Keeps || m.Departs {
			continue
		}
		if best == nil || rank(m) < rank(best) {
			best = m
		}
	}
	return best
}

// dismissed waits until the others have agreed that this node is none of the log's any
// more: until then they may need it to agree.
func (p *Process) dismissed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, dismissal)
	defer cancel()
	for slices.ContainsFunc(p.keeper.Servers(), func(s cluster.Server) bool { return s.Node == p.self.Node }) {
		if !pause(ctx) {
			return
		}
	}
}

// pause waits a moment, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(leaveLook):
		return true
	}
}

func (p *Process) view(ctx context.Context) (*node.View, error) {
	a := p.Ask(ctx, &node.Request{Op: node.OpState})
	if a.Error != nil {
		return nil, a.Error
	}
	return a.State, nil
}

func (p *Process) drain(ctx context.Context, on bool) error {
	if a := p.Ask(ctx, &node.Request{Op: node.OpDrain, Node: p.self.Node, On: on}); a.Error != nil {
		return a.Error
	}
	return nil
}

// own counts the tasks of the node that sees v, also those that it is about to get, but not
// those that no other node can have, for their states are here: they wait for it.
func own(v *node.View) (n int) {
	for _, s := range v.Submissions {
		if s.Seat() == v.Self.Node {
			continue
		}
		for _, plan := range []*cluster.Plan{s.Plan, s.Next} {
			if plan == nil || !s.Status.Runs() {
				continue
			}
			for _, t := range plan.Tasks {
				if t.Home == v.Self {
					n++
				}
			}
		}
	}
	return n
}

// mark remembers that the draining ends when the node comes back.
func (p *Process) mark() error {
	if p.config.Data == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(p.config.Data, leavingFile), nil, 0o600)
}

// comeBack lets a node that had left have tasks again.
func (p *Process) comeBack(ctx context.Context) {
	name := filepath.Join(p.config.Data, leavingFile)
	if _, err := os.Stat(name); p.config.Data == "" || errors.Is(err, fs.ErrNotExist) {
		return
	}
	for p.drain(ctx, false) != nil {
		if !pause(ctx) {
			return
		}
	}
	if err := os.Remove(name); err != nil {
		p.log.Warn("the node would drain no more when it starts again: "+err.Error(), "file", name)
	}
}
