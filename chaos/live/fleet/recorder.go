package fleet

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// window is the time for which rates are counted.
const window = 100 * time.Millisecond

// A Recorder knows which numbers were executed, and nothing else does: it is outside of
// all nodes. Its methods may be called from any goroutine.
type Recorder struct {
	listener net.Listener
	wait     sync.WaitGroup
	began    time.Time // of its times

	mu       sync.Mutex
	conns    map[net.Conn]bool
	closed   bool
	times    []uint8 // executions by number, up to 255
	splits   int
	start    time.Duration // when the first numbers of all splits are due
	every    time.Duration // and the next ones; 0: nothing is ever due
	distinct int64
	all      int64
	windows  []int64 // first executions
	repeats  []int64 // the others
	high     []int64 // by split, the highest ordinal that was executed; -1: none
	last     time.Duration
	gaps     []gap
	lives    []lived
	marks    []*mark
	strange  string // somebody has told what cannot be
}

// A gap is a time without a first execution.
type gap struct{ from, to time.Duration }

// A lived is a life of a task that has begun in a process.
type lived struct {
	life
	at      time.Duration
	process int
}

// A mark is a moment after which it is looked what comes of the numbers that were under
// way, until the next mark.
type mark struct {
	at      time.Duration
	high    []int64
	late    int64         // executions of numbers from before
	last    time.Duration // the last of them, 0: none
	overdue time.Duration // the last execution of an overdue number, 0: none
	again   int64         // executions of what had been executed already
	before  int64         // distinct, at that moment
	longest gap
}

// shortest is the least gap that is remembered.
const shortest = 50 * time.Millisecond

// overdue is how late a number is that was held up: by nodes that nobody knew to be gone when
// it was due, which is some time after the deed. Moving a task takes less.
const overdue = time.Second

// StartRecorder starts one for so many numbers, at an address.
func StartRecorder(addr string, messages int64, splits int) (*Recorder, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	r := &Recorder{listener: l, began: time.Now(), conns: map[net.Conn]bool{}, times: make([]uint8, messages), splits: splits, high: slices.Repeat([]int64{-1}, splits)}
	r.wait.Go(r.accept)
	return r, nil
}

// Addr is where it is told.
func (r *Recorder) Addr() string { return r.listener.Addr().String() }

// due says when numbers are due: the first ones of all splits at start, and of all of them
// rate a second.
func (r *Recorder) due(start time.Time, rate int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start, r.every = start.Sub(r.began), time.Second*time.Duration(r.splits)/time.Duration(rate)
}

func (r *Recorder) now() time.Duration { return time.Since(r.began) }

// Close ends it.
func (r *Recorder) Close() {
	r.mu.Lock()
	r.closed = true
	r.listener.Close()
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wait.Wait()
}

func (r *Recorder) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.mu.Lock()
		if r.closed {
			c.Close()
		} else {
			r.conns[c] = true
			r.wait.Go(func() { r.hear(c) })
		}
		r.mu.Unlock()
	}
}

// hear takes in what one node tells until it ends.
func (r *Recorder) hear(c net.Conn) {
	defer func() {
		c.Close()
		r.mu.Lock()
		delete(r.conns, c)
		r.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	var from hello
	for {
		kind, text, err := readFrame(in)
		if err != nil {
			return
		}
		switch kind {
		case helloFrame:
			err = json.Unmarshal(text, &from)
		case livesFrame:
			var all []life
			if err = json.Unmarshal(text, &all); err == nil {
				r.hasLives(from.Process, all)
			}
		case numbersFrame:
			err = r.executed(text)
		default:
			err = errors.New("a frame of an unknown kind")
		}
		if err != nil {
			r.mu.Lock()
			r.strange = err.Error()
			r.mu.Unlock()
			return
		}
		if _, err := c.Write([]byte{recorded}); err != nil {
			return
		}
	}
}

func (r *Recorder) hasLives(process int, all []life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range all {
		r.lives = append(r.lives, lived{l, r.now(), process})
	}
}

// executed takes in numbers.
func (r *Recorder) executed(text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	var m *mark
	if len(r.marks) > 0 {
		m = r.marks[len(r.marks)-1]
	}
	fresh, told := int64(0), int64(len(text)/16)
	for ; len(text) >= 16; text = text[16:] {
		n := int64(binary.BigEndian.Uint64(text))
		at := time.Unix(0, int64(binary.BigEndian.Uint64(text[8:]))).Sub(r.began)
		if n < 0 || n >= int64(len(r.times)) {
			return errors.New("a number that there is not")
		}
		split, ordinal := int(n)%r.splits, n/int64(r.splits)
		again := r.times[n] > 0
		if r.times[n] < 255 {
			r.times[n]++
		}
		r.all++
		if !again {
			fresh++
			r.high[split] = max(r.high[split], ordinal)
		}
		if m == nil {
			continue
		}
		if again {
			m.again++
		}
		if ordinal <= m.high[split] || at < m.at {
			m.late++
			m.last = now
		}
		if r.every > 0 && now-(r.start+time.Duration(ordinal)*r.every) > overdue {
			m.overdue = now
		}
	}
	for int(now/window) >= len(r.windows) {
		r.windows, r.repeats = append(r.windows, 0), append(r.repeats, 0)
	}
	r.repeats[now/window] += told - fresh
	if fresh == 0 {
		return nil
	}
	r.distinct += fresh
	r.windows[now/window] += fresh
	if r.last > 0 && now-r.last >= shortest {
		g := gap{r.last, now}
		r.gaps = append(r.gaps, g)
		if m != nil && g.to-g.from > m.longest.to-m.longest.from {
			m.longest = g
		}
	}
	r.last = now
	return nil
}

// mark begins a new part of the record.
func (r *Recorder) mark() *mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &mark{at: r.now(), high: slices.Clone(r.high), before: r.distinct}
	r.marks = append(r.marks, m)
	return m
}

// done returns how many different numbers were executed, and how often any was.
func (r *Recorder) done() (distinct, all int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.distinct, r.all
}

// missing returns the first numbers that were never executed, and how many there are.
func (r *Recorder) missing() (first []int64, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range r.times {
		if t == 0 {
			if n++; len(first) < 20 {
				first = append(first, int64(i))
			}
		}
	}
	return first, n
}

// rate is the median of the windows that lie between two times, a second; -1: there are
// none.
func (r *Recorder) rate(from, to time.Duration) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, last := int((from+window-1)/window), int(to/window)
	var all []int64
	for i := first; i < last; i++ {
		n := int64(0)
		if i < len(r.windows) {
			n = r.windows[i]
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return -1
	}
	slices.Sort(all)
	return float64(all[len(all)/2]) / window.Seconds()
}
