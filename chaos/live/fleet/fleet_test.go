package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// childVariable makes a child of a process of this test.
const childVariable = "EGRET_FLEET_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := sail(os.Stdin, Numbers(), counts(), countedWords()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), childVariable+"=1")
	return c
}

// played runs a plan and requires what must hold of each.
func played(t *testing.T, o Options, deeds string) *Report {
	t.Helper()
	var err error
	o.Deeds, err = Parse(deeds)
	require.NoError(t, err)
	o.Dir, o.Command, o.Logs = t.TempDir(), child, os.Getenv("LOGS")
	o.Said = func(at time.Duration, text string) { t.Logf("%.3fs %s", at.Seconds(), text) }
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	rep, err := Run(ctx, o)
	require.NoError(t, err)
	rep.Print(t.Output())
	require.Zero(t, rep.Lost, "numbers that were never executed: %v", rep.LostOnes)
	require.Empty(t, rep.Open)
	require.Empty(t, rep.Strange)
	require.NoError(t, rep.Failed())
	require.Zero(t, rep.Counts.TimedOut, "a loss is an event, not a timeout")
	return rep
}

// The first one in short, and all of them with EGRET_LONG=1.
func TestFleet(t *testing.T) {
	long := os.Getenv("EGRET_LONG") != ""
	for i, tt := range []struct {
		name  string
		nodes int
		deeds string
		hurry bool          // needs no other votes than the first node's
		lasts time.Duration // 0: 6 s
		check func(*testing.T, *Report)
		// Before tasks are moved for the balance's sake; 0: the default.
		settle time.Duration
	}{
		{"worker", 3, "at 1s kill worker for 1s", true, 0, replaced, 0},
		{"rebalance", 3, "at 1s rebalance pass=5; at 3s rebalance pass=3", true, 0, unmoved, time.Minute},
		{"drain", 3, "at 1s drain node/3", true, 0, undisturbed, 0},
		{"leader", 3, "at 1s kill leader for 2s", false, 0, nil, 0},
		{"restart of the leader", 3, "at 1s restart leader", false, 0, nil, 0},
		{"two of five", 5, "at 1s kill leader worker for 2s", false, 0, replaced, 0},
		{"zombie", 3, "at 1s stall worker for 4s", false, 0, replaced, 0},
		{"zombie that led", 3, "at 1s stall leader for 4s", false, 0, replaced, 0},
		{"roll", 3, "at 1s roll", false, 10 * time.Second, nil, 0},
	} {
		if i > 0 && !long {
			break
		}
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Nodes: tt.nodes, Rate: 2000, Duration: 3 * time.Second, Pace: cluster.Quick, Hurry: tt.hurry}
			o.Patience.Settle = tt.settle
			if long {
				o.Rate, o.Duration = 5000, max(tt.lasts, 6*time.Second)
			}
			rep := played(t, o, tt.deeds)
			if tt.check != nil {
				tt.check(t, rep)
			}
		})
	}
}

// undisturbed is a report of a plan that was changed in good order.
func undisturbed(t *testing.T, rep *Report) {
	require.Zero(t, rep.Again)
	require.Zero(t, rep.Counts.Lost)
	for _, p := range rep.Parts {
		require.Zero(t, p.Replaced)
	}
}

// unmoved is one of a plan in which only components with another number of tasks have new
// ones: all others stay where they are.
func unmoved(t *testing.T, rep *Report) {
	undisturbed(t, rep)
	for _, p := range rep.Parts {
		require.Zero(t, p.Moved)
	}
}

func replaced(t *testing.T, rep *Report) { require.Positive(t, rep.Parts[0].Replaced) }
