package from

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/egretstream/egret/spout"
)

// Paced returns a source of source's messages that gives at most perSecond of
// them a second, evenly spaced. The rate is that of the whole source in this
// process, shared by the tasks that read it; each node of a cluster has its own.
// After a delay, what fell due in the last 10 ms of it comes at once.
//
// perSecond must be above 0 and at most 1e9. A reader of source that appends
// messages without regard to Out.Full makes the following ones wait.
func Paced(source spout.Source, perSecond float64) spout.Source {
	p := &paced{source: source, pacer: pacer{perSecond: perSecond}}
	if c, ok := source.(spout.Committer); ok {
		return struct {
			*paced
			spout.Committer
		}{p, c}
	}
	return p
}

type paced struct {
	source spout.Source
	pacer  pacer
}

// BadStream is that of source.
func (p *paced) BadStream() string {
	if s, ok := p.source.(spout.Sifter); ok {
		return s.BadStream()
	}
	return ""
}

func (p *paced) Splits(ctx context.Context) ([]spout.Split, error) {
	if err := checkRate(p.pacer.perSecond); err != nil {
		return nil, err
	}
	return p.source.Splits(ctx)
}

func (p *paced) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	if err := checkRate(p.pacer.perSecond); err != nil {
		return nil, err
	}
	inner, err := p.source.Open(ctx, split, position)
	if err != nil {
		return nil, err
	}
	return &pacedReader{inner: inner, pacer: &p.pacer}, nil
}

type pacedReader struct {
	inner spout.Reader
	pacer *pacer
	alarm alarm
}

func (r *pacedReader) Next(ctx context.Context, out *spout.Out) error {
	if out.Full() {
		return nil
	}
	before := out.Len()
	full := out.Limit(0)
	defer out.Limit(full)
	for {
		n, wait := r.pacer.take(time.Now(), full-before)
		if n > 0 {
			out.Limit(before + n)
			err := r.inner.Next(ctx, out)
			r.pacer.giveBack(n - (out.Len() - before))
			return err
		}
		if before > 0 {
			return nil
		}
		if err := r.alarm.wait(ctx, wait); err != nil {
			return err
		}
	}
}

func (r *pacedReader) Position() string { return r.inner.Position() }

func (r *pacedReader) Close() error {
	if c, ok := r.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Schedule returns a source that calls f with 0, 1, 2, ... up to n-1, or for ever
// if n is 0, each when it is due: perSecond a second, evenly spaced. Each call
// usually emits one message. f is called late when the topology is slow, but
// every message keeps the due time that it had: the time from due until a message
// is done is what a user of a real source would have waited, which a measurement
// from the moment of emission hides.
//
// The source is one split and its position is i. Opening it at the beginning
// starts a schedule now; opening it elsewhere goes on with the schedule there is.
// f must not wait. perSecond must be above 0 and at most 1e9.
func Schedule(perSecond float64, n int64, f func(i int64, due time.Time, out *spout.Out)) spout.Source {
	return &schedule{perSecond: perSecond, n: n, f: f}
}

const scheduleSplit spout.Split = "schedule"

type schedule struct {
	perSecond float64
	n         int64
	f         func(i int64, due time.Time, out *spout.Out)

	mu    sync.Mutex
	start time.Time // when 0 is due
}

func (s *schedule) check() error {
	if s.n < 0 {
		return spout.Fatal(fmt.Errorf("a schedule has the length %d: it must be at least 0, which is endless", s.n))
	}
	return checkRate(s.perSecond)
}

func (s *schedule) Splits(context.Context) ([]spout.Split, error) {
	return []spout.Split{scheduleSplit}, s.check()
}

func (s *schedule) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if split != scheduleSplit {
		return nil, spout.Fatal(fmt.Errorf("a schedule has no split %q, only %q", split, scheduleSplit))
	}
	i := int64(0)
	if position != "" {
		var err error
		if i, err = strconv.ParseInt(position, 10, 64); err != nil || i < 0 {
			return nil, spout.Fatal(fmt.Errorf("position %q of a schedule is not a number of calls: the position belongs to another source", position))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i == 0 || s.start.IsZero() {
		s.start = time.Now().Add(-offset(i, s.perSecond))
	}
	return &scheduleReader{s: s, start: s.start, i: i}, nil
}

type scheduleReader struct {
	s     *schedule
	start time.Time
	i     int64 // the next
	alarm alarm
}

// maxCalls bounds the calls of f in one Next, because f may emit nothing.
const maxCalls = 4096

func (r *scheduleReader) Next(ctx context.Context, out *spout.Out) error {
	now := time.Now()
	for calls := 0; calls < maxCalls && !out.Full(); {
		if r.s.n > 0 && r.i >= r.s.n {
			return io.EOF
		}
		due := r.start.Add(offset(r.i, r.s.perSecond))
		if wait := due.Sub(now); wait > 0 {
			if calls > 0 || out.Len() > 0 {
				return nil
			}
			if err := r.alarm.wait(ctx, wait); err != nil {
				return err
			}
			now = time.Now()
			continue
		}
		r.s.f(r.i, due, out)
		r.i++
		calls++
	}
	return nil
}

func (r *scheduleReader) Position() string { return strconv.FormatInt(r.i, 10) }
