package gossip

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/egretstream/egret/cluster"
)

const (
	// goneFor is how long a member that died or left stays in the view.
	goneFor = 10 * time.Minute
	// manyGone is how many of them are known at most, in the view or for trying again.
	manyGone = 1000
	// claimedFor is how long two addresses may claim to be one node before it is said: one
	// of them may be a process that has just died.
	claimedFor = 15 * time.Second
)

// A view is what is known of the others. memberlist tells it while it holds a lock of its
// own, so nothing here calls memberlist, waits, or calls anybody else: what is to be told
// is kept, and wake called, which does not wait.
type view struct {
	self cluster.NodeID
	wake func()

	mu      sync.Mutex
	me      meta   // what this node says of itself
	adopted bool   // me.Cluster came from another node, and its owner has not been told
	foreign string // the last other cluster that a node was of
	known   map[cluster.NodeID]*sighting
	claims  map[cluster.NodeID]time.Time // since when a node is claimed by two addresses
	said    map[string]bool              // of refusals
	refused []string                     // to be told
	closed  bool
}

// A sighting is the latest that is known of a node.
type sighting struct {
	member cluster.Member
	gone   time.Time // since when it is not alive
}

// members returns this node, the others, and those that have not been gone for long.
func (v *view) members() (all []cluster.Member) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.known {
		if s.member.Alive || time.Since(s.gone) < goneFor {
			all = append(all, s.member)
		}
	}
	slices.SortFunc(all, func(a, b cluster.Member) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// news returns what the owner has to be told beside the members, once.
func (v *view) news() (adopted string, refused []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.adopted {
		adopted, v.adopted = v.me.Cluster, false
	}
	refused, v.refused = v.refused, nil
	return adopted, refused
}

// absent returns where members are that do not answer, those that left excepted.
func (v *view) absent() (addrs []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.known {
		if !s.member.Alive && !s.member.Left {
			addrs = append(addrs, s.member.Addr)
		}
	}
	slices.Sort(addrs)
	return addrs
}

// alone reports whether there is no other member.
func (v *view) alone() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.known {
		if s.member.Alive && s.member.Node != v.self {
			return false
		}
	}
	return true
}

func (v *view) refuse(key, text string) {
	if !v.said[key] && len(v.said) < manyGone && !v.closed {
		v.said[key] = true
		v.refused = append(v.refused, text)
		v.wake()
	}
}

// twoClusters is in what is said of a node of another cluster.
const twoClusters = "two clusters do not become one"

// stranger says why a node does not belong to this cluster, and takes the id of its
// cluster if this node has none.
func (v *view) stranger(name, addr string, m meta) error {
	switch {
	case m.Cluster == "" || m.Cluster == v.me.Cluster:
		return nil
	case v.me.Cluster == "":
		v.me.Cluster, v.adopted = m.Cluster, true
		v.wake()
		return nil
	}
	v.foreign = m.Cluster
	err := fmt.Errorf("node %s at %s belongs to cluster %s, and this node to cluster %s: %s."+
		" Start one of the two with an empty data directory to have it in the other's cluster", name, addr, m.Cluster, v.me.Cluster, twoClusters)
	v.refuse("cluster "+name, err.Error())
	return err
}

// other returns the last other cluster that a node was of; "": none was.
func (v *view) other() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.foreign
}

// A ForeignError is an ErrForeign that says which clusters the two are of.
type ForeignError struct{ Other, Own string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the node to join belongs to cluster %s, and this node to cluster %s", e.Other, e.Own)
}

// Unwrap returns ErrForeign.
func (e *ForeignError) Unwrap() error { return ErrForeign }

// NotifyMerge is asked before states are exchanged to join.
func (v *view) NotifyMerge(peers []*memberlist.Node) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range peers {
		m, err := decodeMeta(p.Meta)
		if err != nil {
			continue // NotifyAlive refuses it alone
		}
		if err := v.stranger(p.Name, p.Address(), m); err != nil {
			return err
		}
	}
	return nil
}

