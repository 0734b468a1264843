package egret

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/sim"
	"github.com/egretstream/egret/topology"
)

func TestChaosSim(t *testing.T) {
	top := []*topology.Topology{greet(io.Discard)}
	for _, tt := range []struct {
		line string
		code int
		out  string // is in the output
		errs string
	}{
		{"--seeds 3", ExitDone, "seeds     3 from 1 on, each run twice, in ", ""},
		{"--seeds 2 --seed 9", ExitDone, "seeds     2 from 9 on, ", ""},
		{"--seed 9", ExitDone, "seeds     1 from 9 on, ", ""},
		{"--minutes 0.0005 --seed 9", ExitDone, " from 9 on, ", ""},
		{"--seed 9 -v", ExitDone, "seed 9, ", ""},
		{"-v --seeds 2", ExitUsage, "", "-v writes the events of one seed: say which with --seed"},
		{"-v --minutes 1", ExitUsage, "", "-v writes the events of one seed: say which with --seed"},
		{"-v --seed 9 --json", ExitUsage, "", "-v writes the events and no report: leave out --json and --report"},
		{"-v --seed 9 --report x", ExitUsage, "", "-v writes the events and no report: leave out --json and --report"},
		{"--seeds -1", ExitUsage, "", "--seeds is -1: use 1 to 1,000,000,000"},
		{"--seeds 0", ExitUsage, "", "--seeds is 0: use 1 to 1,000,000,000"},
		{"--seeds many", ExitUsage, "", `"many"`},
		{"--seed -1", ExitUsage, "", `"-1"`},
		{"--minutes 0", ExitUsage, "", "--minutes is 0: use more than 0, up to 10,080"},
		{"--minutes -1", ExitUsage, "", "--minutes is -1: use"},
		{"--minutes NaN", ExitUsage, "", "--minutes is NaN: use"},
		{"--minutes 1 --seeds 2", ExitUsage, "", "--seeds and --minutes: give one of them"},
		{"--report=", ExitUsage, "", "--report needs the name of a file"},
		{"--report " + filepath.Join("no", "such", "x.md"), ExitUsage, "", "--report: open " + filepath.Join("no", "such", "x.md")},
		{"--seed 7 --plan=", ExitDone, "Faults: 0", ""},
		{"--seeds 3 --plan=every_100ms_from_0s_crash_*", ExitDone, "crash", ""},
		{"--seed 7 --plan=kick", ExitUsage, "", `--plan: line 1, "kick": "kick" is no fault`},
		{"--seed 7 --plan=at_1s_kill_nobody", ExitUsage, "", `"at 1s kill nobody": there is no component "nobody": the components are s0, `},
		{"--batches --seeds 2", ExitDone, "seeds     2 from 1 on, ", ""},
		{"--batches --seed 7 --plan=", ExitUsage, "", "--batches draws its own topologies"},
		{"--batches --nodes 3", ExitUsage, "", "--batches draws its own topologies"},
		{"1", ExitUsage, "", "unknown command"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			code, out, errs := runLine(top, append([]string{"chaos", "sim"}, words(tt.line)...)...)
			require.Equal(t, tt.code, code, errs)
			require.Contains(t, out, tt.out)
			require.Contains(t, errs, tt.errs)
			if tt.code == ExitDone {
				require.Empty(t, errs, "progress is for terminals")
			}
			if strings.HasSuffix(tt.line, "-v") {
				require.NotContains(t, out, "Invariants")
				require.Greater(t, strings.Count(out, "\n"), 100, "the events")
			}
		})
	}
	for _, args := range [][]string{{"chaos"}, {"chaos", "dead"}} {
		code, out, errs := runLine(top, args...)
		require.Equal(t, ExitUsage, code)
		require.Empty(t, out)
		require.Contains(t, errs, "use chaos sim or chaos live\nTry: "+program()+" chaos --help\n")
	}
	code, out, errs := runLine(top, "chaos", "sim", "--seeds", "4", "--json")
	require.Equal(t, ExitDone, code, errs)
	var r chaosReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 4, r.Seeds)
	require.NotEmpty(t, r.Checks)
	require.Positive(t, r.Rate)
}

// words are those of a line; _ is a blank in one of them.
func words(line string) []string {
	all := strings.Fields(line)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "_", " ")
	}
	return all
}

// The report goes to a file of the kind that its name says, or to both kinds, in place
// of what was there.
func TestChaosReportFiles(t *testing.T) {
	top := []*topology.Topology{greet(io.Discard)}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("a.md"), bytes.Repeat([]byte("was here before "), 10_000), 0o600))
	for _, name := range []string{"a.md", "a.json", "b", "c.txt"} {
		code, out, errs := runLine(top, "chaos", "sim", "--seeds", "2", "--report", at(name))
		require.Equal(t, ExitDone, code, errs)
		require.Contains(t, out, "seeds     2 from 1 on")
	}
	var names []string
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range all {
		names = append(names, f.Name())
		b, err := os.ReadFile(at(f.Name()))
		require.NoError(t, err)
		if filepath.Ext(f.Name()) == ".md" {
			require.True(t, strings.HasPrefix(string(b), "# chaos sim: 2 seeds, none failed\n"))
			require.NotContains(t, string(b), "was here before")
			continue
		}
		var r chaosReport
		require.NoError(t, json.Unmarshal(b, &r))
		require.Equal(t, 2, r.Seeds)
	}
	require.Equal(t, []string{"a.json", "a.md", "b.json", "b.md", "c.txt.json", "c.txt.md"}, names)
}

