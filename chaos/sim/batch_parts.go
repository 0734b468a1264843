package sim

import (
	gocontext "context"
	"encoding/binary"
	"io"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	batchstate "github.com/egretstream/egret/state"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A batchEntry is what a tuple has one or several of, and a state a list of for each key:
// an id, which is a function of the message that it comes of, and the number that is
// claimed of it.
type batchEntry struct{ id, number uint64 }

func appendEntry(b []byte, e batchEntry) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, e.id), e.number)
}

func entriesOf(b []byte) (all []batchEntry) {
	for ; len(b) >= 16; b = b[16:] {
		all = append(all, batchEntry{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])})
	}
	return all
}

func stateKey(key string) batchstate.Key {
	return batchstate.Key{Group: uint16(tuple.KeyGroup(xxh3.HashString(key))), Bytes: key}
}

// topology makes the topology of one run.
func (r *batchRun) topology() *topology.Topology {
	return topology.New("simulated", func(b *topology.Builder) {
		b.Guarantee(topology.ExactlyOnce)
		var all []*topology.Component
		for i := range r.s.parts {
			p := &r.s.parts[i]
			if p.spout() {
				all = append(all, b.Spout(p.name, &batchSource{r, i}).Emits("key", "entries").Parallel(p.parallel).Batches(p.replay))
				continue
			}
			var subs []topology.Subscription
			for _, e := range p.inputs {
				var sub topology.Subscription
				switch from := all[e.from]; e.grouping {
				case topology.Fields:
					sub = from.By("key")
				case topology.LocalOrShuffle:
					sub = from.LocalOrShuffle()
				case topology.Global:
					sub = from.Global()
				default:
					sub = from.Shuffle()
				}
				if e.settled {
					sub = sub.Settled()
				}
				subs = append(subs, sub)
			}
			c := b.Bolt(p.name, func() bolt.Bolt {
				plain := batchBolt{run: r, part: i}
				if p.state() {
					return &batchState{batchBolt: plain, store: r.states[i]}
				}
				return &plain
			}, subs...).Parallel(p.parallel)
			if p.state() {
				c.Stateful()
			}
			all = append(all, c.Emits("key", "entries"))
		}
	})
}

type batchSource struct {
	run  *batchRun
	part int
}

func (s *batchSource) Splits(gocontext.Context) (splits []spout.Split, err error) {
	for k := range s.run.s.parts[s.part].splits {
		splits = append(splits, spout.Split(strconv.Itoa(k)))
	}
	return splits, nil
}

func (s *batchSource) Open(_ gocontext.Context, split spout.Split, position string) (spout.Reader, error) {
	if err := s.run.hit("open"); err != nil {
		return nil, err
	}
	k, err := strconv.Atoi(string(split))
	n := s.run.book.position(s.part, string(split), position)
	if err != nil {
		return nil, err
	}
	r := &batchReader{s, k, n}
	if s.run.s.parts[s.part].prompt {
		return promptBatchReader{r}, nil
	}
	return r, nil
}

type batchReader struct {
	*batchSource
	split, next int
}

type promptBatchReader struct{ *batchReader }

func (promptBatchReader) Prompt() {}

// Next cuts where chance has it, so that batches are cut elsewhere when they come again.
func (b *batchReader) Next(_ gocontext.Context, out *spout.Out) error {
	r, p := b.run, &b.run.s.parts[b.part]
	r.w.Spend(r.draw(0, p.pause))
	if err := r.hit("next"); err != nil {
		return err
	}
	for n := 1 + r.chance.IntN(p.most); n > 0 && b.next < p.splits[b.split] && !out.Full(); n-- {
		if !r.healed && (b.next >= p.gates[b.split] || r.w.Now() < r.s.span*time.Duration(b.next)/time.Duration(p.gates[b.split])) {
			if out.Len() == 0 {
				r.w.Spend(pollPrompt)
			}
			return nil
		}
		id := batchMessageID(b.part, b.split, b.next)
		b.next++
		out.Emit(r.s.key(id), appendEntry(nil, batchEntry{id: id}))
	}
	if b.next >= p.splits[b.split] {
		return io.EOF
	}
	return nil
}

