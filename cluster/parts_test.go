package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

// clock is when everything happens.
var clock = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

// machine is a state with a log of its own.
type machine struct {
	t *testing.T
	State
}

// apply applies an entry behind the last, as it comes out of the log.
func (m *machine) apply(e Entry) Result {
	m.t.Helper()
	data, err := e.Encode()
	require.NoError(m.t, err)
	return m.Apply(m.Applied+1, data)
}

// must is apply of what is not refused.
func (m *machine) must(e Entry) Result {
	m.t.Helper()
	r := m.apply(e)
	require.NoError(m.t, r.Err)
	return r
}

// refused is apply of what is refused, which changes nothing but the index.
func (m *machine) refused(why Reason, e Entry) string {
	m.t.Helper()
	before := m.State
	r := m.apply(e)
	require.ErrorIs(m.t, r.Err, why)
	require.NotContains(m.t, r.Err.Error(), "%!")
	require.Zero(m.t, r.Epoch)
	before.Applied++
	require.Equal(m.t, before, m.State)
	return r.Err.Error()
}

func (m *machine) snapshot() string {
	m.t.Helper()
	return shot(m.t, &m.State)
}

func shot(t require.TestingT, s *State) string {
	data, err := s.Snapshot()
	require.NoError(t, err)
	return string(data)
}

// founded returns a cluster without anything in it.
func founded(t *testing.T) *machine {
	m := &machine{t: t}
	m.must(Entry{Found: &Found{"c1"}})
	return m
}

// words is a topology of three components with 1, 2 and 2 tasks.
func words() Spec {
	return Spec{
		Topology: "words", Fingerprint: "f00d", Parallel: map[string]int{"count": 2},
		Params: map[string][]string{"file": {"book.txt"}},
		Components: []Component{
			{Name: "lines", Parallel: 1, Spout: true, To: []int{1}},
			{Name: "split", Parallel: 2, To: []int{2}},
			{Name: "count", Parallel: 2},
		},
	}
}

// exactWords is words with a state, that of count.
func exactWords() Spec {
	s := words()
	s.Components[2].State = true
	return s
}

// plan puts the tasks of components on nodes 1 and 2 in turn.
func plan(components []Component) *Plan {
	p := &Plan{}
	for c, k := range components {
		p.Components = append(p.Components, Layout{tuple.TaskID(len(p.Tasks)), k.Parallel})
		for i := range k.Parallel {
			p.Tasks = append(p.Tasks, Task{c, i, Home{NodeID(1 + len(p.Tasks)%2), 1}, 0})
		}
	}
	return p
}

// moved returns p with task id on another home.
func moved(p *Plan, id int, to Home) *Plan {
	next := p.inForce(0)
	next.Tasks[id].Home, next.Tasks[id].Epoch = to, 0
	return next
}

// running returns a cluster in which words runs, with its submission.
func running(t *testing.T) (*machine, Run, uint32) {
	m := founded(t)
	run := Run(m.must(Entry{Submit: &Submit{words(), clock}}).Epoch)
	epoch := m.must(Entry{SetPlan: &SetPlan{"words", run, 0, plan(words().Components)}}).Epoch
	return m, run, epoch
}

func positions(component string, life tuple.Incarnation, splits ...string) (all []Position) {
	for _, s := range splits {
		all = append(all, Position{component, s, "at " + life.String(), life})
	}
	return all
}
