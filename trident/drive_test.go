package trident_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A drive runs a plan in one goroutine: tuples one at a time, batches interleaved by
// chance, rounds thrown away at any moment. It keeps the rules T1 to T17 in the plainest
// way, so that package trident can be tested without an engine.
type drive struct {
	t    *testing.T
	rng  *rand.Rand
	plan *topology.Plan

	ahead   int  // batches under way
	size    int  // messages of a batch and split, at most
	trouble int  // one step of so many ends the round; 0: none does
	whole   bool // all messages are one batch
	beside  bool // commits run beside everything else

	tasks   []*driven
	sources map[int]*driveSource // by component
	attempt tuple.Attempt
	done    tuple.TxID
	last    map[int][]tuple.BatchID // by component and group
	begun   tuple.TxID
	rounds  int
	behind  []bool // components that come after a state
	writing bool   // batch done+1 may be written
}

type driveSource struct {
	replay   topology.Replay
	messages []driveRow
	from     int                  // behind the last committed batch
	cuts     map[tuple.TxID][]int // where batches end, in each task; of this round
	fixed    map[tuple.TxID]int   // where transactional batches end
	at       int
}

type driveRow struct {
	stream int
	row    tuple.Row
}

type driven struct {
	d         *drive
	id        tuple.TaskID
	node      *topology.Node
	life      uint32
	bolt      bolt.Batched
	out       *bolt.Collector
	links     map[tuple.TaskID][]driveItem // from whom
	marks     map[tuple.TxID]int
	senders   int
	tx        tuple.TxID // of the last call of Batch
	emits     tuple.TxID // what is emitted belongs to it
	completed map[tuple.TxID]bool
	wrote     map[tuple.TxID]bolt.Written
	commit    chan committed // of a commit under way
}

type committed struct {
	tx tuple.TxID
	w  bolt.Written
	e  error
}

type driveItem struct {
	tx     tuple.TxID
	parcel *tuple.Parcel // nil: a marker
}

func newDrive(t *testing.T, seed uint64, top *topology.Topology, o topology.Options) *drive {
	t.Helper()
	plan, err := top.Build(o)
	require.NoError(t, err)
	d := &drive{t: t, rng: rand.New(rand.NewPCG(seed, 7)), plan: plan, ahead: 3, size: 20,
		sources: map[int]*driveSource{}, last: map[int][]tuple.BatchID{}, attempt: tuple.Attempt{Epoch: 1}, behind: make([]bool, len(plan.Components))}
	for c := range plan.Components {
		n := &plan.Components[c]
		if n.Coordinates {
			continue
		}
		for _, in := range n.Inputs {
			d.behind[c] = d.behind[c] || d.behind[in.From] || plan.Components[in.From].Stateful
		}
		d.last[c] = make([]tuple.BatchID, tuple.KeyGroups)
		if n.Source != nil {
			d.sources[c] = &driveSource{replay: n.Batches, messages: readAll(t, n), fixed: map[tuple.TxID]int{}}
		}
		for k := range n.Parallel {
			id := n.First + tuple.TaskID(k)
			d.tasks = append(d.tasks, &driven{d: d, id: id, node: n, senders: len(plan.Senders(c))})
		}
	}
	return d
}

