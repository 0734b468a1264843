package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
)

// A clusterScene is what a seed draws of a cluster: nodes, topologies, settings, and what
// is done to them and asked of them.
type clusterScene struct {
	seed     uint64
	mood     string
	faults   bool
	nodes    int // at the beginning
	voters   int // 0: all nodes
	ids      []cluster.NodeID
	patience cluster.Patience
	tops     []*clusterTop
	set      task.Settings
	net      Links
	cost     time.Duration
	latency  time.Duration // most, of what is written
	late     bool          // entries are applied late at times
	beats    bool          // a connection to a process that hangs breaks
	deeds    []clusterDeed
}

// exact reports whether nothing may be lost and replayed, since nothing goes wrong.
func (s *clusterScene) exact() bool { return !s.faults }

// A clusterDeed is a fault, or something that people ask for.
type clusterDeed struct {
	kind    string
	at      time.Duration
	lasts   time.Duration
	a, b, n int // slots, of those that there are; numbers
}

func (d clusterDeed) String() string {
	text := fmt.Sprintf("at %v %s %d", d.at, d.kind, d.a)
	if d.b != 0 || d.n != 0 {
		text += fmt.Sprintf(" %d %d", d.b, d.n)
	}
	if d.lasts > 0 {
		text += fmt.Sprintf(" for %v", d.lasts)
	}
	return text
}

