// Package consensus keeps one log that the nodes of a cluster agree on, by raft. It is
// not for use outside Egret.
//
//	Propose --> leader --entries--> the other servers
//	               |                      |
//	          more than half of the voters have it
//	               |                      |
//	         Machine.Apply          Machine.Apply       the same on all, in one order
//
// Voters count for agreement, the other servers only listen. A node without a data
// directory forgets, so it may vote in a cluster of itself alone and nowhere else. What
// lies in the directory is checked when it is opened; what is damaged is neither used
// nor deleted:
//
//	DIR/node.json   which node this is, its cluster, how often it was started
//	    lock        held by the process that uses the directory
//	    log.db      entries, and for whom it has voted
//	    snapshots/  what the entries before a certain one came to
package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/egretstream/egret/cluster"
)

var (
	// ErrInUse reports that another process has the data directory.
	ErrInUse = errors.New("in use")
	// ErrCorrupt reports a file that is not as it was written, or is missing. Trying
	// again does not help.
	ErrCorrupt = errors.New("corrupt file")
	// ErrNewer reports a file that a newer Egret has written.
	ErrNewer = errors.New("it was written by a newer Egret")

	// ErrNotLeader reports that this node does not lead the log; nothing was done.
	ErrNotLeader = errors.New("this node does not lead the log")
	// ErrBusy reports that too much is waiting; nothing was done.
	ErrBusy = errors.New("the log has too much to do")
	// ErrClosed reports a Log that is closed; nothing was done.
	ErrClosed = errors.New("the log is closed")
	// ErrUnsure reports that there was no agreement in time, or that the node stopped
	// leading before: what was asked for may have been done, or may yet be.
	ErrUnsure = errors.New("it is not known whether this was agreed on")
	// ErrTooLarge reports an entry that is larger than MaxEntry; nothing was done.
	ErrTooLarge = errors.New("an entry of the log may not have more than 1 MiB")
)

// MaxEntry is how many bytes an entry may have: larger ones hold up heartbeats.
const MaxEntry = 1 << 20

const (
	// A leader that has lost its followers may have this many entries that nobody else
	// has. It is much less than keepEntries, so they end before the snapshot that it will
	// be given when it has to catch up; see store.IsMonotonic.
	maxPending    = 128
	keepEntries   = 500  // behind a snapshot, for servers that are a little late
	snapshotAfter = 2000 // entries

	askPatience = 5 * time.Second // for an agreement
	rpcPatience = 5 * time.Second // for an answer of another server
	endPatience = 10 * time.Second
)

// A Machine is what the entries are for. Its methods are called by one goroutine; Restore
// also by Open, before that returns. They should be quick, for nothing else is applied in
// the meantime.
type Machine interface {
	// Apply takes the entry with this index, which is greater than any before. The
	// bytes belong to the log: they may be kept, but not changed.
	Apply(index uint64, entry []byte) (result any)
	// Snapshot returns all that the entries applied so far have come to. The bytes are not
	// changed afterwards.
	Snapshot() ([]byte, error)
	// Restore replaces everything by a snapshot, which was taken after the entry with this
	// index; 0 if there was none. The bytes are the machine's.
	Restore(index uint64, data []byte) error
}

// A Config is what a Log needs. Listener and Dial are for this log alone.
type Config struct {
	Identity *Identity // stays the caller's, to be closed after the Log
	Addr     string    // host:port where other nodes find this one
	Listener net.Listener
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	// Where says where a node is now, "" if that is not known: then it is looked for where
	// it was when it was added. It is called by several goroutines, and must not wait. It
	// may be nil, if no node ever comes back at another address.
	Where   func(cluster.NodeID) string
	Pace    cluster.Pace
	Machine Machine
	// Leader is told who leads, zero if that is not known, whether that is this node, and
	// since which term. It is called by one goroutine, and hears only of the present state:
	// what changes and changes back in between is seen by its term.
	Leader func(node cluster.NodeID, me bool, term uint64)
	Logger *slog.Logger // nil: none
}

// A Log is this node's part of the log. Its methods may be called from any goroutine,
// and do not wait for others. Functions called done are called once each, by a goroutine
// of the Log, or by the caller at once if it is ErrClosed, ErrBusy or ErrTooLarge.
type Log struct {
	config Config
	node   cluster.NodeID
	logger *slog.Logger

	raft      *raft.Raft
	transport *raft.NetworkTransport
	stream    *stream
	store     *store // nil: in memory

	changed  chan raft.Observation // room for one: something is different
	observer *raft.Observer
	entries  chan request // proposals, in their order

	mu      sync.Mutex
	closed  bool
	pending int         // requests that are not done
	hangUp  *time.Timer // of the connections to a server that was removed

	asked sync.WaitGroup // goroutines that wait for raft
	loops sync.WaitGroup // watch and propose
	hangs sync.WaitGroup // hangUp, until it is stopped or has come back; added to under mu, before closed
}

