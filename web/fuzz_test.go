package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever is asked gets an answer: a good one, a redirect to a cleaner path, or an error
// that is one; and without the token nothing is done, and nothing shown but the page.
func FuzzAsk(f *testing.F) {
	for _, r := range routes {
		method, target, _ := strings.Cut(r.pattern, " ")
		if method == "GET" && !strings.HasSuffix(target, "live") {
			f.Add(method, target, "n=1&since=2026-01-01T00:00:00Z&component=a&where=x%3D1&most=3", "", "", false)
		}
	}
	f.Add("POST", "/api/v1/actions", "", `{"do":"rebalance","topology":"wordcount","parallel":{"a":1}}`, "application/json", true)
	f.Add("POST", "/api/v1/actions", "", `{"do":"kill","topology":"wordcount"}`, "application/json", false)
	f.Add("POST", "/api/v1/topologies/wordcount/letters", "", `{"do":"drop","ids":["1"]}`, "application/json; charset=utf-8", true)
	f.Add("POST", "/api/v1/login", "", `{"token":"\u0000"}`, "application/json", false)
	f.Add("GET", "/api/v1/topologies/%2e%2e%2f/errors", "n=1;n=2", "", "", false)
	f.Add("GET", "/debug/pprof/..%2fcmdline", "debug=0", "", "", true)
	f.Add("OPTIONS", "*", "", "", "text/plain", false)
	f.Add("POST", "/api/v1/actions", "%", "{\"do\":\"\xff\"}", "application/json;=", true)
	w := &world{now: wordcount(1)}
	s := New(Config{Source: w, Log: quiet})
	f.Cleanup(s.Close)
	g := behind(s, Door{Token: actToken})
	f.Fuzz(func(t *testing.T, method, target, query, body, kind string, known bool) {
		r, err := http.NewRequest(method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return // no such request can come
		}
		if r.URL, err = r.URL.Parse(target); err != nil {
			return
		}
		r.URL.RawQuery = query
		if p := r.URL.Path; p == "/api/v1/live" || strings.HasPrefix(p, "/debug/pprof/profile") || strings.HasPrefix(p, "/debug/pprof/trace") {
			return // these go on
		}
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		r.Header.Set("Content-Type", kind)
		if known {
			r.Header.Set("Authorization", "Bearer "+actToken)
		}
		g.failures = failures{}
		before := w.deeds()
		a := httptest.NewRecorder()
		stopper := time.AfterFunc(2*time.Second, func() { panic(method + " " + r.URL.String() + " " + body) })
		g.ServeHTTP(a, r)
		stopper.Stop()
		require.Less(t, a.Code, 600)
		switch isPage := a.Header().Get("Content-Type"); {
		case a.Code < 300, a.Code == 301, a.Code == 307, a.Code == 308:
		case strings.HasPrefix(isPage, "text/plain"): // the page's own, and of what is beside the API
			require.False(t, strings.HasPrefix(r.URL.Path, "/api/"), r.URL.Path)
		default:
			var e errorAnswer
			require.NoError(t, json.Unmarshal(a.Body.Bytes(), &e), "%d %s", a.Code, a.Body)
			require.NotEmpty(t, e.Error.Code)
			require.NotEmpty(t, e.Error.Text)
			require.Less(t, a.Body.Len(), 4096)
		}
		if !known {
			require.Equal(t, before, w.deeds())
			require.NotContains(t, a.Body.String(), "wordcount\",\"")
		}
		require.NotContains(t, a.Body.String(), actToken)
	})
}
