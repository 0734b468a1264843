package web

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

func TestAnswers(t *testing.T) {
	w := &world{}
	s := serve(t, w)
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		method, target, body string
		status               int
		want                 string // in the body, or of a refusal "code: text"
	}{
		{"GET", "/api/v1/me", "", 200, `{"look":true,"act":true,"login":false}`},
		{"GET", "/api/v1/overview", "", 200, `"topology":"wordcount"`},
		{"HEAD", "/api/v1/overview", "", 200, ``},
		{"GET", "/api/v1/topologies/wordcount", "", 200, `"own_metrics":[{"name":"size_bytes","help":"Size.","kind":"gauge","value":1.5}]`},
		{"GET", "/api/v1/topologies/wordcount/errors", "", 200, `"text":"\u003cb\u003e"`},
		{"GET", "/api/v1/topologies/wordcount/open", "", 200, `"places":[]`},
		{"GET", "/api/v1/topologies/wordcount/open?n=1", "", 200, `"tree":1152921504606846976`},
		{"GET", "/api/v1/topologies/wordcount/letters?component=lines&n=5", "", 200, `"values":[{"a":[1]}]`},
		{"GET", "/api/v1/topologies/wordcount/history", "", 200, `[]`},
		{"GET", "/api/v1/openapi.json", "", 200, `{`},
		{"GET", "/healthz", "", 200, "ok\n"},
		{"GET", "/readyz", "", 200, "ok\n"},
		{"GET", "/metrics", "", 200, ""},
		{"GET", "/debug/pprof/", "", 200, "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", "", 200, "goroutine profile: total"},
		{"POST", "/api/v1/actions", `{"do":"kill","topology":"wordcount"}`, 200, `"done":true`},
		{"POST", "/api/v1/actions", `{"do":"rebalance","topology":"wordcount","parallel":{"count":3},"preview":true}`, 200, `"done":false`},
		{"POST", "/api/v1/topologies/wordcount/letters", `{"do":"drop","ids":["1"]}`, 200, `"done":true`},

		{"GET", "/api/v1/topologies/x/errors", "", 404, "unknown: "},
		{"GET", "/api/v1/topologies/x", "", 404, `unknown: there is no topology "x": it has ended or was killed, or there never was one`},
		{"GET", "/api/v1/topologies/x/history", "", 404, "unknown: "},
		{"GET", "/api/v1/live?topology=x", "", 404, "unknown: "},
		{"GET", "/api/v1/topologies/x/tap?component=a", "", 404, "unknown: "},
		{"GET", "/api/v1/nothing", "", 404, "unknown: there is no /api/v1/nothing here"},
		{"GET", "/api/v2/overview", "", 404, "unknown: "},
		{"POST", "/api/v1/overview", "", 405, "invalid: use GET for"},
		{"GET", "/api/v1/actions", "", 405, "invalid: use POST for"},
		{"PUT", "/api/v1/actions", "", 405, "invalid: use POST for"},
		{"DELETE", "/api/v1/topologies/wordcount", "", 405, "invalid: use GET for"},
		{"GET", "/api/v1/overview?x=1", "", 400, `invalid: there is no parameter "x": /api/v1/overview has none`},
		{"GET", "/api/v1/live?topologie=x", "", 400, `invalid: there is no parameter "topologie": use topology`},
		{"GET", "/api/v1/topologies/wordcount/open?n=1&n=2", "", 400, "invalid: n is given 2 times"},
		{"GET", "/api/v1/topologies/wordcount/open?n=0", "", 400, `invalid: n is "0": use a number from 1 to 1000`},
		{"GET", "/api/v1/topologies/wordcount/open?n=" + long, "", 400, `invalid: n is "xxx`},
		{"GET", "/api/v1/topologies/wordcount/letters?n=-1", "", 400, "invalid: n is"},
		{"GET", "/api/v1/topologies/wordcount/history?since=yesterday", "", 400, "invalid: since is"},
		{"GET", "/api/v1/topologies/wordcount/tap", "", 400, "invalid: component is missing"},
		{"GET", "/api/v1/topologies/wordcount/tap?component=a&most=NaN", "", 400, "invalid: most is"},
		{"GET", "/api/v1/topologies/wordcount/tap?component=a&most=1e9", "", 400, "invalid: most is"},
		{"GET", "/api/v1/overview?%zz", "", 400, "invalid: the query cannot be read"},
		{"GET", "/debug/pprof/nothing", "", 404, "unknown: there is no profile"},
		{"GET", "/debug/pprof/profile?seconds=1000", "", 400, "invalid: seconds is"},
		{"GET", "/debug/pprof/heap?debug=9", "", 400, "invalid: debug is"},

		{"POST", "/api/v1/actions", ``, 400, "invalid: the body is not what is expected here"},
		{"POST", "/api/v1/actions", `[]`, 400, "invalid: the body"},
		{"POST", "/api/v1/actions", `{"do":"kill","topology":"wordcount"} {}`, 400, "invalid: the body"},
		{"POST", "/api/v1/actions", `{"do":"kill","topology":"wordcount","force":true}`, 400, "invalid: the body"},
		{"POST", "/api/v1/actions", `{"DO":"kill","topology":"wordcount"}`, 400, "invalid: the body"},
		{"POST", "/api/v1/actions", `{"do":"kill","do":"stop","topology":"wordcount"}`, 400, "invalid: the body"},
		{"POST", "/api/v1/actions", `null`, 400, `invalid: do is ""`},
		{"POST", "/api/v1/actions", `{"do":"burn","topology":"wordcount"}`, 400, `invalid: do is "burn": use one of activate, deactivate, stop, kill, rebalance, cancel, drain, undrain`},
		{"POST", "/api/v1/actions", `{"do":"kill"}`, 400, "invalid: kill is done to a topology"},
		{"POST", "/api/v1/actions", `{"do":"drain","topology":"wordcount"}`, 400, "invalid: drain is done to a node"},
		{"POST", "/api/v1/actions", `{"do":"kill","topology":"wordcount","parallel":{"a":1}}`, 400, "invalid: kill has no parallel"},
		{"POST", "/api/v1/actions", `{"do":"cancel","topology":"wordcount","parallel":{"a":1}}`, 400, `invalid: cancel has no parallel: only rebalance has`},
		{"POST", "/api/v1/actions", `{"do":"rebalance","topology":"wordcount","parallel":{"a":0}}`, 400, `invalid: parallel of "a" is 0`},
		{"POST", "/api/v1/actions", `{"do":"` + strings.Repeat("x", mostBody) + `"}`, 413, "invalid: the body has more than"},
		{"POST", "/api/v1/actions", `{"do":"kill","topology":"broken"}`, 503, "broken: the disk is away"},
		{"POST", "/api/v1/topologies/wordcount/letters", `{"do":"burn","ids":["1"]}`, 400, "invalid: do is"},
		{"POST", "/api/v1/topologies/wordcount/letters", `{"do":"drop","ids":[]}`, 400, "invalid: ids has 0"},
		{"POST", "/api/v1/topologies/wordcount/letters", `{"do":"drop","ids":[""]}`, 400, "invalid: ids has 1"},
		{"POST", "/api/v1/topologies/x/letters", `{"do":"drop","ids":["1"]}`, 404, "unknown: "},
	} {
		t.Run(tt.method+" "+tt.target[:min(len(tt.target), 60)]+" "+tt.body[:min(len(tt.body), 60)], func(t *testing.T) {
			before := w.deeds()
			var got = post(s, tt.target, tt.body)
			if tt.method != "POST" {
				got = asked(s, tt.method, tt.target, tt.body)
			}
			require.Equal(t, tt.status, got.Code, "%s", got.Body)
			require.Equal(t, "nosniff", got.Header().Get("X-Content-Type-Options"))
			require.Contains(t, got.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
			if tt.status == 200 {
				require.Contains(t, got.Body.String(), tt.want)
				return
			}
			e := refusal(t, got)
			require.Contains(t, e.Code+": "+e.Text, tt.want)
			require.Less(t, len(e.Text), 1000)
			require.Equal(t, before, w.deeds(), "nothing was done")
		})
	}
	require.Equal(t, 415, asked(s, "POST", "/api/v1/actions", `{"do":"kill","topology":"wordcount"}`, "Content-Type", "text/plain").Code)
	require.Equal(t, []view.Action{{Do: "kill", Topology: "wordcount"}, {Do: "rebalance", Topology: "wordcount", Parallel: map[string]int{"count": 3}, Preview: true}}, w.acted)
}

