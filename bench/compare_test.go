package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asChild makes the test's program the command bench on the toy engine.
const asChild = "EGRET_BENCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	c := Command(runHurried, halveHere)
	c.SetArgs(os.Args[1:])
	c.SilenceUsage = true
	if c.Execute() != nil {
		os.Exit(1)
	}
}

func command(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	c := Command(runHurried, halveHere)
	var stdout, stderr bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(t.Context())
	return stdout.String(), err
}

// The whole way once: flags, children, JSON, digests.
func TestCompareInProcesses(t *testing.T) {
	t.Setenv(asChild, "1")
	out, err := command(t, "--compare", "--rounds", "1", "--duration", "50ms", "--json")
	require.NoError(t, err)
	var c Comparison
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.Equal(t, 1, strings.Count(out, "\n"), "one object, one line")
	require.Equal(t, 1, c.Rounds)
	require.Equal(t, wantDigest(plainTasks), c.Digest)
	require.Len(t, c.Ratios, 6)
	for _, q := range oneNode().ratios[:6] {
		require.Positive(t, c.Ratios[q.name], q.name)
		require.Equal(t, c.Ratios[q.name], c.Ranges[q.name].Min)
	}
	require.Len(t, c.Medians, len(oneNode().variants))
	for _, v := range oneNode().variants {
		require.Positive(t, c.Medians[v.name], v.name)
	}
}

func TestOneMeasurement(t *testing.T) {
	out, err := command(t, "--baseline", "plain-batched", "--duration", "20ms", "--digest", "--json")
	require.NoError(t, err)
	var r Result
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, "plain-batched", r.Topology)
	require.Equal(t, wantDigest(plainTasks), r.Digest)
	require.Positive(t, r.WordsPerS)

	out, err = command(t, "--topology", "identity", "--guarantee", "at-most-once", "--duration", "20ms", "--rate", "10000", "--spouts", "1")
	require.NoError(t, err)
	require.Contains(t, out, "identity at-most-once")
	require.Contains(t, out, "due to sink")
}

func TestCommandRefuses(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--topology nul", `--topology is "nul": use null, identity or wordcount`},
		{"--guarantee twice", `--guarantee is "twice": use at-most-once, at-least-once or exactly-once`},
		{"--state disk", "--state and --combiner need --guarantee exactly-once"},
		{"--guarantee exactly-once", "--guarantee exactly-once is measured with --topology wordcount, on one node"},
		{"--guarantee exactly-once --topology wordcount --state tape", `--state is "tape": use memory or disk`},
		{"--guarantee exactly-once --topology wordcount --rate 5", "--rate: messages in batches are not paced; the time of a commit is in ack_latency_us"},
		{"--guarantee exactly-once --topology wordcount --state disk --duration 20ms", `this program has no states of kind "pebble" (it has none): import the package of that kind`},
		{"--duration 0s", "--duration is 0s: use 1ms to 1h"},
		{"--spouts 0 --bolts 1025", "--spouts is 0: use 1 to 1,024"},
		{"--bolts 1025", "--bolts is 1025: use 1 to 1,024"},
		{"--rate -1", "--rate is -1: use 0 (as many as go through) to 1e+09 messages/s"},
		{"--rate NaN", "--rate is NaN: use 0 (as many as go through) to 1e+09 messages/s"},
		{"--rounds 0 --compare", "--rounds is 0: use 1 to 1,000"},
		{"--baseline plain", `--baseline is "plain": use plain-batched, plain-channel or bare-tcp`},
		{"--cost-model x", "--cost-model needs --compare"},
		{"--nodes 3", "--nodes is 3: use 1 or 2"},
		{"--tls", "--tls needs --nodes 2"},
		{"--baseline bare-tcp --digest", "--digest: bare-tcp counts no words"},
		{"--compare --topology null", "if any flags in the group [compare topology] are set none of the others can be; [compare topology] were all set"},
		{"extra", `unknown command "extra" for "bench"`},
	} {
		_, err := command(t, strings.Fields(tt.args)...)
		require.EqualError(t, err, tt.want, tt.args)
	}
}

func TestMedian(t *testing.T) {
	require.Equal(t, 3.0, median([]float64{3}))
	require.Equal(t, 2.5, median([]float64{4, 1}))
	require.Equal(t, 2.0, median([]float64{9, 1, 2}))
	vs := []float64{5, 1, 4, 2}
	require.Equal(t, 3.0, median(vs))
	require.Equal(t, []float64{5, 1, 4, 2}, vs, "the rounds stay in order")
}

