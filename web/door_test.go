package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

const (
	actToken  = "0123456789abcdef-act"
	lookToken = "0123456789abcdef-look"
)

// behind returns a door before a server.
func behind(h http.Handler, d Door) *guard {
	d.Log = quiet
	return newGuard(&d, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, h)
}

func TestDoor(t *testing.T) {
	w := &world{}
	s := serve(t, w)
	free, both := behind(s, Door{}), behind(s, Door{Token: actToken, LookToken: lookToken})
	lookOnly := behind(s, Door{LookToken: lookToken})
	const kill = `{"do":"kill","topology":"wordcount"}`
	const token, look = "Authorization\x00Bearer " + actToken, "Authorization\x00bearer " + lookToken
	origin := func(s string) string { return "Origin\x00" + s }
	site := func(s string) string { return "Sec-Fetch-Site\x00" + s }
	host := func(s string) string { return "Host\x00" + s }
	for _, tt := range []struct {
		name    string
		h       http.Handler
		method  string
		target  string
		headers string // separated by lines
		status  int
	}{
		{"no token is needed", free, "GET", "/api/v1/overview", "", 200},
		{"no token is needed", free, "POST", "/api/v1/actions", "", 200},
		{"no token is needed", free, "GET", "/debug/pprof/", "", 200},
		{"the page itself", free, "POST", "/api/v1/actions", origin("http://127.0.0.1:8080") + "\n" + site("same-origin"), 200},
		{"an old browser's page", free, "POST", "/api/v1/actions", origin("http://127.0.0.1:8080"), 200},

		{"another origin", free, "POST", "/api/v1/actions", origin("http://evil.example"), 403},
		{"another port", free, "POST", "/api/v1/actions", origin("http://127.0.0.1:9999"), 403},
		{"no origin that has a name", free, "POST", "/api/v1/actions", origin("null"), 403},
		{"another site", free, "POST", "/api/v1/actions", site("cross-site"), 403},
		{"another of the same site", free, "POST", "/api/v1/actions", site("same-site"), 403},
		{"another site, with the right origin", free, "POST", "/api/v1/actions", site("cross-site") + "\n" + origin("http://127.0.0.1:8080"), 403},
		{"another site, with a token", both, "POST", "/api/v1/actions", token + "\n" + site("cross-site"), 403},
		{"another site logs in", both, "POST", "/api/v1/login", site("cross-site"), 403},
		{"another site looks", free, "GET", "/api/v1/overview", site("cross-site"), 403},
		{"another site profiles", free, "GET", "/debug/pprof/profile", site("cross-site"), 403},
		{"a link from another site", free, "GET", "/", site("cross-site"), 200},
		{"typed by hand", free, "GET", "/api/v1/overview", site("none"), 200},

		{"a name that points here", free, "GET", "/api/v1/overview", host("evil.example"), 403},
		{"a name that points here", free, "GET", "/", host("evil.example:8080"), 403},
		{"a name that points here", free, "POST", "/api/v1/actions", host("localhost.evil.example"), 403},
		{"an address that is not here", free, "GET", "/", host("10.0.0.1:8080"), 403},
		{"nobody", free, "GET", "/", host(""), 403},
		{"localhost", free, "GET", "/api/v1/overview", host("localhost:8080"), 200},
		{"a name of localhost", free, "GET", "/api/v1/overview", host("egret.localhost:8080"), 200},
		{"another loopback", free, "GET", "/api/v1/overview", host("127.0.0.7"), 200},
		{"IPv6", free, "GET", "/api/v1/overview", host("[::1]:8080"), 200},
		{"IPv6", free, "GET", "/api/v1/overview", host("[::1]"), 200},

		{"no token", both, "GET", "/api/v1/overview", "", 401},
		{"no token", both, "GET", "/api/v1/topologies/wordcount", "", 401},
		{"no token", both, "GET", "/metrics", "", 401},
		{"no token", both, "GET", "/debug/pprof/", "", 401},
		{"no token", both, "POST", "/api/v1/actions", "", 401},
		{"no token", both, "POST", "/api/v1/topologies/wordcount/letters", "", 401},
		{"no token", both, "POST", "/anything", "", 401},
		{"no token", both, "GET", "/api/v1/nothing", "", 401},
		{"no token, and what is for all", both, "GET", "/", "", 200},
		{"no token, and what is for all", both, "GET", "/healthz", "", 200},
		{"no token, and what is for all", both, "GET", "/readyz", "", 200},
		{"no token, and what is for all", both, "GET", "/api/v1/me", "", 200},
		{"a way around", both, "GET", "//api/v1/overview", "", 400},
		{"a way around", both, "GET", "/x/../api/v1/overview", "", 400},
		{"a way around", both, "GET", "/%61pi/v1/overview", "", 401},
		{"a way around", both, "GET", "/api%2Fv1%2Foverview", "", 401},
		{"a way around", both, "GET", "/metrics/", "", 401},
		{"a way around", both, "HEAD", "/api/v1/overview", "", 401},
		{"a wrong token", both, "GET", "/api/v1/overview", "Authorization\x00Bearer " + actToken + "x", 401},
		{"a part of it", both, "GET", "/api/v1/overview", "Authorization\x00Bearer " + actToken[:10], 401},
		{"none", both, "GET", "/api/v1/overview", "Authorization\x00Bearer ", 401},
		{"another scheme", both, "GET", "/api/v1/overview", "Authorization\x00Basic eDp5", 401},
		{"a wrong token and me", both, "GET", "/api/v1/me", "Authorization\x00Bearer x", 401},
		{"a made up cookie", both, "GET", "/api/v1/overview", "Cookie\x00egret-8080=" + actToken, 401},

		{"to look", both, "GET", "/api/v1/overview", look, 200},
		{"to look", both, "GET", "/metrics", look, 200},
		{"to look, and act", both, "POST", "/api/v1/actions", look, 403},
		{"to look, and act", both, "POST", "/api/v1/topologies/wordcount/letters", look, 403},
		{"to look, and act", both, "PUT", "/api/v1/actions", look, 403},
		{"to look, and profile", both, "GET", "/debug/pprof/heap", look, 403},
		{"to act", both, "GET", "/api/v1/overview", token, 200},
		{"to act", both, "POST", "/api/v1/actions", token, 200},
		{"to act", both, "GET", "/debug/pprof/", token, 200},
		{"all there is is looking", lookOnly, "GET", "/api/v1/overview", look, 200},
		{"all there is is looking", lookOnly, "POST", "/api/v1/actions", look, 403},
		{"all there is is looking", lookOnly, "POST", "/api/v1/actions", token, 401},
		{"all there is is looking", lookOnly, "POST", "/api/v1/actions", "", 401},
	} {
		t.Run(tt.name+" "+tt.method+" "+tt.target+" "+tt.headers, func(t *testing.T) {
			if g, is := tt.h.(*guard); is {
				g.failures = failures{} // each is a day of its own
			}
			before := w.deeds()
			headers := []string{"Content-Type", "application/json"}
			for line := range strings.SplitSeq(tt.headers, "\n") {
				if name, value, ok := strings.Cut(line, "\x00"); ok {
					headers = append(headers, name, value)
				}
			}
			body := kill
			if strings.HasSuffix(tt.target, "letters") {
				body = `{"do":"drop","ids":["1"]}`
			}
			got := asked(tt.h, tt.method, tt.target, body, headers...)
			require.Equal(t, tt.status, got.Code, "%s", got.Body)
			require.Equal(t, "nosniff", got.Header().Get("X-Content-Type-Options"))
			if tt.status != 200 {
				require.Equal(t, before, w.deeds(), "nothing was done")
				e := refusal(t, got)
				require.NotContains(t, e.Text, actToken)
				require.NotContains(t, fmt.Sprint(got.Header()), actToken)
			}
		})
	}
}

