package egret_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func TestMain(m *testing.M) {
	program()                                      // if this is one of the processes that tests start
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the command's; others have a logbook
	goleak.VerifyTestMain(m)
}

// bubble runs f where time is made up: it stands still while anybody works, and
// nothing may be left running at the end.
func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// A made is a bolt made of functions; those that are nil do nothing.
type made struct {
	prepare func(context.Context, *bolt.Task) error
	execute func(tuple.Tuple, *bolt.Collector) error
	tick    func(*bolt.Collector) error
	finish  func(*bolt.Collector) error
	close   func() error
}

func (m *made) Prepare(ctx context.Context, task *bolt.Task) error {
	if m.prepare == nil {
		return nil
	}
	return m.prepare(ctx, task)
}

func (m *made) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if m.execute == nil {
		return nil
	}
	return m.execute(in, out)
}

func (m *made) Tick(out *bolt.Collector) error   { return call(m.tick, out) }
func (m *made) Finish(out *bolt.Collector) error { return call(m.finish, out) }

func (m *made) Close() error {
	if m.close == nil {
		return nil
	}
	return m.close()
}

func call(f func(*bolt.Collector) error, out *bolt.Collector) error {
	if f == nil {
		return nil
	}
	return f(out)
}

func factory(m func() *made) bolt.Factory { return func() bolt.Bolt { return m() } }

// A diary is what happened, in order, and when.
type diary struct {
	mu    sync.Mutex
	began time.Time
	all   []string
}

func newDiary() *diary { return &diary{began: time.Now()} }

// add notes an event without its time, at one with it.
func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, fmt.Sprintf(format, args...))
}

func (d *diary) at(format string, args ...any) {
	d.add("%v %s", time.Since(d.began), fmt.Sprintf(format, args...))
}

func (d *diary) entries() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

func (d *diary) count(entry string) (n int) {
	for _, e := range d.entries() {
		if e == entry {
			n++
		}
	}
	return n
}

// A tally counts by name, from any goroutine.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

// add counts key and returns how often it was counted so far.
func (a *tally) add(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n[key]++
	return a.n[key]
}

func (a *tally) get() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.n)
}

func (a *tally) sum() (n int) {
	for _, k := range a.get() {
		n += k
	}
	return n
}

// A logbook keeps what is logged: one line for each record.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

// A page is a logbook with attributes for each record.
type page struct {
	*logbook
	attrs []slog.Attr
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs(attrs []slog.Attr) slog.Handler { return page{l, attrs} }
func (l *logbook) WithGroup(string) slog.Handler            { return l }
func (p page) WithAttrs(attrs []slog.Attr) slog.Handler {
	return page{p.logbook, slices.Concat(p.attrs, attrs)}
}
func (p page) Handle(ctx context.Context, r slog.Record) error {
	own := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	own.AddAttrs(p.attrs...)
	r.Attrs(func(a slog.Attr) bool { own.AddAttrs(a); return true })
	return p.logbook.Handle(ctx, own)
}

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.Key + "=" + a.Value.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logbook) logger() *slog.Logger { return slog.New(l) }

