package trident_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
)

// What a crash of the matrix is.
type crash int

const (
	taskDies crash = iota // whoever is at the point; of the record: its coordinator
	runDies               // all of it, and another run goes on with the record and the states
	noAnswer              // of the record: it fails, and the coordinator lives
)

func (c crash) String() string { return [...]string{"its task dies", "the run dies", "no answer"}[c] }

var errCrash = errors.New("crashed on purpose")

// The points of the protocol where the matrix has something crash.
const (
	beforeBegin      = "before Begin of the record"
	afterBegin       = "after Begin of the record"
	beforeJoin       = "before a Join of the store"
	afterJoin        = "after a Join of the store"
	inNext           = "in Next of a reader"
	whileEmitting    = "while a spout emits"
	beforeMarkers    = "before the markers of a spout"
	betweenMarkers   = "between the markers of a spout"
	behindMarkers    = "behind the markers of a spout"
	inExecute        = "in Execute"
	inComplete       = "in Complete"
	beforeFix        = "before the ranges are fixed"
	afterFix         = "after the ranges are fixed"
	beforeWrite      = "before the first Write of a batch"
	betweenWrites    = "after some tasks wrote"
	afterWrite       = "after the first Write of a batch"
	beforeCommit     = "after all wrote, before the entry"
	commitUnanswered = "the entry applied, its answer lost"
	afterCommit      = "after the entry"
	atFinish         = "at Finish"
)

// A matrixPoint is where something crashes. before, if it is not "", is a point whose
// task dies first, so that there is a round to begin in which the point is.
type matrixPoint struct {
	name   string
	before string
	record bool // it may have no answer
	fixes  bool // only transactional sources come there
}

var matrixPoints = []matrixPoint{
	{name: beforeBegin, before: commitUnanswered, record: true},
	{name: afterBegin, before: commitUnanswered, record: true},
	{name: beforeJoin, before: betweenWrites},
	{name: afterJoin, before: betweenWrites},
	{name: inNext},
	{name: whileEmitting},
	{name: beforeMarkers},
	{name: betweenMarkers},
	{name: behindMarkers},
	{name: inExecute},
	{name: inComplete},
	{name: beforeFix, fixes: true, record: true},
	{name: afterFix, fixes: true, record: true},
	{name: beforeWrite},
	{name: betweenWrites},
	{name: afterWrite},
	{name: beforeCommit, record: true},
	{name: commitUnanswered, record: true},
	{name: afterCommit},
	{name: atFinish},
}

// The input of a game: in each split the numbers from 0 on, each with one of some keys.
const (
	matrixSplits = 2
	matrixEach   = 40
	matrixKeys   = 20
	matrixFirst  = 2 // batches that are committed before anything crashes
)

func matrixKey(n int64) int64 { return n % matrixKeys }

func matrixWant() map[int64]int64 {
	all := map[int64]int64{}
	for n := range int64(matrixEach) {
		all[matrixKey(n)] += matrixSplits
	}
	return all
}

// A game is a topology of one pair of kinds with a crash at one point, from its
// beginning to its end.
type game struct {
	t     *testing.T
	seed  uint64
	plan  *topology.Plan
	inner state.Backend
	disk  batch.Record // what the record's place has
	storm bool         // the store keeps to Storm's opaque rule

	mu        sync.Mutex
	points    []string // where something is to crash, one after the other
	hows      []crash  // by point
	committed tuple.TxID
	opens     uint64
	emits     map[tuple.TaskID]tuple.BatchID // of spout tasks: what the last parcel was of
	marks     map[tuple.TaskID]tuple.BatchID // and the last marker
	running   chan *egret.Running
	killed    chan struct{} // a task of the state dies

	writing sync.Mutex // one Write at a time
	wrote   map[tuple.BatchID]int
}

