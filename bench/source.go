package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/egretstream/egret/spout"
)

// stamps says which times a message carries behind its text.
type stamps int

const (
	noStamp    stamps = iota
	emitted           // int64 "emitted": when the spout handed it over, or 0
	emittedDue        // and int64 "due": when it should have
)

// sampleEvery is how many messages share one stamp of an unpaced source. It is
// prime so that the samples fall on every place of a parcel in turn.
const sampleEvery = 61

// eager returns a source whose readers have always a line ready. Each task has
// one split, and every split holds all lines in the same order.
func eager(s *Setup, c *clock) spout.Source {
	all, sampled := lines(), s.Latency
	emit := func(_ int, i int64, out *spout.Out) {
		var at int64
		if sampled && i%sampleEvery == 0 {
			at = c.now()
		}
		out.Emit(all[i%lineCount], at)
	}
	if s.stamps() == noStamp {
		emit = func(_ int, i int64, out *spout.Out) { out.Emit(all[i%lineCount]) }
	}
	return spout.GenerateSplits(s.Spouts, int64(s.passes)*lineCount, emit)
}

// A paced source hands messages over when they are due, or as soon after that as
// it is asked. Its splits are those of the eager one.
type paced struct {
	readers int
	rate    float64 // messages/s over all readers
	end     int64   // messages of each reader; 0 for no end
	clock   *clock
}

func (s *paced) Splits(context.Context) ([]spout.Split, error) {
	all := make([]spout.Split, s.readers)
	for i := range all {
		all[i] = spout.Split(strconv.Itoa(i))
	}
	return all, nil
}

func (s *paced) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	index, err := strconv.Atoi(string(split))
	if err != nil || index < 0 || index >= s.readers {
		return nil, spout.Fatal(fmt.Errorf("the paced source has no split %q: it has 0 to %d", split, s.readers-1))
	}
	var next int64
	if position != "" {
		if next, err = strconv.ParseInt(position, 10, 64); err != nil || next < 0 {
			return nil, spout.Fatal(fmt.Errorf("the paced source has no position %q: it must be a number", position))
		}
	}
	return &pacedReader{
		lines:    lines(),
		next:     next,
		end:      s.end,
		now:      s.clock.now,
		sleep:    s.clock.sleep,
		first:    float64(s.clock.now()) + float64(index)*1e9/s.rate, // readers take turns
		interval: float64(s.readers) * 1e9 / s.rate,
		every:    int64(s.rate/stampRate) | 1,
	}, nil
}

// stampRate is about how many messages a second are stamped at most: the last
// bolt reads the clock for each.
const stampRate = 200_000

type pacedReader struct {
	lines []string
	next  int64 // messages before it in the split
	end   int64
	now   func() int64
	sleep func(until int64)

	first    float64 // when the first message of this reader is due
	interval float64 // ns between two
	sent     int64   // by this reader
	every    int64   // messages that share one stamp
	handed   int64   // when Next last handed messages over
}

func (r *pacedReader) Position() string { return strconv.FormatInt(r.next, 10) }

func (r *pacedReader) due() int64 { return int64(r.first + float64(r.sent)*r.interval) }

// napMax bounds the time that Next needs to notice that ctx has ended.
const napMax = int64(100 * time.Millisecond)

// beat is the least time between two deliveries. At a high rate it gathers what
// falls due in it: to wake two threads for every message would take all cores.
const beat = int64(100 * time.Microsecond)

// Next waits for the next message and emits all that are due by then.
func (r *pacedReader) Next(ctx context.Context, out *spout.Out) error {
	if r.end > 0 && r.next >= r.end {
		return io.EOF
	}
	now := r.now()
	if due := max(r.due(), r.handed+beat); due > now {
		// The thread sleeps in the kernel: a timer of the Go runtime is late by up to
		// a millisecond when the process has nothing else to do. The thread keeps its
		// processor for a while, so whoever is ready to run there goes first.
		runtime.Gosched()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for now = r.now(); due > now; now = r.now() {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.sleep(min(due, now+napMax))
		}
	}
	r.handed = now
	for due := r.due(); due <= now && !out.Full(); due = r.due() {
		if r.end > 0 && r.next >= r.end {
			return io.EOF
		}
		var at int64
		if r.sent%r.every == 0 {
			at = now
		}
		out.Emit(r.lines[r.next%lineCount], at, due)
		r.next++
		r.sent++
	}
	if out.Full() {
		r.handed = 0 // more may be due
	}
	return nil
}
