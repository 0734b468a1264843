// Package gossip finds the members of a cluster, and notices when one is gone, by
// memberlist. It is not for use outside Egret.
//
//	this node --probe--> a member, in turn        no answer, also not through others:
//	    |                                         suspected; no objection: gone
//	    +--gossip--> some members                 news travels from node to node
//	    +--push/pull--> one member                all that both know, every few seconds
//
// Every node has its own view, and two views may differ for a while; what must be agreed
// on is in the log. Nodes of another cluster are refused on both sides. Members that are
// gone are tried again for as long as the process lives, so that a cluster that was parted
// grows together, however long that took.
package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/egretstream/egret/cluster"
)

var (
	// ErrAlone reports that none of the addresses to join has answered.
	ErrAlone = errors.New("no node to join has answered")
	// ErrForeign reports that who has answered at the addresses to join belongs to another
	// cluster than this node.
	ErrForeign = errors.New("the node to join belongs to another cluster")
)

const (
	streamPatience = 5 * time.Second        // for a connection
	firstRetry     = 500 * time.Millisecond // of a node that is alone; doubles up to retry
	retry          = 5 * time.Second
	updatePatience = 2 * time.Second
)

// A Config is what a Gossip needs. Packets and Listener are for gossip alone, and have the
// same port.
type Config struct {
	// Self is this node. Its Addr is where others reach it: a host, which must not mean all
	// of its interfaces, and a port.
	Self cluster.Member
	// Cluster is the id of its cluster, as consensus.Identity has it; "" if it belongs to
	// none: then it takes that of the first node that has one.
	Cluster string
	// Join is where somebody says that other nodes are, host:port each, and Known where some
	// were. They are tried until there is another member and the cluster is known, and again
	// whenever there is none. MustJoin makes it an error if none answers at first. If those
	// of Join that answer all belong to another cluster, it is ErrForeign in any case.
	Join     []string
	Known    []string
	MustJoin bool
	// Key encrypts datagrams; 16, 24 or 32 bytes; none: they are not encrypted. A node that
	// uses one of PreviousKeys is understood, and answered with it.
	Key          []byte
	PreviousKeys [][]byte
	Pace         cluster.Pace

	Packets  net.PacketConn
	Listener net.Listener
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	Logger   *slog.Logger // nil: none

	// The functions are called by one goroutine, one after the other, until Shutdown
	// returns. They may be nil.

	// Changed is told all members when something is different: this node and those that have
	// been gone for less than ten minutes included, in the order of their ids.
	Changed func([]cluster.Member)
	// Adopted is told the id of the cluster that this node belongs to from now on.
	Adopted func(id string)
	// Refused is told, in a sentence for people, of a node that is not let in: one of another
	// cluster, or one that claims to be another one. Once for each.
	Refused func(sentence string)
}

// A Gossip is this node's part in finding members. Its methods may be called from any
// goroutine.
type Gossip struct {
	config Config
	self   netip.AddrPort
	logger *slog.Logger
	view   *view
	list   *memberlist.Memberlist
	unread atomic.Int64

	ctx    context.Context
	cancel context.CancelFunc
	woken  chan struct{} // room for one: the view is different
	update chan struct{} // room for one: what this node says of itself is different
	loops  sync.WaitGroup
	once   sync.Once
	leave  chan struct{} // is full during Leave, Shutdown or an update, which memberlist cannot do at once; a test with made-up time can wait for it
}

// Start begins to gossip, and returns when it has tried all addresses to join. The sockets
// are closed by Shutdown, and if there is an error.
func Start(c Config) (*Gossip, error) {
	g := &Gossip{config: c, logger: c.Logger, woken: make(chan struct{}, 1), update: make(chan struct{}, 1), leave: make(chan struct{}, 1)}
	if g.logger == nil {
		g.logger = slog.New(slog.DiscardHandler)
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if err := g.start(); err != nil {
		g.cancel()
		return nil, errors.Join(err, c.Packets.Close(), c.Listener.Close())
	}
	g.loops.Go(g.tell)
	var known int
	var old error
	var wait sync.WaitGroup
	wait.Go(func() { known, old = g.join(c.Known) })
	joined, err := g.join(c.Join)
	wait.Wait()
	if joined == 0 && errors.Is(err, ErrForeign) {
		return nil, errors.Join(&ForeignError{g.view.other(), c.Cluster}, g.Shutdown())
	}
	joined, err = joined+known, errors.Join(err, old)
	if joined == 0 && c.MustJoin {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrAlone, err), g.Shutdown())
	}
	if joined == 0 && err != nil { // else nobody could tell why a node that joins does not go on
		g.logger.Warn("no node to join has answered yet; they are tried until one does", "error", err)
	}
	g.loops.Go(g.keep)
	return g, nil
}