// at reports whether it is here and now that something crashes. If all of the run is to
// die, at has stopped it.
func (g *game) at(point string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.points) == 0 || g.points[0] != point || g.committed < matrixFirst {
		return false
	}
	if g.hows[0] == runDies {
		r := <-g.running
		g.running <- r
		r.Stop()
	}
	g.points, g.hows = g.points[1:], g.hows[1:]
	return true
}

// die is at, and the death of the caller's task.
func (g *game) die(point string) {
	if g.at(point) {
		panic(errCrash)
	}
}

// fails is at, for who is told of a crash by an error.
func (g *game) fails(point string) error {
	g.mu.Lock()
	how := noAnswer
	if len(g.hows) > 0 {
		how = g.hows[0]
	}
	g.mu.Unlock()
	if !g.at(point) {
		return nil
	}
	return crashed{how}
}

// crashed is an error of the record. The task of the coordinator dies when it is told,
// unless there is just no answer.
type crashed struct{ how crash }

func (c crashed) Error() string { return errCrash.Error() }

// hook puts the game between a run and what it is made of.
func (g *game) hook(plan *topology.Plan, set *task.Settings) error {
	g.plan = plan
	set.Records = (*gameRecords)(g)
	event := set.Event
	set.Event = func(e task.Event) {
		event(e)
		if e, is := e.(*task.StoreError); is {
			if c, is := errors.AsType[crashed](e.Err); is && c.how != noAnswer {
				panic(errCrash) // on the turn of the coordinator
			}
		}
	}
	set.Probe = &task.Probe{
		Tree: func(tuple.TreeID, *spout.Batch, int, int) {}, Emit: func(tuple.TaskID, int, *tuple.Row) {},
		Send: func(*tuple.Parcel) {}, Take: func(*tuple.Parcel) {}, Executed: func(*tuple.Parcel) {},
		Failed: func(*tuple.Parcel, error) {}, Spawned: func(task.Peer) {}, Learned: func(tuple.TaskID, task.Peer) {},
		Retain: func(*tuple.Parcel, bolt.Owner) {}, Settled: func(tuple.TaskID, bolt.Owner, error) {}, Void: func(tuple.TaskID, bolt.Owner) {},
		Anchored: func(tuple.TaskID, int, *tuple.Row, []*bolt.Held) {}, Away: func(tuple.TaskID, int) {}, Own: func(tuple.TaskID, string) {},
		Recode: func(p, _ *tuple.Parcel) { g.sends(p) },
		Tick:   g.tick,
	}
	return nil
}

// sends is told of each parcel before it leaves, on the turn of its sender.
func (g *game) sends(p *tuple.Parcel) {
	if g.plan.Node(p.From).Source == nil {
		return
	}
	g.mu.Lock()
	emits, marks := g.emits[p.From], g.marks[p.From]
	if p.Marker {
		g.marks[p.From] = p.Batch
	} else {
		g.emits[p.From] = p.Batch
	}
	g.mu.Unlock()
	switch {
	case p.Marker && marks != p.Batch:
		g.die(beforeMarkers)
	case p.Marker:
		g.die(betweenMarkers)
	case marks != (tuple.BatchID{}) && emits != p.Batch:
		g.die(behindMarkers)
	case emits == p.Batch:
		g.die(whileEmitting)
	}
}

// tick is a task that can be killed.
func (g *game) tick(alive context.Context, _ tuple.TaskID, b bolt.Bolt) bool {
	if _, is := b.(bolt.Stateful); !is {
		return false
	}
	select {
	case <-g.killed:
		panic(errCrash)
	case <-alive.Done():
		return false
	}
}

// gameRecords is a batch.Records whose calls crash.
type gameRecords game

func (r *gameRecords) Begin(context.Context) (*batch.Record, error) {
	g := (*game)(r)
	if err := g.fails(beforeBegin); err != nil {
		return nil, err
	}
	g.mu.Lock()
	err := g.disk.Apply(&batch.Entry{Epoch: g.disk.Epoch + 1, Begin: true})
	record := g.disk.Clone()
	g.mu.Unlock()
	return record, errors.Join(err, g.fails(afterBegin))
}

