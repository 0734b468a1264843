package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How a run is watched while it is measured: by another process, which does over HTTP what
// the page does in a browser that shows the topology and taps a stream with an expression.
//
//	run  <-- history, then live events, errors every 2 s; a tap --  child
//	     ... until its input ends; then it says what it has seen

// watchFlag makes this process the one that looks.
const watchFlag = "watch"

// A sight is what a process that watches has seen.
type sight struct {
	Moments int64 `json:"moments"` // that the page would have drawn
	Tapped  int64 `json:"tapped"`  // tuples
}

// watched has a running topology watched, if s wants that, until it has ended. Who has seen
// nothing is an error: then the measurement is not what it says.
func (s *Setup) watched(ctx context.Context, name string, run Running) Running {
	if !s.Watched {
		return run
	}
	if run.Page == "" {
		return Running{Stats: run.Stats, Wait: func() (Counts, error) {
			c, err := run.Wait()
			return c, errors.Join(err, errors.New("the run that should be watched has no page"))
		}}
	}
	seen, err := s.look(context.WithoutCancel(ctx), run.Page, name) // it is told when to end
	wait := run.Wait
	run.Wait = func() (Counts, error) {
		c, ended := wait()
		if err != nil {
			return c, errors.Join(ended, err)
		}
		saw, err := seen()
		if err == nil && (saw.Moments == 0 || saw.Tapped == 0) {
			err = fmt.Errorf("who watched has seen %d moments and %d tuples", saw.Moments, saw.Tapped)
		}
		return c, errors.Join(ended, err)
	}
	return run
}

// look starts a process that watches. seen ends it and returns what it has seen.
func (c *child) look(ctx context.Context, page, topology string) (seen func() (sight, error), err error) {
	args := append(c.command[:len(c.command):len(c.command)], "--"+watchFlag, page, "--topology", topology)
	process := exec.CommandContext(ctx, c.program, args...)
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	var out, said strings.Builder
	process.Stdout, process.Stderr = &out, &said
	if err := process.Start(); err != nil {
		return nil, err
	}
	return func() (saw sight, err error) {
		err = in.Close()
		if e := process.Wait(); e != nil {
			return saw, fmt.Errorf("the process that watches: %w: %s", e, strings.TrimSpace(said.String()))
		}
		return saw, errors.Join(err, json.Unmarshal([]byte(out.String()), &saw))
	}, nil
}

// A watcher looks at a topology.
type watcher struct {
	client  http.Client
	of      string // URL of the topology in the API
	api     string
	moments atomic.Int64
	tapped  atomic.Int64
}

func newWatcher(page, topology string) *watcher {
	api := strings.TrimSuffix(page, "/") + "/api/v1/"
	return &watcher{api: api, of: api + "topologies/" + url.PathEscape(topology)}
}

// serveWatch looks until in ends, and then says what it has seen. That the run ends before
// is no error.
func serveWatch(ctx context.Context, in io.Reader, out io.Writer, page, topology string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := newWatcher(page, topology)
	stream, err := w.stream(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, do := range []func(context.Context) error{w.page, w.errors, func(ctx context.Context) error { return w.tap(ctx, stream) }} {
		all.Go(func() { _ = do(ctx) }) // what is missing is missing in what was seen
	}
	_, err = io.Copy(io.Discard, in)
	stop()
	all.Wait()
	w.client.CloseIdleConnections()
	return errors.Join(err, json.NewEncoder(out).Encode(sight{w.moments.Load(), w.tapped.Load()}))
}

// get asks for something and gives each line of the answer to line, if that is not nil.
func (w *watcher) get(ctx context.Context, from string, line func(string)) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream, application/json")
	answer, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", from, answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if line != nil {
			line(lines.Text())
		}
	}
	return lines.Err()
}

// A tapping is a stream and an expression that looks at each tuple.
type tapping struct{ component, stream, where string }

// stream returns the last stream of the topology, which has the most tuples.
func (w *watcher) stream(ctx context.Context) (*tapping, error) {
	var detail struct {
		Streams []struct {
			Component string   `json:"component"`
			Stream    string   `json:"stream"`
			Fields    []string `json:"fields"`
		} `json:"streams"`
	}
	var text strings.Builder
	if err := w.get(ctx, w.of, func(line string) { text.WriteString(line) }); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text.String()), &detail); err != nil {
		return nil, err
	}
	if len(detail.Streams) == 0 {
		return nil, errors.New("the topology that is watched has no streams")
	}
	last := detail.Streams[len(detail.Streams)-1]
	return &tapping{last.Component, last.Stream, last.Fields[0] + ` != ""`}, nil
}

func (w *watcher) page(ctx context.Context) error {
	if err := w.get(ctx, w.of+"/history", nil); err != nil {
		return err
	}
	return w.get(ctx, w.api+"live?topology="+url.QueryEscape(w.of[strings.LastIndex(w.of, "/")+1:]), func(line string) {
		if line == "event: detail" {
			w.moments.Add(1)
		}
	})
}

func (w *watcher) errors(ctx context.Context) error {
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	for {
		if err := w.get(ctx, w.of+"/errors", nil); err != nil {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *watcher) tap(ctx context.Context, t *tapping) error {
	q := url.Values{"component": {t.component}, "stream": {t.stream}, "where": {t.where}}
	return w.get(ctx, w.of+"/tap?"+q.Encode(), func(line string) {
		if line == "event: tapped" {
			w.tapped.Add(1)
		}
	})
}
