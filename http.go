package egret

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/egretstream/egret/web"
)

// An HTTP sets up where the page of a run is served, and its API. The zero value is: nowhere.
type HTTP struct {
	// Address is host:port, or the port alone, of this machine's loopback; port 0 is any
	// that is free. At others there must be a certificate and a token.
	Address string
	// CertFile and KeyFile are PEM files, for TLS.
	CertFile, KeyFile string
	// Token lets in who may do everything, LookToken who may look. Without either everybody
	// on this machine may do everything. At least 16 bytes, best random ones.
	Token, LookToken string
}

// door returns the door that h describes.
func (h *HTTP) door(log *slog.Logger) web.Door {
	return web.Door{Address: h.Address, Cert: h.CertFile, Key: h.KeyFile, Token: h.Token, LookToken: h.LookToken, Log: log}
}

// errHTTP reports that nothing can be served where Config.HTTP says.
var errHTTP = errors.New("http")

// A served is what a run shows by HTTP; nil: nothing.
type served struct {
	listener *web.Listener
	server   *web.Server
}

// listen listens where Config.HTTP says, before anything is started.
func (r *Running) listen() (err error) {
	if r.config.HTTP.Address == "" {
		return nil
	}
	l, err := web.Listen(r.config.HTTP.door(r.config.Logger))
	if err != nil {
		return fmt.Errorf("%w: %w", errHTTP, err)
	}
	r.served = &served{listener: l}
	return nil
}

// serve begins to answer, when the run has started.
func (v *served) serve(r *Running) {
	if v == nil {
		return
	}
	registry := newRegistry()
	registry.MustRegister(r.collector())
	v.server = web.New(web.Config{Source: newRunSource(r), Metrics: registry, Log: r.config.Logger})
	v.listener.Serve(v.server)
}

// close tells who looks that the run has ended, and ends.
func (v *served) close() error {
	if v == nil {
		return nil
	}
	if v.server != nil {
		v.server.Close()
	}
	return v.listener.Close()
}

// URL is where the page of the run is, and its API below api/v1; empty without Config.HTTP.
func (r *Running) URL() string {
	if r.served == nil {
		return ""
	}
	return r.served.listener.URL
}
