package bench

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// The baselines are word counts in plain Go: what somebody would write who needs
// neither acks nor replay nor a second machine. They read the same lines and
// split, hash and count in the same way as the topology, with two goroutines for
// each step.
//
//	produce 0 --lines--> split 0 --words--> count 0
//	          \/                  \/  by hash
//	produce 1 --lines--> split 1 --words--> count 1

const (
	plainTasks = 2
	chanSize   = 1024 // records, in the channels of plain-channel
	sliceSize  = 256  // records, in the slices of plain-batched
	underWay   = 16   // slices between two goroutines
)

// baselines are the plain programs by name. passes is how often each producer
// reads the lines, 0 for until ctx ends.
var baselines = map[string]func(*plain) func(context.Context){
	"plain-batched": func(p *plain) func(context.Context) { return p.batched },
	"plain-channel": func(p *plain) func(context.Context) { return p.channel },
}

// A plain is one run of a baseline.
type plain struct {
	lines    []string
	passes   int
	sent     [plainTasks]progress
	counted  [plainTasks]progress
	counters [plainTasks]counts // owner: the counting goroutine, then who has waited
}

// A progress is a number with one writer, alone on its cache line.
type progress struct {
	n atomic.Int64
	_ [56]byte
}

func newPlain(passes int) *plain {
	p := &plain{lines: lines(), passes: passes}
	for i := range p.counters {
		p.counters[i] = counts{}
	}
	return p
}

// start runs the baseline until its input or ctx has ended.
func (p *plain) start(ctx context.Context, name string) Running {
	var run sync.WaitGroup
	work := baselines[name](p)
	run.Go(func() { work(ctx) })
	return Running{Stats: p.stats, Wait: func() (Counts, error) {
		run.Wait()
		return p.stats(), nil
	}}
}

// stats counts in tuples, as the topology does: a line is one for its split, and
// a word one for its count.
func (p *plain) stats() Counts {
	var c Counts
	var words int64
	for i := range plainTasks {
		c.Emitted += p.sent[i].n.Load()
		words += p.counted[i].n.Load()
	}
	c.Executed = c.Emitted + words
	c.ExecutedBy = map[string]int64{"split": c.Emitted, "count": words}
	return c
}

func (p *plain) digest() string { return digest(p.counters[:]) }

// again reports whether a producer reads the lines once more.
func (p *plain) again(ctx context.Context, pass int) bool {
	return ctx.Err() == nil && (p.passes == 0 || pass < p.passes)
}

// counterOf returns which counter owns a word.
func counterOf(word string) int {
	hi, _ := bits.Mul64(xxh3.HashString(word), plainTasks)
	return int(hi)
}

// channel sends every record by itself.
func (p *plain) channel(ctx context.Context) {
	var toSplit, toCount [plainTasks]chan string
	for i := range plainTasks {
		toSplit[i], toCount[i] = make(chan string, chanSize), make(chan string, chanSize)
	}
	var producers, splitters, counters sync.WaitGroup
	for k := range plainTasks {
		producers.Go(func() {
			for pass := 0; p.again(ctx, pass); pass++ {
				for i, line := range p.lines {
					toSplit[(i+k)%plainTasks] <- line
				}
				p.sent[k].n.Add(int64(len(p.lines)))
			}
		})
		splitters.Go(func() {
			for line := range toSplit[k] {
				for word, rest := cut(line); word != ""; word, rest = cut(rest) {
					toCount[counterOf(word)] <- word
				}
			}
		})
		counters.Go(func() {
			mine, n := p.counters[k], int64(0)
			for word := range toCount[k] {
				mine.add(word)
				if n++; n%sliceSize == 0 {
					p.counted[k].n.Store(n)
				}
			}
			p.counted[k].n.Store(n)
		})
	}
	producers.Wait()
	closeAll(toSplit[:])
	splitters.Wait()
	closeAll(toCount[:])
	counters.Wait()
}

// A slab is a slice of records that goes back to where it came from.
type slab struct {
	records []string
	home    chan *slab
}

// A feed fills slabs for one receiver.
type feed struct {
	to   chan *slab
	home chan *slab
	open *slab // being filled
}

// newFeeds returns one feed for each receiver, all of one sender.
func newFeeds(to []chan *slab) []*feed {
	fs := make([]*feed, len(to))
	for i := range to {
		f := &feed{to: to[i], home: make(chan *slab, underWay)}
		for range underWay {
			f.home <- &slab{records: make([]string, 0, sliceSize), home: f.home}
		}
		f.open = <-f.home
		fs[i] = f
	}
	return fs
}

// add appends a record and reports whether that has filled the slab, which is
// then sent.
func (f *feed) add(record string) bool {
	s := f.open
	s.records = append(s.records, record)
	if len(s.records) < sliceSize {
		return false
	}
	f.to <- s
	f.open = <-f.home
	return true
}

func flush(fs []*feed) {
	for _, f := range fs {
		f.to <- f.open
	}
}

// batched sends slices of records. A receiver gives each back to its sender.
func (p *plain) batched(ctx context.Context) {
	toSplit, toCount := make([]chan *slab, plainTasks), make([]chan *slab, plainTasks)
	for i := range plainTasks {
		toSplit[i], toCount[i] = make(chan *slab, plainTasks*underWay), make(chan *slab, plainTasks*underWay)
	}
	var producers, splitters, counters sync.WaitGroup
	for k := range plainTasks {
		producers.Go(func() {
			out, turn := newFeeds(toSplit), k
			for pass := 0; p.again(ctx, pass); pass++ {
				for _, line := range p.lines {
					if out[turn].add(line) {
						turn = (turn + 1) % plainTasks
					}
				}
				p.sent[k].n.Add(int64(len(p.lines)))
			}
			flush(out)
		})
		splitters.Go(func() {
			out := newFeeds(toCount)
			for s := range toSplit[k] {
				for _, line := range s.records {
					for word, rest := cut(line); word != ""; word, rest = cut(rest) {
						out[counterOf(word)].add(word)
					}
				}
				s.records = s.records[:0]
				s.home <- s
			}
			flush(out)
		})
		counters.Go(func() {
			mine, n := p.counters[k], int64(0)
			for s := range toCount[k] {
				for _, word := range s.records {
					mine.add(word)
				}
				n += int64(len(s.records))
				p.counted[k].n.Store(n)
				s.records = s.records[:0]
				s.home <- s
			}
		})
	}
	producers.Wait()
	closeAll(toSplit)
	splitters.Wait()
	closeAll(toCount)
	counters.Wait()
}

func closeAll[T any](cs []chan T) {
	for _, c := range cs {
		close(c)
	}
}
