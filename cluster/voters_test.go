package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A parliament is a cluster with a log, as Voters sees it.
type parliament struct {
	now     time.Duration
	leader  NodeID
	servers []Server
	members []Member
	steady  Steady
	log     []string
}

func (p *parliament) member(n NodeID) *Member {
	for i := range p.members {
		if p.members[i].Node == n {
			return &p.members[i]
		}
	}
	return nil
}

func (p *parliament) count() (voters, living int) {
	for _, s := range p.servers {
		if s.Voter {
			voters++
			if m := p.member(s.Node); m != nil && m.Alive {
				living++
			}
		}
	}
	return voters, living
}

func (p *parliament) agrees() bool { return spare(p.count()) >= 0 }

// elect finds a leader among living voters, if there is none.
func (p *parliament) elect() {
	ok := func(s Server) bool {
		m := p.member(s.Node)
		return s.Voter && m != nil && m.Alive
	}
	if p.agrees() && slices.ContainsFunc(p.servers, func(s Server) bool { return s.Node == p.leader && ok(s) }) {
		return
	}
	p.leader = 0
	if i := slices.IndexFunc(p.servers, ok); i >= 0 && p.agrees() {
		p.leader = p.servers[i].Node
		p.steady = Steady{} // the new one has watched for itself, in the worst case only now
	}
}

// step makes one change, if there is one and a leader, after some time.
func (p *parliament) step(d time.Duration) (c VoterChange, ok bool) {
	p.now += d
	p.elect()
	if p.leader == 0 {
		return c, false
	}
	p.steady.See(p.now, p.servers, p.members)
	if c, ok = Voters(p.leader, p.servers, p.members, p.steady.Since(), p.now); !ok {
		return c, false
	}
	p.log = append(p.log, fmt.Sprintf("%v %v", p.now, c))
	i := slices.IndexFunc(p.servers, func(s Server) bool { return s.Node == c.Node })
	switch c.Do {
	case AddServer:
		if i >= 0 {
			panic("added twice")
		}
		p.servers = append(p.servers, Server{Node: c.Node, Addr: c.Addr})
	case PromoteServer:
		p.servers[i].Voter = true
	case DemoteServer:
		p.servers[i].Voter = false
	case RemoveServer:
		p.servers = slices.Delete(p.servers, i, i+1)
	}
	return c, true
}

// run makes steps of a second for that long.
func (p *parliament) run(d time.Duration) {
	for end := p.now + d; p.now < end; {
		p.step(time.Second)
	}
}

