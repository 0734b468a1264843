package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

const countsName = "fleet-counts"

// counts is an exactly-once topology: numbers become words, each of which is counted.
func counts() *topology.Topology {
	return topology.New(countsName, func(b *topology.Builder) {
		b.Guarantee(topology.ExactlyOnce)
		store := &countClient{addr: b.String("store", "", "URL of the store of counts")}
		source := &numbers{
			splits: b.Int("splits", 4, "of the numbers"), messages: int64(b.Int("messages", 0, "how many numbers")),
			rate: b.Int("rate", 1000, "numbers a second"), start: b.String("start", "", "when the first is due"),
		}
		in := b.Spout("numbers", source).Emits("n", "at").Parallel(2)
		words := b.Bolt("words", func() bolt.Bolt { return &wording{} }, in.Shuffle()).Emits("word").Parallel(3)
		count := b.Bolt("count", func() bolt.Bolt { return &counting{store: store} }, words.By("word")).Parallel(2).Stateful()
		if b.Int("local", 0, "1: as if the store were on one node") == 1 {
			count.Local()
		}
	})
}

const differentWords = 97

func wordOf(n int64) string { return "w" + strconv.FormatInt(n%differentWords, 10) }

// A wording makes words of numbers.
type wording struct{}

func (b *wording) Round()                                     {}
func (b *wording) Batch(tuple.TxID)                           {}
func (b *wording) Complete(tuple.TxID, *bolt.Collector) error { return nil }
func (b *wording) Execute(in tuple.Tuple, out *bolt.Collector) error {
	out.Emit(wordOf(in.Int64("n")))
	return nil
}

// A counting is a bolt.Stateful over a countStore.
type counting struct {
	store  *countClient
	groups []uint16
	fence  tuple.Fence
	at     tuple.TxID
	mu     sync.Mutex // of batches: Commit is called beside Execute
	words  map[tuple.TxID]map[string]int
}

func (b *counting) Prepare(_ context.Context, t *bolt.Task) error {
	for g := range tuple.KeyGroups {
		if tuple.Owner(g, t.Parallel) == t.Index {
			b.groups = append(b.groups, uint16(g))
		}
	}
	return nil
}

func (b *counting) Round() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.words = map[tuple.TxID]map[string]int{}
}

func (b *counting) Batch(tx tuple.TxID) { b.at = tx }

func (b *counting) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.words[b.at] == nil {
		b.words[b.at] = map[string]int{}
	}
	b.words[b.at][strings.Clone(in.String("word"))]++
	return nil
}

func (b *counting) Complete(tx tuple.TxID, _ *bolt.Collector) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.words, tx)
	return nil
}

func (b *counting) Join(ctx context.Context, j *bolt.Join) error {
	b.fence = j.Fence
	return b.store.ask(ctx, "/join", countJoin{j.Fence, b.groups, j.Committed, j.Last})
}

func (b *counting) Commit(ctx context.Context, id tuple.BatchID) (w bolt.Written, err error) {
	b.mu.Lock()
	words := maps.Clone(b.words[id.Tx])
	b.mu.Unlock()
	if len(words) == 0 {
		return w, nil
	}
	for word := range words {
		w.Groups.Add(groupOf(word))
	}
	w.Keys = len(words)
	return w, b.store.ask(ctx, "/write", countWrite{b.fence, id.Tx, words})
}

// A countFleet runs counts on a fleet.
type countFleet struct {
	*fleet
	t     *testing.T
	ctx   context.Context
	store *countStore
	want  map[string]int
	began time.Time
}

// launch starts nodes, and waits until they are members and so many of them vote.
func (f *fleet) launch(t *testing.T, ctx context.Context, nodes, voters int) {
	dir := t.TempDir()
	o := &Options{Pace: cluster.Quick, Logs: os.Getenv("LOGS")}
	for range nodes {
		addr, err := wire.Spare()
		require.NoError(t, err)
		f.add(filepath.Join(dir, "data"), o, addr, "")
	}
	for _, s := range f.ships {
		require.NoError(t, os.MkdirAll(filepath.Dir(s.config.Data), 0o700))
		require.NoError(t, f.start(s))
	}
	_, err := f.until(ctx, "all nodes are members and vote", func(v *node.View) bool {
		return len(v.Members) == nodes && v.Leader != 0 && len(v.Voters) >= voters
	})
	require.NoError(t, err)
}