// Open opens the log of a node. If the node founds a cluster, its log begins with it as
// the only server; a log that is there goes on; otherwise the node waits until a leader
// adds it. Listener is closed in any case, at the latest by Close.
func Open(c Config) (*Log, error) {
	logger := c.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	node := c.Identity.Home().Node
	l := &Log{config: c, node: node, logger: logger, stream: newStream(&c, node, logger),
		changed: make(chan raft.Observation, 1), entries: make(chan request, maxPending)}
	if err := l.open(); err != nil {
		if l.transport != nil {
			_ = l.transport.Close()
		}
		_ = l.stream.Close()
		l.stream.served.Wait()
		if l.store != nil {
			_ = l.store.close()
		}
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	noise := newNoise(l.logger)
	founder, had := l.config.Identity.founder()
	var logs raft.LogStore
	var votes raft.StableStore
	var snapshots raft.SnapshotStore
	if dir := l.config.Identity.dir; dir != "" {
		files, end, err := openSnapshots(dir, noise)
		if err != nil {
			return err
		}
		if l.store, err = openStore(dir, had, end, l.logger); err != nil {
			return err
		}
		cache, err := raft.NewLogCache(keepEntries, l.store)
		if err != nil {
			return err
		}
		logs, votes, snapshots = cache, l.store, files
	} else {
		m := raft.NewInmemStore()
		logs, votes, snapshots = m, m, raft.NewInmemSnapshotStore()
	}
	l.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: where(l.config.Where), Logger: noise, Stream: l.stream, MaxPool: 3, Timeout: rpcPatience})
	config := settings(l.node, l.config.Pace, noise)
	if founder {
		alone := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(l.node.String()), Address: l.transport.LocalAddr()}}}
		if err := raft.BootstrapCluster(config, logs, votes, snapshots, l.transport, alone); err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
			return err
		}
	}
	r, err := raft.NewRaft(config, &machine{Machine: l.config.Machine, logger: l.logger}, logs, votes, snapshots, l.transport)
	if err != nil {
		return err
	}
	l.raft = r
	l.observer = raft.NewObserver(l.changed, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState:
			return true
		}
		return false
	})
	r.RegisterObserver(l.observer)
	l.loops.Go(l.watch)
	l.loops.Go(l.propose)
	if err := l.config.Identity.logged(); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

func settings(node cluster.NodeID, pace cluster.Pace, noise hclog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(node.String())
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 250*time.Millisecond
	if pace == cluster.Quick {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 300*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	}
	c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = snapshotAfter, keepEntries, 5*time.Second
	c.ShutdownOnRemove = false // it may be added again
	c.Logger = noise
	return c
}

// where lets raft ask where a server is.
type where func(cluster.NodeID) string

func (w where) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	var node cluster.NodeID
	if err := node.UnmarshalText([]byte(id)); err != nil {
		return "", err
	}
	if w != nil {
		if addr := w(node); addr != "" {
			return address(addr, node), nil
		}
	}
	return "", errNowhere
}

var errNowhere = errors.New("the membership does not know it")

// watch tells who leads: first who leads already, for raft may have heard that before it was
// asked to say so, and then whenever that changes.
func (l *Log) watch() {
	type lead struct {
		node cluster.NodeID
		me   bool
		term uint64
	}
	var told lead
	for more := true; more; _, more = <-l.changed {
		now := lead{me: l.raft.State() == raft.Leader, term: l.raft.CurrentTerm()}
		_, id := l.raft.LeaderWithID()
		_ = now.node.UnmarshalText([]byte(id)) // zero if there is none
		// raft sets the two one after the other, and tells us in between.
		if now.me {
			now.node = l.node
		} else if now.node == l.node {
			now.node = 0
		}
		if now != told && l.config.Leader != nil {
			l.config.Leader(now.node, now.me, now.term)
		}
		told = now
	}
}

// Servers returns the nodes that the log is copied to, as the latest entry says that this
// node has, agreed on or not.
func (l *Log) Servers() []cluster.Server {
	f := l.raft.GetConfiguration() // does not wait
	if f.Error() != nil {
		return nil
	}
	return places(f.Configuration())
}

func places(c raft.Configuration) (all []cluster.Server) {
	for _, s := range c.Servers {
		addr, node, err := place(s.Address)
		if err != nil {
			continue // not written by us
		}
		all = append(all, cluster.Server{Node: node, Addr: addr, Voter: s.Suffrage == raft.Voter})
	}
	return all
}

// Close leaves the log: what was asked for and is not done gets its error, and when it
// returns no goroutine is left. The error says what could not be closed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.stopHangUp()
	close(l.entries)
	l.mu.Unlock()

	// raft gives no answer to what it has agreed on and not yet applied when it is shut
	// down, so everything is waited for first. Each gets one soon: there is agreement, or the
	// leader finds itself alone. Only a disk that hangs takes longer.
	done := make(chan struct{})
	go func() { // ends with the last request
		l.asked.Wait()
		close(done)
	}()
	var late error
	select {
	case <-done:
	case <-time.After(endPatience):
		l.mu.Lock()
		late = fmt.Errorf("the log has not answered %d requests after %v", l.pending, endPatience)
		l.mu.Unlock()
	}
	if l.store != nil {
		close(l.store.closed)
	}
	err := l.raft.Shutdown().Error() // closes the transport, and so the stream
	l.raft.DeregisterObserver(l.observer)
	close(l.changed)
	l.loops.Wait()
	l.hangs.Wait()
	l.transport.CloseStreams()
	l.stream.served.Wait()
	if l.store != nil {
		err = errors.Join(err, l.store.close())
	}
	return errors.Join(err, late)
}
