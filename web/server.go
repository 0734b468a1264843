package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/egretstream/egret/web/page"
)

const (
	mostLookers = 100              // who see live events or tap, at the same time
	mostScrapes = 8                // at the same time
	lookTime    = 10 * time.Second // for the answer to who looks
	actTime     = 30 * time.Second // and to who acts
)

// A Config sets up a Server.
type Config struct {
	Source  Source
	Metrics prometheus.Gatherer // what /metrics shows; nil: there is no such thing
	Log     *slog.Logger
	// Rest has the source not sampled while nobody asks for what it has. There is no
	// history of that time.
	Rest bool
}

// A Server answers all that package web is there for. It asks nobody who he is: whoever
// reaches its ServeHTTP may do everything. A Listener has a door before it; who serves it
// elsewhere sees to it himself.
type Server struct {
	Config
	watch   *watch
	mux     *http.ServeMux
	lookers chan struct{} // has a place for each
}

// A route is a pattern of the mux, and who answers. An error is one that the client is told.
type route struct {
	pattern string
	answer  func(*Server, http.ResponseWriter, *http.Request) error
}

// routes are all of the API; openapi.json describes them.
var routes = []route{
	{"GET /api/v1/me", (*Server).me},
	{"GET /api/v1/overview", (*Server).overview},
	{"GET /api/v1/live", (*Server).live},
	{"GET /api/v1/topologies/{topology}", (*Server).detail},
	{"GET /api/v1/topologies/{topology}/history", (*Server).history},
	{"GET /api/v1/topologies/{topology}/errors", (*Server).errors},
	{"GET /api/v1/topologies/{topology}/open", (*Server).open},
	{"GET /api/v1/topologies/{topology}/letters", (*Server).letters},
	{"POST /api/v1/topologies/{topology}/letters", (*Server).settle},
	{"GET /api/v1/topologies/{topology}/tap", (*Server).tap},
	{"POST /api/v1/actions", (*Server).act},
	{"GET /api/v1/openapi.json", (*Server).openapi},
}

// New makes a server and begins to sample its source, until Close is called.
func New(c Config) *Server {
	s := &Server{Config: c, mux: http.NewServeMux(), lookers: make(chan struct{}, mostLookers)}
	s.handle(routes)
	s.mux.HandleFunc("/api/", s.noRoute)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.HandleFunc("GET /debug/pprof/{profile...}", profile)
	if c.Metrics != nil {
		s.mux.Handle("GET /metrics", promhttp.HandlerFor(c.Metrics, promhttp.HandlerOpts{
			ErrorLog: errorLog{c.Log}, ErrorHandling: promhttp.ContinueOnError, // what is right is shown
			EnableOpenMetrics: true, MaxRequestsInFlight: mostScrapes, Timeout: lookTime,
		}))
	}
	s.mux.Handle("/", page.Handler())
	s.watch = newWatch(c.Source, c.Log, c.Rest)
	return s
}

func (s *Server) handle(routes []route) {
	for _, r := range routes {
		s.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, q *http.Request) {
			if err := r.answer(s, w, q); err != nil {
				fail(w, err)
			}
		})
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	s.mux.ServeHTTP(w, r)
}

// protect keeps a browser from doing with an answer what it is not meant for. The page's
// files say themselves how long they are good.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// Close samples the source for the last time, tells that to who looks live, and lets go of
// them. It does not wait until they have heard it: the Listener does.
func (s *Server) Close() { s.watch.close() }

// noRoute answers what is no route of the API.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/api/" && pattern != "" {
			w.Header().Set("Allow", method)
			fail(w, &statusError{http.StatusMethodNotAllowed, &Error{Invalid, "use " + method + " for " + r.URL.Path}})
			return
		}
	}
	fail(w, &Error{Unknown, "there is no " + short(r.URL.Path) + " here: /api/v1/openapi.json says what there is"})
}

// ready says whether what is shown is of now.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.watch.stale(time.Now()); err != nil {
		plain(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	plain(w, http.StatusOK, "ok")
}

// enter gives who looks live a place, and takes it back when leave is called.
func (s *Server) enter() (leave func(), err error) {
	select {
	case s.lookers <- struct{}{}:
		return func() { <-s.lookers }, nil
	default:
		return nil, &Error{Busy, "too many look already: close some, or come again later"}
	}
}

// within bounds the time of an answer.
func within(r *http.Request, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), d)
}