func startCounts(t *testing.T, nodes, voters, rate int, lasts time.Duration, more ...string) *countFleet {
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	c := &countFleet{fleet: newFleet(child), t: t, ctx: ctx, store: newCountStore(), want: map[string]int{}, began: time.Now()}
	t.Cleanup(func() {
		if t.Failed() {
			c.dump()
		}
		c.close()
		c.store.Close()
		cancel()
		if t.Failed() {
			t.Log(c.heard())
		}
	})
	c.launch(t, ctx, nodes, voters)
	messages := int64(float64(rate) * lasts.Seconds())
	for n := range messages {
		c.want[wordOf(n)]++
	}
	params := map[string][]string{
		"store": {c.store.URL}, "rate": {strconv.Itoa(rate)}, "messages": {strconv.FormatInt(messages, 10)},
		"start": {time.Now().Add(time.Second).Format(time.RFC3339Nano)},
	}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		params[name] = []string{value}
	}
	plan, err := counts().Build(topology.Options{Params: params})
	require.NoError(t, err)
	_, err = c.insist(ctx, &node.Request{Op: node.OpSubmit, Topology: countsName, Spec: node.SpecOf(plan, params, nil, "")})
	require.NoError(t, err)
	return c
}

func (c *countFleet) say(format string, args ...any) {
	c.t.Logf("%.2fs %s", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// dump says how the cluster is, for who has to find out why it does not get on.
func (c *countFleet) dump() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := c.ask(ctx, &node.Request{Op: node.OpStats, Topology: countsName})
	text, _ := json.Marshal(a)
	c.t.Logf("%v %s", err, text)
	v, err := c.view(ctx)
	text, _ = json.Marshal(v)
	c.t.Logf("%v %s", err, text)
	for _, s := range c.ships { // what it says at its end is in the log of the test
		select {
		case <-s.ended:
			c.t.Logf("%s has ended: %v", s.name, s.cmd.ProcessState)
		default:
			_ = s.cmd.Process.Signal(syscall.SIGQUIT) // with the stacks of its goroutines
			<-s.ended
		}
	}
}

// counted waits until so many words are counted.
func (c *countFleet) counted(least int) {
	for {
		all, broken := c.store.counts()
		require.Empty(c.t, broken)
		sum := 0
		for _, n := range all {
			sum += n
		}
		if sum >= least {
			return
		}
		if time.Since(c.began) > 60*time.Second || c.ctx.Err() != nil {
			require.Fail(c.t, "it does not get on", "%d words are counted: %v", sum, c.store)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ends waits for the end and looks at the truth.
func (c *countFleet) ends() {
	v, err := c.until(c.ctx, "the topology is done", func(v *node.View) bool {
		return len(v.Submissions) == 1 && !v.Submissions[0].Status.Runs()
	})
	require.NoError(c.t, err, c.store.String())
	c.say("%v", c.store)
	require.Equal(c.t, cluster.Done, v.Submissions[0].Status, v.Submissions[0].Reason)
	c.truth()
}

func (c *countFleet) truth() {
	all, broken := c.store.counts()
	require.Empty(c.t, broken)
	require.Equal(c.t, c.want, all)
}

// leader returns the node that leads.
func (c *countFleet) leader() *ship {
	v, err := c.until(c.ctx, "there is a leader", func(v *node.View) bool { return v.Leader != 0 })
	require.NoError(c.t, err)
	for _, m := range v.Members {
		for _, s := range c.ships {
			if m.Node == v.Leader && m.Name == s.name {
				return s
			}
		}
	}
	return c.ships[0]
}

// with returns a node that has a task, by its name.
func (c *countFleet) with(task string) *ship {
	name, index, _ := strings.Cut(task, "/")
	at, _ := strconv.Atoi(index)
	v, err := c.view(c.ctx)
	require.NoError(c.t, err)
	sub := v.Submissions[0]
	for i, k := range sub.Components {
		if k.Name != name {
			continue
		}
		home := sub.Plan.Tasks[int(sub.Plan.Components[i].First)+at].Home
		for _, m := range v.Members {
			for _, s := range c.ships {
				if m.Node == home.Node && m.Name == s.name {
					return s
				}
			}
		}
	}
	require.Fail(c.t, "nobody has "+task)
	return nil
}

// further waits until as many words are counted as at the moment, and so many more.
func (c *countFleet) further(more int) { c.counted(c.sum() + more) }

func (c *countFleet) sum() (sum int) {
	all, _ := c.store.counts()
	for _, n := range all {
		sum += n
	}
	return sum
}

// asks has something done, and waits until the cluster is as wanted.
func (c *countFleet) asks(q *node.Request, what string, good func(*node.View) bool) {
	c.say("%s", what)
	q.Topology = countsName
	_, err := c.insist(c.ctx, q)
	require.NoError(c.t, err)
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	_, err = c.until(ctx, what, good)
	require.NoError(c.t, err, c.store.String())
}

// Words of an exactly-once topology are counted once each, also while its tasks are moved
// and become more or less, in good order: no round is thrown away with what it has written.
func TestCountsWhilePlansChange(t *testing.T) {
	c := startCounts(t, 3, 1, 2000, 5*time.Second)
	c.store.slow.Store(int64(20 * time.Millisecond)) // so that at most times something is written
	c.counted(500)
	settled := func(v *node.View) bool { return v.Submissions[0].Next == nil }
	parallel := func(n map[string]int) {
		c.asks(&node.Request{Op: node.OpRebalance, Parallel: n}, fmt.Sprint("rebalance ", n), func(v *node.View) bool {
			for _, k := range v.Submissions[0].Components {
				if want, is := n[k.Name]; is && k.Parallel != want {
					return false
				}
			}
			return settled(v)
		})
		c.further(500)
	}
	parallel(map[string]int{"count": 5})
	parallel(map[string]int{"words": 1, "numbers": 3})
	parallel(map[string]int{"count": 3, "words": 4})
	c.asks(&node.Request{Op: node.OpSetStatus, Status: cluster.Inactive}, "deactivate", settled)
	c.asks(&node.Request{Op: node.OpSetStatus, Status: cluster.Active}, "activate", settled)
	c.further(500)
	v, err := c.view(c.ctx)
	require.NoError(t, err)
	for _, m := range v.Members {
		if m.Name == c.with("coordinator/0").name {
			c.asks(&node.Request{Op: node.OpDrain, Node: m.Node, On: true}, "drain "+m.Name+", which coordinates", func(v *node.View) bool { return tasksOf(v, m.Name) == 0 && settled(v) })
		}
	}
	c.store.mu.Lock()
	undone := c.store.undone
	c.store.mu.Unlock()
	require.Zero(t, undone, "a planned move has nothing to undo")
	c.ends()
}

// A topology whose states only one node has stays there, and waits while that is gone.
func TestCountsOnOneNode(t *testing.T) {
	c := startCounts(t, 3, 3, 2000, 3*time.Second, "local=1")
	c.counted(1000)
	s := c.with("count/0")
	for _, task := range []string{"numbers/0", "numbers/1", "words/0", "words/1", "words/2", "count/1", "coordinator/0"} {
		require.Equal(t, s, c.with(task), task)
	}
	c.say("kill %s, which has all of it", s.name)
	c.kill(s)
	_, err := c.until(c.ctx, "it is seen to be gone", func(v *node.View) bool {
		return !slices.ContainsFunc(v.Members, func(m node.MemberView) bool { return m.Name == s.name && m.Alive })
	})
	require.NoError(t, err)
	require.Equal(t, s, c.with("count/0"))
	require.NoError(t, c.start(s))
	c.ends()
}

// A topology that is killed finishes what is under way, and what it has counted is right.
func TestCountsKilled(t *testing.T) {
	c := startCounts(t, 3, 1, 2000, time.Minute)
	c.counted(1000)
	c.asks(&node.Request{Op: node.OpSetStatus, Status: cluster.Ending}, "kill the topology", func(v *node.View) bool { return len(v.Submissions) == 0 })
	all, broken := c.store.counts()
	require.Empty(t, broken)
	// Numbers of a split come in their order, so each word is counted up to some number, as
	// far as its splits have come.
	sum := 0
	for word, n := range all {
		sum += n
		require.LessOrEqual(t, n, c.want[word])
	}
	require.Less(t, sum, 120_000)
	require.GreaterOrEqual(t, sum, 1000)
}

// Words are counted once each while nodes die and hang, whoever they are.
func TestCountsWhileNodesDie(t *testing.T) {
	long := os.Getenv("EGRET_LONG") != ""
	if !long {
		c := startCounts(t, 3, 1, 2000, 3*time.Second)
		c.counted(1000)
		s := c.ships[1]
		c.say("kill %s", s.name)
		c.kill(s)
		require.NoError(t, c.start(s))
		c.ends()
		return
	}
	c := startCounts(t, 3, 3, 5000, 24*time.Second)
	c.store.slow.Store(int64(20 * time.Millisecond))
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	c.say("seed %d", seed)
	c.counted(1000)
	for i := range 10 {
		s, why := c.ships[r.IntN(len(c.ships))], "by chance"
		switch i % 4 {
		case 0:
			s, why = c.leader(), "which leads"
		case 1:
			s, why = c.with("coordinator/0"), "which coordinates"
		case 2:
			s, why = c.with("count/0"), "which counts"
		}
		if i == 5 || i == 6 {
			c.say("freeze %s, %s", s.name, why)
			require.NoError(t, c.freeze(s))
			time.Sleep(3 * time.Second)
			c.say("thaw %s", s.name)
			require.NoError(t, c.thaw(s))
		} else {
			c.say("kill %s, %s", s.name, why)
			c.kill(s)
			time.Sleep(500 * time.Millisecond)
			require.NoError(t, c.start(s))
		}
		time.Sleep(1500 * time.Millisecond)
	}
	c.ends()
}
