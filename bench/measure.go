package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/egretstream/egret/topology"
)

// warmUp is how long a run goes on before the timed phase begins.
const warmUp = 500 * time.Millisecond

// Measure runs the topology of s and returns what the timed phase of the given
// duration has shown. It returns when the topology has stopped.
func Measure(ctx context.Context, run Runner, s Setup, d time.Duration) (Result, error) {
	s.passes = 0
	p := newProbe()
	r, err := measure(ctx, run, &s, d, p)
	if err == nil {
		r.Latency, r.Due = p.latencies()
	}
	return r, err
}

func measure(ctx context.Context, run Runner, s *Setup, d time.Duration, p *probe) (Result, error) {
	if err := s.check(); err != nil {
		return Result{}, err
	}
	dir, err := s.place()
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	t := s.define(p)
	r, err := timed(ctx, d, p, func(ctx context.Context) Running {
		return s.watched(ctx, t.Name(), run(ctx, t, s.Guarantee, dir, s.Page || s.Watched))
	})
	if err != nil {
		return Result{}, fmt.Errorf("topology %s: %w", t.Name(), err)
	}
	r.Topology, r.Guarantee = s.Topology, s.Guarantee.String()
	r.Spouts, r.Bolts, r.Rate = s.Spouts, s.Bolts, s.Rate
	if s.Nodes > 1 {
		r.Nodes, r.TLS = s.Nodes, s.TLS
	}
	if s.Guarantee == topology.AtMostOnce {
		r.AckLatency = nil
	}
	if s.exact() {
		r.State, r.Combiner = s.State, s.Combiner
		r.WordsPerS = wordsPerLine * r.AckedPerS
	}
	return r, nil
}

// Digest counts the words of a fixed amount of lines with the word count of s
// and returns the digest of the counts.
func Digest(ctx context.Context, run Runner, s Setup) (string, error) {
	s = s.counting()
	p := newProbe()
	if err := count(ctx, run, &s, p); err != nil {
		return "", err
	}
	return p.digest(), nil
}

// counting returns the word count of a fixed amount.
func (s Setup) counting() Setup {
	s.Topology, s.Rate, s.Latency, s.passes = "wordcount", 0, false, digestPasses
	return s
}

func count(ctx context.Context, run Runner, s *Setup, p *probe) error {
	if err := s.check(); err != nil {
		return err
	}
	dir, err := s.place()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := s.define(p)
	if _, err := run(ctx, t, s.Guarantee, dir, false).Wait(); err != nil {
		return fmt.Errorf("topology %s: %w", t.Name(), err)
	}
	if err := ctx.Err(); err != nil {
		return err // then the counts are not whole
	}
	if s.exact() {
		p.sum, err = s.exactDigest(ctx)
	}
	return err
}

// measurePlain is Measure and, if wanted, Digest for a baseline.
func measurePlain(ctx context.Context, name string, d time.Duration, withDigest bool) (Result, error) {
	var sum string
	if withDigest {
		p := newPlain(digestPasses)
		if _, err := p.start(ctx, name).Wait(); err != nil {
			return Result{}, err
		}
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		sum = p.digest()
	}
	p := newPlain(0)
	r, err := timed(ctx, d, newProbe(), func(ctx context.Context) Running { return p.start(ctx, name) })
	if err != nil {
		return Result{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	r.Topology, r.Spouts, r.Bolts, r.Digest = name, plainTasks, plainTasks, sum
	return r, nil
}

// timed starts something, lets it warm up, watches it for d and stops it. The
// probe hears when the timed phase begins and ends.
func timed(ctx context.Context, d time.Duration, p *probe, start func(context.Context) Running) (Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	run := start(ctx)
	ended := make(chan error, 1)
	go func() { // owner: timed, which reads ended before it returns
		_, err := run.Wait()
		ended <- err
	}()
	pause := func(d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case err := <-ended:
			return endedEarly(ctx, err)
		}
	}

	if err := pause(warmUp); err != nil {
		return Result{}, err
	}
	p.begin()
	before := snap(run)
	if err := pause(d); err != nil {
		return Result{}, err
	}
	after := snap(run)
	p.finish()
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return Result{}, err
	}
	return before.until(after), nil
}

func endedEarly(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	default:
		return errors.New("it ended before the timed phase was over")
	}
}

// A usage is what a process has used up to a moment.
type usage struct {
	CPU     time.Duration `json:"cpu"`
	Mallocs uint64        `json:"mallocs"`
	Bytes   uint64        `json:"bytes"` // allocated
	Wire    uint64        `json:"wire"`  // bytes of frames that it has written
}

func used() usage {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem) // stops the world for a moment
	return usage{CPU: cpuTime(), Mallocs: mem.Mallocs, Bytes: mem.TotalAlloc}
}

func (u *usage) add(o usage) {
	u.CPU += o.CPU
	u.Mallocs += o.Mallocs
	u.Bytes += o.Bytes
	u.Wire += o.Wire
}

// A snapshot is what a run and its processes have done and used up to a moment.
type snapshot struct {
	at     time.Time
	used   usage
	counts Counts
}

func snap(run Running) *snapshot {
	s := snapshot{counts: run.Stats(), used: used()}
	s.used.add(s.counts.other)
	s.at = time.Now()
	return &s
}

func (s *snapshot) until(e *snapshot) Result {
	r := Result{
		Seconds:    e.at.Sub(s.at).Seconds(),
		Failed:     e.counts.Failed,
		AckLatency: latency(e.counts.AckLatency),
	}
	messages := float64(e.counts.Emitted - s.counts.Emitted)
	r.MessagesPerS = messages / r.Seconds
	r.TuplesPerS = float64(e.counts.Executed-s.counts.Executed) / r.Seconds
	r.WordsPerS = float64(e.counts.ExecutedBy["count"]-s.counts.ExecutedBy["count"]) / r.Seconds
	r.BatchesPerS = float64(e.counts.Batches-s.counts.Batches) / r.Seconds
	r.AckedPerS = float64(e.counts.Acked-s.counts.Acked) / r.Seconds
	r.Cores = (e.used.CPU - s.used.CPU).Seconds() / r.Seconds
	if n := float64(e.counts.Executed - s.counts.Executed); n > 0 {
		r.AllocsPerTuple = float64(e.used.Mallocs-s.used.Mallocs) / n
		r.BytesPerTuple = float64(e.used.Bytes-s.used.Bytes) / n
	}
	if messages > 0 {
		r.WirePerMessage = float64(e.used.Wire-s.used.Wire) / messages
	}
	return r
}
