package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/web/underway"
)

// Path is where a node takes requests, by HTTP on its control service.
const Path = "/v1/request"

// mostRequest bounds a request.
const mostRequest = 1 << 20

// requestTime is how long a request may take to come.
const requestTime = 30 * time.Second

// A control is the door for commands.
type control struct {
	p      *Process
	mux    *http.ServeMux
	server *http.Server
	cancel context.CancelFunc // of all requests
	ended  chan struct{}

	answers underway.Answers
}

func serve(p *Process) *control {
	c := &control{p: p, mux: http.NewServeMux(), ended: make(chan struct{})}
	c.mux.HandleFunc("POST "+Path, c.request)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.server = &http.Server{
		Handler: c.answers.Counted(c.mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { // ends with close, which waits
		defer close(c.ended)
		_ = c.server.Serve(p.port.Listener(wire.Control))
	}()
	return c
}

func (c *control) request(w http.ResponseWriter, r *http.Request) {
	var q node.Request
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTime))
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostRequest)).Decode(&q); err != nil {
		text := "the request cannot be read: " + err.Error()
		if _, is := errors.AsType[*http.MaxBytesError](err); is {
			text = "the request has more than 1 MiB: ask for less at a time"
		}
		http.Error(w, text, http.StatusBadRequest)
		return
	}
	answer := c.p.Ask(r.Context(), &q)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// Handle has requests whose paths match a pattern answered by h, on the control service:
// who asks has the secret of the cluster, if it has one. When the node ends, the contexts
// of requests end, and Close waits for h.
func (p *Process) Handle(pattern string, h http.Handler) { p.control.mux.Handle(pattern, h) }

// DialControl connects to the control service of the node at addr.
func (p *Process) DialControl(ctx context.Context, addr string) (net.Conn, error) {
	return p.port.Dial(ctx, wire.Control, addr)
}

// Parts asks what this node has of the runs, and waits.
func (p *Process) Parts(ctx context.Context) ([]node.Part, error) {
	came := make(chan []node.Part, 1)
	p.host.Send(p.agent, node.Look{Reply: func(all []node.Part) { came <- all }})
	select {
	case all := <-came:
		return all, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("node %s has not answered: %w", p.self.Name, context.Cause(ctx))
	}
}

// ToRun sends a message to the supervisor of a run, if there is one here.
func (p *Process) ToRun(run cluster.Run, msg any) {
	p.host.Send(p.agent, node.ToRun{Run: run, Msg: msg})
}

// Ask asks this node's agent, and waits.
func (p *Process) Ask(ctx context.Context, q *node.Request) *node.Answer {
	switch q.Op {
	case node.OpSubmit:
		if err := p.complete(q); err != nil {
			return &node.Answer{Error: err}
		}
	case node.OpLeave:
		p.leave.make()
		return &node.Answer{}
	case node.OpQuery:
		return p.query(ctx, q)
	}
	came := make(chan *node.Answer, 1)
	p.host.Send(p.agent, node.Ask{Request: q, Reply: func(a *node.Answer) { came <- a }})
	select {
	case a := <-came:
		if a.State != nil {
			a.State.Voters = p.voters()
		}
		return a
	case <-ctx.Done():
		return node.Refuse(node.ErrNoQuorum, "the node has not answered: %v", context.Cause(ctx))
	}
}

// query has this node's program read a state. What is committed is what the log says here,
// which may be a moment behind.
func (p *Process) query(ctx context.Context, q *node.Request) *node.Answer {
	if p.config.Program.Query == nil {
		return node.Refuse(node.ErrFailed, "node %s cannot read states", p.self.Name)
	}
	a := p.Ask(ctx, &node.Request{Op: node.OpState})
	if a.State == nil {
		return a
	}
	for _, sub := range a.State.Submissions {
		if sub.Topology != q.Topology {
			continue
		}
		if seat := sub.Seat(); seat != 0 && seat != p.self.Node {
			return elsewhere(a.State, sub, seat)
		}
		return p.config.Program.Query(ctx, sub, q)
	}
	return node.Refuse(cluster.ErrUnknown, "there is no topology %q; egret list shows those that there are", q.Topology)
}

// elsewhere says which node has the states of a topology.
func elsewhere(v *node.View, sub *cluster.Submission, seat cluster.NodeID) *node.Answer {
	for _, m := range v.Members {
		if m.Node == seat && m.Alive {
			return &node.Answer{Elsewhere: m.Addr}
		}
	}
	name := seat.String()
	for _, n := range v.Nodes {
		if n.ID == seat && n.Name != "" {
			name = n.Name
		}
	}
	return node.Refuse(cluster.ErrNoNode, "the states of topology %q are in the memory or on the disk of node %s, which is not there", sub.Topology, name)
}

func (p *Process) voters() (all []cluster.NodeID) {
	for _, s := range p.keeper.Servers() {
		if s.Voter {
			all = append(all, s.Node)
		}
	}
	return all
}

func (c *control) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := c.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = c.server.Close() // somebody waits for an answer that may take long
	}
	c.cancel()
	c.answers.Close()
	<-c.ended
	return err
}
