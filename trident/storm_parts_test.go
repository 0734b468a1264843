package trident_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
)

// A script is a source whose messages are due at times since it was made. A position is a
// number of messages.
type script struct {
	began  time.Time
	splits map[string][]scripted
	idle   bool // it waits for ever behind the last message, and does not end
	prompt bool // its readers are a spout.Prompt, and do not wait
	chunk  int  // messages of a call of Next at most; 0: one
	// next, if not nil, is called when messages from at on are to be read.
	next func(split string, at int) error

	mu    sync.Mutex
	opens []string // split@position, each time that one is opened
}

type scripted struct {
	due  time.Duration
	text string
}

func scriptOf(splits map[string][]scripted) *script {
	return &script{began: time.Now(), splits: splits}
}

// named returns n messages split0, split1, ..., of which so many are due every so often.
func named(split string, n, together int, every time.Duration) (all []scripted) {
	for i := range n {
		all = append(all, scripted{time.Duration(i/together) * every, split + strconv.Itoa(i)})
	}
	return all
}

func (s *script) Splits(context.Context) (all []spout.Split, err error) {
	for _, split := range slices.Sorted(maps.Keys(s.splits)) {
		all = append(all, spout.Split(split))
	}
	return all, nil
}

func (s *script) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens = append(s.opens, string(split)+"@"+position)
	r := &scriptReader{s: s, split: string(split)}
	if position != "" {
		var err error
		if r.at, err = strconv.Atoi(position); err != nil {
			return nil, err
		}
	}
	if s.prompt {
		return promptScript{r}, nil
	}
	return r, nil
}

type promptScript struct{ *scriptReader }

func (promptScript) Prompt() {}

// opened returns what was opened since the last call, sorted, each once.
func (s *script) opened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.opens
	s.opens = nil
	slices.Sort(all)
	return slices.Compact(all)
}

type scriptReader struct {
	s     *script
	split string
	at    int
}

func (r *scriptReader) Next(ctx context.Context, out *spout.Out) error {
	all := r.s.splits[r.split]
	if r.at == len(all) {
		if r.s.idle {
			<-ctx.Done()
			return nil
		}
		return io.EOF
	}
	if wait := time.Until(r.s.began.Add(all[r.at].due)); r.s.prompt && wait > 0 {
		return nil
	} else if wait > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	if r.s.next != nil {
		if err := r.s.next(r.split, r.at); err != nil {
			return err
		}
	}
	for range max(1, r.s.chunk) {
		if r.at == len(all) || out.Full() || time.Since(r.s.began) < all[r.at].due {
			break
		}
		out.Emit(all[r.at].text)
		r.at++
	}
	return nil
}

func (r *scriptReader) Position() string { return strconv.Itoa(r.at) }

// A witness keeps states in memory and sees what is asked of it.
type witness struct {
	*memory.Backend
	// before and after, if not nil, are called with each write. An error is that of the
	// write, which is then not done, or done.
	before, after func(*state.Write) error
	joining       time.Duration // a join takes so long

	mu     sync.Mutex
	gets   int
	writes int // that were done
	joins  int
}

func newWitness() *witness { return &witness{Backend: memory.New()} }

func (w *witness) Open(ctx context.Context, name state.Name) (state.Store, error) {
	s, err := w.Backend.Open(ctx, name)
	return &witnessed{s, w}, err
}

// asked returns how often the store was asked for anything.
func (w *witness) asked() (gets, writes, joins int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gets, w.writes, w.joins
}

type witnessed struct {
	state.Store
	w *witness
}

func (s *witnessed) count(n *int) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	*n++
}

func (s *witnessed) Join(ctx context.Context, j *state.Join) (tuple.Groups, error) {
	s.count(&s.w.joins)
	time.Sleep(s.w.joining)
	return s.Store.Join(ctx, j)
}

func (s *witnessed) Get(ctx context.Context, keys []state.Key) ([]state.Row, error) {
	s.count(&s.w.gets)
	return s.Store.Get(ctx, keys)
}

func (s *witnessed) Write(ctx context.Context, w *state.Write) error {
	if s.w.before != nil {
		if err := s.w.before(w); err != nil {
			return err
		}
	}
	if err := s.Store.Write(ctx, w); err != nil {
		return err
	}
	s.count(&s.w.writes)
	if s.w.after != nil {
		return s.w.after(w)
	}
	return nil
}

// counted is a topology that counts the messages of sources, each kind of message on its
// own. each, if not nil, is called with each.
func counted(st *trident.State[string, int64], tasks int, each func(string) error, kind trident.Kind, sources ...spout.Source) *topology.Topology {
	return trident.New("counted", func(b *trident.Builder) {
		var all []*trident.Stream[string]
		for i, s := range sources {
			all = append(all, trident.From[string](b, fmt.Sprint("source", i), s, kind).Parallel(2))
		}
		seen := trident.Each(trident.Merge(all[0], all[1:]...), func(m string, emit func(string)) error {
			emit(m)
			if each != nil {
				return each(m)
			}
			return nil
		}).Name("each").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(seen, trident.Identity), st, trident.Count[string]()).Parallel(tasks)
	})
}

// once are the messages of a script, each once.
func (s *script) once() map[string]int64 {
	all := map[string]int64{}
	for _, messages := range s.splits {
		for _, m := range messages {
			all[m.text]++
		}
	}
	return all
}

// halfWritten arms a crash that comes when one task has written a batch, or a later one,
// and another task has not.
func halfWritten(w *witness, batch tuple.TxID) (arm func(die func())) {
	return func(die func()) {
		var n atomic.Int32
		w.before = func(of *state.Write) error {
			if of.Tx < batch || n.Add(1) == 1 {
				return nil
			}
			die()
			return errKilled
		}
	}
}

// kill runs a topology until it is stopped by the function that arm gets, at once and
// with what is under way, as if its process had died.
func kill(t *testing.T, top *topology.Topology, c egret.Config, arm func(die func())) {
	t.Helper()
	ready := make(chan *egret.Running, 1)
	arm(sync.OnceFunc(func() { (<-ready).Stop() }))
	r := begun(t, top, c)
	ready <- r
	_, _ = r.Wait()
}

func begun(t *testing.T, top *topology.Topology, c egret.Config) *egret.Running {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	r, err := egret.Start(context.Background(), top, c)
	require.NoError(t, err)
	return r
}

// whole runs a topology to its end.
func whole(t *testing.T, top *topology.Topology, c egret.Config) *egret.Stats {
	t.Helper()
	s, err := begun(t, top, c).Wait()
	require.NoError(t, err)
	return s
}
