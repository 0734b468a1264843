package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"time"
)

// leastToken is how many bytes a token has at least.
const leastToken = 16

// A Door is where is listened, and who is let in.
type Door struct {
	// Address is host:port, or the port alone, of loopback. Port 0: any that is free.
	// Beyond loopback there must be a certificate and a token.
	Address string
	// Cert and Key are PEM files of a certificate and its key; empty: no TLS. They are read
	// once.
	Cert, Key string
	// Token lets in who may do everything, LookToken who may look. Without either everybody
	// on this machine may do everything.
	Token, LookToken string
	Log              *slog.Logger
}

// An access is what somebody may do; who may do something may do all before it.
type access int

const (
	nothing access = iota
	looks
	acts
)

// A guard stands in the door: it lets pass to next who may.
type guard struct {
	next     http.Handler
	log      *slog.Logger
	tls      bool
	host     string // that is listened at
	tokens   map[access][sha256.Size]byte
	cookie   string // its name: cookies do not know of ports
	sessions sessions
	cross    *http.CrossOriginProtection
	failures failures
}

func newGuard(d *Door, at *net.TCPAddr, next http.Handler) *guard {
	g := &guard{
		next: next, log: d.Log, tls: d.Cert != "", host: at.IP.String(), tokens: map[access][sha256.Size]byte{},
		cookie: fmt.Sprintf("egret-%d", at.Port), cross: http.NewCrossOriginProtection(),
	}
	if d.Token != "" {
		g.tokens[acts] = sha256.Sum256([]byte(d.Token))
	}
	if d.LookToken != "" {
		g.tokens[looks] = sha256.Sum256([]byte(d.LookToken))
	}
	return g
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if err := g.pass(w, r); err != nil {
		fail(w, err)
	}
}

// pass lets a request pass, or says why not.
func (g *guard) pass(w http.ResponseWriter, r *http.Request) error {
	p := r.URL.Path
	if c := path.Clean(p); c != p && c+"/" != p {
		return &Error{Invalid, "this is no path: use one without .. and //"}
	}
	if err := g.addressed(r); err != nil {
		return err
	}
	public := true
	for _, private := range []string{"/api/", "/metrics/", "/debug/"} {
		public = public && !strings.HasPrefix(p+"/", private)
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if public && reads { // the page's files, and whether it lives
		g.next.ServeHTTP(w, r)
		return nil
	}
	if err := g.sameOrigin(r); err != nil {
		return err
	}
	if p == "/api/v1/login" {
		return g.login(w, r)
	}
	if p == "/api/v1/logout" {
		return g.logout(w, r)
	}
	who, lasts, err := g.who(r)
	if err != nil {
		return err
	}
	if who >= looks {
		letIn(r)
	}
	if lasts != nil { // what is listened to ends with the session
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(lasts, cancel)()
		r = r.WithContext(ctx)
	}
	if p == "/api/v1/me" && reads {
		answer(w, http.StatusOK, Me{Look: who >= looks, Act: who >= acts, Login: len(g.tokens) > 0})
		return nil
	}
	// What changes something is a POST, and nothing else is: so this is all that there is
	// to say of who may act.
	needs := looks
	if !reads || strings.HasPrefix(p, "/debug/") {
		needs = acts
	}
	switch {
	case who >= needs:
		g.next.ServeHTTP(w, r)
		return nil
	case who == nothing:
		w.Header().Set("WWW-Authenticate", `Bearer realm="egret"`)
		return &Error{NoToken, "a token is needed: send it as Authorization: Bearer ..., or log in on the page"}
	}
	return &Error{Forbidden, "your token is for looking only: this needs the other one"}
}

// addressed refuses requests that mean somebody else: a name that a stranger has made to
// point here, to have a browser ask in his name. With TLS the browser has seen to that.
func (g *guard) addressed(r *http.Request) error {
	if g.tls {
		return nil
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.String() == g.host) {
		return nil
	}
	return &Error{Forbidden, fmt.Sprintf("this is not %s: use 127.0.0.1 or localhost", short(r.Host))}
}

// sameOrigin refuses what a page of another origin has a browser do. Programs say nothing
// of origins.
func (g *guard) sameOrigin(r *http.Request) error {
	site := r.Header.Get("Sec-Fetch-Site")
	if g.cross.Check(r) != nil || site != "" && site != "same-origin" && site != "none" {
		return &Error{Forbidden, "a page of another origin may not do that"}
	}
	return nil
}

// who says what the one who asks may do, and until when if that is by a cookie.
func (g *guard) who(r *http.Request) (may access, lasts context.Context, err error) {
	if len(g.tokens) == 0 {
		return acts, nil, nil
	}
	if text := r.Header.Get("Authorization"); text != "" {
		scheme, token, _ := strings.Cut(text, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nothing, nil, &Error{NoToken, "send the token as Authorization: Bearer ..."}
		}
		may, err = g.holder(r, strings.TrimSpace(token))
		return may, nil, err
	}
	if c, err := r.Cookie(g.cookie); err == nil {
		if s := g.sessions.of(c.Value); s != nil {
			return s.access, s.lasts, nil
		}
	}
	return nothing, nil, nil
}

// holder says what the holder of a token may do. The right one always passes, or whoever is
// at the same address could keep its holder out. Who is wrong again and again is not
// answered for a while; tokens are too long to be guessed anyway. Cookies do not count.
func (g *guard) holder(r *http.Request, token string) (access, error) {
	sum := sha256.Sum256([]byte(token))
	a := nothing
	for may, want := range g.tokens {
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
			a = may
		}
	}
	if a != nothing {
		return a, nil
	}
	now, from := time.Now(), origin(r.RemoteAddr)
	if !g.failures.listen(from, now) {
		return nothing, &Error{Busy, "too many wrong tokens: wait a minute"}
	}
	if g.failures.add(from, now) {
		g.log.Warn("http: too many wrong tokens: not listening to others for a minute", "from", from.String())
	}
	return nothing, &Error{NoToken, "this token is not known here"}
}

// login takes a token and gives a cookie, for browsers.
func (g *guard) login(w http.ResponseWriter, r *http.Request) error {
	if err := g.posted(w, r); err != nil {
		return err
	}
	var in struct {
		Token string `json:"token"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	who, err := g.holder(r, in.Token)
	if err != nil {
		return err
	}
	letIn(r)
	g.setCookie(w, g.sessions.begin(who), 0)
	answer(w, http.StatusOK, Me{Look: true, Act: who >= acts, Login: true})
	return nil
}

// logout forgets the cookie of the one who asks, at once: no copy of it is good any more.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) error {
	if err := g.posted(w, r); err != nil {
		return err
	}
	if c, err := r.Cookie(g.cookie); err == nil {
		g.sessions.end(c.Value)
	}
	g.setCookie(w, "", -1)
	answer(w, http.StatusOK, Me{Login: true})
	return nil
}

// posted refuses what is no POST, and logins where there are no tokens.
func (g *guard) posted(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return &statusError{http.StatusMethodNotAllowed, &Error{Invalid, "use POST for " + r.URL.Path}}
	}
	if len(g.tokens) == 0 {
		return &Error{NotHere, "no token is needed here"}
	}
	return nil
}

// setCookie gives a cookie, until the browser is closed; with maxAge -1 it takes it away.
func (g *guard) setCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: g.tls, SameSite: http.SameSiteStrictMode,
	})
}
