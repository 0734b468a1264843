package egret

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/live"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
)

// harmless has parameters, one with the name of a flag of chaos live.
func harmless(queue bool) *topology.Topology {
	return topology.New("harmless", func(b *topology.Builder) {
		every := b.Int("every", 1, "of them")
		rate := b.Float("rate", 2000, "a second")
		in := b.Spout("in", from.Paced(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i * int64(every)) }), rate)).Emits("n")
		if queue {
			memory := from.NewMemory(10)
			b.Bolt("jobs", nothing, b.Queue("queue", memory.Queue).Emits("n").Shuffle())
		}
		b.Bolt("work", nothing, in.Shuffle()).Parallel(2)
	})
}

const liveQuick = "--before 200ms --for 500ms --after 200ms "

// A whole run, in this process and in real time, but nothing is said of how long it takes.
func TestChaosLive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, os.WriteFile(file, []byte("at 100ms kill work/1 # first\n\nat 200ms stall work for 20ms\n"), 0o600))
	top := []*topology.Topology{harmless(false)}
	t.Run("report", func(t *testing.T) {
		t.Parallel()
		code, out, errs := runLine(top, strings.Fields("chaos live "+liveQuick+"--kill in --every 100ms --set every=3 --seed 7 --rate 3000")...)
		require.Equal(t, ExitDone, code, errs)
		require.Contains(t, out, "harmless, seed 7: ")
		require.Contains(t, out, "plan         every 100ms kill in\n")
		require.Contains(t, out, "faults       4 faults done\n")
		require.Contains(t, out, ", 0 dead, 0 never executed to the end\n")
		require.Contains(t, errs, "s  every 100ms kill in: in/0, life 1\n")
		require.Contains(t, errs, "in/0, life 4\n")
		require.NotContains(t, errs, "task died", "who is killed on purpose is no news")
	})
	t.Run("JSON, a file", func(t *testing.T) {
		t.Parallel()
		code, out, errs := runLine([]*topology.Topology{greet(io.Discard), harmless(false)}, strings.Fields("chaos live harmless "+liveQuick+"--json --plan "+file)...)
		require.Equal(t, ExitDone, code, errs)
		require.Equal(t, 1, strings.Count(out, "\n"))
		var r live.Report
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, "at 100ms kill work/1; at 200ms stall work for 20ms", r.Plan.String())
		require.Len(t, r.Done, 2)
		require.Positive(t, r.Seen)
		require.Zero(t, r.Lost)
	})
	t.Run("standard input", func(t *testing.T) {
		t.Parallel()
		o, e := newScreen(), newScreen()
		code := execute(top, append(strings.Fields("chaos live harmless "+liveQuick+"--plan -"), "--faults", "at 300ms panic work on 1"), strings.NewReader("at 0s kill work/*"), o, e)
		require.Equal(t, ExitDone, code, e.String())
		require.Contains(t, o.String(), "3 faults done")
	})
	t.Run("an input that ends", func(t *testing.T) {
		t.Parallel()
		code, out, errs := runLine([]*topology.Topology{greet(io.Discard)}, "chaos", "live")
		require.Equal(t, ExitFailed, code, errs)
		require.Contains(t, out, "the input ended before the faults began: this is what there is")
		require.NotContains(t, out, "rate ", "none was measured")
		require.Contains(t, errs, "no fault was done, so nothing was tried: the input ended before the faults began")
		require.Contains(t, errs, "--before 0s")
	})
}

func TestChaosLiveRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"--kill nobody":                     `"every 500ms kill nobody": topology harmless has no component nobody: it has in, queue, jobs, work`,
		"--kill work/2":                     `"every 500ms kill work/2": component work has the tasks 0 to 1`,
		"--kill work/x":                     `--kill: line 1, "every 500ms kill work/x": "work/x": the task of work is a number`,
		"--every 0s":                        "--every is 0s: use 1ms to 24h",
		"--every 1s --faults at@1s@kill@in": "--every is the time between kills: say whom with --kill",
		"--faults kick":                     `--faults: line 1, "kick": "kick" is no fault`,
		"--faults lose@parcel@1%":           `"lose parcel 1%" can only be simulated: a running topology can be told to kill, stall, slow, panic, pause and break`,
		"--faults at@message@3@kill@in":     "only a simulation counts messages",
		"--faults pause@work":               `"pause work": pause is done to spouts: here in`,
		"--faults slow@in@by@2":             `"slow in by 2": slow is done to bolts: here jobs, work`,
		"--faults at@1s@panic@queue@on@1":   `panic is done to spouts and bolts: here in, jobs, work`,
		"--faults slow@work@by@0.5":         "a running task cannot be made faster",
		"--faults at@20s@kill@in":           `"at 20s kill in": it begins at 20s, and faults are done for 10s`,
		"--every 1ms --kill in --for 24h":   "that is more than 100000 faults",
		"--plan /nowhere/plan":              "--plan: open /nowhere/plan",
		"--plan " + os.DevNull:              "the plan has no fault",
		"--guarantee at-most-once":          "topology harmless is at-most-once: nothing is promised",
		"--guarantee twice":                 `--guarantee is "twice"`,
		"--set every":                       "--set every has no value",
		"--set none=1":                      "none",
		"--rate 1000 --set rate=2":          "--set rate=2: rate has a value already, and takes one",
		"--for 100ms":                       "--every is 500ms and --for 100ms: there would be no kill",
		"--for 0s --before -1s":             "--before is -1s: use 0s to 24h",
		"--on-stuck replace":                "unknown flag: --on-stuck",
		"--state x":                         "unknown flag: --state",
		"other":                             `unknown argument "other"`,
	} {
		t.Run(line, func(t *testing.T) {
			args := []string{"chaos", "live"}
			for _, a := range strings.Fields(line) {
				args = append(args, strings.ReplaceAll(a, "@", " "))
			}
			code, out, errs := runLine([]*topology.Topology{harmless(true)}, args...)
			require.Equal(t, ExitUsage, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, want)
			require.Contains(t, errs, "chaos live --help\n")
		})
	}
	code, _, errs := runLine([]*topology.Topology{greet(io.Discard), harmless(false)}, "chaos", "live", "nothing")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, `there is no topology "nothing": the program has the topologies greet and harmless`)
	_, out, _ := runLine([]*topology.Topology{harmless(false)}, "chaos", "live", "--help")
	require.Contains(t, out, "are given with --set: every.")
	require.Contains(t, out, "stall WHO for 2s ")
	require.Contains(t, out, "chaos live --kill '*' --every 200ms\n")
	_, out, _ = runLine([]*topology.Topology{greet(io.Discard), harmless(false)}, "chaos", "live", greet(io.Discard).Name(), "--help")
	require.Contains(t, out, "--before 0s --faults 'at 0s kill *' ")
}

// What the help lists can be done.
func TestChaosLiveHelp(t *testing.T) {
	require.NotEmpty(t, faultHelp())
	for _, line := range faultHelp() {
		usage, _, _ := strings.Cut(line, "  ")
		usage, _, _ = strings.Cut(usage, " [")
		text := strings.ReplaceAll(usage, "WHO", "in/0")
		p, err := chaos.Parse("at 1s " + text)
		if err != nil {
			p, err = chaos.Parse(text)
		}
		require.NoError(t, err)
		require.NoError(t, p.Live(), usage)
	}
}

func TestChaosFleetRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"--nodes 0":                             "--nodes is 0: use 1 to 9",
		"--nodes 3":                             "nothing is to be done: say what, as in 'at 5s kill worker'",
		"--nodes 3 at@5s@maim@worker":           `"maim" cannot be done to nodes`,
		"--nodes 3 at@5s@kill@node/4":           "there are nodes 1 to 3",
		"--nodes 3 at@5s@rebalance@count=4":     "the components are numbers, pass and sink",
		"--nodes 3 at@5s@cut@worker@for@2s":     "needs --netns",
		"--nodes 3 --pace slow at@5s@roll":      `--pace is "slow"`,
		"--nodes 3 --rate 0 at@5s@roll":         "--rate is 0",
		"--nodes 3 --duration 1ms at@5s@roll":   "--duration is 1ms",
		"--nodes 3 --settle 0s at@5s@roll":      "--settle is 0s",
		"--nodes 3 at@5s@kill@worker at@1s@die": `"die" cannot be done`,
	} {
		t.Run(line, func(t *testing.T) {
			args := []string{"chaos", "live"}
			for _, a := range strings.Fields(line) {
				args = append(args, strings.ReplaceAll(a, "@", " "))
			}
			code, out, errs := runLine([]*topology.Topology{greet(io.Discard), harmless(false)}, args...)
			require.Equal(t, ExitUsage, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, want)
		})
	}
	_, out, _ := runLine([]*topology.Topology{greet(io.Discard), harmless(false)}, "chaos", "live", "--help")
	require.Contains(t, out, "stall WHO... for 10s ")
	code, _, errs := runLine([]*topology.Topology{greet(io.Discard)}, "chaos", fleetMember)
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "is started by chaos live")
}