func (r *gameRecords) Append(_ context.Context, e *batch.Entry) error {
	g := (*game)(r)
	before, after := beforeCommit, commitUnanswered
	if e.Fix != nil {
		before, after = beforeFix, afterFix
	}
	if err := g.fails(before); err != nil {
		return err
	}
	g.mu.Lock()
	err := g.disk.Apply(e)
	g.committed = g.disk.Committed
	end := true
	for s := range matrixSplits {
		end = end && g.disk.Positions["in"][strconv.Itoa(s)] == strconv.Itoa(matrixEach)
	}
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if end && g.at(atFinish) {
		g.killed <- struct{}{}
		time.Sleep(time.Millisecond) // of the bubble: the task is dead when the coordinator hears that all is committed
	}
	return g.fails(after)
}

// Splits makes a game a spout.Source that cuts batches anew each time it is opened.
func (g *game) Splits(context.Context) (all []spout.Split, _ error) {
	for i := range matrixSplits {
		all = append(all, spout.Split(strconv.Itoa(i)))
	}
	return all, nil
}

func (g *game) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	r := &gameReader{g: g}
	if position != "" {
		var err error
		if r.at, err = strconv.ParseInt(position, 10, 64); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opens++
	r.rng = rand.New(rand.NewPCG(g.seed, g.opens))
	return r, nil
}

type gameReader struct {
	g   *game
	at  int64
	rng *rand.Rand
}

// Next reads a batch, since the runs have a BatchSize of 1.
func (r *gameReader) Next(_ context.Context, out *spout.Out) error {
	r.g.mu.Lock()
	entered := r.g.committed > matrixFirst
	r.g.mu.Unlock()
	if entered {
		r.g.die(afterCommit)
	}
	for range 1 + r.rng.IntN(9) {
		if r.at == matrixEach {
			return io.EOF
		}
		out.Emit(r.at)
		r.at++
	}
	r.g.die(inNext)
	return nil
}

func (r *gameReader) Position() string { return strconv.FormatInt(r.at, 10) }

// gameBackend is a state.Backend whose stores crash.
type gameBackend struct{ *game }

func (b gameBackend) String() string { return b.inner.String() }
func (b gameBackend) Open(ctx context.Context, name state.Name) (state.Store, error) {
	s, err := b.inner.Open(ctx, name)
	return &gameStore{Store: s, g: b.game}, err
}

func (b gameBackend) Find(ctx context.Context, name state.Name) (state.Store, error) {
	return b.inner.Find(ctx, name)
}

type gameStore struct {
	state.Store
	g *game
	// again is the batch that may be in the store and is not committed; of Storm's rule.
	again tuple.TxID
}

func (s *gameStore) Join(ctx context.Context, j *state.Join) (tuple.Groups, error) {
	s.g.die(beforeJoin)
	if s.g.storm {
		j.Undo, j.Fixed, s.again = false, true, j.Committed+1
	}
	ahead, err := s.Store.Join(ctx, j)
	s.g.die(afterJoin)
	return ahead, err
}

// Get is Storm's opaque rule where that is wanted: a key that the batch has written before
// has the value from before it, and any other key the one that it has.
func (s *gameStore) Get(ctx context.Context, keys []state.Key) ([]state.Row, error) {
	rows, err := s.Store.Get(ctx, keys)
	if s.g.storm {
		s.g.mu.Lock()
		repeats := s.g.committed < s.again
		s.g.mu.Unlock()
		for i := range rows {
			if rows[i].Tx == s.again && repeats {
				rows[i] = state.Row{Value: rows[i].Prev}
			}
		}
	}
	return rows, err
}

func (s *gameStore) Write(ctx context.Context, w *state.Write) error {
	g := s.g
	g.writing.Lock()
	defer g.writing.Unlock()
	w.Again = w.Again || g.storm
	id := tuple.BatchID{Attempt: w.Fence.Attempt, Tx: w.Tx}
	if g.wrote[id] == 0 {
		g.die(beforeWrite)
	} else {
		g.die(betweenWrites)
	}
	err := s.Store.Write(ctx, w)
	g.wrote[id]++
	g.die(afterWrite)
	return err
}

