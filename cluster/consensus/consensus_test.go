package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// What was agreed on is there after a restart, in its order; in memory it is gone, with
// the node.
func TestAlone(t *testing.T) {
	for _, dir := range []string{t.TempDir(), ""} {
		bubble(t, func(t *testing.T, n *network) {
			d := n.start(t, "a:1", dir, true, nil)
			leader(t, d)
			var want []string
			for i := range 5 {
				want = append(want, strconv.Itoa(i))
				require.NoError(t, d.propose(want[i]))
			}
			require.Equal(t, want, d.tape.all(), "what is agreed on is applied")
			require.Equal(t, []cluster.Server{{Node: d.node(), Addr: "a:1", Voter: true}}, d.log.Servers())
			home, id := d.id.Home(), d.id.Cluster()
			require.Len(t, id, 16)
			d.stop()
			require.ErrorIs(t, d.propose("late"), ErrClosed)
			require.NoError(t, d.log.Close(), "again")

			d = n.start(t, "a:1", dir, dir == "", nil)
			leader(t, d)
			time.Sleep(time.Second) // what was agreed on before is applied again
			if dir == "" {
				require.NotEqual(t, home.Node, d.node())
				require.Empty(t, d.tape.all())
			} else {
				require.Equal(t, cluster.Home{Node: home.Node, Boot: home.Boot + 1}, d.id.Home())
				require.Equal(t, id, d.id.Cluster())
				require.Equal(t, want, d.tape.all())
			}
			d.stop()
		})
	}
}

// Who leads is told even if raft has heard of it before it was asked to say so.
func TestLeaderOfBefore(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		d := n.start(t, "a:1", "", true, nil)
		leader(t, d)
		var told []cluster.NodeID
		late := &Log{node: d.node(), raft: d.log.raft, changed: make(chan raft.Observation),
			config: Config{Leader: func(who cluster.NodeID, _ bool, _ uint64) { told = append(told, who) }}}
		close(late.changed) // and nothing changes any more
		late.watch()
		require.Equal(t, []cluster.NodeID{d.node()}, told)
		d.stop()
	})
}

// The log survives the loss of its leader, and the leader catches up when it is back;
// with two of them all stopped, everything is still there.
func TestLeaderLost(t *testing.T) {
	for _, size := range []int{3, 5} {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				all := n.cluster(t, size)
				var want []string
				propose := func(d *node) {
					text := strconv.Itoa(len(want))
					require.NoError(t, d.propose(text))
					want = append(want, text)
				}
				first := all[0]
				for range 10 {
					propose(first)
				}
				same(t, want, all...)
				require.ErrorIs(t, all[1].propose("no"), ErrNotLeader)
				for _, d := range all {
					require.Len(t, d.log.Servers(), size)
				}

				before := time.Now()
				first.stop()
				rest := all[1:]
				next := leader(t, rest...)
				require.Less(t, time.Since(before), 3*time.Second)
				propose(next)
				same(t, want, rest...)
				back := n.start(t, first.addr, first.dir, false, nil)
				all = append([]*node{back}, rest...)
				require.Equal(t, next, leader(t, all...), "one that comes back does not take the lead")
				same(t, want, all...)
				require.Equal(t, cluster.Boot(2), back.id.Home().Boot)

				// All stop, and come back at other addresses, which the membership knows.
				for _, d := range all {
					d.stop()
				}
				at := map[cluster.NodeID]string{}
				for _, d := range all {
					at[d.node()] = "moved-" + d.addr
				}
				for i, d := range all {
					all[i] = n.start(t, at[d.node()], d.dir, false, func(id cluster.NodeID) string { return at[id] })
				}
				led := leader(t, all...)
				propose(led)
				same(t, want, all...)
				for _, d := range all {
					require.NoError(t, led.do(func(done func(error)) { led.log.AddNonvoter(d.node(), d.addr, done) }))
				}
				propose(led)
				same(t, want, all...)
				for _, s := range led.log.Servers() {
					require.Equal(t, at[s.Node], "moved-"+s.Addr, "the log has the address that it was added with")
					require.True(t, s.Voter, "who votes goes on to vote")
				}
				for _, d := range all {
					d.stop()
				}
			})
		})
	}
}

