package egret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/web"
	"github.com/egretstream/egret/web/page"
)

const (
	relayEvery = 2 * time.Second // is looked whether the node still answers
	relayTime  = 2 * time.Second // for it to do so
	mostRelays = 100             // nodes that are known
)

// A relay passes requests on to the control service of a node. When that does not answer
// any more, it lets go of what was asked there and asks the next one.
type relay struct {
	client *client
	all    context.Context    // ends when nobody is asked any more
	stop   context.CancelFunc // of all

	mu    sync.Mutex
	nodes []string           // addresses; the first one is asked
	life  context.Context    // of all, ends when that is asked no more
	end   context.CancelFunc // of life
}

func newRelay(l *client, v *node.View) *relay {
	y := &relay{client: l, nodes: []string{l.node}}
	y.all, y.stop = context.WithCancel(context.Background())
	y.life, y.end = context.WithCancel(y.all)
	y.learn(v)
	return y
}

// learn takes in which other nodes there are.
func (y *relay) learn(v *node.View) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, m := range v.Members {
		if m.Alive && m.Home != v.Self && !slices.Contains(y.nodes, m.Addr) {
			y.nodes = append(y.nodes, m.Addr)
		}
	}
	y.nodes = y.nodes[:min(len(y.nodes), mostRelays)]
}

// asked returns whom to ask, and the context that ends when nobody should any more.
func (y *relay) asked() (addr string, life context.Context) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.nodes[0], y.life
}

// next asks another node than addr from now on.
func (y *relay) next(addr string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.nodes) == 1 || y.nodes[0] != addr {
		return
	}
	y.nodes = append(y.nodes[1:], addr)
	y.end()
	y.life, y.end = context.WithCancel(y.all)
}

// watch looks whether the node that is asked answers, until it is interrupted.
func (y *relay) watch(interrupted <-chan int) {
	beat := time.NewTicker(relayEvery)
	defer beat.Stop()
	defer y.stop()
	for {
		select {
		case <-interrupted:
			return
		case <-beat.C:
		}
		addr, _ := y.asked()
		ctx, cancel := context.WithTimeout(context.Background(), relayTime)
		v, err := y.client.viewAt(ctx, addr)
		cancel()
		if err == nil {
			y.learn(v)
			continue
		}
		y.next(addr)
		if now, _ := y.asked(); now != addr {
			slog.Warn("the node does not answer, and another one is asked: "+err.Error(), "next", now)
		}
	}
}

// RoundTrip asks the first node, and the others if nobody has heard what was asked.
func (y *relay) RoundTrip(r *http.Request) (*http.Response, error) {
	y.mu.Lock()
	tries := len(y.nodes)
	y.mu.Unlock()
	var last error
	for range tries {
		addr, life := y.asked()
		ctx, cancel := context.WithCancel(r.Context())
		stop := context.AfterFunc(life, cancel)
		context.AfterFunc(ctx, func() { stop() }) // the request's own ends with its answer
		one := r.Clone(ctx)
		one.URL.Host, one.Host = addr, addr
		answer, err := y.client.http.Transport.RoundTrip(one)
		if err == nil {
			return answer, nil
		}
		cancel()
		last = err
		if _, unheard := errors.AsType[*dialError](err); r.Context().Err() != nil || !unheard && r.Method != http.MethodGet && r.Method != http.MethodHead {
			return nil, err
		}
		y.next(addr)
	}
	return nil, last
}

// handler serves the page, and passes on what that asks for.
func (y *relay) handler() http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "node"
			for name := range r.Out.Header { // what is between the browser and this door
				if name == "Cookie" || name == "Authorization" || name == "Origin" || name == "Referer" || strings.HasPrefix(name, "Sec-") {
					r.Out.Header.Del(name)
				}
			}
		},
		Transport: y, ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
		ModifyResponse: func(r *http.Response) error {
			for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy", "Cache-Control"} {
				r.Header.Del(name) // the door has said it
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(map[string]*web.Error{"error": {Code: web.Broken, Text: "no node of the cluster answers: " + err.Error()}})
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) { proxy.ServeHTTP(&patient{w}, r) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/", page.Handler())
	return mux
}

// A patient writer gives a browser so much time for each write, and any for all of them.
type patient struct{ http.ResponseWriter }

const writeWithin = 10 * time.Second

func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) Write(b []byte) (int, error) {
	control := http.NewResponseController(p.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(writeWithin))
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	n, err := p.ResponseWriter.Write(b)
	if err == nil {
		err = control.Flush()
	}
	return n, err
}
