package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// Members find each other, and a death is seen by all; whoever is back is a member again,
// in a later process.
func TestDeath(t *testing.T) {
	for _, tt := range []struct {
		pace  cluster.Pace
		limit time.Duration
	}{{cluster.Calm, 10 * time.Second}, {cluster.Quick, 4 * time.Second}} {
		t.Run(tt.pace.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				var all []*node
				for i := range 5 {
					all = append(all, n.start(t, i, func(c *Config) { c.Pace = tt.pace }))
				}
				see(t, 5*time.Second, "n0 n1 n2 n3 n4", all...)
				require.Equal(t, Stats{Members: 5}, all[3].g.Stats())
				all[1].stop()
				took := see(t, tt.limit, "n0 -n1 n2 n3 n4", all[0], all[2], all[3], all[4])
				t.Log("a death is seen by all after", took)
				require.Equal(t, 1, all[3].g.Stats().Gone)
				all[1].config.Self.Boot++
				require.NoError(t, all[1].start(n))
				see(t, 5*time.Second, "n0 n1 n2 n3 n4", all...)
				require.Equal(t, cluster.Member{Home: cluster.Home{Node: 2, Boot: 2}, Name: "n1", Addr: addr(1), Keeps: true, Alive: true, Weight: 1},
					all[4].g.view.members()[1])
				for _, d := range all {
					refused, adopted := d.told()
					require.Empty(t, refused)
					require.Empty(t, adopted)
					d.stop()
				}
			})
		})
	}
}

// Who leaves is not taken for dead; both are forgotten after a while.
func TestLeave(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		var all []*node
		for i := range 4 {
			all = append(all, n.start(t, i, nil))
		}
		see(t, 5*time.Second, "n0 n1 n2 n3", all...)
		require.NoError(t, all[1].g.Leave(5*time.Second))
		all[1].stop()
		all[2].stop()
		see(t, 10*time.Second, "n0 ~n1 -n2 n3", all[0], all[3])
		time.Sleep(goneFor - time.Minute)
		see(t, 0, "n0 ~n1 -n2 n3", all[0], all[3])
		time.Sleep(2 * time.Minute)
		see(t, 0, "n0 n3", all[0], all[3])
		// Even then they may come back, also at other addresses.
		for _, d := range all[1:3] {
			d.config.Self.Boot++
			d.config.Self.Addr = strings.Replace(d.config.Self.Addr, "10.0", "10.9", 1)
			require.NoError(t, d.start(n))
		}
		see(t, 10*time.Second, "n0 n1 n2 n3", all...)
		for _, d := range all {
			d.stop()
		}
	})
}

// A process that is started again at once, at another address, is let in when the one
// before is known to be dead. Nobody says that there are two.
func TestMovedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		all := []*node{n.start(t, 0, nil), n.start(t, 1, nil), n.start(t, 2, nil)}
		see(t, 5*time.Second, "n0 n1 n2", all...)
		all[2].stop()
		all[2].config.Self.Boot++
		all[2].config.Self.Addr = "10.9.9.9:7000"
		require.NoError(t, all[2].start(n))
		time.Sleep(20 * time.Second)
		for _, d := range all {
			see(t, 0, "n0 n1 n2", d)
			require.Equal(t, "10.9.9.9:7000", d.g.view.members()[2].Addr)
			require.Equal(t, cluster.Boot(2), d.g.view.members()[2].Boot)
			time.Sleep(time.Minute)
			refused, _ := d.told()
			require.Empty(t, refused)
		}
		for _, d := range all {
			d.stop()
		}
	})
}

// Two parts of a cluster grow together, however long they were apart, also when memberlist
// has forgotten the others, and when everybody was alone.
func TestParted(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  func(from, to string) bool
		want []string
	}{
		{"in two", func(from, to string) bool { return (from < addr(2)) != (to < addr(2)) },
			[]string{"n0 n1 -n2 -n3", "n0 n1 -n2 -n3", "-n0 -n1 n2 n3", "-n0 -n1 n2 n3"}},
		{"all", func(from, to string) bool { return true },
			[]string{"n0 -n1 -n2 -n3", "-n0 n1 -n2 -n3", "-n0 -n1 n2 -n3", "-n0 -n1 -n2 n3"}},
	} {
		for _, long := range []time.Duration{30 * time.Second, goneFor + time.Minute} {
			t.Run(fmt.Sprint(tt.name, " for ", long), func(t *testing.T) {
				bubble(t, func(t *testing.T, n *network) {
					var all []*node
					for i := range 4 {
						all = append(all, n.start(t, i, func(c *Config) { c.Join = c.Join[:0] }))
					}
					for _, d := range all[1:] { // and nobody has an address to join later
						_, err := d.g.join([]string{addr(0)})
						require.NoError(t, err)
					}
					see(t, 10*time.Second, "n0 n1 n2 n3", all...)
					n.part(tt.cut)
					for i, d := range all {
						see(t, 15*time.Second, tt.want[i], d)
					}
					time.Sleep(long)
					n.part(nil)
					t.Log("healed after", see(t, 30*time.Second, "n0 n1 n2 n3", all...))
					for _, d := range all {
						d.stop()
					}
				})
			})
		}
	}
}

