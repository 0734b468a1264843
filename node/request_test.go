package node

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// What was changed through a node is seen there when it answers: who leads may be ahead of it.
func TestAnswerIsSeen(t *testing.T) {
	one, two := cluster.Home{Node: 1, Boot: 1}, cluster.Home{Node: 2, Boot: 1}
	start := func(self cluster.Home) (*Agent, *world) {
		a := NewAgent(Config{Self: cluster.Member{Home: self}, Log: new(notebook), Tell: func(string, ...any) {}})
		w := newWorld(t)
		a.Start(seat{world: w})
		return a, w
	}
	receive := func(a *Agent, w *world, msg any) {
		a.Receive(seat{world: w}, msg)
		a.ctx = seat{world: w}
	}
	for _, tt := range []struct {
		op      string
		applied uint64 // 0: it is not waited for
	}{{OpSetStatus, 7}, {OpStats, 0}} {
		t.Run(tt.op, func(t *testing.T) {
			lead, w := start(two)
			lead.Receive(seat{world: w}, Logged{cluster.State{Cluster: "c0ffee", Applied: 7}})
			lead.links[one.Node] = &peer{ref: "to one"}
			receive(lead, w, Leads{Node: 2, Me: true})
			lead.askedBy(one, &asked{ID: 3, Request: &Request{Op: tt.op, Topology: "words"}})
			w.settle()
			var said note
			for _, m := range w.take("to one") {
				if n, is := m.(*Note); is {
					require.NoError(t, json.Unmarshal(n.Payload, &said))
				}
			}
			require.NotNil(t, said.Answer)
			require.Equal(t, cluster.ErrUnknown, said.Answer.Answer.Error.Reason)
			require.Equal(t, tt.applied, said.Answer.Applied)
		})
	}
	for _, tt := range []struct {
		name string
		then func(a *Agent, w *world)
	}{
		{"the log has come", func(a *Agent, w *world) { receive(a, w, Logged{cluster.State{Applied: 7}}) }},
		{"it does not come", func(a *Agent, w *world) { w.now += askFor; a.look() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, w := start(one)
			var got []*Answer
			a.asks[3] = &pending{reply: func(x *Answer) { got = append(got, x) }, until: w.now + askFor}
			payload, err := json.Marshal(&note{Answer: &answered{ID: 3, Answer: &Answer{Run: 7}, Applied: 7}})
			require.NoError(t, err)
			receive(a, w, &Note{From: two, Payload: payload})
			receive(a, w, Logged{cluster.State{Applied: 6}})
			w.now += time.Second
			a.look()
			require.Empty(t, got)
			tt.then(a, w)
			require.Equal(t, []*Answer{{Run: 7}}, got)
			require.Empty(t, a.asks)
		})
	}
}