func deedsText(all []clusterDeed) string {
	var parts []string
	for _, d := range all {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

// clusterMoods are which deeds a seed draws of.
var clusterMoods = []struct {
	name  string
	kinds []string
	quiet bool // nothing goes wrong
}{
	{"peaceful", nil, true},
	{"changing", []string{"rebalance", "rebalance", "deactivate", "drain", "join", "leave", "transfer", "stop topology"}, true},
	{"breaking", []string{"break", "break", "break", "slow", "rebalance"}, false},
	{"dying", []string{"kill", "kill", "lose", "kill leader", "wipe", "blackout", "rebalance", "drain", "deactivate", "kill topology", "stop topology"}, false},
	{"hanging", []string{"hang", "hang", "hang leader", "jump", "rebalance", "drain"}, false},
	{"parting", []string{"split", "split", "isolate", "ring", "bridge", "one way", "single", "flap", "rebalance", "join"}, false},
	{"everything", []string{
		"kill", "lose", "kill leader", "wipe", "blackout", "hang", "hang leader", "split", "isolate", "ring", "bridge", "one way", "single", "flap",
		"break", "slow", "jump", "transfer", "rebalance", "rebalance", "deactivate", "drain", "join", "leave", "kill topology", "stop topology",
	}, false},
}

func drawCluster(seed uint64, o *ClusterOptions) *clusterScene {
	r := rand.New(rand.NewPCG(seed, 0x636c7573746572))
	s := &clusterScene{seed: seed}
	mood := clusterMoods[[]int{0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 6, 6}[r.IntN(12)]]
	s.mood, s.faults = mood.name, !mood.quiet
	s.nodes = one(r, 1, 2, 3, 3, 3, 4, 5)
	if o.Nodes > 0 {
		s.nodes = min(o.Nodes, MostNodes)
	}
	if s.nodes >= 3 && chance(r, 40) {
		s.voters = one(r, 1, 3)
	}
	for len(s.ids) < s.nodes+20 {
		if id := cluster.NodeID(1 + r.IntN(1000)); !slices.Contains(s.ids, id) {
			s.ids = append(s.ids, id)
		}
	}
	s.patience = one(r,
		cluster.Patience{Settle: time.Second, Quiet: 2 * time.Second, Begin: 300 * time.Millisecond, Down: 2 * time.Second, Between: 200 * time.Millisecond},
		cluster.Patience{Settle: 3 * time.Second, Quiet: 4 * time.Second, Down: 5 * time.Second},
		cluster.Patience{},
	)
	if s.exact() {
		s.patience.Quiet = time.Hour
	} else if chance(r, 25) {
		s.patience.Quiet = time.Millisecond // changes do not wait
	}
	s.set = task.Settings{
		ParcelSize: one(r, 1, 2, 4, 8), Linger: one(r, 100*time.Microsecond, time.Millisecond, 10*time.Millisecond),
		MaxPending: one(r, 1, 4, 20, 100), PendingBytes: 64 << 20, QueuedBytes: 64 << 20, TreeSize: one(r, 1, 8, 64),
		MessageTimeout: one(r, time.Second, 3*time.Second, 5*time.Second), MaxReplays: -1, Began: time.Unix(1_000_000_000, 0).UTC(),
	}
	if s.exact() {
		s.set.MessageTimeout = 30 * time.Second
	}
	s.cost = one[time.Duration](r, -1, 5*time.Microsecond, 50*time.Microsecond)
	s.net = one(r, Links{}, Links{Quick: -1, LateEvery: -1, FreezeEvery: -1}, Links{Quick: 500 * time.Microsecond, Late: 20 * time.Millisecond, LateEvery: 20})
	s.latency = one(r, 100*time.Microsecond, time.Millisecond, 20*time.Millisecond)
	s.late, s.beats = chance(r, 60), chance(r, 50)
	for i := range one(r, 1, 1, 2, 3) {
		t := drawTop(r, i)
		if !s.exact() {
			t.panics = one(r, 0, 0, 60)
		}
		s.tops = append(s.tops, t)
	}
	if mood.kinds != nil {
		for range 1 + r.IntN(6) {
			s.deeds = append(s.deeds, s.drawDeed(r, one(r, mood.kinds...)))
		}
		s.disturb(r, mood.kinds)
	}
	if o.only {
		s.deeds = slices.Clone(o.deeds)
	}
	slices.SortStableFunc(s.deeds, func(a, b clusterDeed) int { return int(a.at - b.at) })
	return s
}

// disturb has something go wrong just when something is being changed.
func (s *clusterScene) disturb(r *rand.Rand, kinds []string) {
	for _, d := range slices.Clone(s.deeds) {
		if d.kind != "rebalance" && d.kind != "drain" || s.exact() || chance(r, 50) {
			continue
		}
		next := s.drawDeed(r, one(r, kinds...))
		next.at = d.at + (100*time.Millisecond + time.Duration(r.Int64N(int64(300*time.Millisecond)))).Round(time.Millisecond)
		next.lasts = min(next.lasts, healAt-next.at-100*time.Millisecond)
		s.deeds = append(s.deeds, next)
	}
}

func (s *clusterScene) drawDeed(r *rand.Rand, kind string) clusterDeed {
	d := clusterDeed{kind: kind, at: time.Second + time.Duration(r.Int64N(int64(healAt-3*time.Second))).Round(time.Millisecond)}
	d.lasts = around(r, 100*time.Millisecond, 6*time.Second).Round(time.Millisecond)
	d.lasts = min(d.lasts, healAt-d.at-100*time.Millisecond)
	d.a, d.b, d.n = r.IntN(s.nodes), r.IntN(s.nodes), r.IntN(1000)
	switch kind {
	case "break", "jump", "rebalance", "join", "transfer", "leave", "kill topology", "stop topology":
		d.lasts = 0
	}
	return d
}

func (s *clusterScene) String() string {
	text := fmt.Sprintf("seed %d, %s, %d nodes, voters %d (0: all), patience %+v, parcels of %d, pending %d, trees of %d, timeout %v, latency %v, late %v\n",
		s.seed, s.mood, s.nodes, s.voters, s.patience, s.set.ParcelSize, s.set.MaxPending, s.set.TreeSize, s.set.MessageTimeout, s.latency, s.late)
	for _, t := range s.tops {
		text += "  " + t.String() + "\n"
	}
	return text + "deeds " + deedsText(s.deeds) + "\n"
}