// define is the topology: numbers are shuffled, added up by key within a batch, and then
// in the state.
func (g *game) define(source trident.Kind, counts *trident.State[int64, int64]) func(*trident.Builder) {
	return func(b *trident.Builder) {
		in := trident.From[int64](b, "in", g, source).Parallel(2)
		passed := trident.Each(in.Shuffle(), func(n int64, emit func(int64)) error {
			g.die(inExecute)
			emit(n)
			return nil
		}).Name("pass").Parallel(2)
		sums := trident.AggregateGroups(trident.GroupBy(passed, matrixKey), trident.Aggregator[int64, int64, int64]{
			Init: func() int64 { return 0 },
			Add:  func(sum, _ int64) int64 { return sum + 1 },
			Done: func(sum int64, emit func(int64)) { g.die(inComplete); emit(sum) },
		}).Name("sums").Parallel(2)
		byKey := trident.GroupBy(sums, func(p trident.Pair[int64, int64]) int64 { return p.Key })
		trident.PersistentAggregate(byKey, counts, trident.Sum(func(p trident.Pair[int64, int64]) int64 { return p.Value })).Parallel(3)
	}
}

// play plays a game in a bubble of its own and returns what the state has in the end. The
// test fails if its points were not hit.
func play(t *testing.T, source, kind trident.Kind, p matrixPoint, how crash, storm bool) (got map[int64]int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &game{t: t, seed: 1, inner: memory.New(), storm: storm, points: []string{p.name}, hows: []crash{how},
			running: make(chan *egret.Running, 1), killed: make(chan struct{}, 1), wrote: map[tuple.BatchID]int{}}
		if p.before != "" {
			g.points, g.hows = []string{p.before, p.name}, []crash{taskDies, how}
		}
		counts := trident.StateOf[int64, int64]("counts", gameBackend{g}, kind).Cached(10)
		if !exactPair(source, kind) {
			counts = counts.Inexact()
		}
		top := trident.New("matrix", g.define(source, counts))
		for runs := 1; ; runs++ {
			require.LessOrEqual(t, runs, 2, "runs")
			err := g.run(top)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, egret.ErrDrain)
			require.Equal(t, runDies, how, "the run stops: %v", err)
			require.Empty(t, g.points, "the run stops: %v", err)
		}
		require.Empty(t, g.points, "points that were not hit")
		got = contents(t, counts, "matrix")
	})
	return got
}

// run runs the topology until it has come to its end or was stopped.
func (g *game) run(top *topology.Topology) error {
	g.emits, g.marks = map[tuple.TaskID]tuple.BatchID{}, map[tuple.TaskID]tuple.BatchID{}
	ctx := task.WithHook(g.t.Context(), g.hook)
	r, err := egret.Start(ctx, top, egret.Config{AlwaysEncode: true, BatchSize: 1, ParcelSize: 2, Logger: slog.New(slog.NewTextHandler(g.t.Output(), nil))})
	if err != nil {
		return err
	}
	g.running <- r
	stuck := time.AfterFunc(time.Hour, func() {
		g.t.Errorf("it is stuck at batch %d", g.committed+1)
		r.Stop()
	})
	_, err = r.Wait()
	stuck.Stop()
	<-g.running
	return err
}

// exactPair is the table of trident.Kind.
func exactPair(source, state trident.Kind) bool {
	switch source {
	case trident.Transactional:
		return state != trident.NonTransactional
	case trident.Opaque:
		return state == trident.Opaque
	}
	return false
}

func (p *matrixPoint) hows() []crash {
	if p.record {
		return []crash{taskDies, runDies, noAnswer}
	}
	return []crash{taskDies, runDies}
}

func (p *matrixPoint) of(how crash) string { return fmt.Sprintf("%s/%v", p.name, how) }