// A node without a cluster takes the id of the one that it joins; two clusters that each
// have one refuse each other, and both say why.
func TestClusters(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, 0, nil)
		fresh := n.start(t, 1, func(c *Config) { c.Cluster = "" })
		more := n.start(t, 2, func(c *Config) { c.Cluster, c.Join = "", []string{addr(1)} })
		see(t, 5*time.Second, "n0 n1 n2", a, fresh, more)
		time.Sleep(5 * time.Second)
		for _, d := range []*node{fresh, more} {
			_, adopted := d.told()
			require.Equal(t, []string{"aa"}, adopted, "once")
			require.Equal(t, "aa", d.g.ClusterID())
		}
		_, adopted := a.told()
		require.Empty(t, adopted)
		for _, m := range a.g.list.Members() {
			require.Contains(t, string(m.Meta), `"c":"aa"`, "the others know that it has an id now")
		}

		b := n.start(t, 3, func(c *Config) { c.Cluster, c.Join = "bb", nil })
		b2 := n.start(t, 4, func(c *Config) { c.Cluster, c.Join = "bb", []string{addr(3)} })
		lost := &node{t: t, config: config(5, func(c *Config) { c.Cluster, c.MustJoin = "bb", true })}
		err := lost.start(n)
		require.ErrorIs(t, err, ErrForeign)
		require.ErrorContains(t, err, "belongs to cluster aa, and this node to cluster bb")
		_, err = b2.g.join([]string{addr(1)})
		require.Error(t, err)
		time.Sleep(time.Minute)
		for range 10 {
			_, err = b2.g.join([]string{addr(1)})
			require.Error(t, err, "again")
		}
		time.Sleep(time.Minute)
		see(t, 0, "n0 n1 n2", a, fresh, more)
		see(t, 0, "n3 n4", b, b2)
		refused, _ := b2.told()
		require.NotEmpty(t, refused)
		for i, text := range refused {
			require.Contains(t, text, "belongs to cluster aa, and this node to cluster bb: two clusters do not become one.")
			require.NotContains(t, refused[i+1:], text, "said once")
		}
		refused, _ = fresh.told()
		require.NotEmpty(t, refused)
		require.Contains(t, refused[0], "belongs to cluster bb, and this node to cluster aa")
		own := n.start(t, 6, func(c *Config) { c.Cluster, c.Join = "bb", []string{addr(1), addr(3)} }) // one of them is its own
		see(t, 5*time.Second, "n3 n4 n6", b, b2, own)
		for _, d := range []*node{a, fresh, more, b, b2, own} {
			d.stop()
		}
	})
}