func (g *Gossip) start() (err error) {
	c := &g.config
	addrs, err := resolve(g.ctx, c.Self.Addr)
	if err != nil {
		return fmt.Errorf("the address of this node: %w", err)
	}
	if g.self = addrs[0]; g.self.Addr().IsUnspecified() || g.self.Port() == 0 {
		return fmt.Errorf("%s is no address at which other nodes find this one: name one of its interfaces, and a port", c.Self.Addr)
	}
	me := meta{Boot: c.Self.Boot, Cluster: c.Cluster, Name: c.Self.Name, Keeps: c.Self.Keeps, Weight: c.Self.Weight}
	longest := me
	longest.Leaving, longest.Departs = true, true
	if me.Cluster == "" {
		longest.Cluster = strings.Repeat("f", 16)
	}
	b, err := longest.encode()
	if err != nil {
		return err
	}
	if _, err := decodeMeta(b); err != nil {
		return fmt.Errorf("this node: %w", err)
	}
	g.view = &view{self: c.Self.Node, me: me, known: map[cluster.NodeID]*sighting{}, claims: map[cluster.NodeID]time.Time{},
		said: map[string]bool{}, wake: func() { poke(g.woken) }}
	m := memberlist.DefaultLANConfig()
	m.Name = c.Self.Node.String()
	m.BindPort = int(g.self.Port())
	m.ProbeInterval, m.ProbeTimeout, m.SuspicionMult = 500*time.Millisecond, 300*time.Millisecond, 3
	if c.Pace == cluster.Quick {
		m.ProbeInterval, m.ProbeTimeout, m.SuspicionMult = 200*time.Millisecond, 100*time.Millisecond, 2
	}
	m.PushPullInterval = 3 * time.Second
	m.TCPTimeout = streamPatience
	m.GossipToTheDeadTime = goneFor
	m.DeadNodeReclaimTime = time.Nanosecond // one that is gone may come back at another address
	m.Delegate, m.Events, m.Alive, m.Merge, m.Conflict = g.view, g.view, g.view, g.view, g.view
	noise := &noise{logger: g.logger}
	m.Logger = log.New(noise, "", 0)
	seal, err := newSeal(c.Key, c.PreviousKeys)
	if err != nil {
		return err
	}
	t := newTransport(c, g.self, seal, func(from net.Addr, err error) {
		g.unread.Add(1)
		noise.warn("a datagram came that cannot be read: it is from a node with another secret, or from a stranger", "from", from, "error", err)
	})
	m.Transport = t
	if g.list, err = memberlist.Create(m); err != nil {
		return errors.Join(err, t.Shutdown())
	}
	return nil
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will be looked at anyway
	}
}

// resolve returns the addresses of a host and port, the names of hosts looked up.
func resolve(ctx context.Context, addr string) (all []netip.AddrPort, err error) {
	if a, err := netip.ParseAddrPort(addr); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(a.Addr().Unmap(), a.Port())}, nil
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err // names it
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		all = append(all, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no address", addr)
	}
	return all, nil
}

// join exchanges states with the nodes at these addresses, at most eight at once, and
// returns how many of them it has met.
func (g *Gossip) join(addrs []string) (met int, err error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	room := make(chan struct{}, 8)
	for _, addr := range slices.Compact(slices.Sorted(slices.Values(addrs))) {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			n, one := g.meet(addr)
			mu.Lock()
			defer mu.Unlock()
			if met += n; one != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", addr, one))
			}
		})
	}
	wait.Wait()
	return met, err
}

// meet exchanges states with who is at one address, unless that is this node.
func (g *Gossip) meet(addr string) (met int, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, streamPatience)
	defer cancel()
	all, err := resolve(ctx, addr)
	if err != nil {
		return 0, err
	}
	for _, a := range all {
		if a == g.self {
			continue
		}
		n, one := g.list.Join([]string{a.String()})
		if met += n; one != nil {
			if all, ok := one.(interface{ WrappedErrors() []error }); ok {
				one = errors.Join(all.WrappedErrors()...) // they were in one line each
			}
			if strings.Contains(one.Error(), twoClusters) { // memberlist passes on no more than the text
				one = fmt.Errorf("%w: %w", ErrForeign, one)
			}
			err = errors.Join(err, one)
		}
	}
	return met, err
}

