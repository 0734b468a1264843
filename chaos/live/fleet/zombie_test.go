package fleet

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// What a node goes on saying after its tasks have lives elsewhere is refused, and counted.
//
// A node that is stopped and goes on reads the log within milliseconds: what it has missed
// is in its sockets. Its links come up later, so mostly nothing of it reaches a task. Here
// it cannot read the log. Who led is stopped at the same moment, so that the plan without
// the zombie is another leader's, who has not reached it yet; and there is no quorum when
// it goes on. What is left is the zombie, and a node that knows better, with all tasks.
func TestZombieIsRefused(t *testing.T) {
	o := Options{
		Nodes: 4, Rate: 2000, Duration: 6 * time.Second, Splits: 8, Pace: cluster.Quick,
		Parallel: map[string]int{numbersName: 2, passName: 2, sinkName: 2}, // so that two nodes have one of each
		Dir:      t.TempDir(), Command: child, Logs: os.Getenv("LOGS"), Said: func(at time.Duration, text string) { t.Logf("%.3fs %s", at.Seconds(), text) },
	}
	messages := int64(float64(o.Rate) * o.Duration.Seconds())
	r := &run{Options: o, fleet: newFleet(child), rand: rand.New(rand.NewPCG(1, 0)), names: map[cluster.NodeID]string{}, harmed: map[int]bool{}, counts: map[countOf]node.TaskCount{}}
	defer r.fleet.close()
	var err error
	r.recorder, err = StartRecorder("127.0.0.1:0", messages, o.Splits)
	require.NoError(t, err)
	defer r.recorder.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	require.NoError(t, r.launch(ctx))

	v, err := r.fleet.until(ctx, "three vote", func(v *node.View) bool { return v.Leader != 0 && len(v.Voters) == 3 })
	require.NoError(t, err)
	var leader, voter, knows, zombie *ship
	for _, s := range r.fleet.ships {
		id := cluster.NodeID(0)
		for n, name := range r.names {
			if name == s.name {
				id = n
			}
		}
		switch {
		case id == v.Leader:
			leader = s
		case !slices.Contains(v.Voters, id):
			zombie = s
		case voter == nil:
			voter = s
		default:
			knows = s
		}
	}
	require.NoError(t, r.drain(ctx, leader, true))
	require.NoError(t, r.drain(ctx, voter, true))
	require.NoError(t, r.submit(ctx, messages))
	stop := func(s *ship) {
		r.say("stop %s", s.name)
		r.harmed[s.cmd.Process.Pid] = true
		require.NoError(t, r.fleet.freeze(s))
	}
	stop(zombie)
	stop(leader)
	for now := 0; now != 6; { // of what the node itself has read
		a, err := r.fleet.askOne(ctx, knows, &node.Request{Op: node.OpState})
		require.NoError(t, err)
		if a.State != nil {
			now = tasksOf(a.State, knows.name)
		}
		time.Sleep(lookEvery)
	}
	stop(voter)
	before, err := r.fleet.refused(ctx, knows)
	require.NoError(t, err)
	r.say("%s goes on, and %s has refused %d until now", zombie.name, knows.name, before)
	require.NoError(t, r.fleet.thaw(zombie))
	now := before
	for now == before {
		require.NoError(t, ctx.Err(), "nothing of the zombie was refused")
		time.Sleep(lookEvery)
		now, err = r.fleet.refused(ctx, knows)
		require.NoError(t, err)
	}
	r.say("%s has refused %d", knows.name, now-before)
	require.NoError(t, r.fleet.thaw(voter))
	require.NoError(t, r.fleet.thaw(leader))
	rep := r.report(r.carryOut(ctx, messages))
	rep.Print(t.Output())
	require.NoError(t, rep.Failed())
}