// Two processes that both live and claim to be one node: the first stays, and all say it.
// A process that was replaced is not let in again.
func TestTwice(t *testing.T) {
	for _, boot := range []cluster.Boot{2, 3} {
		t.Run(fmt.Sprint("boot ", boot), func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				later := func(c *Config) { c.Self.Boot = 2 }
				all := []*node{n.start(t, 0, later), n.start(t, 1, later), n.start(t, 2, later)}
				see(t, 5*time.Second, "n0 n1 n2", all...)
				clone := n.start(t, 2, func(c *Config) { c.Self.Boot, c.Self.Addr = boot, "10.9.9.9:7000" })
				time.Sleep(2 * time.Minute)
				for _, d := range all[:2] {
					require.Equal(t, addr(2), d.g.view.members()[2].Addr)
					require.Equal(t, cluster.Boot(2), d.g.view.members()[2].Boot)
					refused, _ := d.told()
					require.Len(t, refused, 1, d.config.Self.Name)
					require.Contains(t, refused[0], "node 0000000000000003 is at ")
					require.Contains(t, refused[0], "10.9.9.9:7000")
				}
				refused, _ := clone.told()
				require.Len(t, refused, 1)
				all[2].stop()
				want := "n0 n1 n2" // the clone is a later process
				if boot == 2 {
					want = "n0 n1 -n2"
				}
				time.Sleep(time.Minute)
				see(t, 0, want, all[:2]...)
				for _, d := range []*node{all[0], all[1], clone} {
					d.stop()
				}
			})
		})
	}
	t.Run("an old process", func(t *testing.T) {
		bubble(t, func(t *testing.T, n *network) {
			all := []*node{n.start(t, 0, nil), n.start(t, 1, nil), n.start(t, 2, nil)}
			see(t, 5*time.Second, "n0 n1 n2", all...)
			old := all[2]
			n.part(func(from, to string) bool { return (from == addr(2)) != (to == addr(2)) }) // as if it were stopped
			see(t, 10*time.Second, "n0 n1 -n2", all[:2]...)
			all[2] = n.start(t, 2, func(c *Config) { c.Self.Boot, c.Self.Addr = 2, "10.9.9.9:7000" })
			see(t, 10*time.Second, "n0 n1 n2", all...)
			n.part(nil)
			for range 60 {
				time.Sleep(time.Second)
				for _, d := range all {
					require.Equal(t, cluster.Boot(2), d.g.view.members()[2].Boot, d.config.Self.Name)
				}
			}
			see(t, 10*time.Second, "n0 n1 n2", all...)
			refused, _ := old.told()
			require.Len(t, refused, 1, "it hears that there is another")
			all[2].stop()
			for range 60 {
				time.Sleep(time.Second)
				for _, d := range all[:2] {
					require.Equal(t, cluster.Boot(2), d.g.view.members()[2].Boot, "an earlier process does not come back")
				}
			}
			see(t, 0, "n0 n1 -n2", all[:2]...)
			for _, d := range []*node{all[0], all[1], old} {
				d.stop()
			}
		})
	})
}

// The addresses to join are tried until somebody answers; it is an error only for those
// who want it to be one.
func TestJoinLater(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		var logged buffer
		lone := n.start(t, 1, func(c *Config) {
			c.Cluster, c.Logger = "", slog.New(slog.NewTextHandler(&logged, nil))
		})
		must := &node{t: t, config: config(2, func(c *Config) { c.MustJoin = true })}
		err := must.start(n)
		require.ErrorIs(t, err, ErrAlone)
		require.ErrorContains(t, err, addr(0)+": ")
		time.Sleep(time.Hour)
		see(t, 0, "n1", lone)
		require.Equal(t, 1, strings.Count(logged.String(), "no node to join has answered yet"), "said, and once: %s", logged.String())
		require.Contains(t, logged.String(), addr(0)+": ", "and why")
		first := n.start(t, 0, nil)
		see(t, 10*time.Second, "n0 n1", first, lone)
		require.NoError(t, must.start(n))
		see(t, 10*time.Second, "n0 n1 n2", first, lone, must)

		for _, d := range []*node{first, lone, must} {
			d.stop()
		}
	})
}

// Two that are to join, and meet each other before who has the cluster is there, look on
// for it.
func TestJoinLaterThanEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		join := func(c *Config) { c.Cluster, c.Join = "", []string{addr(0), addr(1), addr(2)} }
		one, two := n.start(t, 1, join), n.start(t, 2, join)
		see(t, 10*time.Second, "n1 n2", one, two)
		time.Sleep(20 * time.Second)
		first := n.start(t, 0, nil)
		see(t, 20*time.Second, "n0 n1 n2", first, one, two)
		time.Sleep(5 * time.Second) // the last have told that they belong to a cluster
		for _, d := range []*node{first, one, two} {
			require.Equal(t, "aa", d.g.ClusterID())
			d.stop()
		}
	})
}