// tell calls the owner's functions.
func (g *Gossip) tell() {
	var last []cluster.Member
	for {
		select {
		case <-g.woken:
		case <-g.ctx.Done():
			return
		}
		adopted, refused := g.view.news()
		if adopted != "" {
			poke(g.update) // the others should know, too
			if g.config.Adopted != nil {
				g.config.Adopted(adopted)
			}
		}
		for _, text := range refused {
			if g.config.Refused != nil {
				g.config.Refused(text)
			}
		}
		if now := g.view.members(); !slices.Equal(last, now) {
			last = now
			if g.config.Changed != nil {
				g.config.Changed(slices.Clone(now))
			}
		}
	}
}

// keep looks for others while there are none, tries those that are gone, and says what is
// new of this node.
func (g *Gossip) keep() {
	wait := firstRetry
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.update:
			g.leave <- struct{}{}
			if g.ctx.Err() == nil {
				_ = g.list.UpdateNode(updatePatience) // if that is late, push/pull brings it
			}
			<-g.leave
			continue
		case <-timer.C:
		}
		absent := g.view.absent()
		if g.lost() {
			wait = min(2*wait, retry)
			rand.Shuffle(len(absent), func(i, j int) { absent[i], absent[j] = absent[j], absent[i] })
			_, _ = g.join(slices.Concat(absent[:min(len(absent), 8)], g.config.Join, g.config.Known))
		} else {
			wait = retry
			if len(absent) > 0 {
				_, _ = g.join(absent[rand.IntN(len(absent)):][:1])
			}
		}
		if !g.lost() {
			wait = retry
		}
		poke(g.woken) // somebody may have been gone for long enough
		timer.Reset(wait/2 + rand.N(wait))
	}
}

// lost reports whether this node still has to find its cluster: it is alone, or all that it
// has met are as new as itself, since the node that they all wait for was not there yet.
func (g *Gossip) lost() bool { return g.view.alone() || g.ClusterID() == "" }

// ClusterID is the id of the cluster that the node belongs to; "" if it does not know yet.
func (g *Gossip) ClusterID() string {
	g.view.mu.Lock()
	defer g.view.mu.Unlock()
	return g.view.me.Cluster
}

// Stats are numbers about the membership.
type Stats struct {
	Members int // alive, this node included
	Gone    int // in the view, but not alive
	Health  int // 0 is well; greater: this node is late itself, so it is slower to suspect others
	Unread  int // datagrams that could not be decrypted
}

// Stats returns the present numbers.
func (g *Gossip) Stats() (s Stats) {
	for _, m := range g.view.members() {
		if m.Alive {
			s.Members++
		} else {
			s.Gone++
		}
	}
	s.Health = g.list.GetHealthScore()
	s.Unread = int(g.unread.Load())
	return s
}

// Depart says to the others that this node is about to leave, and returns at once.
func (g *Gossip) Depart() {
	g.view.mu.Lock()
	g.view.me.Departs = true
	g.view.mu.Unlock()
	poke(g.update)
}

// Leave says to the others that this node leaves, so that they do not take it for dead. It
// returns when some have been told, or with an error after the timeout (0: none). Shutdown comes
// after it.
func (g *Gossip) Leave(timeout time.Duration) error {
	g.leave <- struct{}{}
	defer func() { <-g.leave }()
	g.view.mu.Lock()
	g.view.me.Leaving = true
	g.view.mu.Unlock()
	if g.ctx.Err() != nil {
		return net.ErrClosed
	}
	// memberlist does not tell who hears of it whether a member has left or died.
	return errors.Join(g.list.UpdateNode(timeout/2), g.list.Leave(timeout/2))
}

// Shutdown ends it, and waits for its goroutines. Without Leave it looks like a death to
// the others.
func (g *Gossip) Shutdown() (err error) {
	g.once.Do(func() {
		g.cancel()
		g.leave <- struct{}{}
		defer func() { <-g.leave }()
		g.view.mu.Lock()
		g.view.closed = true // timers of memberlist go on for some seconds
		g.view.mu.Unlock()
		err = g.list.Shutdown()
	})
	g.loops.Wait()
	return err
}