// A leader that is cut off has nothing agreed on, notices that it leads no more, and
// everything it was asked gets an answer. What it had alone is gone when it is back.
func TestLeaderCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		all := n.cluster(t, 3)
		require.NoError(t, all[0].propose("before"))
		n.part(around(all[0].addr))
		var mu sync.Mutex
		answers := map[string]int{}
		for i := range 2 * maxPending {
			all[0].log.Propose([]byte("alone "+strconv.Itoa(i)), func(_ any, err error) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					answers["agreed"]++
				case isAny(err, ErrUnsure, ErrNotLeader, ErrBusy):
					answers["not"]++
				default:
					answers[err.Error()]++
				}
			})
		}
		next := leader(t, all[1:]...)
		require.NoError(t, next.propose("after"))
		time.Sleep(2 * askPatience)
		mu.Lock()
		require.Equal(t, map[string]int{"not": 2 * maxPending}, answers)
		mu.Unlock()
		require.False(t, all[0].leads())
		require.ErrorIs(t, all[0].propose("still"), ErrNotLeader)
		n.part(nil)
		require.Equal(t, next, leader(t, all...))
		same(t, []string{"before", "after"}, all...)
		for _, d := range all {
			d.stop()
		}
	})
}

// More than there is room for is refused at once, and not kept. What takes too long is
// said to be unsure, and its place is free when it is over.
func TestBusy(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		d := n.start(t, "a:1", "", true, nil)
		leader(t, d)
		var mu sync.Mutex
		answers := map[error]int{}
		propose := func() {
			d.log.Propose([]byte("x"), func(_ any, err error) {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range []error{nil, ErrBusy, ErrUnsure} {
					if err == e || e != nil && errors.Is(err, e) {
						answers[e]++
					}
				}
			})
		}
		said := func() map[error]int {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(answers)
		}
		d.tape.gate = make(chan struct{}) // so nothing is applied
		for range maxPending + 10 {
			propose()
		}
		require.Equal(t, map[error]int{ErrBusy: 10}, said())
		time.Sleep(askPatience + time.Second)
		require.Equal(t, map[error]int{ErrBusy: 10, ErrUnsure: maxPending}, said())
		propose()
		require.Equal(t, 11, said()[ErrBusy], "nobody has come back")
		close(d.tape.gate)
		time.Sleep(time.Second)
		propose()
		time.Sleep(time.Second)
		require.Equal(t, map[error]int{ErrBusy: 11, ErrUnsure: maxPending, nil: 1}, said())
		require.Len(t, d.tape.all(), maxPending+1)
		d.stop()
	})
}

// A server that is late is given a snapshot: a new one, and one that was away for long.
// Whoever restarts begins with it.
func TestSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		all := n.cluster(t, 3)
		all[2].stop()
		var want []string
		var wait sync.WaitGroup
		for i := range snapshotAfter + 1000 {
			want = append(want, strconv.Itoa(i))
			wait.Add(1)
			all[0].log.Propose([]byte(want[i]), func(_ any, err error) {
				require.NoError(t, err)
				wait.Done()
			})
			if i%maxPending == maxPending-1 {
				wait.Wait()
			}
		}
		wait.Wait()
		time.Sleep(15 * time.Second) // until each has made a snapshot
		first, err := all[0].log.store.FirstIndex()
		require.NoError(t, err)
		require.Greater(t, first, uint64(1000), "old entries are deleted")

		all[2] = n.start(t, all[2].addr, all[2].dir, false, nil)
		same(t, want, all...)
		require.Equal(t, 1, all[2].tape.restored)

		fresh := n.start(t, "new:1", t.TempDir(), false, nil)
		require.NoError(t, fresh.id.Adopt(all[0].id.Cluster()))
		require.NoError(t, all[0].do(func(done func(error)) { all[0].log.AddNonvoter(fresh.node(), fresh.addr, done) }))
		same(t, want, fresh)
		require.Equal(t, 1, fresh.tape.restored)

		require.NoError(t, all[0].propose("last"))
		want = append(want, "last")
		for i, d := range all {
			d.stop()
			all[i] = n.start(t, d.addr, d.dir, false, nil)
			require.Equal(t, 1, all[i].tape.restored, "it begins with a snapshot")
		}
		fresh.stop()
		fresh = n.start(t, fresh.addr, fresh.dir, false, nil)
		leader(t, append(all, fresh)...)
		same(t, want, append(all, fresh)...)
		for _, d := range append(all, fresh) {
			d.stop()
		}
	})
}

