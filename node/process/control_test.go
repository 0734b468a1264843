package process

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// A request that is under way when the node ends has ended before it, however it was asked.
func TestCloseWaitsForRequests(t *testing.T) {
	var c tally
	began, ended := make(chan struct{}), false
	p := program(c.topology(1))
	p.Query = func(ctx context.Context, _ *cluster.Submission, _ *node.Request) *node.Answer {
		close(began)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // one that does not wait is closed by then
		ended = true
		return &node.Answer{}
	}
	a := start(t, Config{Data: t.TempDir(), Program: p})
	until(t, a, "it leads", func(v *node.View) bool { return v.Leader != 0 && len(v.Nodes) == 1 })
	require.Nil(t, a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers"}}).Error)
	until(t, a, "it is known", func(v *node.View) bool { return len(v.Submissions) == 1 })

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return a.DialControl(ctx, a.Addr())
	}}}
	q, err := json.Marshal(&node.Request{Op: node.OpQuery, Topology: "numbers"})
	require.NoError(t, err)
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		if r, err := client.Post("http://node"+Path, "application/json", bytes.NewReader(q)); err == nil {
			r.Body.Close()
		}
	}()
	<-began
	require.NoError(t, a.control.close())
	require.True(t, ended)
	<-cut
}
