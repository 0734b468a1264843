package egret

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor/host"
	"github.com/egretstream/egret/topology"
)

// What is left behind has a name, whoever made the call.
func TestLeftBehind(t *testing.T) {
	var out bytes.Buffer
	r := &Running{plan: &topology.Plan{Topology: "t"}}
	r.events.topology, r.events.logger = "t", slog.New(slog.NewTextHandler(&out, nil))
	for _, tt := range []struct {
		left host.Left
		want string
	}{
		{host.Left{Name: "t/supervisor/count/2"}, `"task count/2 did not come back;`},
		{host.Left{Name: "t/supervisor/in/0", Call: true}, `"a call that task in/0 has made did not come back;`},
		{host.Left{Name: "t/supervisor", Call: true}, `"a call of Egret's own, of the state directory, did not come back;`},
	} {
		out.Reset()
		r.leftBehind([]host.Left{tt.left})
		require.Contains(t, out.String(), tt.want)
	}
}