// Who logs in gets a cookie that no script can read and no other origin has sent, and may
// with it what the token says.
func TestLogin(t *testing.T) {
	w := &world{}
	s := serve(t, w)
	g := behind(s, Door{Token: actToken, LookToken: lookToken})
	got := asked(g, "GET", "/api/v1/me", "")
	require.JSONEq(t, `{"look":false,"act":false,"login":true}`, got.Body.String())
	require.Equal(t, 405, asked(g, "GET", "/api/v1/login", "").Code)
	require.Equal(t, 415, asked(g, "POST", "/api/v1/login", `{"token":"`+actToken+`"}`, "Content-Type", "text/plain").Code)
	require.Equal(t, 400, post(g, "/api/v1/login", `{"token":7}`).Code)
	got = post(g, "/api/v1/login", `{"token":"wrong"}`)
	require.Equal(t, NoToken, refusal(t, got).Code)
	require.Empty(t, got.Result().Cookies())
	for _, tt := range []struct {
		token      string
		act        bool
		post, look int
	}{{actToken, true, 200, 200}, {lookToken, false, 403, 200}} {
		got := post(g, "/api/v1/login", `{"token":"`+tt.token+`"}`)
		require.Equal(t, 200, got.Code, "%s", got.Body)
		require.JSONEq(t, fmt.Sprintf(`{"look":true,"act":%v,"login":true}`, tt.act), got.Body.String())
		c := got.Result().Cookies()[0]
		require.True(t, c.HttpOnly)
		require.False(t, c.Secure, "there is no TLS")
		require.Equal(t, http.SameSiteStrictMode, c.SameSite)
		require.NotContains(t, c.Value, tt.token)
		cookie := c.Name + "=" + c.Value
		require.Equal(t, tt.look, asked(g, "GET", "/api/v1/overview", "", "Cookie", cookie).Code)
		require.Equal(t, tt.post, post(g, "/api/v1/actions", `{"do":"kill","topology":"wordcount"}`, "Cookie", cookie).Code)
		require.Equal(t, 403, post(g, "/api/v1/actions", `{"do":"kill","topology":"wordcount"}`, "Cookie", cookie, "Origin", "http://evil.example").Code)
		other := behind(s, Door{Token: actToken, LookToken: lookToken})
		require.Equal(t, 401, asked(other, "GET", "/api/v1/overview", "", "Cookie", cookie).Code, "of another process")
	}
	require.Len(t, w.acted, 1)
	secure := behind(s, Door{Token: actToken, Cert: "x", Key: "y"})
	require.True(t, post(secure, "/api/v1/login", `{"token":"`+actToken+`"}`, "Host", "egret.example").Result().Cookies()[0].Secure)
	require.Equal(t, NotHere, refusal(t, post(behind(s, Door{}), "/api/v1/login", `{"token":"x"}`)).Code)
}

