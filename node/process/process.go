package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/cluster/consensus"
	"github.com/egretstream/egret/cluster/gossip"
	"github.com/egretstream/egret/node"
)

// ErrForeign reports that a node is to join a cluster, and belongs to another one.
var ErrForeign = gossip.ErrForeign

// A Config says what node is to run.
type Config struct {
	Listen    string   // host:port for everything between nodes
	Advertise string   // host:port where others find it; default: where it listens
	Join      []string // addresses of nodes of the cluster; none: the node founds one, if it belongs to none
	Data      string   // directory; "": the node is forgotten when it ends
	Name      string   // for people; default: its address
	Secret    wire.Secret
	Previous  wire.Secret // also believed
	Insecure  bool        // listen beyond loopback without a secret
	Pace      cluster.Pace
	Weight    int
	Version   string
	Program   node.Program
	Patience  cluster.Patience
	Logger    *slog.Logger
}

// A Process is one running node.
type Process struct {
	config  Config
	came    string
	self    cluster.Member
	log     *slog.Logger
	port    *wire.Port
	id      *consensus.Identity
	gossip  *gossip.Gossip
	keeper  *consensus.Log
	host    *host.Host
	agent   actor.Ref
	network *network
	control *control
	machine *machine

	mu      sync.Mutex // members and whatever else several goroutines have
	died    death
	members []cluster.Member
	known   []string // addresses that were written last
	leads   node.Leads

	adopted chan struct{} // closed when the cluster's id is known
	once    sync.Once
	leave   asked // somebody wants the node to leave
	stop    context.CancelFunc
	wait    sync.WaitGroup // of goroutines of the Process itself
}

// Start starts a node. One that joins returns when it has heard of the cluster, or with
// the error of ctx, or ErrForeign. Close must be
// called when there is no error.
func Start(ctx context.Context, c Config) (p *Process, err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p = &Process{config: c, log: c.Logger, adopted: make(chan struct{}), leave: asked{made: make(chan struct{})}}
	p.died.came = make(chan struct{})
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			p = nil
		}
	}()
	if p.id, err = consensus.Identify(c.Data); err != nil {
		return p, err
	}
	if p.known, err = readKnown(c.Data); err != nil {
		return p, err
	}
	home := p.id.Home()
	p.port, err = wire.Listen(wire.Config{Addr: c.Listen, Node: home.Node, Secret: c.Secret, Previous: c.Previous, Insecure: c.Insecure, Logger: c.Logger})
	if err != nil {
		return p, err
	}
	p.self = cluster.Member{Home: home, Name: c.Name, Addr: p.port.Addr(), Keeps: p.id.Keeps(), Alive: true, Weight: c.Weight}
	if c.Advertise != "" {
		p.self.Addr = c.Advertise
	}
	if p.self.Name == "" {
		p.self.Name = p.self.Addr
	}
	p.came = Back
	if p.id.Cluster() == "" {
		p.came = Joined
		if len(c.Join) == 0 {
			p.came = Founded
			if err := p.id.Found(); err != nil {
				return p, err
			}
		}
	}
	if err := p.startGossip(); err != nil {
		return p, err
	}
	if p.id.Cluster() == "" {
		select {
		case <-p.adopted:
		case <-ctx.Done():
			return p, fmt.Errorf("no node of a cluster has answered at %v: %w", c.Join, context.Cause(ctx))
		}
	}
	p.machine = &machine{}
	began := time.Now()
	p.host = host.New(host.Config{Logger: c.Logger})
	p.network = newNetwork(p)
	running, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	agent := p.host.Spawn("agent", &guard{died: &p.died, Agent: node.NewAgent(node.Config{
		Self: p.self, Cluster: p.id.Cluster(), Version: c.Version, Program: c.Program, Patience: c.Patience, Began: began,
		Log: p, Network: p.network,
		Tell: func(text string, args ...any) { p.log.Warn(text, args...) },
	})})
	p.mu.Lock()
	p.agent = agent
	p.mu.Unlock()
	p.machine.post = func(s cluster.State) { p.host.Send(agent, node.Logged{State: s}) }
	if err := p.openLog(); err != nil {
		return p, err
	}
	p.membersChanged(nil)
	p.wait.Go(func() { p.keepServers(running) })
	p.wait.Go(func() { p.comeBack(running) })
	p.control = serve(p)
	return p, nil
}

// Home is the node and the number of this process.
func (p *Process) Home() cluster.Home { return p.self.Home }

// Addr is host:port where others find the node.
func (p *Process) Addr() string { return p.self.Addr }

// Cluster is the id of the cluster.
func (p *Process) Cluster() string { return p.id.Cluster() }

// Came is how the node has come into its cluster.
func (p *Process) Came() string { return p.came }

// How a node comes into its cluster.
const (
	Founded = "founded"
	Joined  = "joined"
	Back    = "is back" // it belongs to it since it was started before
)

