package egret

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
)

func TestTopPrints(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	took := metrics.Latency{Count: 9, P50: 120 * time.Microsecond, P99: 3456 * time.Microsecond}
	now := &topNow{
		Overview: &view.Overview{
			At: at, Window: 5 * time.Second, Cluster: "c1", Nodes: []view.NodeNow{
				{Node: view.Node{Node: "a", Alive: true, Leads: true, Tasks: 3, Cores: 4, Memory: 61_600_000, Up: 3 * time.Hour}, Load: 0.5},
				{Node: view.Node{Node: "b\x1b[2J", Alive: true, Draining: true, Tasks: 1, Silent: "no answer within 1s"}},
				{Node: view.Node{Node: "c", Silent: "it is dead"}},
			},
			Topologies: []view.Summary{{Topology: "words", Status: "running", Tasks: 4, Silent: 1, Rate: 12345.6, DoneRate: 9.87, Counts: view.Counts{Open: 4711}, Complete: took},
				{Topology: "once", Guarantee: "exactly-once", Status: "running", Complete: metrics.Latency{Count: 1, P50: 999, P99: 1000}}},
		},
		Details: []view.Detail{{
			Summary: view.Summary{Topology: "words"}, Graph: &graph.Drawing{},
			Components: []view.ComponentNow{
				{Component: "lines", Kind: "spout", Tasks: 1, Cause: "count", Doing: view.Doing{Rate: 12345.6, Throttled: 0.25, Complete: took}},
				{Component: "split", Kind: "bolt", Tasks: 2, Cause: "count", Doing: view.Doing{Throttled: 0.5}},
				{Component: "count", Kind: "bolt", Tasks: 3, Silent: 1, Busiest: 0.98, Doing: view.Doing{Rate: 0.25, Load: 0.333, FailedRate: 1, Counts: view.Counts{Queued: 8192}, Execute: took}},
			},
			TasksNow: []view.TaskNow{
				{Task: "lines/0", Component: "lines", WaitsFor: "split/0"},
				{Task: "split/0", Component: "split", WaitsFor: "count/2"}, {Task: "split/1", Component: "split"},
			},
		}},
	}
	var out strings.Builder
	(&topOptions{sort: "load"}).print(&out, now)
	require.Equal(t, `12:00:00  cluster c1  3 nodes, 2 topologies  rates of the last 5.0 s  NO QUORUM: nothing can be changed

NODE   TASKS  CPU        MEMORY  UP  STATE
a      3      50 % of 4  62 MB   3h  alive, leads
b [2J  1      -          -       -   silent: no answer within 1s, draining
c      0      -          -       -   dead

TOPOLOGY  STATUS                  TASKS  RATE/S  DONE/S  FAILED/S  OPEN   P50    P99
words     running, 1 task silent  4      12,346  9.9     0         4,711  120µs  3.46ms
once      running                 0      0       0       0         -      <1µs   1µs

COMPONENT  TASKS         RATE/S  LOAD  BUSIEST  QUEUED  THROTTLED  BY       FAILED/S  P50    P99
count      3 (1 silent)  0.2     33 %  98 %     8,192   0 %        -        1.0       120µs  3.46ms
lines      1             12,346  0 %   0 %      0       25 %       count    0         120µs  3.46ms
split      2             0       0 %   0 %      0       50 %       count/2  0         -      -
`, out.String())

	// What holds it up stands above all, and columns are there for what has happened.
	out.Reset()
	d := &now.Details[0]
	d.Verdict = view.Verdict{Tone: "bad", Text: "count has died 561 times, last: panic\x1b[2J."}
	d.Components[2].Counts.Restarts, d.Components[0].Counts.Dead = 561, 1234
	(&topOptions{sort: "graph"}).print(&out, now)
	require.Contains(t, out.String(), "NO QUORUM: nothing can be changed\nwords: count has died 561 times, last: panic [2J.\n\nNODE ")
	require.Contains(t, out.String(), `
COMPONENT  RESTARTS  DEAD   TASKS         RATE/S  LOAD  BUSIEST  QUEUED  THROTTLED  BY       FAILED/S  P50    P99
lines      0         1,234  1             12,346  0 %   0 %      0       25 %       count    0         120µs  3.46ms
split      0         0      2             0       0 %   0 %      0       50 %       count/2  0         -      -
count      561       0      3 (1 silent)  0.2     33 %  98 %     8,192   0 %        -        1.0       120µs  3.46ms
`)

	out.Reset()
	(&topOptions{sort: "graph"}).print(&out, &topNow{Overview: &view.Overview{At: at, Quorum: true}})
	require.Contains(t, out.String(), "12:00:00  0 nodes, 0 topologies\n")
	require.Contains(t, out.String(), "no topologies\n")
}

