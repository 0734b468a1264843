package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

// A reader is a client that takes what it gets at its own pace.
type reader struct {
	head   http.Header
	status int
	mu     sync.Mutex
	text   strings.Builder
	slow   chan struct{} // not nil: each write waits for it
}

func (r *reader) Header() http.Header { return r.head }
func (r *reader) WriteHeader(n int)   { r.status = n }
func (r *reader) Flush()              {}

func (r *reader) Write(b []byte) (int, error) {
	if r.slow != nil {
		<-r.slow
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// taken returns what has come since the last time, as "name" of events and ":" of comments.
func (r *reader) taken() (names []string, all string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = r.text.String()
	r.text.Reset()
	for _, block := range strings.Split(all, "\n\n") {
		if m := regexp.MustCompile(`(?m)^event: (\w+)$`).FindStringSubmatch(block); m != nil {
			names = append(names, m[1])
		} else if block != "" {
			names = append(names, block[:1])
		}
	}
	return names, all
}

// follow looks live until stop is called, which waits for its end.
func follow(s http.Handler, target string, r *reader, headers ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	r.head = http.Header{}
	q := httptest.NewRequest("GET", target, nil).WithContext(ctx)
	q.Host = "127.0.0.1"
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	go func() {
		defer close(ended)
		s.ServeHTTP(r, q)
	}()
	return func() { cancel(); <-ended }
}

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := serve(t, w)
		r := &reader{}
		stop := follow(s, "/api/v1/live?topology=wordcount", r)
		synctest.Wait()
		names, all := r.taken()
		require.Equal(t, []string{"overview", "detail"}, names, "at once")
		require.Contains(t, all, "id: 0\nevent: overview\ndata: {")
		require.Equal(t, "text/event-stream", r.head.Get("Content-Type"))
		time.Sleep(2500 * time.Millisecond)
		names, all = r.taken()
		require.Equal(t, []string{"overview", "detail", "point", "overview", "detail", "point"}, names)
		require.Contains(t, all, "id: 2\n")
		w.change(func(w *world) { w.err = errors.New("away <b>") })
		time.Sleep(time.Second)
		names, all = r.taken()
		require.Equal(t, []string{"broken"}, names)
		require.Contains(t, all, `{"error":{"code":"broken","text":"away \u003cb\u003e"}}`)
		w.change(func(w *world) { w.err, w.hang = nil, true })
		time.Sleep(time.Minute)
		names, _ = r.taken()
		require.NotContains(t, names, "overview")
		w.change(func(w *world) { w.hang = false })
		time.Sleep(3 * time.Second)
		stop()

		r = &reader{}
		stop = follow(s, "/api/v1/live", r, "Last-Event-ID", "4")
		synctest.Wait()
		names, all = r.taken()
		require.Equal(t, []string{"missed", "overview"}, names)
		require.Regexp(t, `^event: missed\ndata: {"missed":\d+}\n\n`, all)
		stop()
	})
}

// While nothing new is there the client hears that the connection lives.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Source: &world{now: wordcount(0)}, Log: quiet})
		synctest.Wait()
		s.watch.cancel() // nobody samples any more
		<-s.watch.ended
		r := &reader{}
		stop := follow(s, "/api/v1/live", r)
		time.Sleep(keepAlive*2 + time.Second)
		names, _ := r.taken()
		require.Equal(t, []string{"overview", ":", ":"}, names)
		stop()
		s.Close()
	})
}

// A topology that ends is shown for a last time, and so is one that is gone.
func TestLiveEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		how  func(w *world)
		last []string
	}{
		{"it has ended", func(w *world) { w.now = wordcount(7); w.now.Runs[0].Ended = true }, []string{"overview", "detail", "point", "ended"}},
		{"it is gone", func(w *world) { w.now = &view.Sample{} }, []string{"overview", "ended"}},
	} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &world{}
					s := serve(t, w)
					r, other := &reader{}, &reader{}
					stop := follow(s, "/api/v1/live?topology=wordcount", r)
					stopOther := follow(s, "/api/v1/live", other)
					time.Sleep(1500 * time.Millisecond)
					r.taken()
					w.change(tt.how)
					if closes {
						s.Close()
					} else {
						time.Sleep(time.Second)
					}
					synctest.Wait()
					names, all := r.taken()
					require.Equal(t, tt.last, names)
					require.Contains(t, all, "event: ended\ndata: {\"at\":")
					require.Equal(t, !closes, looking(s) == 1, "who looks at all of it goes on, until it closes")
					stop()
					stopOther()
				})
			})
		}
	}
}

func looking(s *Server) int { return len(s.lookers) }