func (p *Process) startGossip() error {
	c := &p.config
	var keys [][]byte
	if k := c.Previous.GossipKey(); k != nil {
		keys = append(keys, k)
	}
	g, err := gossip.Start(gossip.Config{
		Self: p.self, Cluster: p.id.Cluster(), Join: c.Join, Known: p.known, Key: c.Secret.GossipKey(), PreviousKeys: keys, Pace: c.Pace,
		Packets: p.port.Packets(), Listener: p.port.Listener(wire.Gossip),
		Dial:    func(ctx context.Context, addr string) (net.Conn, error) { return p.port.Dial(ctx, wire.Gossip, addr) },
		Logger:  c.Logger,
		Changed: func(all []cluster.Member) { p.membersChanged(all) },
		Refused: func(text string) { p.log.Error(text) },
		Adopted: func(id string) {
			if err := p.id.Adopt(id); err != nil {
				p.log.Error("cannot join: " + err.Error())
				return
			}
			p.once.Do(func() { close(p.adopted) })
		},
	})
	p.gossip = g
	if foreign, is := errors.AsType[*gossip.ForeignError](err); is {
		err = &foreignError{fmt.Sprintf("data directory %s belongs to cluster %s, and the node to join to cluster %s: give an empty --data to join that, or no --join to go on in its own", c.Data, p.id.Cluster(), foreign.Other)}
	}
	return err
}

// A foreignError is an ErrForeign with a text of its own.
type foreignError struct{ text string }

func (e *foreignError) Error() string { return e.text }
func (e *foreignError) Unwrap() error { return ErrForeign }

// membersChanged passes the membership on; nil: what is known already.
func (p *Process) membersChanged(all []cluster.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all != nil {
		p.members = all
		p.writeKnown(all)
	}
	if p.agent != nil && p.members != nil {
		p.host.Send(p.agent, node.Members{All: p.members})
	}
}

// where says where a node is now.
func (p *Process) where(id cluster.NodeID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.Node == id {
			return m.Addr
		}
	}
	return ""
}

func (p *Process) openLog() error {
	c := &p.config
	keeper, err := consensus.Open(consensus.Config{
		Identity: p.id, Addr: p.self.Addr, Listener: p.port.Listener(wire.Consensus),
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return p.port.Dial(ctx, wire.Consensus, addr)
		},
		Where: p.where, Pace: c.Pace, Machine: p.machine, Logger: c.Logger,
		Leader: func(id cluster.NodeID, me bool, term uint64) {
			p.mu.Lock()
			p.leads = node.Leads{Node: id, Me: me, Term: term}
			p.mu.Unlock()
			p.host.Send(p.agent, node.Leads{Node: id, Me: me, Term: term})
		},
	})
	p.mu.Lock()
	p.keeper = keeper
	p.mu.Unlock()
	return err
}

// Propose asks the log for an entry, for the agent.
func (p *Process) Propose(id uint64, entry []byte) {
	p.mu.Lock()
	keeper, agent := p.keeper, p.agent
	p.mu.Unlock()
	if keeper == nil { // it is being opened, and says already who leads
		p.host.Send(agent, node.Proposed{ID: id, Err: refusal(consensus.ErrClosed)})
		return
	}
	keeper.Propose(entry, func(result any, err error) {
		m := node.Proposed{ID: id, Err: refusal(err)}
		if r, is := result.(cluster.Result); is {
			m.Result = r
		}
		p.host.Send(agent, m)
	})
}

// A machine is the state that the log comes to, on the log's own goroutine.
type machine struct {
	state cluster.State
	post  func(cluster.State)
}

func (m *machine) Apply(index uint64, entry []byte) any {
	r := m.state.Apply(index, entry)
	m.post(m.state)
	return r
}

func (m *machine) Snapshot() ([]byte, error) { return readable(&m.state) }

// readable returns a snapshot that can be read back. With another one nothing would start
// again, and without one the log only grows.
func readable(s *cluster.State) ([]byte, error) {
	b, err := s.Snapshot()
	if err == nil {
		err = new(cluster.State).Restore(b)
	}
	return b, err
}

func (m *machine) Restore(index uint64, data []byte) error {
	var s cluster.State
	if index > 0 || len(data) > 0 {
		if err := s.Restore(data); err != nil {
			return err
		}
	}
	m.state = s
	m.post(s)
	return nil
}

// Leave tells the others that this node goes. Its tasks should have been moved away
// before.
func (p *Process) Leave(timeout time.Duration) error { return p.gossip.Leave(timeout) }

// Close ends the node and waits for everything that it has.
func (p *Process) Close() error {
	var errs []error
	if p.control != nil {
		errs = append(errs, p.control.close())
	}
	if p.stop != nil {
		p.stop()
		p.wait.Wait()
	}
	if p.network != nil {
		p.network.close()
	}
	if p.host != nil {
		if left := p.host.Close(); len(left) > 0 {
			errs = append(errs, fmt.Errorf("%d goroutines of user code have not come back", len(left)))
		}
	}
	if p.keeper != nil {
		errs = append(errs, p.keeper.Close())
	}
	if p.gossip != nil {
		errs = append(errs, p.gossip.Shutdown())
	}
	if p.id != nil {
		errs = append(errs, p.id.Close())
	}
	if p.port != nil { // last: when nobody listens any more, the node may be started again
		errs = append(errs, p.port.Close())
	}
	return errors.Join(errs...)
}
