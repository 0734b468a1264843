package sim

import (
	gocontext "context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A postOffice is the queue of a run: it keeps the truth about each letter.
type postOffice struct {
	w       *World
	chance  *rand.Rand
	letters []*letter
	next    int
	panics  int // that are left
	bad     []string
	reasons map[error]int
}

type letter struct {
	to       *slot
	copies   int      // tuples that the first bolt makes of it
	seen     []moment // by the first bolt
	read     []moment // of the copies, by the second
	refused  int
	rejected int
	acks     int
	fails    int
}

// A slot is the post office as one life of a task sees it.
type slot struct {
	o      *postOffice
	by     *proc
	closed int
}

func (o *postOffice) violate(format string, args ...any) {
	o.bad = append(o.bad, fmt.Sprintf(format, args...)+fmt.Sprintf(" (at %v)", o.w.Now()))
}

func (o *postOffice) panic(oneIn int) {
	if o.panics > 0 && o.chance.IntN(oneIn) == 0 {
		o.panics--
		panic(panicText)
	}
}

func (s *slot) Next(_ gocontext.Context, out *spout.QueueOut) error {
	s.by = s.o.w.running
	if s.closed > 0 {
		s.o.violate("Next after Close")
	}
	o := s.o
	for n := 1 + o.chance.IntN(20); n > 0 && !out.Full(); n-- {
		if o.next == len(o.letters) {
			return io.EOF
		}
		l := o.letters[o.next]
		l.to = s
		out.Emit(fmt.Sprint(o.next), int64(o.next))
		o.next++
		o.panic(400)
	}
	if o.chance.IntN(30) == 0 {
		return fmt.Errorf("%w %d", errBroken, o.chance.IntN(100))
	}
	return nil
}

func (s *slot) letter(id string) *letter {
	var n int
	fmt.Sscan(id, &n)
	l := s.o.letters[n]
	switch {
	case l.to != s:
		s.o.violate("letter %s is answered by another life than it was given to", id)
	case l.acks+l.fails > 0:
		s.o.violate("letter %s is answered twice", id)
	case s.closed > 0:
		s.o.violate("letter %s is answered after Close", id)
	}
	return l
}

func (s *slot) Ack(_ gocontext.Context, id string) error {
	l, now := s.letter(id), s.o.w.Now()
	l.acks++
	n := 0
	for _, m := range l.read {
		if m.happened(now) {
			n++
		}
	}
	if !happened(l.seen, now) || n < l.copies {
		s.o.violate("letter %s is acked, but %d of its %d copies were read", id, n, l.copies)
	}
	s.o.panic(600)
	return nil
}

func (s *slot) Fail(_ gocontext.Context, id string, why error) error {
	l := s.letter(id)
	l.fails++
	known := false
	for _, reason := range []error{spout.ErrFailed, spout.ErrRejected, spout.ErrLost, spout.ErrTimedOut, spout.ErrUnfinished} {
		if errors.Is(why, reason) {
			known = true
			s.o.reasons[reason]++
		}
	}
	switch {
	case !known:
		s.o.violate("letter %s: %v", id, why)
	case errors.Is(why, spout.ErrFailed) && l.refused == 0:
		s.o.violate("letter %s has failed, but nobody has refused it: %v", id, why)
	case errors.Is(why, spout.ErrRejected) && l.rejected == 0:
		s.o.violate("letter %s is rejected, but nobody has rejected it: %v", id, why)
	}
	s.o.panic(100)
	return nil
}

func (s *slot) Close() error {
	s.closed++
	return nil
}

// A queue under kills, panics, lost reports and a bad network: each message has
// one answer, unless the life that it was given to was killed, and then at most one;
// an ack is the truth. The run comes to rest and the laws hold.
func TestQueueSeeds(t *testing.T) {
	reasons := map[error]int{}
	for seed := range uint64(150) {
		playQueue(t, seed+1, reasons)
		if t.Failed() {
			t.Fatalf("seed %d", seed+1)
		}
	}
	for _, reason := range []error{spout.ErrFailed, spout.ErrRejected, spout.ErrLost, spout.ErrTimedOut, spout.ErrUnfinished} {
		require.NotZero(t, reasons[reason], "no message was %v", reason)
	}
}

func playQueue(t *testing.T, seed uint64, reasons map[error]int) {
	chance := rand.New(rand.NewPCG(seed, 5))
	o := &postOffice{chance: chance, reasons: reasons}
	for range 200 + chance.IntN(400) {
		o.letters = append(o.letters, &letter{copies: chance.IntN(3)})
	}
	kills, killed, forgets := 0, 0, 0
	if seed%3 != 0 {
		kills = chance.IntN(6)
		o.panics = chance.IntN(4)
	}
	if seed%4 == 0 {
		forgets = 3
	}
	world := New(Config{Seed: seed, OnSend: func(_, to actor.Ref, msg any) Verdict {
		if r, is := msg.(*acker.Report); is && len(r.Entries) > 0 && forgets > 0 && chance.IntN(20) == 0 {
			forgets--
			r.Entries = r.Entries[:len(r.Entries)-1]
		}
		return Verdict{}
	}})
	o.w = world
	top := topology.New("post", func(b *topology.Builder) {
		in := b.Queue("in", func() spout.Queue { return &slot{o: o} }).Emits("n").Parallel(2)
		a := b.Bolt("a", bolt.Each(o.sort), in.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("b", bolt.Each(o.deliver), a.By("n")).Parallel(2)
	})
	plan, err := top.Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	var books []*metrics.Task
	for id := range plan.Tasks {
		n := &plan.Components[plan.Tasks[id].Component]
		books = append(books, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	set := &task.Settings{
		ParcelSize: 1 + chance.IntN(16), Linger: time.Duration(chance.IntN(3)) * ms, MaxPending: 1 + chance.IntN(100), PendingBytes: 1 << 20, TreeSize: 1 + chance.IntN(16),
		QueuedBytes: 1 << 20, MessageTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Event: func(e task.Event) {
			if d, is := e.(*task.Died); is {
				if p, is := d.Err.(*task.PanicError); is && p.Value != panicText {
					o.violate("%s: %v\n%s", d.Task, p.Value, p.Stack)
				}
			}
		},
	}
	ended, outcome := false, error(nil)
	sup := world.Spawn("supervisor", task.NewSupervisor(plan, set, books, func(err error) { ended, outcome = true, err }))
	for range kills {
		id := chance.IntN(len(books))
		world.At(time.Duration(chance.IntN(300))*time.Millisecond, "kill", func() {
			for _, p := range world.procs[1:] {
				if p.label == books[id].Name && p.state == running {
					killed++
					world.Kill(p.ref)
				}
			}
		})
	}
	if seed%5 == 0 {
		world.At(time.Duration(50+chance.IntN(100))*time.Millisecond, "drain", func() { world.Send(sup, task.DrainBy{Deadline: time.Hour}) })
	}
	require.NoError(t, world.Run(func() bool { return ended || len(o.bad) > 0 }, Limit{Time: time.Hour, Events: 2_000_000}))
	require.Empty(t, o.bad)
	require.NoError(t, outcome)
	world.Stop(sup)
	require.NoError(t, world.Run(nil, Limit{Time: time.Hour, Events: 2_000_000}))
	require.Empty(t, o.bad)
	require.Equal(t, Left{}, world.Left())
	acked, failed := int64(0), int64(0)
	for n, l := range o.letters[:o.next] {
		if l.acks+l.fails == 0 && l.to.by.silent == never {
			t.Errorf("letter %d has no answer, and the life that had it was not killed", n)
		}
		if l.to.by.silent == never && l.to.closed != 1 {
			t.Errorf("the life that had letter %d was closed %d times", n, l.to.closed)
		}
		acked += int64(l.acks)
		failed += int64(l.fails)
	}
	if seed%5 != 0 {
		require.Equal(t, len(o.letters), o.next, "all were read")
	}
	var booked, back int64
	for _, m := range books {
		require.Zero(t, m.Open(), m.Name)
		require.Zero(t, m.Trying.Load(), m.Name)
		require.Equal(t, m.Attempts.Load(), m.Acked.Load()+m.Failed.Load()+m.Lost.Load()+m.TimedOut.Load(), m.Name)
		booked += m.Acked.Load()
		back += m.HandedBack.Load()
	}
	if killed == 0 {
		require.Equal(t, acked, booked)
		require.LessOrEqual(t, back, failed, "what a call brings when its task has ended is in no books")
	}
}

// sort is what the first bolt does: it refuses some and copies the others.
func (o *postOffice) sort(in tuple.Tuple, out *bolt.Collector) error {
	l := o.letters[in.Int64("n")]
	o.w.Spend(time.Duration(o.chance.IntN(1000)) * us)
	switch o.chance.IntN(60) {
	case 0:
		l.refused++
		return errTuple
	case 1:
		l.rejected++
		return bolt.Reject(errTuple)
	case 2:
		if o.panics > 0 {
			l.refused++
			o.panic(1)
		}
	}
	for range l.copies {
		out.Emit(in.Int64("n"))
	}
	l.seen = append(l.seen, moment{o.w.Now(), o.w.running})
	return nil
}

// deliver is what the second bolt does.
func (o *postOffice) deliver(in tuple.Tuple, _ *bolt.Collector) error {
	l := o.letters[in.Int64("n")]
	o.w.Spend(time.Duration(o.chance.IntN(1000)) * us)
	if o.chance.IntN(100) == 0 {
		l.refused++
		return errTuple
	}
	l.read = append(l.read, moment{o.w.Now(), o.w.running})
	return nil
}