// A new secret can be brought in node by node: at each step all members hear each other.
// Who has another one is not heard.
func TestSecrets(t *testing.T) {
	one, two, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)
	bubble(t, func(t *testing.T, n *network) {
		var all []*node
		var logged buffer
		for i := range 3 {
			all = append(all, n.start(t, i, func(c *Config) { c.Key = one }))
		}
		see(t, 5*time.Second, "n0 n1 n2", all...)
		for _, keys := range [][][]byte{{two, one}, {two}} {
			for _, d := range all {
				d.stop()
				d.config.Key, d.config.PreviousKeys = keys[0], keys[1:]
				d.config.Self.Boot++
				d.config.Join = []string{addr(0), addr(1)}
				d.config.Logger = nil
				if len(keys) == 1 && d == all[0] {
					d.config.Logger = slog.New(slog.NewTextHandler(&logged, nil))
				}
				require.NoError(t, d.start(n))
				see(t, 15*time.Second, "n0 n1 n2", all...)
				time.Sleep(15 * time.Second) // until all feel well again
				unread := func() (n int) {
					for _, d := range all {
						n += d.g.Stats().Unread
					}
					return n
				}
				before := unread()
				time.Sleep(time.Minute)
				require.Equal(t, before, unread(), "everybody reads what it gets")
				for _, d := range all {
					require.Zero(t, d.g.Stats().Health)
				}
			}
		}
		stranger := n.start(t, 3, func(c *Config) { c.Key = other }) // connections are not encrypted here, so it gets in so far
		time.Sleep(90 * time.Second)
		require.Equal(t, 2, strings.Count(logged.String(), "from=10.0.0.4"), "once a minute: %s", logged.String())
		stranger.stop()
		for _, d := range all {
			d.stop()
		}
	})
}

// What is late and tells of an earlier process is neither believed nor taken for a second
// process.
func TestLateNews(t *testing.T) {
	b, err := meta{Boot: 1}.encode()
	require.NoError(t, err)
	v := &view{self: 1, wake: func() {}, said: map[string]bool{}, known: map[cluster.NodeID]*sighting{
		2: {member: cluster.Member{Home: cluster.Home{Node: 2, Boot: 2}, Addr: "10.0.0.2:1", Alive: true}}}}
	n := &memberlist.Node{Name: cluster.NodeID(2).String(), Addr: net.IPv4(10, 0, 0, 3), Port: 1, Meta: b}
	require.EqualError(t, v.NotifyAlive(n), "node 0000000000000002 has been started again since: this is process 1, and there is 2")
	_, refused := v.news()
	require.Empty(t, refused)
	for _, n := range []*memberlist.Node{{Name: "x"}, {Name: cluster.NodeID(2).String(), Meta: []byte("{")}} {
		require.Error(t, v.NotifyAlive(n))
		_, refused = v.news()
		require.Len(t, refused, 1)
		v.see(n, true)
	}
	require.Len(t, v.members(), 1)
}

// A buffer may be written by many.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestBadConfig(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		for _, tt := range []struct {
			change func(*Config)
			want   string
		}{
			{func(c *Config) { c.Self.Addr = "0.0.0.0:7000" }, "0.0.0.0:7000 is no address at which other nodes find this one"},
			{func(c *Config) { c.Self.Addr = "10.0.0.1:0" }, "10.0.0.1:0 is no address"},
			{func(c *Config) { c.Self.Name = strings.Repeat("x", 500) }, "give it a shorter name"},
			{func(c *Config) { c.Self.Boot = 0 }, "makes no sense"},
			{func(c *Config) { c.Cluster = "xyz" }, "makes no sense"},
			{func(c *Config) { c.Key = []byte("short") }, "16, 24 or 32 are wanted"},
			{func(c *Config) { c.PreviousKeys = [][]byte{make([]byte, 32)} }, "none for now"},
		} {
			d := &node{t: t, config: config(0, tt.change)}
			c := d.config
			h := n.host(addr(0))
			c.Packets, c.Listener, c.Dial = h, listener{h}, n.dial(addr(0))
			_, err := Start(c)
			require.ErrorContains(t, err, tt.want)
			select {
			case <-h.end:
			default:
				t.Error("its sockets are closed")
			}
		}
	})
}

func FuzzMeta(f *testing.F) {
	b, err := meta{Boot: 7, Cluster: "aa", Name: "n", Keeps: true, Weight: 3, Leaving: true}.encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"b":0}`))
	f.Add([]byte(`{"b":4294967296}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			return // it was longer than allowed
		}
		same, err := decodeMeta(again)
		require.NoError(t, err)
		require.Equal(t, m, same)
	})
}

func FuzzSeal(f *testing.F) {
	f.Add([]byte("x"), []byte("y"))
	s, err := newSeal(bytes.Repeat([]byte{1}, 32), [][]byte{bytes.Repeat([]byte{2}, 16)})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text, hostile []byte) {
		sealed := s.close(text, "a")
		out, err := s.open(sealed, "a")
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, out))
		_, err = s.open(hostile, "b")
		require.True(t, errors.Is(err, errSealed))
		if len(hostile) > 0 {
			sealed[int(hostile[0])%len(sealed)] ^= 1 << (len(hostile) % 8)
			_, err = s.open(sealed, "b")
			require.Error(t, err)
		}
	})
}