// Who asks before there was a sample waits for it, and is told if there is none.
func TestFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{now: wordcount(0), hang: true}
		s := serve(t, w)
		began := time.Now()
		got := asked(s, "GET", "/api/v1/overview", "")
		require.Equal(t, sampleTime, time.Since(began))
		require.Equal(t, 503, got.Code)
		require.Equal(t, Broken, refusal(t, got).Code)
		require.Equal(t, 503, asked(s, "GET", "/readyz", "").Code)
		require.Equal(t, 200, asked(s, "GET", "/healthz", "").Code)
		w.change(func(w *world) { w.hang = false })
		time.Sleep(5 * time.Second)
		require.Equal(t, 200, asked(s, "GET", "/api/v1/overview", "").Code)
		require.Equal(t, 200, asked(s, "GET", "/readyz", "").Code)
	})
}

// A rate is that of about five seconds, and the answer says of how many; points are of the
// same.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{now: wordcount(0)}
		s := serve(t, w)
		synctest.Wait()
		began := time.Now()
		time.Sleep(500 * time.Millisecond) // between samples
		for i := range 20 {
			if i == 10 { // nothing for two seconds
				w.change(func(w *world) { w.err = errors.New("away") })
				time.Sleep(2 * time.Second)
				w.change(func(w *world) { w.err = nil })
			}
			w.change(func(w *world) { w.now = wordcount(int64(100 * (i + 1))) })
			time.Sleep(time.Second)
		}
		synctest.Wait()
		var o view.Overview
		require.NoError(t, json.Unmarshal(asked(s, "GET", "/api/v1/overview", "").Body.Bytes(), &o))
		require.Equal(t, 5*time.Second, o.Window)
		require.EqualValues(t, 100, o.Topologies[0].Rate)
		require.EqualValues(t, 500, o.Topologies[0].Complete.Count)
		var all []view.Point
		require.NoError(t, json.Unmarshal(asked(s, "GET", "/api/v1/topologies/wordcount/history", "").Body.Bytes(), &all))
		require.Len(t, all, 20)
		require.Equal(t, began.Add(time.Second).UTC(), all[0].At.UTC())
		for i, p := range all {
			require.Equal(t, min(time.Duration(i+1)*time.Second, 5*time.Second), p.Window.Truncate(time.Second)-map[int]time.Duration{13: time.Second, 14: 2 * time.Second}[i], "%d", i)
			want := 100.0
			switch { // two seconds more, without anything new
			case i == 13:
				want = 400.0 / 6
			case i == 14:
				want = 500.0 / 7
			case i >= 10 && i < 13:
				want = 300.0 / 5
			}
			require.InDelta(t, want, p.Rate, 1e-9, "%d", i)
		}
		since := all[17].At.Format(time.RFC3339Nano)
		require.NoError(t, json.Unmarshal(asked(s, "GET", "/api/v1/topologies/wordcount/history?since="+since, "").Body.Bytes(), &all))
		require.Len(t, all, 2)
	})
}