// The machine is ten times slower in the second round: the ratios do not notice.
func TestRatiosAreTakenWithinARound(t *testing.T) {
	medians, ranges := ratiosOf(ratios, map[string][]float64{
		"null_tracked":        {90, 8, 99},
		"null_untracked":      {100, 10, 100},
		"wordcount_tracked":   {40, 4, 40},
		"wordcount_untracked": {40, 4, 40},
		"plain_batched":       {20, 2, 16},
		"plain_channel":       {10, 1, 10},
	})
	require.Equal(t, map[string]float64{
		"null_tracked_untracked":          0.9,
		"wordcount_tracked_untracked":     1,
		"wordcount_tracked_plain_batched": 2,
		"wordcount_tracked_plain_channel": 4,
	}, medians)
	require.Equal(t, map[string]Range{
		"null_tracked_untracked":          {Min: 0.8, Max: 0.99},
		"wordcount_tracked_untracked":     {Min: 1, Max: 1},
		"wordcount_tracked_plain_batched": {Min: 2, Max: 2.5},
		"wordcount_tracked_plain_channel": {Min: 4, Max: 4},
	}, ranges)
}

// fakeChild answers what its arguments ask for.
func fakeChild(rates map[string]float64, digest string) func(context.Context, []string) (Result, error) {
	return func(_ context.Context, args []string) (Result, error) {
		for _, v := range variants {
			if n := len(args) - len(v.args); n >= 0 && slices.Equal(args[n:], v.args) {
				r := Result{MessagesPerS: rates[v.name], WordsPerS: rates[v.name], AllocsPerTuple: 0.01, Failed: 1}
				if slices.Contains(args, "--digest") {
					r.Digest = digest
				}
				return r, nil
			}
		}
		return Result{}, errors.New("unknown arguments " + strings.Join(args, " "))
	}
}

var fakeRates = map[string]float64{
	"null_tracked": 90, "null_untracked": 100, "wordcount_tracked": 30, "wordcount_untracked": 40, "plain_batched": 20, "plain_channel": 10,
	"wordcount_exact_memory": 24, "wordcount_exact_combiner": 33,
}

func TestComparison(t *testing.T) {
	var said []string
	c := &comparer{
		contest: oneNode(),
		rounds:  5, duration: time.Second, child: fakeChild(fakeRates, wantDigest(plainTasks)),
		model:    func(context.Context) (float64, error) { return 180, nil },
		progress: func(line string) { said = append(said, line) },
	}
	out, err := c.run(t.Context())
	require.NoError(t, err)
	require.Len(t, said, 5*(len(c.variants)+1))
	require.Equal(t, 0.5, out.Ratios["null_tracked_cost_model"])
	require.Equal(t, 0.75, out.Ratios["wordcount_tracked_untracked"])
	require.Equal(t, 180.0, out.Medians["cost_model"])
	require.Equal(t, 30.0, out.Medians["wordcount_tracked"])
	require.Equal(t, 0.01, out.AllocsPerTuple["null_tracked"])
	require.EqualValues(t, 5*len(c.variants), out.Failed)

	var table strings.Builder
	require.NoError(t, out.print(&table))
	require.Regexp(t, `wordcount_tracked_untracked +0.75 +0.75 +0.75 +0.90, not reached`, table.String())
	require.Regexp(t, `null_tracked_untracked +0.90 +0.90 +0.90 +0.85\n`, table.String())
}

func TestComparisonFails(t *testing.T) {
	c := &comparer{contest: oneNode(), rounds: 1, duration: time.Second, child: fakeChild(fakeRates, "0123"), progress: func(string) {}}
	_, err := c.run(t.Context())
	require.ErrorContains(t, err, `its counts have the digest "0123", not "`+wantDigest(plainTasks))

	c.child = fakeChild(nil, wantDigest(plainTasks))
	_, err = c.run(t.Context())
	require.ErrorContains(t, err, "in round 1: nothing went through in 1s")

	c.child = func(context.Context, []string) (Result, error) {
		return Result{}, errors.New("bench: exit status 1: no memory")
	}
	_, err = c.run(t.Context())
	require.ErrorContains(t, err, "in round 1: bench: exit status 1: no memory")
}

func TestChildThatComplains(t *testing.T) {
	t.Setenv(asChild, "1")
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = (&child{program: self}).run(t.Context(), []string{"--topology", "nul"})
	require.ErrorContains(t, err, "exit status 1")
	require.ErrorContains(t, err, `--topology is "nul": use`)
}

func TestModelRate(t *testing.T) {
	got, err := modelRate("topo=null ack=4 batch=256 cred=8 mbox=swap s2/b2/c2 spout_rec/s=67912345 sink_rec/s=67912345 acked/s=67912000 allocs/rec=0.00000\n")
	require.NoError(t, err)
	require.Equal(t, 67912345.0, got)
	_, err = modelRate("panic: no")
	require.EqualError(t, err, `the cost model has printed no spout_rec/s: "panic: no"`)
}
