package egret

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/web"
)

// How commands look at a run or a cluster: by the API that the page uses.

const (
	httpVariable = "EGRET_HTTP"
	defaultHTTP  = "http://127.0.0.1:8080"
	silentFor    = 15 * time.Second // who sends something each second, and is taken for gone then
	mostAnswer   = 64 << 20         // bytes
)

// A looker is who asks, with the flags that say where.
type looker struct {
	url, node, token, ca, secret string

	base   string // of the API
	bearer string
	http   *http.Client
}

func (l *looker) flags(f *pflag.FlagSet) {
	f.StringVar(&l.url, "http", "", "URL of a run or node with --http (default: $"+httpVariable+", else the node of $"+nodeVariable+", else "+defaultHTTP+")")
	f.StringVar(&l.token, "token-file", "", "file with the token for --http (default: the variable "+tokenVariable+" or "+lookTokenVariable+")")
	f.StringVar(&l.ca, "ca", "", "PEM file of certificates to trust as well, for --http with a certificate of one's own")
	f.StringVar(&l.node, "node", "", "host:port of any node of a cluster instead")
	f.StringVar(&l.secret, "secret-file", "", "file with the secret of the cluster, for --node (default: the variable "+wire.SecretVariable+")")
}

// open makes l ready.
func (l *looker) open() error {
	if l.url != "" && l.node != "" {
		return &usageError{errors.New("--http asks a run or a node where it serves a page, --node where nodes talk to each other: give one of the two")}
	}
	if l.url == "" && l.node == "" {
		if l.url = os.Getenv(httpVariable); l.url == "" {
			if l.node = os.Getenv(nodeVariable); l.node == "" {
				l.url = defaultHTTP
			}
		}
	}
	transport := &http.Transport{ResponseHeaderTimeout: silentFor}
	l.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if l.node != "" {
		if l.ca != "" {
			return &usageError{errors.New("--ca goes with --http: a node knows who asks by the secret of the cluster (--secret-file)")}
		}
		if l.token != "" {
			return &usageError{errors.New("--token-file goes with --http: a node knows who asks by the secret of the cluster (--secret-file)")}
		}
		if _, _, err := net.SplitHostPort(l.node); err != nil {
			return &usageError{fmt.Errorf("--node is %q: use host:port, as in %s", l.node, defaultNode)}
		}
		secret, err := wire.ReadSecret(l.secret)
		if err != nil {
			return &usageError{err}
		}
		dial := wire.NewClient(secret, wire.Secret{}).Dial
		transport.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }
		l.base = "http://" + l.node + "/api/v1"
		return nil
	}
	if !strings.Contains(l.url, "://") {
		l.url = "http://" + l.url
	}
	u, err := url.Parse(l.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return &usageError{fmt.Errorf("--http is %q: use a URL, as in %s", l.url, defaultHTTP)}
	}
	if l.ca != "" {
		if u.Scheme != "https" {
			return &usageError{fmt.Errorf("--ca is for pages with a certificate, and %s has none: use https", l.url)}
		}
		if transport.TLSClientConfig, err = trusting(l.ca); err != nil {
			return &usageError{fmt.Errorf("--ca: %w", err)}
		}
	}
	if l.bearer, err = readToken("token-file", l.token, tokenVariable); err != nil {
		return &usageError{err}
	}
	if l.bearer == "" {
		l.bearer = os.Getenv(lookTokenVariable)
	}
	if ip := net.ParseIP(u.Hostname()); l.bearer != "" && u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &usageError{fmt.Errorf("a token is not sent to %s without TLS: use https", u.Host)}
	}
	l.base = strings.TrimSuffix(u.String(), "/") + "/api/v1"
	return nil
}