// A node that has lost its directory comes back as another one at the same address. It
// is not taken for the old one, though the log has that one there: what it says would be
// counted twice.
func TestWiped(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		all := n.cluster(t, 3)
		require.NoError(t, all[0].propose("a"))
		old := all[2]
		old.stop()
		all[1].stop()
		wiped := n.start(t, old.addr, t.TempDir(), false, nil)
		require.NotEqual(t, old.node(), wiped.node())
		require.NoError(t, wiped.id.Adopt(all[0].id.Cluster()))
		require.True(t, isAny(all[0].propose("b"), ErrUnsure, ErrNotLeader), "one of three cannot agree with itself and a stranger")
		require.Empty(t, wiped.tape.all())

		all[1] = n.start(t, all[1].addr, all[1].dir, false, nil)
		led := leader(t, all[:2]...)
		require.NoError(t, led.do(func(done func(error)) { led.log.AddNonvoter(wiped.node(), wiped.addr, done) }),
			"also while the old one is a server at this address")
		require.NoError(t, led.do(func(done func(error)) { led.log.Remove(old.node(), done) }))
		require.NoError(t, led.do(func(done func(error)) { led.log.AddVoter(wiped.node(), wiped.addr, done) }))
		require.NoError(t, led.propose("c"))
		time.Sleep(time.Second)
		require.Equal(t, led.tape.all(), wiped.tape.all())
		require.Contains(t, wiped.tape.all(), "c")
		for _, d := range []*node{all[0], all[1], wiped} {
			d.stop()
		}
	})
}

// Votes are taken and given, and the lead passed on; the last voter stays.
func TestServers(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		all := n.cluster(t, 3)
		require.NoError(t, all[0].do(func(done func(error)) { all[0].log.TransferLeadership(all[1].node(), all[1].addr, done) }))
		time.Sleep(3 * time.Second)
		led := leader(t, all...)
		require.True(t, all[1] == led)
		voters := func(d *node) (v int) {
			for _, s := range d.log.Servers() {
				if s.Voter {
					v++
				}
			}
			return v
		}
		require.NoError(t, led.do(func(done func(error)) { led.log.Demote(all[0].node(), done) }))
		require.Equal(t, 2, voters(led))
		require.NoError(t, led.do(func(done func(error)) { led.log.Remove(all[0].node(), done) }))
		require.Len(t, led.log.Servers(), 2)
		require.NoError(t, led.do(func(done func(error)) { led.log.Demote(led.node(), done) }), "also its own")
		time.Sleep(3 * time.Second)
		rest := []*node{all[1], all[2]}
		next := leader(t, rest...)
		require.False(t, led == next)
		require.Error(t, next.do(func(done func(error)) { next.log.Remove(next.node(), done) }))
		require.NoError(t, next.propose("x"))
		same(t, []string{"x"}, rest...)
		require.ErrorIs(t, next.do(func(done func(error)) {
			next.log.Propose(bytes.Repeat([]byte{1}, MaxEntry+1), func(_ any, err error) { done(err) })
		}), ErrTooLarge)
		for _, d := range all {
			d.stop()
		}
	})
}

// The connections to servers that were removed one after the other are closed once, and not
// by a log that is closed.
func TestHangUpOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		all := n.cluster(t, 3)
		log := all[0].log
		timer := func() *time.Timer {
			log.mu.Lock()
			defer log.mu.Unlock()
			return log.hangUp
		}
		require.NoError(t, all[0].do(func(done func(error)) { log.Remove(all[1].node(), done) }))
		first := timer()
		require.NoError(t, all[0].do(func(done func(error)) { log.Remove(all[2].node(), done) }))
		require.False(t, first.Stop(), "the second goes for both")
		for _, d := range all {
			d.stop()
		}
		require.False(t, timer().Stop())
	})
}
