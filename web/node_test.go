package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

// What a Client hears of a node is what the node's source has said.
func TestClientHearsWhatTheNodeHas(t *testing.T) {
	w := &world{now: wordcount(7), trees: []view.OpenTree{
		{Tree: view.Tree{Task: "lines/0", Tree: 1<<64 - 1, Messages: 3, Age: time.Second, Places: []view.Place{}}, Sought: view.Sought{Task: 1, Life: 1<<33 + 1, Tree: 1<<64 - 1, Mask: 1 << 63}},
		{Tree: view.Tree{Task: "lines/0", Unknown: true, Places: []view.Place{{Task: "lines/0", During: "Next", Maybe: true}}}, Sought: view.Sought{Task: 2}},
	}}
	seen := []view.Tapped{{At: time.Unix(1, 0).UTC(), Task: "lines/0"}, {At: time.Unix(2, 0).UTC(), Emitted: 9, Looked: 8, Matched: 7, Shown: 6, Missed: 5, Error: "e"}}
	w.tap = func(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error {
		if tap.Component == "none" {
			return &Error{Unknown, "there is no component none"}
		}
		require.Equal(t, view.Tap{Topology: "wordcount", Component: "lines", Stream: "default", Where: "n > 3 && x", Most: 2.5}, tap)
		for i := range seen {
			if !yield(&seen[i]) {
				return nil
			}
		}
		return nil
	}
	n := NewNode(w, Config{Log: quiet})
	defer n.Close()
	s := httptest.NewServer(n)
	defer s.Close()
	c := &Client{HTTP: s.Client(), Addr: strings.TrimPrefix(s.URL, "http://")}
	ctx := t.Context()

	sample, err := c.Sample(ctx)
	require.NoError(t, err)
	want, err := w.Sample(ctx)
	require.NoError(t, err)
	sample.At = want.At
	require.Equal(t, want, sample)
	errs, err := c.Errors(ctx, "wordcount")
	require.NoError(t, err)
	require.Len(t, errs, 1)
	require.Equal(t, int64(7), errs[0].Count)
	trees, err := c.Open(ctx, "wordcount", 1)
	require.NoError(t, err)
	require.Equal(t, w.trees[:1], trees)
	sought := []view.Sought{w.trees[1].Sought, w.trees[0].Sought}
	places, err := c.Places(ctx, "wordcount", sought)
	require.NoError(t, err)
	require.Equal(t, sought, w.sought)
	require.Equal(t, []view.OpenPlace{{Of: 1, Place: view.Place{Task: "count/1", Held: 2}}}, places)
	_, err = c.Places(ctx, "wordcount", make([]view.Sought, mostTrees+1))
	require.Equal(t, Invalid, told(err).Code)
	_, err = c.Open(ctx, "other", 1)
	require.Equal(t, Unknown, told(err).Code)
	letters, err := c.Letters(ctx, "wordcount", "count", 5)
	require.NoError(t, err)
	require.Equal(t, "count", letters[0].Component)
	effect, err := c.Settle(ctx, "wordcount", []string{"1", "2"}, true)
	require.NoError(t, err)
	require.True(t, effect.Done)
	require.Equal(t, [][]string{{"1", "2"}}, w.settled)

	var got []view.Tapped
	tap := view.Tap{Topology: "wordcount", Component: "lines", Stream: "default", Where: "n > 3 && x", Most: 2.5}
	all := func(x *view.Tapped) bool { got = append(got, *x); return true }
	require.NoError(t, c.Tap(ctx, tap, all))
	require.Equal(t, seen, got)
	got = nil
	require.NoError(t, c.Tap(ctx, tap, func(x *view.Tapped) bool { all(x); return false }))
	require.Equal(t, seen[:1], got)

	tap.Component = "none"
	require.Equal(t, &Error{Unknown, "there is no component none"}, c.Tap(ctx, tap, all))
	_, err = c.Errors(ctx, "a/b?c")
	require.Equal(t, &Error{Unknown, `there is no topology "a/b?c"`}, err)
	w.change(func(w *world) { w.hang = true })
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = c.Sample(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	for path, body := range map[string]string{"sample": "[", "topologies/x/errors": "{}"} {
		strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, NodePath+path, r.URL.Path)
			_, _ = w.Write([]byte(body))
		}))
		c := &Client{HTTP: strange.Client(), Addr: strings.TrimPrefix(strange.URL, "http://")}
		if path == "sample" {
			_, err = c.Sample(ctx)
		} else {
			_, err = c.Errors(ctx, "x")
		}
		require.ErrorContains(t, err, "is it another version of Egret?")
		strange.Close()
	}
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	_, err = (&Client{HTTP: none.Client(), Addr: strings.TrimPrefix(none.URL, "http://")}).Sample(ctx)
	require.ErrorContains(t, err, "answers 404 Not Found: is it another version of Egret?")
}

// A server that may rest does not touch its source while nobody looks, and knows nothing
// of that time afterwards.
func TestServerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{now: wordcount(0)}
		s := New(Config{Source: w, Log: quiet, Rest: true})
		defer s.Close()
		samples := func() (n int) {
			synctest.Wait()
			w.change(func(w *world) { n = w.samples })
			return n
		}
		time.Sleep(time.Hour)
		require.Zero(t, samples())
		require.Equal(t, http.StatusOK, asked(s, "GET", "/api/v1/overview", "").Code)
		require.Equal(t, 1, samples())
		time.Sleep(30*time.Second + time.Millisecond)
		require.Equal(t, 31, samples())
		require.Equal(t, http.StatusOK, asked(s, "GET", "/api/v1/overview", "").Code)
		time.Sleep(time.Hour)
		before := samples()
		require.InDelta(t, 91, before, 1, "a minute more")
		w.change(func(w *world) { w.now = wordcount(1_000_000) })
		var o view.Overview
		require.NoError(t, unmarshal(asked(s, "GET", "/api/v1/overview", "").Body.String(), &o))
		require.Zero(t, o.Window, "there is nothing to compare with")
		require.Zero(t, o.Topologies[0].Rate)
		require.Equal(t, int64(1_000_000), o.Topologies[0].Counts.Acked)
		require.Equal(t, before+1, samples())
	})
}
