package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/web/underway"
)

const (
	headTime  = 10 * time.Second // for the head of a request
	writeTime = time.Minute      // for an answer that is no stream
	idleTime  = 2 * time.Minute
	closeTime = time.Second // for answers under way when a listener closes
)

// A Listener is an address that is listened at, with its door.
type Listener struct {
	URL string // of the page

	door   Door
	inner  net.Listener
	crowd  *crowd // its connections
	addr   *net.TCPAddr
	server *http.Server // nil: nothing is served yet
	cancel context.CancelFunc
	ended  chan error // gets what Serve returned

	answers underway.Answers
}

// Listen listens at an address, where nobody gets an answer before Serve. Close must be
// called. The error is a *net.OpError if there is no such address, or it is taken.
func Listen(d Door) (*Listener, error) {
	address, local, err := d.parse()
	if err != nil {
		return nil, err
	}
	if err := d.check(local); err != nil {
		return nil, err
	}
	var certificate tls.Certificate
	if d.Cert != "" {
		if certificate, err = tls.LoadX509KeyPair(d.Cert, d.Key); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
	}
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := newListener(d, inner)
	scheme := "http"
	if d.Cert != "" {
		scheme = "https"
		l.inner = tls.NewListener(l.inner, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
	}
	l.URL = scheme + "://" + inner.Addr().String()
	if l.addr.IP.IsUnspecified() {
		l.URL = scheme + "://" + net.JoinHostPort(hostName(certificate.Leaf), strconv.Itoa(l.addr.Port))
	}
	return l, nil
}

// hostName is a name of this machine under which browsers find a page that is served at all
// its addresses: the first of its certificate, which they compare.
func hostName(c *x509.Certificate) string {
	if c != nil {
		for _, name := range c.DNSNames {
			if !strings.HasPrefix(name, "*") {
				return name
			}
		}
		if len(c.IPAddresses) > 0 {
			return c.IPAddresses[0].String()
		}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "localhost"
}

func newListener(d Door, inner net.Listener) *Listener {
	all := &crowd{Listener: inner}
	return &Listener{door: d, inner: all, crowd: all, addr: inner.Addr().(*net.TCPAddr), ended: make(chan error, 1)}
}

// parse returns the address in full, and whether it is of this machine's loopback.
func (d *Door) parse() (address string, local bool, err error) {
	full := d.Address
	if !strings.Contains(full, ":") {
		full = ":" + full
	}
	host, port, err := net.SplitHostPort(full)
	if err != nil || port == "" || strings.Trim(port, "0123456789") != "" {
		return "", false, fmt.Errorf("%q is no address to serve a page at: use 127.0.0.1:PORT, or PORT", d.Address)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	return net.JoinHostPort(host, port), ip != nil && ip.IsLoopback(), nil
}

// check says what is missing before others may be let in, and what is wrong with tokens. It
// names the flags of commands, after which the fields of Config.HTTP are called.
func (d *Door) check(local bool) error {
	var errs []error
	const pair = " is missing: a certificate and its key belong together"
	switch {
	case d.Cert != "" && d.Key == "":
		errs = append(errs, errors.New("--http-key"+pair))
	case d.Cert == "" && d.Key != "":
		errs = append(errs, errors.New("--http-cert"+pair))
	}
	for _, t := range []struct{ what, token string }{{"token", d.Token}, {"token for looking", d.LookToken}} {
		if t.token != "" && len(t.token) < leastToken {
			errs = append(errs, fmt.Errorf("a %s of %d bytes can be guessed: it must have at least %d, best random ones (openssl rand -hex 32)", t.what, len(t.token), leastToken))
		}
	}
	if d.Token != "" && d.Token == d.LookToken {
		errs = append(errs, errors.New("the token for looking is the one for everything: they must differ"))
	}
	var lacks []string
	if d.Cert == "" && d.Key == "" {
		lacks = append(lacks, "--http-cert and --http-key")
	}
	if d.Token == "" && d.LookToken == "" {
		lacks = append(lacks, "--http-token-file (or --http-look-token-file)")
	}
	if !local && len(lacks) > 0 {
		errs = append(errs, fmt.Errorf("%s is beyond this machine's loopback, where it takes a certificate with its key, and a token: give %s, or use 127.0.0.1", d.Address, strings.Join(lacks, " and ")))
	}
	return errors.Join(errs...)
}

// Serve lets in who may to h, until Close. It returns at once, and is called once.
func (l *Listener) Serve(h http.Handler) {
	guard := newGuard(&l.door, l.addr, h)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.server = &http.Server{
		Handler: l.answers.Counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 { // also if nobody reads it: the server does then, for the next request
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
			}
			guard.ServeHTTP(w, r)
		})),
		ReadHeaderTimeout: headTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(l.door.Log.Handler(), slog.LevelDebug), // what strangers do wrong
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConn, ConnState: l.crowd.state,
	}
	go func() { l.ended <- l.server.Serve(l.inner) }() // Close waits for it
}

// Close lets nobody in any more and waits until the answers under way are done. After a
// second those that are not are cut off: a client that does not read holds nobody up.
func (l *Listener) Close() error {
	if l.server == nil {
		return l.inner.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := l.server.Shutdown(ctx); err != nil {
		l.cancel()
		l.server.Close()
	}
	l.cancel()
	l.answers.Close()
	if err := <-l.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