// with returns the lines with a text.
func (l *logbook) with(text string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// quiet is a config that logs nowhere.
func quiet(c egret.Config) egret.Config {
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

// run runs a topology to its end and checks what holds at every end.
func run(t *testing.T, top *topology.Topology, c egret.Config) (*egret.Stats, error) {
	t.Helper()
	if c.Logger == nil {
		c = quiet(c)
	}
	s, err := egret.Run(context.Background(), top, c)
	if s != nil {
		settled(t, s, err)
	}
	return s, err
}

// settled checks both laws and, of a run that came to its end, that nothing is left.
func settled(t *testing.T, s *egret.Stats, err error) {
	t.Helper()
	if s.Guarantee == topology.AtMostOnce.String() {
		return
	}
	require.Equal(t, s.Messages, s.Acked+s.Dead+s.HandedBack+s.Abandoned+s.Open, "messages: %s", s)
	require.Equal(t, s.Attempts, s.Acked+s.Failed+s.Lost+s.TimedOut+s.Trying, "attempts: %s", s)
	if err == nil || errors.Is(err, egret.ErrDead) {
		require.Zero(t, s.Open, "open: %s", s)
		require.Zero(t, s.Trying, "trying: %s", s)
		for _, task := range s.Tasks {
			require.Zero(t, task.Queued, "queued of %s", task.Task)
		}
	}
}

// stat returns the statistics of a task.
func stat(t *testing.T, s *egret.Stats, task string) egret.TaskStat {
	t.Helper()
	for _, x := range s.Tasks {
		if x.Task == task {
			return x
		}
	}
	t.Fatalf("no task %s", task)
	return egret.TaskStat{}
}

// executed returns how many tuples each task of a component has executed.
func executed(s *egret.Stats, component string) (n []int64) {
	for _, x := range s.Tasks {
		if x.Component == component {
			var sum int64
			for _, in := range x.Inputs {
				sum += in.Executed
			}
			n = append(n, sum)
		}
	}
	return n
}

// numbers is a source of the numbers below n in splits, with hooks.
type numbers struct {
	splits int // 0: one
	n      int // of each split
	chunk  int // messages a call of Next; 0: until full
	prompt bool
	split  func(ctx context.Context) error
	open   func(ctx context.Context, split string, at int) error
	next   func(ctx context.Context, split string, at int) error // before each message
	commit func(ctx context.Context, split string, at int) error
	place  func(at int) string
	closed func(split string)
}

func (s *numbers) Splits(ctx context.Context) (all []spout.Split, err error) {
	if s.split != nil {
		if err := s.split(ctx); err != nil {
			return nil, err
		}
	}
	for i := range max(1, s.splits) {
		all = append(all, spout.Split(strconv.Itoa(i)))
	}
	return all, nil
}

func (s *numbers) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	at := 0
	if position != "" {
		var err error
		if at, err = strconv.Atoi(position); err != nil {
			return nil, err
		}
	}
	if s.open != nil {
		if err := s.open(ctx, string(split), at); err != nil {
			return nil, err
		}
	}
	r := &numberReader{s: s, split: string(split), at: at}
	if s.prompt {
		return promptReader{r}, nil
	}
	return r, nil
}

type promptReader struct{ *numberReader }

func (promptReader) Prompt() {}

type numberReader struct {
	s     *numbers
	split string
	at    int
}

func (r *numberReader) Next(ctx context.Context, out *spout.Out) error {
	for k := 0; !out.Full() && (r.s.chunk == 0 || k < r.s.chunk); k++ {
		if r.at >= r.s.n {
			return io.EOF
		}
		if r.s.next != nil {
			if err := r.s.next(ctx, r.split, r.at); err != nil {
				return err
			}
		}
		if len(r.split) == 1 && r.split != "0" {
			out.Emit(r.split + ":" + strconv.Itoa(r.at))
		} else {
			out.Emit(strconv.Itoa(r.at))
		}
		r.at++
	}
	return nil
}

func (r *numberReader) Position() string {
	if r.s.place != nil {
		return r.s.place(r.at)
	}
	return strconv.Itoa(r.at)
}

func (r *numberReader) Close() error {
	if r.s.closed != nil {
		r.s.closed(r.split)
	}
	return nil
}

// committing is numbers that hear of commits.
type committing struct{ *numbers }

func (c committing) Commit(ctx context.Context, split spout.Split, position string) error {
	at, err := strconv.Atoi(position)
	if err != nil {
		return err
	}
	return c.commit(ctx, string(split), at)
}

// straight is a topology of a spout "in" of one field "n" and a bolt "out".
func straight(source spout.Source, execute func(tuple.Tuple, *bolt.Collector) error) *topology.Topology {
	return topology.New("straight", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("n")
		b.Bolt("out", bolt.Each(execute), in.Shuffle()).Emits("n")
	})
}

// texts returns the numbers below n as text.
func texts(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}

func goexit() { runtime.Goexit() }
