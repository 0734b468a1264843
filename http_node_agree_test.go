package egret

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// standing emits the numbers below n by each of two tasks, and then nothing until it is
// stopped. Of a number that ends in 77 the first attempt fails, and 500 is given up.
func standing(n int, counted *atomic.Int64) *topology.Topology {
	var emitted [2]atomic.Int64
	var first [1000]atomic.Bool
	return topology.New("standing", func(b *topology.Builder) {
		in := b.Spout("in", spout.Func(func(ctx context.Context, out *spout.Out) error {
			for k := range emitted {
				if i := emitted[k].Add(1) - 1; i < int64(n) {
					out.Emit(i)
					return nil
				}
			}
			<-ctx.Done()
			return ctx.Err()
		})).Emits("n").Parallel(2)
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			i := in.Int64("n")
			if i == 500 || i%100 == 77 && i < 1000 && first[i].CompareAndSwap(false, true) {
				return fmt.Errorf("not %d", i)
			}
			out.Emit(i)
			return nil
		}), in.Shuffle()).Emits("n").Parallel(3)
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
			counted.Add(1)
			return nil
		}), pass.By("n")).Parallel(4)
	})
}

// scrapes adds up what Prometheus would read at several pages.
func scrapes(t *testing.T, pages []*api) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, at := range pages {
		answer, err := at.client.Get("http://" + at.addr + "/metrics")
		require.NoError(t, err)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			name, number, ok := strings.Cut(lines.Text(), "} ")
			if !ok || strings.HasPrefix(name, "#") {
				continue
			}
			x, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err, lines.Text())
			all[strings.ReplaceAll(name, `"`, "")+"}"] += x
		}
		require.NoError(t, answer.Body.Close())
	}
	return all
}

// A cluster that stands still has the same numbers at each node, by its API and by what is
// typed; those of Prometheus add up to them, and so does what the sink has counted.
func TestNumbersOfClusterAgree(t *testing.T) {
	const n = 4000
	var counted atomic.Int64
	tops := []*topology.Topology{standing(n, &counted)}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a", "--http", "127.0.0.1:0")
	b := startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", a.addr, "--http", "127.0.0.1:0")
	c := startNode(t, tops, "--data", t.TempDir(), "--name", "c", "--join", a.addr, "--http", "127.0.0.1:0")
	s := &shell{t, tops, a.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 3 })
	s.is("submit standing --max-replays 2")
	var pages []*api
	page := regexp.MustCompile(`page: http://(127\.0\.0\.1:\d+)\n`)
	for _, x := range []*testNode{a, b, c} {
		soon(t, func() bool { return page.MatchString(x.screen.String()) })
		pages = append(pages, &api{t, page.FindStringSubmatch(x.screen.String())[1], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	}
	doors := append([]*api{apiOf(t, a), apiOf(t, b), apiOf(t, c)}, pages...)
	for _, at := range doors { // each samples by itself, and has rates of the last seconds
		soon(t, func() bool {
			d := at.detail("standing")
			return d.Counts.Acked+d.Counts.Dead == 2*n && d.Window > 0 && d.Rate == 0 && d.DoneRate == 0 && d.FailedRate == 0 &&
				!slices.ContainsFunc(d.Edges, func(e view.EdgeNow) bool { return e.Rate != 0 }) // each node has looked at its own moment
		})
	}
	want := view.Counts{Messages: 2 * n, Acked: 2*n - 2, Dead: 2, Failed: 10 + 2*3, ReplayedFailed: 10 + 2*2, FailedTuples: 10 + 2*3}
	executed := map[string]int64{"pass": 2*n + want.ReplayedFailed, "out": 2*n - 2}
	require.Equal(t, executed["out"], counted.Load())
	nodes := map[string]bool{}
	for _, at := range doors {
		d := at.detail("standing")
		require.Equal(t, want, d.Counts)
		require.Len(t, d.Edges, 2)
		for _, e := range d.Edges {
			require.Equal(t, executed[e.To], e.Total)
			require.Zero(t, e.Rate)
		}
		var sum view.Counts
		for _, x := range d.TasksNow {
			nodes[x.Node] = true
			sum.Messages += x.Counts.Messages
			sum.Acked += x.Counts.Acked
			sum.Dead += x.Counts.Dead
			sum.ReplayedFailed += x.Counts.ReplayedFailed
		}
		require.Equal(t, view.Counts{Messages: want.Messages, Acked: want.Acked, Dead: want.Dead, ReplayedFailed: want.ReplayedFailed}, sum, "of the tasks")
		of := slices.IndexFunc(at.overview().Topologies, func(x view.Summary) bool { return x.Topology == "standing" })
		require.Equal(t, want, at.overview().Topologies[of].Counts)
	}
	require.Len(t, nodes, 3)
	got := scrapes(t, pages)
	for name, want := range map[string]int64{
		"egret_messages_total{component=in,topology=standing}":                                                want.Messages,
		"egret_messages_settled_total{component=in,outcome=acked,topology=standing}":                          want.Acked,
		"egret_messages_settled_total{component=in,outcome=dead,topology=standing}":                           want.Dead,
		"egret_messages_open{component=in,topology=standing}":                                                 0,
		"egret_attempts_ended_total{component=in,outcome=failed,topology=standing}":                           want.Failed,
		"egret_replays_total{cause=failed,component=in,topology=standing}":                                    want.ReplayedFailed,
		"egret_executed_tuples_total{component=pass,from=in,result=acked,stream=default,topology=standing}":   executed["pass"] - want.Failed,
		"egret_executed_tuples_total{component=pass,from=in,result=failed,stream=default,topology=standing}":  want.Failed,
		"egret_executed_tuples_total{component=out,from=pass,result=acked,stream=default,topology=standing}":  counted.Load(),
		"egret_executed_tuples_total{component=out,from=pass,result=failed,stream=default,topology=standing}": 0,
	} {
		require.Contains(t, got, name)
		require.EqualValues(t, want, got[name], name)
	}
	for _, x := range []*testNode{a, b, c} {
		s.node = x.addr
		require.Regexp(t, `(?m)^standing +running +9 +0 +0 +0 +0 +- +-$`, s.as("top --once"))
	}
}
