package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bench/pair"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// halveHere is a Halver on the real engine.
func halveHere(ctx context.Context, t *topology.Topology, g topology.Guarantee, s Side) (*Half, error) {
	plan, err := t.Build(topology.Options{Guarantee: &g, Epoch: 1})
	if err != nil {
		return nil, err
	}
	c := pair.Config{Peer: s.Peer, Secret: s.Secret, Plan: plan, Drain: 30 * time.Second, Settings: &task.Settings{
		ParcelSize: 256, Linger: time.Millisecond, MaxPending: 65536, PendingBytes: 64 << 20, QueuedBytes: 64 << 20, TreeSize: 256,
		MessageTimeout: 30 * time.Second, MaxReplays: 8, Logger: slog.New(slog.DiscardHandler), Event: func(task.Event) { /* nobody listens */ },
	}}
	for id := range plan.Tasks {
		n := plan.Node(tuple.TaskID(id))
		c.Metrics = append(c.Metrics, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	h, err := pair.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	stats := func() Counts {
		counts := Counts{ExecutedBy: map[string]int64{}}
		for id, m := range c.Metrics {
			n := plan.Node(tuple.TaskID(id))
			for i := range n.Inputs {
				done := m.Inputs[i].Executed.Load()
				counts.Executed += done
				counts.ExecutedBy[n.Name] += done
			}
			if n.Reads() {
				counts.Emitted += m.Streams[0].Emitted.Load()
				counts.Acked += m.Acked.Load()
			}
		}
		return counts
	}
	return &Half{Running: Running{Stats: stats, Wait: func() (Counts, error) {
		err := h.Wait()
		return stats(), err
	}}, Addr: h.Addr(), Wire: func() uint64 { return h.Counts().BytesOut }, Close: h.Close}, nil
}

func TestTwoNodes(t *testing.T) {
	t.Setenv(asChild, "1")
	for _, args := range []string{
		"--topology null --rate 20000", "--topology wordcount --digest --tls --guarantee at-most-once",
	} {
		t.Run(args, func(t *testing.T) {
			out, err := command(t, append(strings.Fields(args), "--nodes", "2", "--duration", "500ms", "--json")...)
			require.NoError(t, err)
			var r Result
			require.NoError(t, json.Unmarshal([]byte(out), &r))
			require.Equal(t, 2, r.Nodes)
			require.Positive(t, r.MessagesPerS)
			require.Positive(t, r.TuplesPerS, "of the other process")
			require.NotNil(t, r.Latency, "by its clock")
			require.Greater(t, r.WirePerMessage, 10.0)
			if r.Rate > 0 {
				require.NotNil(t, r.Due)
			}
			if r.TLS {
				require.Equal(t, wantDigest(2), r.Digest)
				require.Positive(t, r.WordsPerS)
			}
		})
	}
}

func TestBareTCP(t *testing.T) {
	t.Setenv(asChild, "1")
	out, err := command(t, "--baseline", bareTCP, "--duration", "50ms")
	require.NoError(t, err)
	require.Contains(t, out, "bytes a message")
}

// A clock that shows what another does goes with it, whenever it was made.
func TestSharedClock(t *testing.T) {
	a := newClock()
	b := sharedClock(a.kernel - 1e9)
	before := a.now()
	at := b.now() - 1e9
	after := a.now()
	const within = 1e6 // between the two clocks that newClock reads
	require.GreaterOrEqual(t, at, before-within)
	require.LessOrEqual(t, at, after+within)
}

// The bare loop sends what the null topology does.
func TestBareParcels(t *testing.T) {
	n := 0
	for _, p := range bareParcels() {
		b, err := tuple.AppendParcel(nil, p)
		require.NoError(t, err)
		var q tuple.Parcel
		require.NoError(t, tuple.DecodeParcel(b, &q, bareSchema()))
		require.Len(t, q.Slots, 1)
		for i := range q.Len() {
			require.Equal(t, lines()[n], q.Tuple(i).String("line"))
			n++
		}
	}
	require.Equal(t, lineCount, n)
}

func TestOtherProcessFails(t *testing.T) {
	t.Setenv(asChild, "1")
	self, err := os.Executable()
	require.NoError(t, err)
	broken := errors.New("no ports")
	p := &pairing{halve: func(context.Context, *topology.Topology, topology.Guarantee, Side) (*Half, error) { return nil, broken }, child: child{program: self}}
	s := Setup{Topology: "null", Spouts: 1, Bolts: 1, Nodes: 2}
	_, err = p.measure(t.Context(), s, time.Millisecond)
	require.ErrorIs(t, err, broken)

	p.child.program = "/bin/false"
	_, err = p.measure(t.Context(), s, time.Millisecond)
	require.ErrorContains(t, err, "the other process")
	p.child.program = "/nowhere"
	_, err = p.measure(t.Context(), s, time.Millisecond)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestServeHalfRefuses(t *testing.T) {
	require.ErrorContains(t, serveHalf(t.Context(), strings.NewReader(""), io.Discard, nil), "no order has come")
	var out bytes.Buffer
	order := `{"setup":{"Topology":"null","Spouts":1,"Bolts":1}}`
	require.NoError(t, serveHalf(t.Context(), strings.NewReader(order), &out,
		func(context.Context, *topology.Topology, topology.Guarantee, Side) (*Half, error) {
			return nil, errors.New("no ports")
		}))
	require.Contains(t, out.String(), `"error":"no ports"`)
}

func TestComparisonOfTwoNodes(t *testing.T) {
	rates := map[string]float64{"null": 50, "wordcount": 20, "null_tls": 40, "wordcount_tls": 10, "bare_tcp": 100}
	rounds := 0
	c := &comparer{contest: twoNodes, rounds: 3, duration: time.Second, progress: func(string) {}, child: func(_ context.Context, args []string) (Result, error) {
		for _, v := range nodesVariants {
			bare := slices.DeleteFunc(slices.Clone(v.args), func(a string) bool { return a == "--digest" })
			if i := slices.Index(args, "--rate"); i >= 0 && slices.Equal(args[len(args)-len(bare):], bare) {
				require.NotContains(t, args, "--latency=false")
				rounds++
				late := float64(rounds) * 100
				if v.count {
					late += 8000
				}
				return Result{Due: &Latency{P50: 1000, P99: late, P999: 15000, Count: 1}}, nil
			}
			if slices.Equal(args[len(args)-len(v.args):], v.args) {
				r := Result{MessagesPerS: rates[v.name], WirePerMessage: 25, Cores: rates[v.name] / 1e8}
				if v.count {
					r.Digest = wantDigest(plainTasks)
				}
				return r, nil
			}
		}
		return Result{}, errors.New("unknown arguments " + strings.Join(args, " "))
	}}
	out, err := c.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"null_bare_tcp": 0.5, "wordcount_bare_tcp": 0.2, "null_tls_null": 0.8, "wordcount_tls_wordcount": 0.5}, out.Ratios)
	require.Equal(t, 12, rounds)
	require.Equal(t, 1000.0, out.AtTenth["null"].P50)
	require.Less(t, out.AtTenth["null"].P99Range.Min, out.AtTenth["null"].P99Range.Max)
	var table strings.Builder
	require.NoError(t, out.print(&table))
	require.Regexp(t, `null_bare_tcp +0.50 +0.50 +0.50 +0.40\n`, table.String())
	require.Regexp(t, `wordcount_bare_tcp +0.20 +0.20 +0.20 +0.40, not reached\n`, table.String())
	require.Regexp(t, `null_tls_null +0.80 +0.80 +0.80 *\n`, table.String())
	require.Regexp(t, `null +1.00 +\d.\d\d +\d.\d\d +\d.\d\d +3.00 +15.00\n`, table.String())
	require.Regexp(t, `wordcount +1.00 +[89].\d\d +[89].\d\d +[89].\d\d +3.00, not reached +15.00\n`, table.String())
	require.Regexp(t, `wordcount_tls +1.00 +[89].\d\d +[89].\d\d +[89].\d\d +15.00\n`, table.String())
	require.Regexp(t, `bare_tcp +0.00 +10 +0.0000 +25.0\n`, table.String())
	require.Regexp(t, `null_tls +1.00 `, table.String())
}
