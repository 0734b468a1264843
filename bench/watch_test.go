package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who watches reads what the page reads, and says what it has seen when it is told to end.
func TestWatch(t *testing.T) {
	api := http.NewServeMux()
	api.HandleFunc("GET /api/v1/topologies/bench-null", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"streams": [{"component": "lines", "stream": "default", "fields": ["line"]},`+"\n"+
			`{"component": "split", "stream": "words", "fields": ["word", "n"]}]}`)
	})
	api.HandleFunc("GET /api/v1/topologies/bench-null/{what}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("what") != "tap" {
			_, _ = io.WriteString(w, "[]")
			return
		}
		require.Equal(t, "split words word != \"\"", r.FormValue("component")+" "+r.FormValue("stream")+" "+r.FormValue("where"))
		_, _ = io.WriteString(w, "event: tapped\ndata: {}\n\nevent: missed\ndata: 1\n\n")
	})
	api.HandleFunc("GET /api/v1/live", func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "bench-null", r.FormValue("topology"))
		_, _ = io.WriteString(w, "event: detail\ndata: {}\n\nevent: point\ndata: {}\n\nevent: detail\ndata: {}\n\n")
	})
	s := httptest.NewServer(api)
	defer s.Close()
	w := newWatcher(s.URL+"/", "bench-null")
	stream, err := w.stream(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.page(t.Context()))
	require.NoError(t, w.tap(t.Context(), stream))
	require.Equal(t, sight{2, 1}, sight{w.moments.Load(), w.tapped.Load()})

	var out bytes.Buffer
	var saw sight
	require.NoError(t, serveWatch(t.Context(), strings.NewReader(""), &out, s.URL, "bench-null"))
	require.NoError(t, json.Unmarshal(out.Bytes(), &saw))
	require.ErrorContains(t, serveWatch(t.Context(), strings.NewReader(""), &out, s.URL, "other"), "404")
}

// A run at which nobody has looked is not measured as one that was watched.
func TestWatchedByNobody(t *testing.T) {
	away := errors.New("away")
	for _, tt := range []struct {
		page string
		saw  sight
		err  error
		want string
	}{
		{"", sight{1, 1}, nil, "has no page"},
		{"http://here", sight{1, 0}, nil, "has seen 1 moments and 0 tuples"},
		{"http://here", sight{0, 1}, nil, "has seen 0 moments and 1 tuples"},
		{"http://here", sight{1, 1}, away, "away"},
		{"http://here", sight{1, 1}, nil, ""},
	} {
		s := &Setup{Watched: true, look: func(_ context.Context, page, topology string) (func() (sight, error), error) {
			require.Equal(t, "http://here bench-null", page+" "+topology)
			return func() (sight, error) { return tt.saw, tt.err }, nil
		}}
		c, err := s.watched(t.Context(), "bench-null", Running{Page: tt.page, Wait: func() (Counts, error) { return Counts{Acked: 3}, nil }}).Wait()
		require.EqualValues(t, 3, c.Acked)
		if tt.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tt.want)
		}
	}
}