// trusting trusts the certificates of a file beside those that the system trusts.
func trusting(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate as PEM (-----BEGIN CERTIFICATE-----)", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func (l *looker) close() { l.http.CloseIdleConnections() }

// where is whom l asks, for people.
func (l *looker) where() string {
	if l.node != "" {
		return "node " + l.node
	}
	return l.url
}

// ask returns an answer that is no error. The parts of the path are escaped.
func (l *looker) ask(ctx context.Context, query url.Values, path ...string) (*http.Response, error) {
	to := l.base
	for _, part := range path {
		to += "/" + url.PathEscape(part)
	}
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, &usageError{err}
	}
	if l.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+l.bearer)
	}
	answer, err := l.http.Do(r)
	if err != nil {
		if u, is := errors.AsType[*url.Error](err); is {
			err = u.Err
		}
		return nil, &codedError{ExitUnreachable, fmt.Errorf("%s: %w%s", l.where(), err, l.hint(err))}
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	var refused struct {
		Error *web.Error `json:"error"`
	}
	if strings.HasPrefix(l.base, "http://") && answer.StatusCode == http.StatusBadRequest && bytes.Contains(text, []byte("HTTPS server")) {
		return nil, &usageError{fmt.Errorf("%s has a certificate: use https%s", l.where(), strings.TrimPrefix(l.url, "http"))}
	}
	if err := json.Unmarshal(text, &refused); err != nil || refused.Error == nil || refused.Error.Text == "" {
		return nil, &runError{fmt.Errorf("%s answers %s: is it Egret's page, and of this version?", l.where(), answer.Status)}
	}
	if refused.Error.Code == web.NoToken {
		how := "a token is needed: give its file with --token-file, or the token in " + tokenVariable + " or " + lookTokenVariable
		if l.bearer != "" {
			how = "it does not know the token of --token-file, " + tokenVariable + " or " + lookTokenVariable
		}
		return nil, &codedError{ExitRefused, fmt.Errorf("%s: %s", l.where(), how)}
	}
	return nil, &codedError{lookCode(refused.Error.Code), refused.Error}
}

// hint says what may help when there is no answer.
func (l *looker) hint(err error) string {
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return " (give the certificate, or that of who has signed it, with --ca)"
	}
	if strings.HasPrefix(l.base, "https://") && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return " (use http" + strings.TrimPrefix(l.url, "https") + ")"
	}
	return ""
}

// lookCode is the exit code of what was refused.
func lookCode(code string) int {
	switch code {
	case web.Unknown:
		return ExitUnknown
	case web.Invalid:
		return ExitUsage
	case web.NoQuorum:
		return ExitNoQuorum
	case web.Forbidden, web.Refused, web.NotHere, web.Busy, web.NoToken:
		return ExitRefused
	}
	return ExitFailed
}

// value asks for one value.
func (l *looker) value(ctx context.Context, into any, query url.Values, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, silentFor)
	defer cancel()
	answer, err := l.ask(ctx, query, path...)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return &codedError{ExitUnreachable, fmt.Errorf("%s: %w", l.where(), err)}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &runError{fmt.Errorf("%s gives an answer that cannot be read: is it another version of Egret? (%w)", l.where(), err)}
	}
	return nil
}

// lines calls each with the values of an answer that goes on, until it says false or the
// answer ends.
func (l *looker) lines(ctx context.Context, each func(json.RawMessage) (more bool, err error), query url.Values, path ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer, err := l.ask(ctx, query, path...)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	silent := time.AfterFunc(silentFor, func() { cancel(fmt.Errorf("nothing has come for %v", silentFor)) })
	defer silent.Stop()
	for d := json.NewDecoder(answer.Body); ; {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF):
			return nil
		case context.Cause(ctx) != nil:
			return &codedError{ExitUnreachable, fmt.Errorf("%s: %w", l.where(), context.Cause(ctx))}
		case err != nil:
			return &codedError{ExitUnreachable, fmt.Errorf("%s has broken off: %w", l.where(), err)}
		}
		silent.Reset(silentFor)
		if more, err := each(bytes.TrimSpace(value)); err != nil || !more {
			return err
		}
	}
}

// isTerminal reports whether somebody reads along.
func isTerminal(w io.Writer) bool {
	f, is := w.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