// NotifyAlive is asked whenever a node is said to be there, before it is believed.
func (v *view) NotifyAlive(p *memberlist.Node) error {
	var id cluster.NodeID
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := id.UnmarshalText([]byte(p.Name)); err != nil {
		v.refuse("name "+p.Name, err.Error())
		return err
	}
	if id == v.self {
		return nil // memberlist answers what is wrong
	}
	m, err := decodeMeta(p.Meta)
	if err != nil {
		err = fmt.Errorf("node %s at %s: %w", p.Name, p.Address(), err)
		v.refuse("meta "+p.Name, err.Error())
		return err
	}
	if err := v.stranger(p.Name, p.Address(), m); err != nil {
		return err
	}
	s := v.known[id]
	switch {
	case s == nil || m.Boot > s.member.Boot:
	case m.Boot < s.member.Boot:
		return fmt.Errorf("node %s has been started again since: this is process %d, and there is %d", p.Name, m.Boot, s.member.Boot)
	case p.Address() != s.member.Addr:
		err := twice(id, p.Address(), s.member.Addr)
		v.refuse("twice "+p.Name, err.Error())
		return err
	}
	return nil
}

func twice(id cluster.NodeID, one, other string) error {
	return fmt.Errorf("node %v is at %s and at %s: a data directory belongs to one process. Stop one of the two, and start it with"+
		" a directory of its own", id, one, other)
}

// NotifyConflict hears of a node that is said to be somewhere else, while it is believed
// to be there still. That is how it looks when it is started again at another address;
// if it goes on, there are two.
func (v *view) NotifyConflict(existing, other *memberlist.Node) {
	var id cluster.NodeID
	if id.UnmarshalText([]byte(existing.Name)) != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	since, ok := v.claims[id]
	if !ok || time.Since(since) > 2*claimedFor {
		if len(v.claims) < manyGone {
			v.claims[id] = time.Now()
		}
		return
	}
	if time.Since(since) >= claimedFor {
		v.refuse("twice "+existing.Name, twice(id, existing.Address(), other.Address()).Error())
	}
}

func (v *view) NotifyJoin(n *memberlist.Node) { v.see(n, true) }

func (v *view) NotifyUpdate(n *memberlist.Node) { v.see(n, true) }

func (v *view) NotifyLeave(n *memberlist.Node) { v.see(n, false) }

func (v *view) see(n *memberlist.Node, alive bool) {
	var id cluster.NodeID
	m, err := decodeMeta(n.Meta)
	if id.UnmarshalText([]byte(n.Name)) != nil || err != nil {
		return // it was not let in
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	s := &sighting{member: cluster.Member{Home: cluster.Home{Node: id, Boot: m.Boot}, Name: m.Name, Addr: n.Address(),
		Keeps: m.Keeps, Alive: alive, Left: !alive && m.Leaving, Departs: alive && m.Departs, Weight: m.Weight}}
	if s.member.Name == "" {
		s.member.Name = s.member.Addr
	}
	if !alive {
		s.gone = time.Now()
	}
	delete(v.claims, id)
	v.known[id] = s
	if len(v.known) > manyGone {
		v.drop()
	}
	v.wake()
}

// drop forgets the member that has been gone for longest.
func (v *view) drop() {
	var oldest cluster.NodeID
	var since time.Time
	for id, s := range v.known {
		if !s.member.Alive && (oldest == 0 || s.gone.Before(since)) {
			oldest, since = id, s.gone
		}
	}
	delete(v.known, oldest)
}

// NodeMeta is what this node says of itself.
func (v *view) NodeMeta(int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.me.encode()
	if err != nil {
		panic(err) // Start has tried the longest
	}
	return b
}

// The other ways of memberlist to carry something are not used.
func (v *view) NotifyMsg([]byte)                {}
func (v *view) GetBroadcasts(int, int) [][]byte { return nil }
func (v *view) LocalState(bool) []byte          { return nil }
func (v *view) MergeRemoteState([]byte, bool)   {}
