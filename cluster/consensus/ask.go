package consensus

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/egretstream/egret/cluster"
)

// A request is something that raft is asked to do until a certain time.
type request struct {
	until time.Time
	ask   func(patience time.Duration) raft.Future
	done  func(error)
}

// Propose asks for an entry in the log. It is done without an error when more than half
// of the voters have it and this node's Machine has applied it, and has what that has
// returned. Entries that are proposed
// one after the other come in this order, if they come. The bytes are not changed
// afterwards.
func (l *Log) Propose(entry []byte, done func(result any, err error)) {
	if len(entry) > MaxEntry {
		done(nil, fmt.Errorf("%w; this one has %d bytes", ErrTooLarge, len(entry)))
		return
	}
	var f raft.ApplyFuture
	l.inOrder(func(patience time.Duration) raft.Future {
		f = l.raft.Apply(entry, patience)
		return f
	}, func(err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(f.Response(), nil)
	})
}

// AddVoter makes a node a voter, also if it is a server already. The address is where it is
// to be found if Config.Where does not know, for as long as it is a server.
func (l *Log) AddVoter(node cluster.NodeID, addr string, done func(error)) {
	l.beside(func(patience time.Duration) raft.Future {
		return l.raft.AddVoter(raft.ServerID(node.String()), l.added(node, addr), 0, patience)
	}, done)
}

// AddNonvoter makes a node a server that only listens. One that is a server already stays
// what it is.
func (l *Log) AddNonvoter(node cluster.NodeID, addr string, done func(error)) {
	l.beside(func(patience time.Duration) raft.Future {
		return l.raft.AddNonvoter(raft.ServerID(node.String()), l.added(node, addr), 0, patience)
	}, done)
}

// added returns the address of a server as it is in the log already, so that it does not
// change there: raft reads the addresses of servers in goroutines that do not expect it
// (updateLastAppended in its replication.go has no lock).
func (l *Log) added(node cluster.NodeID, addr string) raft.ServerAddress {
	for _, s := range l.Servers() {
		if s.Node == node {
			addr = s.Addr
		}
	}
	return address(addr, node)
}

// Demote takes a voter's vote. It goes on to listen.
func (l *Log) Demote(node cluster.NodeID, done func(error)) {
	l.beside(func(patience time.Duration) raft.Future {
		return l.raft.DemoteVoter(raft.ServerID(node.String()), 0, patience)
	}, done)
}

// Remove makes a node no server any more. It is refused for the last voter.
func (l *Log) Remove(node cluster.NodeID, done func(error)) {
	l.beside(func(patience time.Duration) raft.Future {
		return l.raft.RemoveServer(raft.ServerID(node.String()), 0, patience)
	}, func(err error) {
		if err == nil {
			// raft's pool keeps the connections to a server that is none any more, with 256 KB
			// each, until it is closed as a whole. Others are made again when they are needed.
			l.mu.Lock()
			if !l.closed {
				l.stopHangUp() // there may be one of another server
				l.hangs.Add(1)
				l.hangUp = time.AfterFunc(lingering, func() {
					defer l.hangs.Done()
					l.transport.CloseStreams()
				})
			}
			l.mu.Unlock()
		}
		if done != nil {
			done(err)
		}
	})
}

// stopHangUp stops the timer, unless it has begun to hang up. Caller must hold mu.
func (l *Log) stopHangUp() {
	if l.hangUp != nil && l.hangUp.Stop() {
		l.hangs.Done()
	}
}

// lingering is how long raft may still use a connection to a server that was removed.
const lingering = time.Second

// TransferLeadership lets another voter lead, at addr if it is not known by another address.
func (l *Log) TransferLeadership(node cluster.NodeID, addr string, done func(error)) {
	l.beside(func(time.Duration) raft.Future {
		return l.raft.LeadershipTransferToServer(raft.ServerID(node.String()), l.added(node, addr))
	}, done)
}

// admit counts a request, or says why not. A request that was admitted is done once.
func (l *Log) admit(ask func(time.Duration) raft.Future, done func(error)) (r request, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return r, ErrClosed
	}
	if l.pending == maxPending {
		return r, ErrBusy
	}
	l.pending++
	l.asked.Add(1)
	r = request{time.Now().Add(askPatience), ask, done}
	return r, nil
}

// inOrder hands a request to propose.
func (l *Log) inOrder(ask func(time.Duration) raft.Future, done func(error)) {
	r, err := l.admit(ask, done)
	if err != nil {
		done(err)
		return
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.entries <- r // has room for all that are admitted
	}
	l.mu.Unlock()
	if closed {
		l.release()
		l.finish(r, ErrClosed)
		l.asked.Done()
	}
}

// beside asks in a goroutine of its own: a change of the servers waits until the one
// before is agreed on, and proposals should not wait with it.
func (l *Log) beside(ask func(time.Duration) raft.Future, done func(error)) {
	r, err := l.admit(ask, done)
	if err != nil {
		done(err)
		return
	}
	go func() {
		l.await(r, r.ask(time.Until(r.until)))
	}()
}

// propose gives proposals to raft, in their order.
func (l *Log) propose() {
	for r := range l.entries {
		left := time.Until(r.until)
		if left <= 0 {
			l.release()
			l.finish(r, ErrBusy)
			l.asked.Done()
			continue
		}
		f := r.ask(left) // waits until raft has taken it
		go l.await(r, f)
	}
}

// await waits for raft's answer, and says that it is unsure when that takes too long.
// Close waits for it.
func (l *Log) await(r request, f raft.Future) {
	var once sync.Once
	late := time.AfterFunc(time.Until(r.until), func() {
		once.Do(func() { l.finish(r, fmt.Errorf("%w within %v", ErrUnsure, askPatience)) })
	})
	err := f.Error()
	late.Stop()
	l.release() // first, so that whoever hears that it is done finds its place free
	once.Do(func() { l.finish(r, plain(err)) })
	l.asked.Done()
}

func (l *Log) finish(r request, err error) {
	if r.done != nil {
		r.done(err)
	}
}

// release makes room for another request.
func (l *Log) release() {
	l.mu.Lock()
	l.pending--
	l.mu.Unlock()
}

// plain says in our words what raft has answered.
func plain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrBusy
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrUnsure, err)
}
