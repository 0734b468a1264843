package egret

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/state/pebble"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

type visit struct {
	Day  string
	Room int8
}

type stay struct {
	Visits int64
	For    string
}

// visited counts visits in states of several types.
func visited(back state.Backend) *topology.Topology {
	return trident.New("visits", func(b *trident.Builder) {
		day := b.String("day", "Monday", "of all visits")
		in := trident.From[string](b, "in", spout.Slice("ann 1", "bob 2", "ann 1"))
		rooms := trident.Map(in, func(s string) visit { return visit{day, int8(s[len(s)-1] - '0')} })
		names := trident.Map(in, func(s string) string { return s[:3] })
		last := trident.Combiner[visit, stay]{
			Init:    func(v visit) stay { return stay{1, v.Day} },
			Combine: func(a, b stay) stay { return stay{a.Visits + b.Visits, a.For} },
		}
		trident.PersistentAggregate(trident.GroupBy(names, trident.Identity), trident.StateOf[string, int64]("names", back, trident.Opaque), trident.Count[string]()).Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(rooms, trident.Identity), trident.StateOf[visit, stay]("rooms", back, trident.Opaque), last)
		trident.Update(trident.GroupBy(in, func(s string) time.Duration { return time.Duration(len(s)) * time.Second }),
			trident.StateOf[time.Duration, time.Duration]("lengths", back, trident.Opaque), func(_, old time.Duration, _ bool, all []string) time.Duration {
				return old + time.Duration(len(all))*time.Minute
			})
		trident.Update(names.GroupAll(), trident.StateOf[struct{}, *float64]("nothing", back, trident.Opaque),
			func(struct{}, *float64, bool, []string) *float64 { return nil })
	})
}

// queries are what the command says in each case, of a run or of a cluster.
var queries = []struct {
	args      []string
	code      int
	out, errs string
}{
	{[]string{"visits", "names", "bob", "ann"}, ExitDone, "bob  1\nann  2\n", ""},
	{[]string{"visits", "names", "ann", "--json"}, ExitDone, `[{"key":"ann","value":2}]` + "\n", ""},
	{[]string{"visits", "rooms", `{"Day":"Monday","Room":1}`}, ExitDone, `{"Day":"Monday","Room":1}  {"Visits":2,"For":"Monday"}` + "\n", ""},
	{[]string{"visits", "lengths", "5s"}, ExitDone, "5s  3m0s\n", ""},
	{[]string{"visits", "nothing", "{}"}, ExitDone, "{}  null\n", ""},
	{[]string{"visits", "names", "ann", "eve", "--json"}, ExitUnknown, `[{"key":"ann","value":2}]` + "\n", `state names of the topology visits has nothing for "eve"`},
	{[]string{"visits", "rooms", `{"Day":"Monday","Room":1000}`}, ExitParameter, "", "state rooms: bad key: \"{\\\"Day\\\":\\\"Monday\\\",\\\"Room\\\":1000}\" is no egret.visit: "},
	{[]string{"visits", "rooms", `{"Day":"Monday","Rom":1}`}, ExitParameter, "", `unknown field "Rom"`},
	{[]string{"visits", "rooms", `{} {}`}, ExitParameter, "", "something follows it"},
	{[]string{"visits", "lengths", "5"}, ExitParameter, "", "missing unit in duration"},
	{[]string{"visits", "name", "ann"}, ExitUnknown, "", `topology visits has no state "name": it has names, rooms, lengths, nothing`},
	{[]string{"visit", "names", "ann"}, ExitUnknown, "", `there is no topology "visit"`},
	{[]string{"visits", "names"}, ExitUsage, "", "it wants TOPOLOGY STATE KEY..., as in: query wordcount counts whale; there is only [\"visits\" \"names\"]"},
}

// What a run has committed is read when it has ended, and what cannot be read is said.
func TestQueryOfARun(t *testing.T) {
	dir := t.TempDir()
	back := pebble.Dir(dir + "/states")
	tops := []*topology.Topology{visited(back), greet(nil)}
	query := func(args ...string) (int, string, string) {
		return runLine(tops, append([]string{"query", "--state", dir}, args...)...)
	}
	code, _, errs := query("visits", "names", "ann")
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "there is nothing of batches of the topology visits in "+dir)
	require.NoDirExists(t, dir+"/states")

	_, err := Run(t.Context(), tops[0], Config{StateDir: dir, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for _, tt := range queries {
		code, out, errs := query(tt.args...)
		require.Equal(t, tt.code, code, "%q: %s", tt.args, errs)
		require.Equal(t, tt.out, out, "%q", tt.args)
		require.Contains(t, errs, tt.errs, "%q", tt.args)
	}
	for _, tt := range []struct {
		args string
		code int
		errs string
	}{
		{"greet names x", ExitUnknown, `topology greet has no state "names": it has none`},
		{"visits names ann --node 127.0.0.1:1", ExitUsage, "give one of the two"},
		{"visits names ann --set dy=x", ExitParameter, `unknown parameter "dy"`},
		{"visits names ann --set dy", ExitUsage, "write --set dy=VALUE"},
	} {
		code, out, errs := query(strings.Fields(tt.args)...)
		require.Equal(t, tt.code, code, "%s: %s", tt.args, errs)
		require.Empty(t, out)
		require.Contains(t, errs, tt.errs)
	}

	// One that is not where it was is not made there.
	tops[0] = visited(pebble.Dir(dir + "/elsewhere"))
	code, _, errs = query("visits", "names", "ann")
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "the state does not fit the record: nothing is here of what batch ")
	require.Contains(t, errs, "--set NAME=VALUE; not set here: day")
	require.NoDirExists(t, dir+"/elsewhere")
	_, _, errs = query("visits", "names", "ann", "--set", "day=Monday")
	require.Contains(t, errs, "--set must have the value that the runs had")

	// A state that has ended with its process is not one without keys.
	tops[0] = visited(memory.New())
	code, _, errs = query("visits", "names", "ann")
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "state names in memory: the state does not fit the record: nothing is here of what batch ")
}

