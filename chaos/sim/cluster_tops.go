package sim

import (
	gocontext "context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A clusterTop is a topology that a seed draws for a cluster: spouts with bounded splits,
// and bolts that are functions of what they get.
type clusterTop struct {
	name   string
	at     time.Duration // when it is submitted
	parts  []clusterPart // senders come before receivers
	splits [][]int       // by part: messages of each split
	keys   int
	fails  int  // one tuple in so many fails at first; 0: none
	panics int  // and so many panic
	early  bool // nothing is held back, so that it may end while things go wrong

	killed bool // somebody has asked for that
	stops  bool // so that it can go on
	again  bool // and will submit it again
	doomed cluster.Run
}

type clusterPart struct {
	name     string
	parallel int
	inputs   []edge
	act      act           // passing, flatting or filtering
	spend    time.Duration // most time for a tuple
	pause    time.Duration // of a spout, behind each call
	commits  bool          // its source hears of positions
}

// gated is which share of a split's messages is held back until all is healed.
const gated = 4

func drawTop(r *rand.Rand, i int) *clusterTop {
	t := &clusterTop{name: "t" + strconv.Itoa(i), keys: one(r, 1, 5, 50), fails: one(r, 0, 0, 40)}
	if i > 0 {
		t.at = time.Duration(r.Int64N(int64(4 * time.Second)))
	}
	t.early = chance(r, 30)
	spouts := one(r, 1, 1, 1, 2)
	messages := one(r, 60, 150, 300) / (i + 1)
	for k := range spouts {
		p := clusterPart{name: "s" + strconv.Itoa(k), parallel: 1 + r.IntN(3), commits: chance(r, 50)}
		splits := make([]int, one(r, 1, 2, 4))
		for k := range splits {
			splits[k] = r.IntN(2*messages/len(splits)/spouts + 1)
		}
		p.pause = around(r, 5*time.Millisecond, 300*time.Millisecond)
		t.parts, t.splits = append(t.parts, p), append(t.splits, splits)
	}
	for k := range 1 + r.IntN(3) {
		p := clusterPart{name: "b" + strconv.Itoa(k), parallel: 1 + r.IntN(4), act: one(r, passing, passing, flatting, filtering)}
		p.spend = one[time.Duration](r, 0, 100*time.Microsecond, 2*time.Millisecond, 10*time.Millisecond)
		for from := range t.parts {
			if chance(r, 60) || k == 0 && from < spouts || from == len(t.parts)-1 && len(p.inputs) == 0 {
				p.inputs = append(p.inputs, edge{from: from, grouping: one(r,
					topology.Shuffle, topology.Shuffle, topology.Fields, topology.Fields, topology.LocalOrShuffle, topology.Global, topology.PartialKey, topology.None)})
			}
		}
		t.parts, t.splits = append(t.parts, p), append(t.splits, nil)
	}
	return t
}

func (t *clusterTop) String() string {
	text := t.name + " at " + t.at.String() + ":"
	for i := range t.parts {
		p := &t.parts[i]
		text += fmt.Sprintf(" %s x%d", p.name, p.parallel)
		if len(p.inputs) == 0 {
			text += fmt.Sprintf(" %v every %v;", t.splits[i], p.pause)
			continue
		}
		var from []string
		for _, e := range p.inputs {
			from = append(from, t.parts[e.from].name+" "+e.grouping.String())
		}
		text += fmt.Sprintf(" (%v, up to %v) <- %s;", p.act, p.spend, strings.Join(from, ", "))
	}
	return text
}

// topology makes the program of one node: all have the same.
func (t *clusterTop) topology(book *clusterBook) *topology.Topology {
	return topology.New(t.name, func(b *topology.Builder) {
		var all []*topology.Component
		for i := range t.parts {
			p := &t.parts[i]
			if len(p.inputs) == 0 {
				var source spout.Source = &clusterSource{book, t, i}
				if !p.commits {
					source = forgetfulSource{source}
				}
				all = append(all, b.Spout(p.name, source).Emits("id", "key").Parallel(p.parallel))
				continue
			}
			var subs []topology.Subscription
			for _, e := range p.inputs {
				from := all[e.from]
				switch e.grouping {
				case topology.Shuffle:
					subs = append(subs, from.Shuffle())
				case topology.LocalOrShuffle:
					subs = append(subs, from.LocalOrShuffle())
				case topology.Fields:
					subs = append(subs, from.By("key"))
				case topology.Global:
					subs = append(subs, from.Global())
				case topology.PartialKey:
					subs = append(subs, from.PartialBy("key"))
				default:
					subs = append(subs, from.None())
				}
			}
			c := b.Bolt(p.name, func() bolt.Bolt { return &clusterBolt{book: book, top: t, part: i} }, subs...).Parallel(p.parallel)
			all = append(all, c.Emits("id", "key"))
		}
	})
}

// spec is what the topology is submitted with.
func (t *clusterTop) spec(c *clusterRun) *cluster.Spec {
	plan, err := t.topology(c.book).Build(topology.Options{})
	if err != nil {
		panic(err)
	}
	return node.SpecOf(plan, nil, nil, "")
}

func (t *clusterTop) key(id uint64) string {
	return strconv.FormatUint(mix(id, 'k', 0)%uint64(t.keys), 10)
}

// children are the tuples that a bolt emits for one.
func (t *clusterTop) children(part int, id uint64) (all []uint64) {
	n := 1
	switch t.parts[part].act {
	case flatting:
		n = int(mix(id, 'f', 0) % 3)
	case filtering:
		n = int(mix(id, 'f', 1) % 2)
	}
	for i := range n {
		all = append(all, mix(id, uint64(part+1)<<32, uint64(i)))
	}
	return all
}

// descend calls f for each tuple that comes of one, and where it is executed.
func (t *clusterTop) descend(from int, id uint64, f func(part int, id uint64)) {
	for to := range t.parts {
		for _, e := range t.parts[to].inputs {
			if e.from != from {
				continue
			}
			f(to, id)
			for _, c := range t.children(to, id) {
				t.descend(to, c, f)
			}
		}
	}
}

type clusterSource struct {
	book *clusterBook
	top  *clusterTop
	part int
}

func (s *clusterSource) Splits(gocontext.Context) (splits []spout.Split, err error) {
	for k := range s.top.splits[s.part] {
		splits = append(splits, spout.Split(strconv.Itoa(k)))
	}
	return splits, nil
}

func (s *clusterSource) Open(_ gocontext.Context, split spout.Split, position string) (spout.Reader, error) {
	life := s.book.here()
	b := life.run.split(s.part, string(split))
	n := s.book.position(b, position)
	life.run.passed(b, n, "opened at")
	return &clusterReader{s, life, b, n, 0}, nil
}

func (s *clusterSource) Commit(_ gocontext.Context, split spout.Split, position string) error {
	life := s.book.here()
	b := life.run.split(s.part, string(split))
	life.run.passed(b, s.book.position(b, position), "told to be committed at")
	return nil
}

type clusterReader struct {
	*clusterSource
	life  *taskLife
	b     *clusterSplit
	next  int
	calls int
}

func (r *clusterReader) Next(_ gocontext.Context, out *spout.Out) error {
	w := r.book.c.w
	r.calls++
	w.Spend(r.top.parts[r.part].pause)
	for n := 1 + int(mix(uint64(r.next), 'n', uint64(r.calls))%4); n > 0 && r.next < r.b.messages; n-- {
		if r.next >= r.b.gate && !r.book.c.opened {
			return nil
		}
		m := r.life.run.read(r.b, r.next)
		r.next++
		out.Emit(m.id, r.top.key(m.id))
	}
	if r.next >= r.b.messages {
		return io.EOF
	}
	return nil
}

func (r *clusterReader) Position() string { return strconv.Itoa(r.next) }
func (r *clusterReader) Close() error     { return nil }

type clusterBolt struct {
	book *clusterBook
	top  *clusterTop
	part int
	task *bolt.Task
}

func (b *clusterBolt) Prepare(_ gocontext.Context, t *bolt.Task) error {
	b.task = t
	return nil
}

func (b *clusterBolt) Execute(in tuple.Tuple, out *bolt.Collector) error {
	book := b.book
	life := book.here()
	id := in.Uint64("id")
	p := &b.top.parts[b.part]
	book.c.w.Spend(time.Duration(mix(id, 's', uint64(b.part)) % uint64(p.spend+1)))
	e := life.run.execs[execKey{b.part, id}]
	book.check(chaos.Routing)
	if e == nil {
		book.violate(chaos.Routing, "%s executes %x, which was never emitted for it in this run", life, id)
		return nil
	}
	if key := in.String("key"); key != b.top.key(id) {
		book.violate(chaos.Routing, "%s executes %x with key %q", life, id, key)
	} else if b.keyed() {
		book.check(chaos.Keys)
		if owner := tuple.Owner(tuple.KeyGroup(xxh3.HashString(key)), b.task.Parallel); owner != b.task.Index {
			book.violate(chaos.Keys, "%s of %d executes key %q, which is task %d's", life, b.task.Parallel, key, owner)
		}
	}
	if b.top.fails > 0 && e.fails < 1+int(mix(id, 'F', 1)%2) && mix(id, 'F', uint64(b.part))%uint64(b.top.fails) == 0 {
		e.fails++
		book.saw("failing tuple")
		return errTuple
	}
	if b.top.panics > 0 && e.dies == 0 && mix(id, 'P', uint64(b.part))%uint64(b.top.panics) == 0 {
		e.dies++
		panic(errBroken)
	}
	e.oks = append(e.oks, book.moment())
	for _, c := range b.top.children(b.part, id) {
		out.Emit(c, b.top.key(c))
	}
	return nil
}

// keyed reports whether the key alone decides which task gets a tuple.
func (b *clusterBolt) keyed() bool {
	return !slices.ContainsFunc(b.top.parts[b.part].inputs, func(e edge) bool { return e.grouping != topology.Fields })
}