func (b *batchReader) Position() string { return strconv.Itoa(b.next) }
func (b *batchReader) Close() error     { return nil }

func batchMessageID(part, split, n int) uint64 {
	return mix(uint64(part), uint64(split), uint64(n))
}

// A batchBolt is a bolt without a state.
type batchBolt struct {
	run  *batchRun
	part int
	task *bolt.Task

	joined   bool
	at, done tuple.TxID
	keys     map[tuple.TxID][]string // of a gathering one, in their order
	gathered map[tuple.TxID]map[string][]byte
}

func (b *batchBolt) Prepare(_ gocontext.Context, t *bolt.Task) error {
	b.task = t
	return b.run.hit("prepare")
}

// Round implements bolt.Batched.
func (b *batchBolt) Round() {
	b.joined, b.at, b.done = true, 0, 0
	b.keys, b.gathered = map[tuple.TxID][]string{}, map[tuple.TxID]map[string][]byte{}
	_ = b.run.hit("round")
}

// Batch implements bolt.Batched.
func (b *batchBolt) Batch(tx tuple.TxID) {
	b.at = tx
	_ = b.run.hit("batch")
}

// begin looks whether a tuple may come now, and reads what there is to read for it.
func (b *batchBolt) begin(in tuple.Tuple) (key string, entries []batchEntry, err error) {
	r := b.run
	p := &r.s.parts[b.part]
	r.book.executions++
	r.book.check(chaos.Order)
	key = in.String("key")
	if !b.joined || b.at == 0 || b.at <= b.done {
		r.book.violate(chaos.Order, "%s executes a tuple of batch %d behind the end of %d (in a round: %v)", r.book.name(), b.at, b.done, b.joined)
	}
	r.w.Spend(r.draw(0, p.spend))
	if err := r.hit("execute"); err != nil {
		return "", nil, err
	}
	entries = entriesOf([]byte(in.Bytes("entries")))
	if p.reads < 0 {
		return key, entries, nil
	}
	if err := r.hit("read"); err != nil {
		return "", nil, err
	}
	rows, err := r.states[p.reads].Get(gocontext.Background(), []batchstate.Key{stateKey(key)})
	value := rows[0].Value
	if rows[0].Tx >= b.at { // it is behind the state, and that has written
		value = rows[0].Prev
	}
	for i := range entries {
		entries[i].number = uint64(len(value) / 16)
	}
	return key, entries, err
}

// Execute implements bolt.Bolt.
func (b *batchBolt) Execute(in tuple.Tuple, out *bolt.Collector) error {
	key, entries, err := b.begin(in)
	if err != nil {
		return err
	}
	s := b.run.s
	for _, e := range entries {
		for n := range s.copies(b.part, e.id) {
			c := batchEntry{s.next(b.part, e.id, n), e.number}
			switch {
			case s.parts[b.part].kind == gathering:
				b.gather(key, c)
			case s.parts[b.part].rekey:
				out.Emit(s.key(c.id), appendEntry(nil, c))
			default:
				out.Emit(key, appendEntry(nil, c))
			}
		}
	}
	return nil
}

func (b *batchBolt) gather(key string, e batchEntry) {
	all := b.gathered[b.at]
	if all == nil {
		all = map[string][]byte{}
		b.gathered[b.at] = all
	}
	if all[key] == nil {
		b.keys[b.at] = append(b.keys[b.at], key)
	}
	all[key] = appendEntry(all[key], e)
}

// Complete implements bolt.Batched.
func (b *batchBolt) Complete(tx tuple.TxID, out *bolt.Collector) error {
	if err := b.completes(tx); err != nil {
		return err
	}
	for _, key := range b.keys[tx] {
		out.Emit(key, b.gathered[tx][key])
	}
	delete(b.keys, tx)
	delete(b.gathered, tx)
	return nil
}

func (b *batchBolt) completes(tx tuple.TxID) error {
	b.run.book.check(chaos.Order)
	if !b.joined || b.done > 0 && tx != b.done+1 {
		b.run.book.violate(chaos.Order, "%s completes batch %d behind %d (in a round: %v)", b.run.book.name(), tx, b.done, b.joined)
	}
	b.done = tx
	b.run.w.Spend(time.Microsecond)
	return b.run.hit("complete")
}