func TestErrorsPrint(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	all := []view.Error{
		{Topology: "words", Component: "count", Task: "count/2", Node: "a", Kind: "died", Text: "panic in Execute: boom\nagain", Stack: "main.f()\n\tx.go:7", Tuple: "word=\x1b[2Jwhale", First: now.Add(-2 * time.Hour), Last: now.Add(-3 * time.Second), Count: 1234},
		{Topology: "words", Node: localNode, Kind: "state", Text: "the disk is full", First: now.Add(-50 * time.Hour), Last: now.Add(-50 * time.Hour), Count: 1},
	}
	var out strings.Builder
	(&errorsOptions{verbose: true}).print(&out, all, now)
	require.Equal(t, `words count/2 on a: died, 3s ago; 1,234 times in 1h
    panic in Execute: boom
    again
    tuple: word= [2Jwhale
    main.f()
        x.go:7
words: state, 2d ago
    the disk is full
`, out.String())
	out.Reset()
	(&errorsOptions{}).print(&out, all[:1], now)
	require.NotContains(t, out.String(), "x.go")
	out.Reset()
	(&errorsOptions{}).print(&out, nil, now)
	require.Equal(t, "no errors\n", out.String())
}

// Both commands look at a run by its page, and at a cluster by any node.
func TestTopAndErrors(t *testing.T) {
	t.Setenv(httpVariable, "")
	t.Setenv(nodeVariable, "")
	t.Setenv(lookTokenVariable, testToken)
	r := servedRun(t, cards("cards", nil))
	tops := []*topology.Topology{endless()}
	at := func(line string) (int, string, string) {
		return runLine(tops, append(strings.Fields(line), "--http", r.URL())...)
	}
	code, out, errs := at("top --once")
	require.Equal(t, ExitDone, code, errs)
	require.Regexp(t, `(?s)^\d\d:\d\d:\d\d  1 node, 1 topology  rates of the last \d\.\d s\ncards: .*\nlocal +3 .*\ncards +running .*\nin +1 +[1-9][\d,]* `, out)
	code, out, errs = at("top cards --once --json")
	require.Equal(t, ExitDone, code, errs)
	var now topNow
	d := json.NewDecoder(bytes.NewReader([]byte(out)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&now))
	require.Positive(t, now.Topologies[0].Rate)
	require.Len(t, now.Details, 1)
	code, out, errs = at("errors cards --component out")
	require.Equal(t, ExitDone, code, errs)
	require.Equal(t, "no errors\n", out)
	for line, want := range map[string]struct {
		code int
		errs string
	}{
		"top other --once":              {ExitUnknown, `there is no topology "other": there are cards`},
		"top --sort name":               {ExitUsage, "use graph, load, rate or queued"},
		"top --interval 1ms":            {ExitUsage, "at least 100ms"},
		"errors other":                  {ExitUnknown, `there is no topology "other"`},
		"errors cards --component outs": {ExitUnknown, `the topology cards has no component "outs": it has in, half.of, out`},
	} {
		code, out, errs := at(line)
		require.Equal(t, want.code, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, want.errs)
	}
	code, _, errs = runLine(tops, "top", "--http", "http://127.0.0.1:1")
	require.Equal(t, ExitUnreachable, code, errs)
}