// Any node answers, also for a state that another one has in its memory, as of what the
// log says is committed.
func TestQueryOfACluster(t *testing.T) {
	tops := []*topology.Topology{visited(memory.New())}
	n := startNode(t, tops, "--name", "a")
	other := startNode(t, []*topology.Topology{visited(memory.New())}, "--name", "b", "--join", n.addr)
	s := &shell{t, tops, n.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 2 })
	code, _, errs := s.run("query visits names ann")
	require.Equal(t, ExitUnknown, code)
	require.Contains(t, errs, `there is no topology "visits"; egret list shows those that there are`)
	s.is("submit visits")
	for _, addr := range []string{n.addr, other.addr} {
		soon(t, func() bool { return submissionOf(&shell{t, tops, addr}, "visits").Status == cluster.Done })
	}
	for _, addr := range []string{n.addr, other.addr} {
		for _, tt := range queries {
			code, out, errs := runLine(tops, append([]string{"query", "--node", addr}, tt.args...)...)
			require.Equal(t, tt.code, code, "%q: %s", tt.args, errs)
			require.Equal(t, tt.out, out, "%q", tt.args)
			require.Contains(t, errs, tt.errs, "%q", tt.args)
		}
	}
	for _, addr := range []string{n.addr, other.addr} {
		typedQueries(t, Cluster{Node: addr})
	}
	code, _, errs = s.run("query visits names ann --set day=x")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--set goes with --state")
	code, _, errs = s.run("query visits names " + strings.Repeat("x", 1<<20))
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "the request has more than 1 MiB: ask for less at a time")
}

// halfWay is a backend whose store stands still when it has written batch 3.
type halfWay struct {
	state.Backend
	wrote chan state.Change // the row, when it stands
	free  chan struct{}     // closed: it goes on
}

func (s halfWay) Open(ctx context.Context, name state.Name) (state.Store, error) {
	st, err := s.Backend.Open(ctx, name)
	return &halfWayStore{st, s}, err
}

type halfWayStore struct {
	state.Store
	halfWay
}

func (s *halfWayStore) Write(ctx context.Context, w *state.Write) error {
	err := s.Store.Write(ctx, w)
	if w.Tx == 3 && err == nil {
		select {
		case s.wrote <- w.Rows[0]:
		default: // it has stood already
		}
		select {
		case <-s.free:
		case <-ctx.Done():
		}
	}
	return err
}

// What a store has and the record has not is shown to nobody.
func TestQueryShowsWhatIsCommitted(t *testing.T) {
	back := halfWay{memory.New(), make(chan state.Change, 1), make(chan struct{})}
	counts := trident.StateOf[string, int64]("counts", back, trident.Opaque)
	tops := []*topology.Topology{trident.New("ticks", func(b *trident.Builder) {
		in := trident.From[int64](b, "in", from.Paced(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }), 500))
		trident.PersistentAggregate(trident.GroupBy(in, func(int64) string { return "all" }), counts, trident.Count[int64]())
	})}
	n := startNode(t, tops)
	t.Cleanup(func() { close(back.free) })
	s := &shell{t, tops, n.addr}
	s.is("submit ticks")
	row := <-back.wrote
	require.NotEqual(t, trident.Show(row.Prev), trident.Show(row.Value))

	require.Equal(t, "all  "+trident.Show(row.Prev)+"\n", s.is("query ticks counts all"))
	got, err := trident.Query(t.Context(), Cluster{Node: n.addr}.Query, "ticks", counts, "all")
	require.NoError(t, err)
	require.Equal(t, trident.Show(row.Prev), fmt.Sprint(got["all"]))
	r, err := counts.Open(t.Context(), "ticks", trident.Latest)
	require.NoError(t, err)
	defer r.Close()
	ahead, _, err := r.Get(t.Context(), "all")
	require.NoError(t, err)
	require.Equal(t, trident.Show(row.Value), fmt.Sprint(ahead), "the store has it")
}