// readAll returns all messages of a source.
func readAll(t *testing.T, n *topology.Node) (all []driveRow) {
	splits, err := n.Source.Splits(t.Context())
	require.NoError(t, err)
	for _, s := range splits {
		r, err := n.Source.Open(t.Context(), s, "")
		require.NoError(t, err)
		out := spout.NewOut(n.Streams)
		for {
			b := &spout.Batch{}
			out.Collect(b, 1000)
			err := r.Next(t.Context(), out)
			for i := range b.Len() {
				seg, cells := b.Message(i)
				row := tuple.RowOf(seg.Kinds)
				row.Cells = cells
				all = append(all, driveRow{seg.Stream, row})
			}
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
	}
	return all
}

// run drives the plan until all messages are committed.
func (d *drive) run() {
	d.t.Helper()
	d.begin()
	for steps := 0; !d.over(); steps++ {
		require.Less(d.t, steps, 5_000_000, "it is stuck at batch %d", d.done+1)
		if d.trouble > 0 && d.rng.IntN(d.trouble) == 0 && d.rounds < 200 {
			d.begin()
			continue
		}
		d.step()
	}
	for _, k := range d.tasks {
		if c, ok := k.bolt.(bolt.Closer); ok {
			require.NoError(d.t, c.Close())
		}
	}
}

func (d *drive) over() bool {
	for _, s := range d.sources {
		if s.at < len(s.messages) || s.from < s.at && s.replay != topology.NonTransactional {
			return false
		}
	}
	return d.begun == d.done
}

// begin begins a round. Some tasks get another life.
func (d *drive) begin() {
	d.rounds++
	d.attempt.Round++
	d.begun, d.writing = d.done, false
	for _, s := range d.sources {
		s.cuts = map[tuple.TxID][]int{}
		if s.replay != topology.NonTransactional {
			s.at = s.from
		}
	}
	for _, k := range d.tasks {
		if k.commit != nil {
			<-k.commit // whatever it has done
			k.commit = nil
		}
		k.links, k.marks = map[tuple.TaskID][]driveItem{}, map[tuple.TxID]int{}
		k.completed, k.wrote = map[tuple.TxID]bool{}, map[tuple.TxID]bolt.Written{}
		k.tx = 0
		if k.node.Bolt == nil {
			continue
		}
		if k.bolt == nil || d.rng.IntN(4) == 0 {
			k.live()
		}
		if s, ok := k.bolt.(bolt.Stateful); ok {
			require.NoError(d.t, s.Join(d.t.Context(), &bolt.Join{
				Fence:     tuple.Fence{Attempt: d.attempt, Life: tuple.NewIncarnation(1, k.life)},
				Committed: d.done, Last: d.last[d.plan.Tasks[k.id].Component],
				Fixed: true, // its sources give a batch again as it was
			}))
		}
		require.Equal(d.t, k.node.Stateful, isStateful(k.bolt))
		k.bolt.Round()
	}
}

func isStateful(b bolt.Bolt) bool { _, ok := b.(bolt.Stateful); return ok }

func (k *driven) live() {
	if c, ok := k.bolt.(bolt.Closer); ok && k.bolt != nil {
		require.NoError(k.d.t, c.Close())
	}
	k.life++
	k.bolt = k.node.Bolt().(bolt.Batched)
	k.out = bolt.NewCollector(context.Background(), k.node.Streams, k)
	if p, ok := k.bolt.(bolt.Preparer); ok {
		of := k.d.plan.Tasks[k.id]
		require.NoError(k.d.t, p.Prepare(context.Background(), &bolt.Task{Topology: k.d.plan.Topology, Component: k.node.Name,
			Index: of.Index, Parallel: k.node.Parallel, Life: int(k.life), Streams: k.node.Streams}))
	}
}

// Put routes what a task emits.
func (k *driven) Put(stream int, row *tuple.Row) {
	for _, r := range k.node.Outputs {
		if r.Stream != stream {
			continue
		}
		to := &k.d.plan.Components[r.To]
		switch r.Grouping {
		case topology.Fields:
			k.send(r, to, tuple.Owner(row.KeyGroup(r.Fields), to.Parallel), row)
		case topology.Global:
			k.send(r, to, 0, row)
		case topology.All:
			for i := range to.Parallel {
				k.send(r, to, i, row)
			}
		default:
			k.send(r, to, k.d.rng.IntN(to.Parallel), row)
		}
	}
}

func (k *driven) send(r topology.Route, to *topology.Node, index int, row *tuple.Row) {
	p := &tuple.Parcel{From: k.id, To: to.First + tuple.TaskID(index), Input: r.Input, Schema: k.node.Streams[r.Stream]}
	p.Begin(row.Kinds, 1)
	p.Append(row)
	// Through the codec: what is not in the tuple does not arrive.
	b, err := tuple.AppendParcel(nil, p)
	require.NoError(k.d.t, err)
	var got tuple.Parcel
	require.NoError(k.d.t, tuple.DecodeInPlace(b, &got, p.Schema))
	t := k.d.tasks[p.To]
	t.links[k.id] = append(t.links[k.id], driveItem{k.emits, &got})
}

// mark sends markers to all who get something of k.
func (k *driven) mark(tx tuple.TxID) {
	told := map[int]bool{}
	for _, r := range k.node.Outputs {
		if told[r.To] {
			continue
		}
		told[r.To] = true
		to := &k.d.plan.Components[r.To]
		for i := range to.Parallel {
			t := k.d.tasks[to.First+tuple.TaskID(i)]
			t.links[k.id] = append(t.links[k.id], driveItem{tx: tx})
		}
	}
}

func (d *drive) step() {
	if d.begun < d.done+tuple.TxID(d.ahead) && d.more() && d.rng.IntN(8) == 0 {
		d.emit()
		return
	}
	k := d.tasks[d.rng.IntN(len(d.tasks))]
	if k.node.Bolt == nil {
		return
	}
	if d.rng.IntN(4) == 0 {
		k.write()
		d.settle()
		return
	}
	var from []tuple.TaskID
	for id := range tuple.TaskID(len(d.plan.Tasks)) {
		if len(k.links[id]) > 0 {
			from = append(from, id)
		}
	}
	if len(from) == 0 {
		return
	}
	id := from[d.rng.IntN(len(from))]
	item := k.links[id][0]
	if item.parcel != nil && k.node.Inputs[item.parcel.Input].Settled && item.tx > d.done+1 {
		return
	}
	k.links[id] = k.links[id][1:]
	if item.parcel == nil {
		if k.marks[item.tx]++; k.marks[item.tx] == k.senders && !k.node.Stateful {
			k.complete(item.tx)
		}
		return
	}
	if k.tx != item.tx {
		k.bolt.Batch(item.tx)
		k.tx = item.tx
	}
	k.emits = item.tx
	require.NoError(d.t, k.bolt.Execute(item.parcel.Tuple(0), k.out))
	item.parcel.Expire()
}

func (d *drive) more() bool {
	for _, s := range d.sources {
		if s.at < len(s.messages) {
			return true
		}
	}
	return false
}

// emit has all spouts emit the next batch.
func (d *drive) emit() {
	d.begun++
	tx := d.begun
	for _, k := range d.tasks {
		s := d.sources[d.plan.Tasks[k.id].Component]
		if s == nil || d.plan.Tasks[k.id].Index > 0 {
			if k.node.Bolt == nil {
				k.mark(tx)
			}
			continue
		}
		end := min(s.at+d.rng.IntN(d.size+1), len(s.messages))
		if d.whole {
			end = len(s.messages)
		}
		if f, ok := s.fixed[tx]; ok {
			end = f
		} else if s.replay == topology.Transactional {
			s.fixed[tx] = end
		}
		k.emits = tx
		for _, m := range s.messages[s.at:end] {
			k.Put(m.stream, &m.row)
		}
		s.at = end
		s.cuts[tx] = []int{end}
		k.mark(tx)
	}
}

func (k *driven) complete(tx tuple.TxID) {
	k.emits = tx
	require.NoError(k.d.t, k.bolt.Complete(tx, k.out))
	if k.tx == tx {
		k.tx = 0
	}
	k.completed[tx] = true
	k.mark(tx)
}

// write lets a stateful task commit, or takes the result of a commit.
func (k *driven) write() {
	d, tx := k.d, k.d.done+1
	s, ok := k.bolt.(bolt.Stateful)
	if !ok || !d.writing || k.completed[tx] {
		return
	}
	if k.commit == nil {
		if k.marks[tx] < k.senders {
			return
		}
		k.commit = make(chan committed, 1)
		id := tuple.BatchID{Attempt: d.attempt, Tx: tx}
		if do := func(to chan committed) { w, err := s.Commit(context.Background(), id); to <- committed{tx, w, err} }; d.beside {
			go do(k.commit)
		} else {
			do(k.commit)
		}
		return
	}
	select {
	case c := <-k.commit:
		k.commit = nil
		require.NoError(d.t, c.e)
		k.wrote[tx] = c.w
		k.complete(tx)
	default:
	}
}

// settle goes on with the first batch that is not committed.
func (d *drive) settle() {
	tx := d.done + 1
	if d.begun < tx {
		return
	}
	ready, all := true, true
	for _, k := range d.tasks {
		if k.node.Bolt == nil || k.completed[tx] {
			continue
		}
		all = false
		if !k.node.Stateful && !d.behind[d.plan.Tasks[k.id].Component] {
			ready = false
		}
	}
	d.writing = ready
	if !all {
		return
	}
	d.done, d.writing = tx, false
	for _, s := range d.sources {
		s.from = s.cuts[tx][0]
	}
	for _, k := range d.tasks {
		w := k.wrote[tx]
		for g := range uint16(tuple.KeyGroups) {
			if w.Groups.Has(g) {
				d.last[d.plan.Tasks[k.id].Component][g] = tuple.BatchID{Attempt: d.attempt, Tx: tx}
			}
		}
	}
}
