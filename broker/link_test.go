package broker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A link is a receiver and its senders with a network between: parcels arrive in
// order some time, limits and questions may be lost, late and repeated. Senders
// may be replaced by a new life, whose limits and parcels are its own.
type link struct {
	*rand.Rand
	w       *Window
	pairs   []pair
	parcel  int // most tuples in a parcel
	lossy   bool
	lives   bool
	largest int // share that a pair can have
}

type pair struct {
	Meter
	life      int
	todo      int   // tuples that wait at the sender
	flying    []int // parcels under way
	queue     []int // parcels at the receiver, what is left of the first
	executed  int
	limits    []said // under way
	questions int    // under way
	silent    int    // steps without room
}

type said struct {
	life  int
	limit uint64
}

func newLink(r *rand.Rand, senders, size, parcel, tuples int) *link {
	l := &link{Rand: r, w: NewWindow(senders, fixed(size)), parcel: parcel, pairs: make([]pair, senders)}
	for i := range l.pairs {
		l.pairs[i].todo = tuples
	}
	l.largest = max(size/2/senders+(size-size/2), 1)
	return l
}

// lost says whether what is sent now is lost.
func (l *link) lost() bool { return l.lossy && l.IntN(3) == 0 }

func (l *link) tell(p *pair, limit uint64) {
	if l.lost() {
		return
	}
	p.limits = append(p.limits, said{p.life, limit})
	if l.lossy && l.IntN(4) == 0 {
		p.limits = append(p.limits, said{p.life, limit})
	}
}

func (l *link) step(t *testing.T) {
	s := l.IntN(len(l.pairs))
	p := &l.pairs[s]
	switch l.IntN(6) {
	case 0, 1: // the sender's turn
		if p.todo > 0 && p.Room() > 0 {
			n := min(1+l.IntN(l.parcel), p.todo)
			p.Sent(n)
			p.todo -= n
			p.flying = append(p.flying, n)
			p.silent = 0
			if most := max(FirstLimit, l.largest) + l.parcel - 1; int(p.sent)-p.executed > most {
				require.FailNow(t, "too much is under way", "%d, and %d is the most", int(p.sent)-p.executed, most)
			}
		} else if p.todo > 0 {
			if p.silent++; p.silent%20 == 0 && l.lossy && !l.lost() {
				p.questions++
			}
		}
	case 2: // a parcel arrives
		if len(p.flying) > 0 {
			p.queue = append(p.queue, p.flying[0])
			p.flying = p.flying[1:]
		}
	case 3: // the receiver's turn
		if len(p.queue) > 0 {
			n := 1 + l.IntN(p.queue[0])
			p.executed += n
			if p.queue[0] -= n; p.queue[0] == 0 {
				p.queue = p.queue[1:]
			}
			l.w.Worked(n, time.Duration(n)*time.Duration(l.IntN(1000)))
			l.w.Executed(s, n)
			if limit, tell := l.w.Raise(s); tell {
				l.tell(p, limit)
			}
		}
	case 4: // a limit arrives, any one
		if len(p.limits) > 0 {
			i := l.IntN(len(p.limits))
			if m := p.limits[i]; m.life == p.life {
				had := p.Room() > 0
				if woke := p.Raise(m.limit); woke != (!had && p.Room() > 0) {
					require.FailNow(t, "Raise does not know whether it woke anybody")
				}
			}
			p.limits[i] = p.limits[len(p.limits)-1]
			p.limits = p.limits[:len(p.limits)-1]
		}
	case 5: // a question arrives; or the sender dies
		if p.questions > 0 {
			p.questions--
			l.tell(p, l.w.Limit(s))
		}
		if l.lives && l.IntN(500) == 0 {
			for _, n := range append(p.flying, p.queue...) {
				p.todo += n // somebody replays it
			}
			*p = pair{life: p.life + 1, todo: p.todo, limits: p.limits}
			l.w.Reset(s)
		}
	}
}

// run reports how many steps it took until everything was executed.
func (l *link) run(t *testing.T) int {
	for steps := 0; ; steps++ {
		if steps%64 == 0 {
			left := 0
			for i := range l.pairs {
				p := &l.pairs[i]
				left += p.todo + len(p.flying) + len(p.queue)
			}
			if left == 0 {
				return steps
			}
			if steps > 1_000_000 {
				require.FailNow(t, "stuck", "%d left: %+v", left, l.pairs)
			}
		}
		l.step(t)
	}
}

// Never more under way than the share and a parcel, and all is executed in the
// end. Without losses nobody ever has to ask.
func TestLink(t *testing.T) {
	sizes := []int{1, 2, 7, 63, 64, 65, 200, 1000, 8192}
	for seed := range uint64(200) {
		for _, lossy := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 1))
			size := sizes[r.IntN(len(sizes))]
			if r.IntN(2) == 0 {
				size = 1 + r.IntN(8192)
			}
			senders := 1 + r.IntN(5)
			l := newLink(r, senders, size, 1+r.IntN(1024), 300+r.IntN(700))
			if size < 100 {
				l.parcel = 1 + r.IntN(20) // small ones, or it is over before it begins
			}
			l.lossy, l.lives = lossy, lossy && r.IntN(2) == 0
			t.Run(fmt.Sprintf("seed=%d/lossy=%t", seed, lossy), func(t *testing.T) { l.run(t) })
		}
	}
}

// Parcels of 1024 through a window of one tuple.
func TestLinkExtremes(t *testing.T) {
	for _, tt := range []struct{ senders, size, parcel int }{{1, 1, 1024}, {1, 1, 1}, {1, 8192, 1024}, {1, 8192, 1}, {20, 8, 1024}, {20, 8, 1}} {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("senders=%d/window=%d/parcel=%d/lossy=%t", tt.senders, tt.size, tt.parcel, lossy), func(t *testing.T) {
				l := newLink(rand.New(rand.NewPCG(7, 7)), tt.senders, tt.size, tt.parcel, 300)
				l.lossy = lossy
				l.run(t)
			})
		}
	}
}
