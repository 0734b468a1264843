package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Server is a node that the log is copied to.
type Server struct {
	Node  NodeID
	Addr  string // where it was when it was added
	Voter bool   // it counts for agreement; the others only listen
}

const (
	// MaxVoters is how many voters there are at most: two of five may die at once. Each more
	// makes every agreement slower.
	MaxVoters = 5
	// promoteAfter is how long a node has to be alive without a break to get a vote.
	promoteAfter = 10 * time.Second
	// replaceAfter is how long a voter has to be gone to lose its vote to somebody who is
	// there: a process that is started again is back sooner.
	replaceAfter = 30 * time.Second
	// forgetAfter is how long one has to be gone to lose its vote, or its place among the
	// servers, if nothing is better by that.
	forgetAfter = 10 * time.Minute
)

// A VoterChange is one change of the servers of the log.
type VoterChange struct {
	Do   ServerChange
	Node NodeID
	Addr string // of one that is added or promoted
}

func (c VoterChange) String() string { return fmt.Sprintf("%v %v", c.Do, c.Node) }

// A ServerChange is what is to be done with a server.
type ServerChange int

const (
	AddServer     ServerChange = iota + 1 // it listens from now on
	PromoteServer                         // it votes from now on
	DemoteServer                          // it only listens from now on
	RemoveServer                          // the log is not copied to it any more
)

func (c ServerChange) String() string {
	return [...]string{"nothing", "add", "promote", "demote", "remove"}[c]
}

// Voters says what the leader should change next in the servers of the log. It is asked
// again when that is done, and whenever something else is new.
//
// All members listen. One, three or five of those that keep data vote, as many as there
// are: with an even number a death more or less makes no difference, but one more has to
// agree. A node without a data directory votes only while there is no other.
//
// A voter that is gone is demoted first, and its replacement promoted afterwards. Let there
// be n voters, of whom a are alive; then a-(n/2+1) more may die. Demoting a dead one makes
// that no smaller, and asks nothing of anybody. Promoting one first makes it no smaller
// either, but only if the new one is well and has the whole log: until it has, nothing may
// be agreed on. So a dead voter loses its vote early if more may die afterwards than now,
// with all who can be promoted; if not (one of three is gone, and there is nobody else),
// it keeps it for ten minutes, since all is well again when it comes back.
//
// Since says for each server and member since when it has been alive, or gone, without a
// break, by the same clock as now; Steady keeps it. A node that comes and goes is neither
// promoted nor demoted.
func Voters(leader NodeID, servers []Server, members []Member, since map[NodeID]time.Duration, now time.Duration) (c VoterChange, ok bool) {
	v := council{leader: leader, members: map[NodeID]Member{}, since: since, now: now}
	for _, m := range members {
		v.members[m.Node] = m
	}
	v.servers = slices.SortedFunc(slices.Values(servers), func(a, b Server) int { return cmp.Compare(a.Node, b.Node) })
	for _, step := range []func(*council) (VoterChange, bool){
		(*council).left, (*council).votes, (*council).added, (*council).forgotten} {
		if c, ok = step(&v); ok {
			return c, true
		}
	}
	return c, false
}

// A council is the servers as they are now.
type council struct {
	leader  NodeID
	servers []Server // by node
	members map[NodeID]Member
	since   map[NodeID]time.Duration
	now     time.Duration
}

// steady is for how long a node has been what it is.
func (v *council) steady(n NodeID) time.Duration {
	if s, ok := v.since[n]; ok {
		return v.now - s
	}
	return 0
}

func (v *council) alive(n NodeID) bool { return n == v.leader || v.members[n].Alive }

// gone reports whether a node has been gone for that long.
func (v *council) gone(n NodeID, long time.Duration) bool { return !v.alive(n) && v.steady(n) >= long }

// keeps reports whether a node is alive and may vote beside others.
func (v *council) keeps(n NodeID) bool { return v.alive(n) && v.members[n].Keeps }

// pick returns the server that is first in an order among those that are wanted.
func (v *council) pick(wanted func(Server) bool, order func(a, b NodeID) int) (best NodeID, ok bool) {
	for _, s := range v.servers {
		if wanted(s) && (!ok || order(s.Node, best) < 0) {
			best, ok = s.Node, true
		}
	}
	return best, ok
}

// steadiest puts those first that have been what they are for longest.
func (v *council) steadiest(a, b NodeID) int { return cmp.Compare(v.steady(b), v.steady(a)) }

