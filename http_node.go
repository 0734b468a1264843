package egret

import (
	"fmt"
	"log/slog"

	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/web"
)

// A nodeDoor is where a node is looked at: its control service, where who asks has the
// credentials of the cluster, and what --http says.
//
//	other nodes ----/node/v1/--> web.Node ----> nodeSource
//	commands, ui ---/api/v1/---> web.Server --> clusterSource --/node/v1/--> all nodes
//	browsers --> web.Listener ------^
type nodeDoor struct {
	listener *web.Listener // nil: there is none
	part     *web.Node
	server   *web.Server
	whole    *clusterSource
}

// listen listens where --http says, before the node is started; nil: nowhere.
func (h *HTTP) listen(log *slog.Logger) (*web.Listener, error) {
	if h.Address == "" {
		return nil, nil
	}
	l, err := web.Listen(h.door(log))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHTTP, err)
	}
	return l, nil
}

// openDoor begins to answer for a node that has started. close must be called before the
// node ends.
func openDoor(p *process.Process, runs *nodeProgram, l *web.Listener, log *slog.Logger) *nodeDoor {
	own := newNodeSource(p, runs)
	d := &nodeDoor{listener: l, whole: newClusterSource(p, own), part: web.NewNode(own, web.Config{Log: log})}
	registry := newRegistry()
	registry.MustRegister(&partsCollector{own}, &clusterCollector{d.whole})
	d.server = web.New(web.Config{Source: d.whole, Metrics: registry, Log: log, Rest: l == nil})
	p.Handle(web.NodePath, d.part)
	p.Handle("/api/v1/", d.server)
	if l != nil {
		l.Serve(d.server)
	}
	return d
}

// url is where the page is; empty: nowhere.
func (d *nodeDoor) url() string {
	if d.listener == nil {
		return ""
	}
	return d.listener.URL
}

// close lets go of all who look, and waits for them.
func (d *nodeDoor) close() error {
	d.whole.close()
	d.part.Close()
	d.server.Close()
	if d.listener == nil {
		return nil
	}
	return d.listener.Close()
}