func (p *parliament) String() string {
	var all []string
	for _, s := range slices.SortedFunc(slices.Values(p.servers), func(a, b Server) int { return int(a.Node) - int(b.Node) }) {
		text := fmt.Sprint(int(s.Node))
		if s.Voter {
			text += "v"
		}
		if m := p.member(s.Node); m == nil || !m.Alive {
			text = "-" + text
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// found is a cluster of one voter, 1.
func found(keeps bool) *parliament {
	p := &parliament{leader: 1, servers: []Server{{Node: 1, Addr: "1", Voter: true}}}
	p.join(1, keeps)
	return p
}

func (p *parliament) join(n NodeID, keeps bool) {
	if m := p.member(n); m != nil {
		m.Alive, m.Left = true, false
		m.Boot++
		return
	}
	p.members = append(p.members, Member{Home: Home{n, 1}, Addr: fmt.Sprint(n), Keeps: keeps, Alive: true})
}

func TestVotersGrow(t *testing.T) {
	p := found(true)
	p.run(time.Minute)
	require.Equal(t, "1v", p.String())
	for _, tt := range []struct {
		node  NodeID
		keeps bool
		want  string
	}{
		{2, true, "1v 2"},
		{3, false, "1v 2 3"},
		{4, true, "1v 2v 3 4v"},
		{5, true, "1v 2v 3 4v 5"},
		{6, true, "1v 2v 3 4v 5v 6v"},
		{7, true, "1v 2v 3 4v 5v 6v 7"},
		{8, true, "1v 2v 3 4v 5v 6v 7 8"},
	} {
		p.join(tt.node, tt.keeps)
		p.run(9 * time.Second)
		require.Contains(t, p.String(), fmt.Sprint(int(tt.node)), "it listens at once")
		require.NotContains(t, p.String(), fmt.Sprint(int(tt.node))+"v", "it has not been there for long")
		p.run(time.Minute)
		require.Equal(t, tt.want, p.String())
	}
}

// What is done about deaths, by who else is there.
func TestVotersDie(t *testing.T) {
	for _, tt := range []struct {
		name   string
		nodes  NodeID
		dead   []NodeID
		soon   string // after a minute
		late   string // after a quarter of an hour
		change []string
	}{
		{"one of three", 3, []NodeID{3}, "1v 2v -3v", "1v 2", []string{"demote 3", "demote 2", "remove 3"}},
		{"one of three, with another", 4, []NodeID{3}, "1v 2v -3 4v", "1v 2v 4v", []string{"demote 3", "promote 4", "remove 3"}},
		{"the leader of three", 3, []NodeID{1}, "-1v 2v 3v", "2v 3", nil},
		{"one of five", 5, []NodeID{5}, "1v 2v 3v 4v -5v", "1v 2v 3v 4", nil},
		{"two of five", 5, []NodeID{4, 5}, "1v 2v 3v -4 -5", "1v 2v 3v", []string{"demote 4", "demote 5", "remove 4", "remove 5"}},
		{"two of five, with another", 6, []NodeID{4, 5}, "1v 2v 3v -4 -5 6", "1v 2v 3v 6", nil},
		{"two of five, with two", 7, []NodeID{4, 5}, "1v 2v 3v -4 -5 6v 7v", "1v 2v 3v 6v 7v", nil},
		{"most of three", 3, []NodeID{2, 3}, "1v -2v -3v", "1v -2v -3v", []string{}},
		{"one that only listens", 4, []NodeID{4}, "1v 2v 3v -4", "1v 2v 3v", []string{"remove 4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := found(true)
			for n := NodeID(2); n <= tt.nodes; n++ {
				p.join(n, true)
				p.run(time.Second)
			}
			p.run(time.Minute)
			p.log = nil
			for _, n := range tt.dead {
				p.member(n).Alive = false
			}
			p.run(29 * time.Second)
			require.Empty(t, p.log, "it may be back soon")
			p.run(31 * time.Second)
			require.Equal(t, tt.soon, p.String())
			p.run(14 * time.Minute)
			require.Equal(t, tt.late, p.String())
			if tt.change != nil {
				require.Len(t, p.log, len(tt.change), p.log)
				for i, c := range tt.change {
					words := strings.Fields(p.log[i])
					require.Equal(t, c, words[1]+" "+strings.TrimLeft(words[2], "0"))
				}
			}
			if len(tt.change) == 0 && tt.change != nil {
				return // nothing can be agreed on
			}
			for _, n := range tt.dead {
				p.join(n, true)
			}
			p.run(time.Minute)
			voters, living := p.count()
			require.Equal(t, voters, living)
			require.Contains(t, []int{1, 3, 5}, voters)
			require.Len(t, p.servers, int(tt.nodes))
		})
	}
}

// An even number of voters is left alone while it may become odd by itself.
func TestVotersWait(t *testing.T) {
	p := found(true)
	p.join(2, true)
	p.join(3, true)
	for p.String() != "1v 2v 3" {
		p.step(time.Second)
		require.Less(t, p.now, time.Minute)
	}
	p.member(3).Alive = false
	p.run(25 * time.Second)
	require.Equal(t, "1v 2v -3", p.String())
	p.join(3, true)
	p.run(15 * time.Second)
	require.Equal(t, "1v 2v 3v", p.String())
}

// Who leaves is no server at once, whoever it is.
func TestVotersLeave(t *testing.T) {
	p := found(true)
	for n := NodeID(2); n <= 4; n++ {
		p.join(n, true)
	}
	p.run(time.Minute)
	require.Equal(t, "1v 2v 3v 4", p.String())
	p.member(4).Alive, p.member(4).Left = false, true
	p.run(time.Second)
	require.Equal(t, "1v 2v 3v", p.String())
	p.join(4, true)
	p.run(time.Minute)
	p.member(2).Alive, p.member(2).Left = false, true
	p.run(2 * time.Second)
	require.Equal(t, "1v 3v 4v", p.String())
	p.member(3).Alive, p.member(3).Left = false, true
	p.run(time.Minute)
	require.Equal(t, "1v 4", p.String())
}

// A node without a directory founds a cluster and votes alone; when one comes that keeps
// data, the vote is that one's.
func TestVotersWithoutData(t *testing.T) {
	p := found(false)
	p.join(2, false)
	p.run(time.Minute)
	require.Equal(t, "1v 2", p.String())
	p.join(3, true)
	p.run(time.Minute)
	require.Equal(t, "1 2 3v", p.String())
	p.join(4, true)
	p.join(5, true)
	p.run(time.Minute)
	require.Equal(t, "1 2 3v 4v 5v", p.String())
}

// A voter that comes and goes stays one, and who comes and goes never becomes one.
func TestVotersFlap(t *testing.T) {
	p := found(true)
	for n := NodeID(2); n <= 5; n++ {
		p.join(n, true)
		if n == 3 {
			p.run(time.Minute)
		}
	}
	p.members[4].Keeps = false
	require.Equal(t, "1v 2v 3v", p.String())
	for i := range 1000 {
		p.member(3).Alive = i/20%2 == 0
		p.member(4).Alive = i/9%2 == 0
		p.step(time.Second)
		require.True(t, p.servers[2].Voter, "at %d", i)
		require.NotContains(t, p.String(), "4v")
	}
}

// Whatever happens, a change never brings the log nearer to where nothing can be agreed
// on; and when nothing happens any more, there are one, three or five voters, as many as
// there can be, all alive, and all members listen.
func TestVotersAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := found(rapid.Bool().Draw(t, "founder keeps"))
		next := NodeID(2)
		step := func(d time.Duration) bool {
			p.now += d
			p.elect()
			beforeVoters, beforeLiving := p.count()
			c, ok := p.step(0)
			if !ok {
				return false
			}
			voters, living := p.count()
			without := c.Do == DemoteServer && !p.member(c.Node).Keeps // gives its place to one that keeps data
			if spare(voters, living) < spare(beforeVoters, beforeLiving) && !(without && spare(voters, living) >= 0) {
				t.Fatalf("%v: of %d voters %d are alive, and then of %d %d: %v", c, beforeVoters, beforeLiving, voters, living, p.log)
			}
			if voters > MaxVoters+1 {
				t.Fatalf("%d voters: %v", voters, p.log)
			}
			return true
		}
		// safe reports whether this node may die, so that the rest can agree.
		safe := func(n NodeID) bool {
			m := p.member(n)
			m.Alive = false
			defer func() { m.Alive = true }()
			return p.agrees()
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			n := NodeID(rapid.IntRange(1, int(next)).Draw(t, "node"))
			switch m := p.member(n); {
			case m == nil:
				if next <= 9 {
					p.join(next, rapid.IntRange(0, 3).Draw(t, "keeps") > 0)
					next++
				}
			case !m.Alive:
				if m.Keeps { // the others are new ones when they come back
					p.join(n, true)
				}
			case safe(n):
				m.Alive = false
				m.Left = rapid.IntRange(0, 3).Draw(t, "leaves") == 0
			}
			for range rapid.IntRange(0, 40).Draw(t, "steps") {
				step(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "ms")) * time.Millisecond)
			}
		}
		for range 40 * 60 {
			step(time.Second)
		}
		for range 100 {
			if step(time.Second) {
				t.Fatalf("it does not come to rest: %v", p.log)
			}
		}
		var keeps, alive, kept int
		for _, m := range p.members {
			if m.Alive {
				alive++
				if m.Keeps {
					keeps++
				}
			}
		}
		want := min(keeps, MaxVoters)
		want -= 1 - want%2
		voters, living := p.count()
		for _, s := range p.servers {
			if m := p.member(s.Node); s.Voter && m.Keeps {
				kept++
			}
		}
		if keeps == 0 {
			want, kept = 1, 1
		}
		if voters != want || living != want || kept != want || len(p.servers) != alive {
			t.Fatalf("%v: %d of %d keep data: %v", p, keeps, alive, p.log)
		}
	})
}

