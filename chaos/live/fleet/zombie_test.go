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
// A node that is stopped and goes on reads the log within milliseconds, and then its tasks
// end: mostly nothing of them reaches another. Here it cannot read the log. Who led is
// stopped with it, since the plan without the zombie would wait in its sockets; the next
// leader has no connection yet, and is stopped with the other voters when the plan is known.
// What is left is the zombie, and a node that knows better, with all tasks. Neither votes.
func TestZombieIsRefused(t *testing.T) {
	o := Options{
		Nodes: cluster.MaxVoters + 2, Rate: 2000, Duration: 6 * time.Second, Splits: 8, Pace: cluster.Quick,
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

	v, err := r.fleet.until(ctx, "five vote", func(v *node.View) bool { return v.Leader != 0 && len(v.Voters) == cluster.MaxVoters })
	require.NoError(t, err)
	var voters, others []*ship // voters[0] leads
	for _, s := range r.fleet.ships {
		id := cluster.NodeID(0)
		for n, name := range r.names {
			if name == s.name {
				id = n
			}
		}
		switch {
		case id == v.Leader:
			voters = slices.Insert(voters, 0, s)
		case slices.Contains(v.Voters, id):
			voters = append(voters, s)
		default:
			others = append(others, s)
		}
	}
	require.Len(t, voters, cluster.MaxVoters)
	require.Len(t, others, 2)
	zombie, knows := others[0], others[1]
	for _, s := range voters {
		require.NoError(t, r.drain(ctx, s, true))
	}
	require.NoError(t, r.submit(ctx, messages))
	stop := func(s *ship) {
		r.say("stop %s", s.name)
		r.harmed[s.cmd.Process.Pid] = true
		require.NoError(t, r.fleet.freeze(s))
	}
	stop(zombie)
	stop(voters[0])
	for now := 0; now != 6; { // of what the node itself has read
		a, err := r.fleet.askOne(ctx, knows, &node.Request{Op: node.OpState})
		require.NoError(t, err)
		if a.State != nil {
			now = tasksOf(a.State, knows.name)
		}
		time.Sleep(lookEvery)
	}
	for _, s := range voters[1:] {
		stop(s)
	}
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
	for _, s := range voters {
		require.NoError(t, r.fleet.thaw(s))
	}
	rep := r.report(r.carryOut(ctx, messages))
	rep.Print(t.Output())
	require.NoError(t, rep.Failed())
}