// Who logs out is forgotten at once, with what he still listens to; others are not.
func TestLogout(t *testing.T) {
	s := serve(t, &world{now: wordcount(5)})
	g := behind(s, Door{Token: actToken, LookToken: lookToken})
	login := func(token string) string {
		c := post(g, "/api/v1/login", `{"token":"`+token+`"}`).Result().Cookies()[0]
		return c.Name + "=" + c.Value
	}
	code := func(cookie string) int { return asked(g, "GET", "/api/v1/overview", "", "Cookie", cookie).Code }
	mine, again, other := login(actToken), login(actToken), login(lookToken)
	require.NotEqual(t, mine, again, "of the same token")
	require.Equal(t, 405, asked(g, "GET", "/api/v1/logout", "", "Cookie", mine).Code)
	require.Equal(t, 403, post(g, "/api/v1/logout", "", "Cookie", mine, "Origin", "http://evil.example").Code)
	require.Equal(t, 403, post(g, "/api/v1/logout", "", "Cookie", mine, "Sec-Fetch-Site", "same-site").Code)
	require.Equal(t, 200, code(mine), "nobody else can log one out")

	listens := make(chan *httptest.ResponseRecorder, 1)
	began := make(chan struct{})
	go func() { // ends with the session
		r := httptest.NewRequest("GET", "/api/v1/live", nil)
		r.Host = "localhost:8080"
		r.Header.Set("Cookie", mine)
		w := httptest.NewRecorder()
		g.ServeHTTP(&beginning{ResponseWriter: w, began: began}, r)
		listens <- w
	}()
	<-began
	got := post(g, "/api/v1/logout", "", "Cookie", mine)
	require.Equal(t, 200, got.Code, "%s", got.Body)
	require.JSONEq(t, `{"look":false,"act":false,"login":true}`, got.Body.String())
	require.Contains(t, got.Header().Get("Set-Cookie"), "egret-8080=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict")
	require.Equal(t, 200, (<-listens).Code)
	require.Equal(t, []int{401, 200, 200}, []int{code(mine), code(again), code(other)})
	require.Equal(t, 200, post(g, "/api/v1/logout", "", "Cookie", mine).Code, "again")
	require.Equal(t, 200, post(g, "/api/v1/logout", "").Code, "who never was in")
	require.Equal(t, NotHere, refusal(t, post(behind(s, Door{}), "/api/v1/logout", "")).Code)

	for range mostSessions {
		login(lookToken)
	}
	require.Equal(t, []int{401, 401}, []int{code(again), code(other)}, "the oldest make room")
	require.Len(t, g.sessions.by, mostSessions)
	require.Len(t, g.sessions.order, mostSessions)
}

// A beginning tells when an answer has begun.
type beginning struct {
	http.ResponseWriter
	began chan struct{}
	once  sync.Once
}

func (b *beginning) Write(text []byte) (int, error) {
	defer b.once.Do(func() { close(b.began) })
	return b.ResponseWriter.Write(text)
}

