package metrics

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCall(t *testing.T) {
	var c Call[string]
	none, _ := c.Look()
	require.Zero(t, none)
	hand := "parcel"
	c.Hand(&hand)
	c.Begin(15, 7*time.Second, 3, 1024)
	s, since := c.Look()
	require.EqualValues(t, 15, s.Kind())
	first, end := s.Rows()
	require.Equal(t, []int{3, 1024}, []int{first, end})
	require.Equal(t, 7*time.Second, since)
	require.False(t, c.Asked() || c.Taken())

	c.Ask(s)
	require.True(t, c.Asked())
	p, still := c.Pin(s)
	require.True(t, still)
	require.Equal(t, "parcel", *p)
	now, _ := c.Look()
	require.True(t, now.Same(s), "what is done to a call makes no other of it")
	e := c.End()
	require.True(t, e.Pinned())
	require.False(t, e.Taken())
	require.Zero(t, c.End(), "outside")

	c.Begin(15, 7*time.Second, 3, 1024)
	again, _ := c.Look()
	require.False(t, again.Same(s), "the next call is another one, if in all else alike")
	c.Ask(s)
	require.False(t, c.Asked())
	_, still = c.Take(s)
	require.False(t, still, "one that has returned is taken no more")
	p, still = c.Take(again)
	require.True(t, still)
	require.Equal(t, "parcel", *p)
	require.True(t, c.Taken())
	e = c.End()
	require.True(t, e.Taken() && e.Pinned())
}

// However owner and observer run, one of them has the rest: the owner comes back
// untaken, or the observer takes. What is in hand is not touched by the owner then.
func TestCallHasOneOwner(t *testing.T) {
	var c Call[int]
	counter := 0 // the race detector sees two owners
	var observer sync.WaitGroup
	taken := false
	observer.Go(func() {
		for !taken {
			s, _ := c.Look()
			if s == 0 || s.Kind() != 2 {
				runtime.Gosched()
				continue
			}
			if p, still := c.Take(s); still {
				taken = true
				counter++
				if *p%1000 != 0 {
					t.Error("what was taken has changed")
				}
			}
		}
	})
	for i := 0; ; i++ {
		hand := new(int)
		*hand = i
		c.Hand(hand)
		kind := uint8(1)
		if i%1000 == 0 {
			kind = 2
		}
		c.Begin(kind, 0, 0, 1)
		if kind == 2 {
			runtime.Gosched()
		}
		if c.End().Taken() {
			break
		}
		counter++
		*hand = -1
	}
	observer.Wait()
	require.True(t, taken)
}

func TestShared(t *testing.T) {
	var s Shared
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 1000 {
				s.Add(1)
			}
		})
	}
	writers.Wait()
	require.EqualValues(t, 4000, s.Load())
}