func TestSteady(t *testing.T) {
	var s Steady
	see := func(now time.Duration, members ...Member) map[NodeID]time.Duration {
		s.See(now, []Server{{Node: 1}, {Node: 9}}, members)
		return s.Since()
	}
	a := Member{Home: Home{1, 1}, Alive: true}
	require.Equal(t, map[NodeID]time.Duration{1: 1, 9: 1}, see(1, a))
	require.Equal(t, map[NodeID]time.Duration{1: 1, 9: 1}, see(2, a))
	a.Boot++
	require.Equal(t, map[NodeID]time.Duration{1: 3, 9: 1}, see(3, a), "a later process")
	a.Alive = false
	require.Equal(t, map[NodeID]time.Duration{1: 4, 9: 1}, see(4, a))
	require.Equal(t, map[NodeID]time.Duration{1: 4, 9: 1}, see(5), "gone is gone")
	require.Equal(t, map[NodeID]time.Duration{1: 4, 9: 1, 2: 6}, see(6, Member{Home: Home{2, 1}}))
	require.Equal(t, map[NodeID]time.Duration{1: 4, 9: 1}, see(7), "nobody knows it any more")
}

// One of three voters is gone and another one leaves, which still helps to agree: the one
// that is gone loses its vote while that is possible.
func TestOneLeavesBesideOneThatIsGone(t *testing.T) {
	servers := []Server{{Node: 1, Voter: true}, {Node: 2, Voter: true}, {Node: 3, Voter: true}}
	members := []Member{
		{Home: Home{1, 1}, Keeps: true, Alive: true},
		{Home: Home{2, 1}, Keeps: true},
		{Home: Home{3, 1}, Keeps: true, Left: true},
	}
	c, ok := Voters(1, servers, members, map[NodeID]time.Duration{}, time.Second)
	require.True(t, ok)
	require.Equal(t, VoterChange{Do: DemoteServer, Node: 2}, c)
	servers[1].Voter = false
	c, ok = Voters(1, servers, members, map[NodeID]time.Duration{}, time.Second)
	require.True(t, ok)
	require.Equal(t, VoterChange{Do: RemoveServer, Node: 3}, c)
}