// left removes who has said that it leaves. It waits for that, so it still helps to agree;
// but if nothing could be agreed on without it, a voter that is gone already is demoted
// first.
func (v *council) left() (VoterChange, bool) {
	n, ok := v.pick(func(s Server) bool { return s.Node != v.leader && v.members[s.Node].Left }, func(a, b NodeID) int { return 0 })
	votes, others, living := false, 0, 0
	for _, s := range v.servers {
		switch {
		case s.Voter && s.Node == n:
			votes = true
		case s.Voter:
			others++
			if v.alive(s.Node) {
				living++
			}
		}
	}
	if ok && votes && spare(others, living) < 0 {
		gone, found := v.pick(func(s Server) bool { return s.Voter && s.Node != n && !v.alive(s.Node) }, v.steadiest)
		if found {
			return VoterChange{Do: DemoteServer, Node: gone}, true
		}
	}
	return VoterChange{Do: RemoveServer, Node: n}, ok
}

// spare is how many of n voters may die, if a of them are alive. It is below zero if
// nothing can be agreed on.
func spare(n, a int) int { return a - (n/2 + 1) }

// votes gives and takes votes.
func (v *council) votes() (c VoterChange, ok bool) {
	var voters, living, keeping, able int // able: vote or could
	for _, s := range v.servers {
		switch {
		case s.Voter:
			voters++
			if v.alive(s.Node) {
				living++
			}
			if v.keeps(s.Node) {
				keeping++
				able++
			}
		case v.ready(s):
			able++
		}
	}
	if able == 0 {
		return c, false // one without data is alone
	}
	want := min(able, MaxVoters)
	want -= 1 - want%2 // odd

	better := spare(want, want) > spare(voters, living)
	n, ok := v.pick(func(s Server) bool {
		return s.Voter && (better && v.gone(s.Node, replaceAfter) || v.gone(s.Node, forgetAfter))
	}, v.steadiest)
	if ok {
		return VoterChange{Do: DemoteServer, Node: n}, true
	}
	if keeping > 0 {
		n, ok = v.pick(func(s Server) bool { return s.Voter && v.alive(s.Node) && !v.keeps(s.Node) }, v.steadiest)
		if ok {
			return VoterChange{Do: DemoteServer, Node: n}, true
		}
	}
	if voters < want || keeping == 0 {
		n, ok = v.pick(v.ready, v.steadiest)
		if ok {
			return VoterChange{Do: PromoteServer, Node: n, Addr: v.members[n].Addr}, true
		}
	}
	if voters > want && voters == living && v.quiet() {
		n, ok = v.pick(func(s Server) bool { return s.Voter && s.Node != v.leader }, func(a, b NodeID) int { return v.steadiest(b, a) })
		return VoterChange{Do: DemoteServer, Node: n}, ok
	}
	return c, false
}

// ready reports whether a server could be promoted.
func (v *council) ready(s Server) bool {
	return !s.Voter && v.keeps(s.Node) && v.steady(s.Node) >= promoteAfter
}

// quiet reports whether nobody may be about to become a voter: then one more than an odd
// number of them is one too many.
func (v *council) quiet() bool {
	for n, m := range v.members {
		if m.Keeps && !m.Left && v.steady(n) < replaceAfter {
			return false
		}
	}
	return true
}

// added makes members servers.
func (v *council) added() (VoterChange, bool) {
	for _, n := range slices.Sorted(maps.Keys(v.members)) {
		_, ok := slices.BinarySearchFunc(v.servers, n, func(s Server, n NodeID) int { return cmp.Compare(s.Node, n) })
		if !ok && v.members[n].Alive {
			return VoterChange{Do: AddServer, Node: n, Addr: v.members[n].Addr}, true
		}
	}
	return VoterChange{}, false
}

// forgotten removes who only listens and has been gone for long.
func (v *council) forgotten() (VoterChange, bool) {
	n, ok := v.pick(func(s Server) bool { return !s.Voter && v.gone(s.Node, forgetAfter) }, v.steadiest)
	return VoterChange{Do: RemoveServer, Node: n}, ok
}

// Steady remembers since when members and servers have been alive or gone, for Voters. Its
// zero value has seen nobody. Owner: who asks Voters.
type Steady struct {
	is    map[NodeID]state
	since map[NodeID]time.Duration
}

// A state is what may change about a node. A later process is a break.
type state struct {
	boot  Boot
	alive bool
}

// See takes what is the case now. A server that is no member is gone.
func (s *Steady) See(now time.Duration, servers []Server, members []Member) {
	is := map[NodeID]state{}
	for _, v := range servers {
		is[v.Node] = state{boot: s.is[v.Node].boot}
	}
	for _, m := range members {
		is[m.Node] = state{m.Boot, m.Alive}
	}
	since := map[NodeID]time.Duration{}
	for n, its := range is {
		was, ok := s.is[n]
		if since[n] = now; ok && was == its {
			since[n] = s.since[n]
		}
	}
	s.is, s.since = is, since
}

// Since is what Voters wants to know. It is not changed afterwards.
func (s *Steady) Since() map[NodeID]time.Duration { return s.since }
