package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A thousand nodes, twenty topologies with a thousand tasks each, and nothing to do.
func BenchmarkDecide(b *testing.B) {
	m := &machine{}
	enter := func(e Entry) {
		data, err := e.Encode()
		require.NoError(b, err)
		require.NoError(b, m.Apply(m.Applied+1, data).Err)
	}
	enter(Entry{Found: &Found{"c"}})
	c := NewCoordinator(Home{1, 1}, 0, Patience{})
	members := make([]Member, 1000)
	for i := range members {
		members[i] = Member{Home: Home{NodeID(i + 1), 1}, Addr: "h:1", Alive: true}
	}
	c.Members(0, members)
	for i := range 20 {
		enter(Entry{Submit: &Submit{Spec{Topology: fmt.Sprint("t", i), Components: chain(250, 250, 250, 250)}, clock}})
	}
	reports := make([]*Report, len(members))
	report := func() {
		for i, h := range members {
			reports[i] = &Report{Home: h.Home, Applied: m.Applied}
			for _, sub := range m.Submissions {
				reports[i].Runs = append(reports[i].Runs, RunReport{Run: sub.Run, Epoch: sub.epoch()})
			}
			c.Report(reports[i])
		}
	}
	report()
	now := time.Duration(0)
	for now < time.Minute {
		for _, e := range c.Decide(now, &m.State, clock, nil) {
			enter(e)
		}
		now += 5 * time.Second
		report()
	}
	decide := func(b *testing.B) {
		if c.Decide(now, &m.State, clock, nil) != nil {
			b.Fatal("there is something to do")
		}
	}
	b.Run("nothing new", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			c.Report(reports[i%len(reports)])
			decide(b)
		}
	})
	b.Run("a run", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			r := *reports[i%len(reports)]
			r.Runs = append([]RunReport(nil), r.Runs...)
			r.Runs[3].Rest = uint64(i + 1)
			c.Report(&r)
			decide(b)
		}
	})
	b.Run("everything", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			c.changed = true
			decide(b)
		}
	})
}