func (b *beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Tokens cannot be tried one after the other, and who is somewhere else does not suffer.
func TestWrongTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, &world{})
		var log bytes.Buffer
		g := newGuard(&Door{Token: actToken, Log: slog.New(slog.NewTextHandler(&log, nil))}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, s)
		try := func(from, token string) int {
			r, _ := http.NewRequest("GET", "http://localhost/api/v1/overview", nil)
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+token)
			w := &reader{head: http.Header{}}
			g.ServeHTTP(w, r)
			return w.status
		}
		for range mostFailures {
			require.Equal(t, 401, try("10.0.0.1:1", "wrong"))
		}
		require.Equal(t, 429, try("10.0.0.1:2", "wrong"))
		require.Equal(t, 200, try("10.0.0.1:3", actToken), "or any who is there could keep its holder out")
		require.Equal(t, 429, try("10.0.0.1:3", "wrong"))
		require.Equal(t, 200, try("10.0.0.2:1", actToken))
		require.Equal(t, 1, strings.Count(log.String(), "too many wrong tokens"))
		require.NotContains(t, log.String(), actToken)
		time.Sleep(failureSpell)
		require.Equal(t, 401, try("10.0.0.1:3", "wrong"))
		for i := range mostPlaces + 100 { // from everywhere
			try(fmt.Sprintf("[2001:db8:%x::1]:7", i), "wrong")
		}
		require.LessOrEqual(t, len(g.failures.by), mostPlaces+1)
		require.Equal(t, 429, try("[2001:db8:ffff::1]:7", "wrong"), "those without a place are one")
		require.Equal(t, 401, try("[2001:db8:0:0:1::1]:7", "wrong"), "who has one is not")
	})
}

func TestOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"10.1.2.3:4": "10.1.2.3/32", "[::ffff:10.1.2.3]:4": "10.1.2.3/32", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::/64", "[fe80::1%eth0]:7": "fe80::/64",
	} {
		require.Equal(t, want, origin(in).String(), in)
	}
	require.Equal(t, netip.Prefix{}, origin("pipe"))
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(cert, text, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return cert, key, pool
}

func TestListenRefuses(t *testing.T) {
	cert, key, _ := certificate(t)
	for _, tt := range []struct {
		door Door
		want string // "": it listens
	}{
		{Door{Address: "0"}, ""},
		{Door{Address: ":0"}, ""},
		{Door{Address: "localhost:0"}, ""},
		{Door{Address: "127.0.0.2:0"}, ""},
		{Door{Address: "127.0.0.1:0", Token: actToken, LookToken: lookToken}, ""},
		{Door{Address: "0.0.0.0:0", Cert: cert, Key: key, Token: actToken}, ""},
		{Door{Address: "0.0.0.0:0", Cert: cert, Key: key, LookToken: lookToken}, ""},
		{Door{Address: ""}, "is no address"},
		{Door{Address: "127.0.0.1"}, "is no address"},
		{Door{Address: "http://127.0.0.1:80"}, "is no address"},
		{Door{Address: "0.0.0.0:0"}, "it takes a certificate with its key, and a token"},
		{Door{Address: "[::]:0"}, "beyond this machine's loopback"},
		{Door{Address: "example.com:0"}, "beyond this machine's loopback"},
		{Door{Address: "localhost.example.com:0"}, "beyond this machine's loopback"},
		{Door{Address: "0.0.0.0:0", Token: actToken}, "beyond this machine's loopback"},
		{Door{Address: "0.0.0.0:0", Cert: cert, Key: key}, "beyond this machine's loopback"},
		{Door{Address: "0", Key: key}, "--http-cert is missing: a certificate and its key belong together"},
		{Door{Address: "0", Cert: cert}, "--http-key is missing: a certificate and its key belong together"},
		{Door{Address: "[::]:0"}, "give --http-cert and --http-key and --http-token-file (or --http-look-token-file), or use 127.0.0.1"},
		{Door{Address: "[::]:0", Token: actToken}, "give --http-cert and --http-key, or use 127.0.0.1"},
		{Door{Address: "[::]:0", Cert: cert, Key: key}, "give --http-token-file (or --http-look-token-file), or use 127.0.0.1"},
		{Door{Address: "0", Cert: "nowhere", Key: key}, "certificate: open nowhere"},
		{Door{Address: "0", Token: "short-secret"}, "a token of 12 bytes can be guessed"},
		{Door{Address: "0", LookToken: "short-secret"}, "a token for looking of 12 bytes can be guessed"},
		{Door{Address: "0", Token: actToken, LookToken: actToken}, "they must differ"},
	} {
		tt.door.Log = quiet
		l, err := Listen(tt.door)
		if tt.want == "" {
			require.NoError(t, err, tt.door.Address)
			require.NoError(t, l.Close(), "without having served")
			continue
		}
		require.ErrorContains(t, err, tt.want)
		require.NotContains(t, err.Error(), "short-secret")
	}
	l, err := Listen(Door{Address: "0", Log: quiet})
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen(Door{Address: strings.TrimPrefix(l.URL, "http://"), Log: quiet})
	var op *net.OpError
	require.ErrorAs(t, err, &op)
}