// A run that is interrupted reports on the seeds that were run, and fails.
func TestChaosInterrupted(t *testing.T) {
	for _, length := range []string{"--seeds=5", "--minutes=5"} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var out, errs bytes.Buffer
		c := chaosCommand([]*topology.Topology{greet(io.Discard)})
		c.SetArgs([]string{"sim", length})
		c.SetOut(&out)
		c.SetErr(&errs)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.ExecuteContext(ctx)
		require.EqualError(t, err, "interrupted after 0 seeds")
		require.Equal(t, ExitFailed, exitCode(err))
		require.Contains(t, out.String(), "seeds     0 from 1 on, each run twice, in ")
		require.Contains(t, out.String(), ", interrupted\n")
	}
}

// made is what many seeds might have come to.
func made() *chaosReport {
	plan, err := chaos.Parse("at 1.2s kill count/2; from 2s to 3s delay report 0..400ms")
	if err != nil {
		panic(err)
	}
	s := &sim.Summary{
		First: 1, Seeds: 500, Events: 6_021_345, Time: 217 * time.Hour, Messages: 123_456, Tuples: 1_234_567,
		Moods:    map[string]int{"peaceful": 170, "failing": 40, "deadly": 240, "forgetful": 50},
		Faults:   map[string]int{"kill": 1234, "crash": 56, "freeze link": 7, "report out of order": 12_345, "hang": 8, "limit lost": 99, "panic": 1},
		Features: map[string]int{"several streams": 312, "shuffle": 250}, Failed: 120,
		Checks: map[chaos.Checker]int{chaos.Acks: 6_543_210, chaos.Rest: 500}, Twins: map[chaos.Checker]int{chaos.Acks: 3_332_333, chaos.Rest: 500},
		Recovery: sim.Recovery{Deaths: 1290, P50: 12_345 * time.Microsecond, P99: 4567 * time.Millisecond, Max: 12 * time.Second},
		Failures: []*sim.Failure{
			{Seed: 8, Violation: sim.Violation{Invariant: "acks", What: "s0 message 3 of split 1 is acked, but its tuple is missing", At: 1500 * time.Millisecond}, Plan: plan, Drawn: 12},
			{Seed: 17, Violation: sim.Violation{Invariant: "the run ends", What: "panic: <nil> & more\ngoroutine 1 [running]:\n\tmain.main()", At: time.Second}},
		},
	}
	return newChaosReport(s, 12_340*time.Millisecond, true)
}

func TestChaosReport(t *testing.T) {
	var text, page, object bytes.Buffer
	r := made()
	r.text(&text)
	require.NoError(t, r.markdown(&page))
	require.NoError(t, r.json(&object))
	for name, got := range map[string]*bytes.Buffer{"report.txt": &text, "report.md": &page, "report.json": &object} {
		golden(t, filepath.Join("chaos", name), strings.ReplaceAll(got.String(), program(), "egret"))
	}
	for l := range strings.Lines(text.String()) {
		if !strings.HasPrefix(l, "  again") { // a command, in one line
			require.LessOrEqual(t, len(strings.TrimRight(l, "\n")), 80, l)
		}
	}
	var back chaosReport
	require.NoError(t, json.Unmarshal(object.Bytes(), &back))
	require.Equal(t, r.Failures[0], back.Failures[0])

	// Of a run without deaths and faults.
	text.Reset()
	newChaosReport(&sim.Summary{First: 7, Seeds: 1}, 0, false).text(&text)
	require.Contains(t, text.String(), "recovery  no message was lost with a task\n")
	require.Contains(t, text.String(), "\nFaults: 0\n")
}

// golden compares got with a file of testdata, or writes it with UPDATE=1.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestChaosFailure(t *testing.T) {
	r := made()
	require.EqualError(t, r.failure(false), "120 of 500 seeds failed: 8 (acks), 17 (the run ends), and 118 more\ninterrupted after 500 seeds")
	r.Failures = r.Failures[:1]
	require.EqualError(t, r.failure(true), "seed 8: acks: s0 message 3 of split 1 is acked, but its tuple is missing (at 1.5s); "+
		"to see it again: egret chaos sim --seed 8 --plan 'at 1.2s kill count/2; from 2s to 3s delay report 0..400ms' -v (2 of its 12 faults)\ninterrupted after 500 seeds")
	require.NoError(t, newChaosReport(&sim.Summary{Seeds: 1}, time.Second, false).failure(false))
}

func TestChaosProgress(t *testing.T) {
	s := &sim.Summary{Seeds: 100, Failed: 1}
	o := chaosOptions{seeds: 1500}
	require.Equal(t, "100 of 1,500 seeds  10.0/s  1 failed  2m20s left", o.progress(s, 10*time.Second))
	o = chaosOptions{seeds: 1 << 40, minutes: 1.5}
	require.Equal(t, "100 seeds  10.0/s  1 failed  1m20s left", o.progress(s, 10*time.Second))
	require.Equal(t, "100 seeds  1.0/s  1 failed  0s left", o.progress(s, 100*time.Second))

	var b bytes.Buffer
	p := &progress{w: &b, lines: true}
	text := func() string { return "text" }
	for _, s := range []time.Duration{1, 29, 30, 31, 59, 61} {
		p.now(s*time.Second, text)
	}
	require.Equal(t, "text\ntext\n", b.String())
	b.Reset()
	p = &progress{w: &b, terminal: true}
	for _, ms := range []time.Duration{1, 100, 150, 200} {
		p.now(ms*time.Millisecond, text)
	}
	require.Equal(t, "\rtext\rtext", b.String())
	p = &progress{w: &b}
	p.now(time.Hour, text)
	require.Equal(t, "\rtext\rtext", b.String(), "nothing with --json")
}
