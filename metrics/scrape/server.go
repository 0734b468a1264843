package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/egretstream/egret/web/underway"
)

const (
	mostScrapes = 8                // at the same time; the next one is told to come again
	scrapeTime  = 10 * time.Second // for one
	closeTime   = time.Second      // for those under way when the server closes
)

// front is what stands at /, for people who look there.
const front = `<!doctype html><title>Egret</title><p>A run of Egret serves its metrics here: <a href="/metrics">/metrics</a>.</p>
`

// A Server serves what a registry has at /metrics, to this machine only.
type Server struct {
	URL    string
	server http.Server
	ended  chan error // gets what Serve returned

	answers underway.Answers
}

// Listen starts a server at an address: "127.0.0.1:9090", ":9090" or "9090", and with
// port 0 at any that is free. Close must be called. What goes wrong with a scrape is
// logged.
func Listen(address string, from prometheus.Gatherer, log *slog.Logger) (*Server, error) {
	address, err := loopback(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorLog: errorLog{log}, ErrorHandling: promhttp.ContinueOnError, // what is right is shown
		EnableOpenMetrics: true, MaxRequestsInFlight: mostScrapes,
	}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, front)
	})
	s := &Server{URL: "http://" + l.Addr().String() + "/metrics", ended: make(chan error, 1)}
	s.server = http.Server{
		Handler: s.answers.Counted(mux), ReadTimeout: scrapeTime, WriteTimeout: scrapeTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() { s.ended <- s.server.Serve(l) }() // Close waits for it
	return s, nil
}

// Close ends the server when the scrapes under way are done. After a second their
// connections are cut off: a client that does not finish its request, or does not read,
// holds nobody up.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if err != nil {
		s.server.Close()
	}
	s.answers.Close()
	if e := <-s.ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// loopback returns the address to listen at, of this machine only: there is no
// protection yet that others would have to pass.
func loopback(address string) (string, error) {
	full := address
	if !strings.Contains(full, ":") {
		full = ":" + full
	}
	host, port, err := net.SplitHostPort(full)
	if err != nil || port == "" || strings.Trim(port, "0123456789") != "" {
		return "", fmt.Errorf("%q is no address to serve metrics at: use 127.0.0.1:PORT, or PORT", address)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("metrics are served to this machine only, and %s is not its loopback: use 127.0.0.1:%s", host, port)
	}
	return net.JoinHostPort(host, port), nil
}

type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) {
	l.log.Warn("metrics: " + strings.TrimSuffix(fmt.Sprintln(v...), "\n"))
}