// There is a bound on what is remembered, and those who are here have precedence.
func TestHistoriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{now: wordcount(0)}
		s := serve(t, w)
		many := func(from, n int) *view.Sample {
			all := &view.Sample{}
			for i := range n {
				r := wordcount(0).Runs[0]
				r.Topology = string(rune('A'+(from+i)/26)) + string(rune('a'+(from+i)%26))
				all.Runs = append(all.Runs, r)
			}
			return all
		}
		w.change(func(w *world) { w.now = many(0, 150) })
		time.Sleep(3 * time.Second)
		w.change(func(w *world) { w.now = many(100, 150) })
		time.Sleep(3 * time.Second)
		s.watch.mu.Lock()
		defer s.watch.mu.Unlock()
		require.Len(t, s.watch.histories, mostHistories)
		for name := range s.watch.histories {
			require.NotNil(t, runOf(many(100, 150), name), "that of one who is here")
		}
	})
}

// What is old is not said to be ready.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := serve(t, w)
		time.Sleep(1500 * time.Millisecond)
		w.change(func(w *world) { w.err = errors.New("away") })
		time.Sleep(4 * time.Second) // the last one is 4.5 s old
		require.Equal(t, 200, asked(s, "GET", "/readyz", "").Code)
		time.Sleep(4 * time.Second)
		got := asked(s, "GET", "/readyz", "")
		require.Equal(t, 503, got.Code)
		require.Contains(t, got.Body.String(), "the last sample is 9s old: away")
		require.Equal(t, 200, asked(s, "GET", "/api/v1/overview", "").Code, "the last one is shown, and has its moment")
	})
}
