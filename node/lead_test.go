package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// A notebook is a log that takes nothing by itself.
type notebook struct{ ids []uint64 }

func (n *notebook) Propose(id uint64, _ []byte) { n.ids = append(n.ids, id) }

// That tasks begin anew elsewhere is told when it is agreed on, and not before.
func TestMovesAreToldWhenAgreedOn(t *testing.T) {
	one, two := cluster.Home{Node: 1, Boot: 1}, cluster.Home{Node: 2, Boot: 1}
	member := func(h cluster.Home, alive bool) cluster.Member {
		return cluster.Member{Home: h, Name: fmt.Sprintf("n%d", h.Node), Addr: fmt.Sprintf("n%d:1", h.Node), Alive: alive}
	}
	for _, tt := range []struct {
		name   string
		answer Proposed
		told   []string
	}{
		{"agreed on", Proposed{}, []string{"a process is gone, and its tasks begin anew topology words tasks out/0 from n2 to n1"}},
		{"nobody leads", Proposed{Err: Refuse(ErrNoQuorum, "no").Error}, nil},
		{"stale", Proposed{Result: cluster.Result{Err: &cluster.Refusal{Reason: cluster.ErrStale}}}, nil},
		{"no answer", Proposed{ID: 1 << 60}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told []string
			log := &notebook{}
			a := NewAgent(Config{Self: member(one, true), Log: log, Tell: func(text string, args ...any) {
				for _, arg := range args {
					text += fmt.Sprint(" ", arg)
				}
				told = append(told, text)
			}})
			w := newWorld(t)
			a.Start(seat{world: w})
			apply := func(e cluster.Entry) {
				b, err := e.Encode()
				require.NoError(t, err)
				require.NoError(t, a.state.Apply(a.state.Applied+1, b).Err)
			}
			apply(cluster.Entry{Found: &cluster.Found{Cluster: "c0ffee"}})
			for _, h := range []cluster.Home{one, two} {
				m := member(h, true)
				apply(cluster.Entry{SawNode: &cluster.SawNode{Node: m.Node, Boot: m.Boot, Name: m.Name, Addr: m.Addr}})
			}
			apply(cluster.Entry{Submit: &cluster.Submit{Spec: cluster.Spec{Topology: "words", Components: []cluster.Component{{Name: "in", Parallel: 1, To: []int{1}}, {Name: "out", Parallel: 1}}}}})
			run := a.state.Submissions[0].Run
			apply(cluster.Entry{SetPlan: &cluster.SetPlan{Topology: "words", Run: run, Plan: &cluster.Plan{
				Components: []cluster.Layout{{First: 0, Parallel: 1}, {First: 1, Parallel: 1}}, Tasks: []cluster.Task{{Home: one}, {Component: 1, Home: two}},
			}}})

			a.members = []cluster.Member{member(one, true), member(two, true)}
			a.leader(Leads{Node: 1, Me: true})
			a.decide()
			w.now += time.Minute
			a.lead.c.Members(w.now, []cluster.Member{member(one, true), member(two, false)})
			log.ids = nil
			a.decide()
			require.Len(t, log.ids, 1, "the plan without it")
			require.Empty(t, told, "nobody has agreed yet")
			if tt.answer.ID == 0 {
				tt.answer.ID = log.ids[0]
			}
			a.Receive(seat{world: w}, tt.answer)
			w.now += 2 * askFor
			a.look()
			require.Equal(t, tt.told, told)
		})
	}
}
