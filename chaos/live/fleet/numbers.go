package fleet

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Topology is the name of the topology that is run on a fleet.
const Topology = "fleet-numbers"

// Components of it.
const (
	numbersName = "numbers"
	passName    = "pass"
	sinkName    = "sink"
)

// Numbers returns the topology, for the process of a node: numbers in several splits go
// by key through a bolt that passes them on to sinks, and those tell the recorder.
func Numbers() *topology.Topology {
	tellers := &tellers{}
	return topology.New(Topology, func(b *topology.Builder) {
		recorder := b.String("recorder", "", "host:port of who is told which numbers were executed")
		s := &numbers{
			teller:   tellers.to(recorder),
			splits:   b.Int("splits", 8, "of the numbers"),
			messages: int64(b.Int("messages", 0, "how many numbers")),
			rate:     b.Int("rate", 1000, "numbers a second"),
			start:    b.String("start", "", "when the first is due, in RFC 3339"),
		}
		in := b.Spout(numbersName, s).Emits("n", "at").Parallel(2)
		pass := b.Bolt(passName, func() bolt.Bolt { return &pass{teller: s.teller} }, in.By("n")).Emits("n", "at").Parallel(2)
		b.Bolt(sinkName, func() bolt.Bolt { return &sink{Bolt: bolt.Async(mostTold, s.teller.number)(), teller: s.teller} }, pass.By("n")).Parallel(3)
	})
}

// mostTold is how many numbers of a sink may wait for the recorder's answer.
const mostTold = 2048

// numbers is a source of the numbers from 0 to messages-1, number n in split n % splits.
type numbers struct {
	teller   *teller
	splits   int
	messages int64
	rate     int
	start    string
}

func (s *numbers) Splits(context.Context) (all []spout.Split, err error) {
	for i := range s.splits {
		all = append(all, spout.Split(strconv.Itoa(i)))
	}
	return all, nil
}

func (s *numbers) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	i, err := strconv.Atoi(string(split))
	if err != nil {
		return nil, spout.Fatal(err)
	}
	r := &numberReader{source: s, split: int64(i), every: time.Second * time.Duration(s.splits) / time.Duration(s.rate)}
	if position != "" {
		if r.next, err = strconv.ParseInt(position, 10, 64); err != nil {
			return nil, spout.Fatal(fmt.Errorf("position %q: %w", position, err))
		}
	}
	if r.start, err = time.Parse(time.RFC3339Nano, s.start); err != nil {
		return nil, spout.Fatal(fmt.Errorf("start: %w", err))
	}
	if s.teller != nil {
		s.teller.life(numbersName, i)
	}
	return r, nil
}

// A numberReader reads one split. Numbers are due at times of their own, whether they can
// be read then or not: what was read before, or should have been, is read at once.
type numberReader struct {
	source *numbers
	split  int64
	next   int64 // the number is split + next*splits
	start  time.Time
	every  time.Duration
}

// paceStep is the least that is waited, so that several numbers are read at a time.
const paceStep = 5 * time.Millisecond

func (r *numberReader) due() time.Time { return r.start.Add(time.Duration(r.next) * r.every) }

func (r *numberReader) Next(ctx context.Context, out *spout.Out) error {
	if r.number() >= r.source.messages {
		return io.EOF
	}
	if wait := time.Until(r.due()); wait > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(wait, paceStep)):
		}
	}
	now := time.Now()
	for !out.Full() && !r.due().After(now) && r.number() < r.source.messages {
		out.Emit(r.number(), now.UnixNano())
		r.next++
	}
	if r.number() >= r.source.messages {
		return io.EOF
	}
	return nil
}

func (r *numberReader) number() int64 { return r.split + r.next*int64(r.source.splits) }

func (r *numberReader) Position() string { return strconv.FormatInt(r.next, 10) }

// A pass passes on what it gets.
type pass struct{ teller *teller }

func (p *pass) Prepare(_ context.Context, task *bolt.Task) error {
	p.teller.life(task.Component, task.Index)
	return nil
}

func (p *pass) Execute(in tuple.Tuple, out *bolt.Collector) error {
	out.Emit(in.Int64("n"), in.Int64("at"))
	return nil
}

// A sink tells the recorder of each number and acks it when that has answered.
type sink struct {
	bolt.Bolt
	teller *teller
}

func (s *sink) Prepare(ctx context.Context, task *bolt.Task) error {
	s.teller.life(task.Component, task.Index)
	return s.Bolt.(bolt.Preparer).Prepare(ctx, task)
}
