package broker

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// A crowd sends over a link as far as it may.
type crowd struct {
	t       require.TestingT
	s       *Share
	senders map[Sender]*sending
	frames  []queuedFrame // not acked, oldest first
	largest int
	lives   map[int]int // that have ended
}

type sending struct{ sent, limit uint64 }

type queuedFrame struct {
	from Sender
	size int
}

func newCrowd(t require.TestingT, budget int) *crowd {
	return &crowd{t: t, s: NewShare(budget), senders: map[Sender]*sending{}, lives: map[int]int{}}
}

func (c *crowd) id(n int) Sender {
	return Sender{Run: 1, Task: tuple.TaskID(n), Life: tuple.Incarnation(c.lives[n])}
}

// send sends a frame if the sender may, and reports whether it did.
func (c *crowd) send(n, size int) bool {
	id := c.id(n)
	if c.senders[id] == nil {
		c.senders[id] = &sending{limit: FirstGrant}
	}
	p := c.senders[id]
	if p.sent >= p.limit {
		return false
	}
	p.sent += uint64(size)
	c.largest = max(c.largest, size)
	c.frames = append(c.frames, queuedFrame{id, size})
	c.s.Queued(id, size)
	return true
}

func (c *crowd) raise() {
	for _, g := range c.s.Raise(nil) {
		if p := c.senders[g.Sender]; p != nil {
			require.Greater(c.t, g.Limit, p.limit, "only what is new is told")
			p.limit = g.Limit
		}
	}
	c.check()
}

func (c *crowd) ack(frames int) {
	for _, f := range c.frames[:frames] {
		c.s.Freed(f.from, f.size)
	}
	c.frames = c.frames[frames:]
}

func (c *crowd) check() {
	held, reserved := 0, 0
	for _, f := range c.frames {
		held += f.size
	}
	for _, a := range c.s.accounts {
		reserved += a.held()
	}
	require.Equal(c.t, reserved, c.s.reserved)
	require.LessOrEqual(c.t, held, reserved)
	require.LessOrEqual(c.t, held, c.s.budget+len(c.s.accounts)*c.largest, "the budget and one frame each")
}

// Whatever they do, the senders never hold more than the budget and one frame each; and
// as long as frames are acked, each of them gets on.
func TestShareIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, rapid.IntRange(1, 100_000).Draw(t, "budget"))
		most := rapid.IntRange(1, 20_000).Draw(t, "frame")
		n := rapid.IntRange(1, 40).Draw(t, "senders")
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				who := rapid.IntRange(0, n-1).Draw(t, "who")
				greedy := rapid.Bool().Draw(t, "greedy")
				for range rapid.IntRange(1, 20).Draw(t, "frames") {
					c.send(who, rapid.IntRange(1, most).Draw(t, "size"))
					if greedy {
						c.raise()
					}
				}
			case 0, 1, 2:
				c.raise()
			case 3, 4:
				c.ack(rapid.IntRange(0, len(c.frames)).Draw(t, "acked"))
			case 5:
				if rapid.IntRange(0, 5).Draw(t, "all") == 0 {
					c.s.FreedAll()
					c.frames = nil
				}
			case 6: // another life
				who := rapid.IntRange(0, n-1).Draw(t, "who")
				c.s.Forget(c.id(who))
				c.lives[who]++
			}
			c.check()
		}
		for who := range n {
			sent := 0
			for range 1000 {
				if c.send(who, most) {
					if sent++; sent == 10 {
						break
					}
				}
				c.ack(len(c.frames))
				c.raise()
			}
			require.Equal(t, 10, sent, "sender %d gets on", who)
		}
	})
}

// A link that acks nothing is filled by one; the others have room all the same.
func TestOneSenderLeavesRoom(t *testing.T) {
	c := newCrowd(t, 64<<20)
	var held []int
	for who := range 4 {
		began := len(c.frames)
		for c.send(who, 8<<10) {
			c.raise()
		}
		held = append(held, (len(c.frames)-began)*8<<10>>20)
	}
	require.Equal(t, []int{32, 16, 8, 4}, held, "MB: each gets half of what is left")
	c.check()

	// When acks come, those with less are raised first, until all have the same.
	for range 20_000 {
		c.ack(min(10, len(c.frames)))
		for range 10 {
			for who := range 4 {
				c.send(who, 8<<10)
			}
		}
		c.raise()
	}
	now := map[Sender]int{}
	for _, f := range c.frames {
		now[f.from] += f.size
	}
	for who := range 4 {
		require.InDelta(t, (64<<20)/5, now[c.id(who)], 2<<20, "of four and one who may come")
	}
}

// A thousand senders that are idle again do not hold the budget.
func TestIdleSendersHoldLittle(t *testing.T) {
	c := newCrowd(t, 64<<20)
	for who := range 1000 {
		c.send(who, 100)
		c.raise()
		c.ack(1)
		c.raise()
	}
	require.Less(t, c.s.reserved, 40<<20)
	for c.send(1000, 8<<10) {
		c.raise()
	}
	require.Greater(t, len(c.frames), 1000)
	for who := range 1000 {
		c.s.Forget(c.id(who))
	}
	require.Len(t, c.s.accounts, 1)
	c.check()
}