// With TLS any name will do: the browser knows whose certificate it is. Both versions of
// HTTP stream.
func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	s := serve(t, &world{})
	l, err := Listen(Door{Address: "0", Cert: cert, Key: key, LookToken: lookToken, Log: quiet})
	require.NoError(t, err)
	l.Serve(s)
	defer func() { require.NoError(t, l.Close()) }()
	require.Regexp(t, `^https://127\.0\.0\.1:\d+$`, l.URL)
	for _, h2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: h2}
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", l.URL+"/api/v1/live", nil)
		require.NoError(t, err)
		r.Host = "egret.example"
		r.Header.Set("Authorization", "Bearer "+lookToken)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, h2, resp.ProtoMajor == 2)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for events := 0; events < 2 && lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "event: overview") {
				events++
			}
		}
		require.NoError(t, lines.Err())
		cancel()
		resp.Body.Close()
	}
}

// A client that reads nothing is cut off when the listener closes, and nothing is left of
// it: TestMain sees to that.
func TestCloseWaitsForNoSlowClient(t *testing.T) {
	w := &world{now: wordcount(0)}
	w.now.Runs[0].Settings = map[string]string{"long": strings.Repeat("x", 8<<20)} // more than sockets take
	s := New(Config{Source: w, Log: quiet})
	l, err := Listen(Door{Address: "0", Log: quiet})
	require.NoError(t, err)
	l.Serve(s)
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /api/v1/live?topology=wordcount HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1)) // it has begun
	require.NoError(t, err)
	half, err := net.Dial("tcp", strings.TrimPrefix(l.URL, "http://")) // and this one does not finish its request
	require.NoError(t, err)
	defer half.Close()
	_, err = io.WriteString(half, "POST /api/v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	s.Close()
	require.NoError(t, l.Close())
	require.Zero(t, looking(s))
	require.Empty(t, w.acted)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute))) // of the test's patience
	_, err = io.Copy(io.Discard, conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = net.Dial("tcp", strings.TrimPrefix(l.URL, "http://"))
	require.Error(t, err)
}

// Who follows a run to its end hears of it before the listener closes.
func TestCloseTellsTheEnd(t *testing.T) {
	w := &world{now: wordcount(0)}
	s := New(Config{Source: w, Log: quiet})
	l, err := Listen(Door{Address: "0", Log: quiet})
	require.NoError(t, err)
	l.Serve(s)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(l.URL + "/api/v1/live?topology=wordcount")
	require.NoError(t, err)
	defer resp.Body.Close()
	w.change(func(w *world) { w.now = wordcount(99); w.now.Runs[0].Ended, w.now.Runs[0].Status = true, "done" })
	s.Close()
	require.NoError(t, l.Close())
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	_, last, ok := strings.Cut(string(all), "event: ended\ndata: ")
	require.True(t, ok)
	var d view.Detail
	require.NoError(t, unmarshal(last, &d))
	require.EqualValues(t, 99, d.Counts.Acked)
}

// A page at all addresses is announced by a name that a browser can open, and that its
// certificate has.
func TestAnnouncedName(t *testing.T) {
	cert, key, _ := certificate(t)
	for address, want := range map[string]string{"[::]:0": `^https://127\.0\.0\.1:\d+$`, "0.0.0.0:0": `^https://127\.0\.0\.1:\d+$`, "127.0.0.1:0": `^https://127\.0\.0\.1:\d+$`} {
		l, err := Listen(Door{Address: address, Cert: cert, Key: key, Token: actToken})
		require.NoError(t, err)
		require.Regexp(t, want, l.URL)
		require.NoError(t, l.Close())
	}
	machine, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, machine, hostName(nil))
	require.Equal(t, machine, hostName(&x509.Certificate{DNSNames: []string{"*.example.com"}}))
	require.Equal(t, "b.example.com", hostName(&x509.Certificate{DNSNames: []string{"*.example.com", "b.example.com"}}))
	require.Equal(t, "10.0.0.7", hostName(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 7)}}))
}