// A slow reader holds up nobody, and gets what is new when it has taken what was before.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := serve(t, w)
		slow, quick := &reader{slow: make(chan struct{})}, &reader{}
		stopSlow, stopQuick := follow(s, "/api/v1/live?topology=wordcount", slow), follow(s, "/api/v1/live?topology=wordcount", quick)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		w.mu.Lock()
		require.Equal(t, 11, w.samples, "the sampler goes on")
		w.mu.Unlock()
		names, _ := quick.taken()
		require.Len(t, names, 3*11-1, "others see all")
		require.Equal(t, 200, asked(s, "GET", "/api/v1/overview", "").Code)
		close(slow.slow)
		synctest.Wait()
		_, all := slow.taken()
		require.NotContains(t, all, "id: 5\n", "nothing was kept for it")
		require.Contains(t, all, "id: 10\n")
		require.Regexp(t, `event: missed\ndata: {"missed":(9|10)}`, all)
		stopSlow()
		stopQuick()
	})
}

func TestLookersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, &world{})
		var stops []func()
		for range mostLookers {
			stops = append(stops, follow(s, "/api/v1/live", &reader{}))
		}
		synctest.Wait()
		got := asked(s, "GET", "/api/v1/live", "")
		require.Equal(t, 429, got.Code)
		require.Equal(t, Busy, refusal(t, got).Code)
		require.Equal(t, "5", got.Header().Get("Retry-After"))
		require.Equal(t, 429, asked(s, "GET", "/api/v1/topologies/wordcount/tap?component=lines", "").Code)
		require.Equal(t, 200, asked(s, "GET", "/api/v1/overview", "").Code)
		stops[0]()
		r := &reader{}
		stops[0] = follow(s, "/api/v1/live", r)
		synctest.Wait()
		require.Equal(t, 200, r.status)
		for _, stop := range stops {
			stop()
		}
		require.Zero(t, looking(s))
	})
}

func TestTap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := serve(t, w)
		var got view.Tap
		w.tap = func(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error {
			got = tap
			if tap.Where == "(" {
				return &Error{Invalid, "where has no end"}
			}
			for i := range 3 {
				time.Sleep(time.Second)
				if !yield(&view.Tapped{Task: "lines/0", Values: []json.RawMessage{[]byte(fmt.Sprintf(`"<%d>"`, i))}}) {
					return nil
				}
			}
			if tap.Where == "late" {
				return errors.New("the node is away")
			}
			return nil
		}
		const base = "/api/v1/topologies/wordcount/tap?component=lines&stream=late&most=2.5&where="
		line := `{"at":"0001-01-01T00:00:00Z","task":"lines/0","values":["\u003c%d\u003e"]}` + "\n"
		lines := fmt.Sprintf(line+line+line, 0, 1, 2)
		x := asked(s, "GET", base+"a+%3E+1", "")
		require.Equal(t, view.Tap{Topology: "wordcount", Component: "lines", Stream: "late", Where: "a > 1", Most: 2.5}, got)
		require.Equal(t, "application/x-ndjson", x.Header().Get("Content-Type"))
		require.Equal(t, lines, x.Body.String())
		x = asked(s, "GET", base, "", "Accept", "text/event-stream")
		require.Equal(t, "text/event-stream", x.Header().Get("Content-Type"))
		require.Equal(t, strings.ReplaceAll(strings.ReplaceAll(lines, "{", "event: tapped\ndata: {"), "}\n", "}\n\n")+"event: ended\ndata: null\n\n", x.Body.String())
		x = asked(s, "GET", base+"(", "")
		require.Equal(t, 400, x.Code, "what is wrong at once has a status")
		require.Equal(t, "where has no end", refusal(t, x).Text)
		x = asked(s, "GET", base+"late", "")
		require.Contains(t, x.Body.String(), `"error":"the node is away"`)
		x = asked(s, "GET", base+"late", "", "Accept", "text/event-stream")
		require.True(t, strings.HasSuffix(x.Body.String(), "event: broken\ndata: {\"error\":{\"code\":\"broken\",\"text\":\"the node is away\"}}\n\n"))

		w.tap = func(ctx context.Context, _ view.Tap, yield func(*view.Tapped) bool) error {
			<-ctx.Done()
			return ctx.Err()
		}
		stop := follow(s, base, &reader{})
		synctest.Wait()
		stop() // the source hears that nobody looks
		stop = follow(s, base, &reader{})
		synctest.Wait()
		s.Close() // and that the server ends
		synctest.Wait()
		require.Zero(t, looking(s))
		stop()
	})
}
