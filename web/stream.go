package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/view"
)

const (
	keepAlive = 5 * time.Second  // without an event, then a comment is sent
	slowest   = 10 * time.Second // for one event to be taken; then who looks is let go of
)

// A stream is an answer that goes on: server-sent events, or lines of JSON.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	lines   bool
}

// begin begins a stream. The client hears of it at once.
func begin(w http.ResponseWriter, lines bool) (*stream, error) {
	s := &stream{w, http.NewResponseController(w), lines}
	kind := "text/event-stream"
	if lines {
		kind = "application/x-ndjson"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Accel-Buffering", "no") // of proxies
	w.WriteHeader(http.StatusOK)
	return s, s.sent("")
}

// sent sends text, and waits for a slow client only so long.
func (s *stream) sent(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(slowest)) // where there is one
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }()
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// event is one server-sent event; data is JSON, which has no line break. id may be empty.
func event(id, name string, data []byte) string {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return id + "event: " + name + "\ndata: " + string(data) + "\n\n"
}

// A Missed is how many moments who looks has not seen.
type Missed struct {
	Missed int64 `json:"missed"`
}

// live sends each moment, as it comes, to one who looks:
//
//	missed    {"missed": n}, first, if moments were left out since the last one: the client is slow, or was away
//	overview  view.Overview
//	detail    view.Detail, and point view.Point, of the topology that is named
//	broken    {"error": ...}: there is no sample of this moment
//	ended     view.Detail, the last one: the topology has ended, and so has the stream
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "topology")
	if err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	m, err := s.watch.now(r.Context())
	if err != nil {
		return err
	}
	topology := q.Get("topology")
	if topology != "" && !m.has(topology) {
		return noTopology(topology)
	}
	out, err := begin(w, false)
	if err != nil || r.Method == http.MethodHead {
		return nil
	}
	last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil || last > m.number { // of another server, if of any
		last = m.number - 1
	}
	idle := time.NewTimer(keepAlive)
	defer idle.Stop()
	var detail []byte // the last one
	for {
		switch m, changed, closed := s.watch.newest(); {
		case m.number > last:
			text, over := m.events(topology, last, &detail)
			last = m.number
			if out.sent(text) != nil || over {
				return nil
			}
			idle.Reset(keepAlive)
		case closed:
			return nil
		default:
			select {
			case <-r.Context().Done():
				return nil
			case <-changed:
			case <-idle.C:
				if out.sent(": nothing new\n\n") != nil {
					return nil
				}
				idle.Reset(keepAlive)
			}
		}
	}
}

// events is all that is sent of a moment to one who has seen number last; over means that
// there will be no more. detail is the last that was sent.
func (m *moment) events(topology string, last int64, detail *[]byte) (text string, over bool) {
	var b strings.Builder
	id := strconv.FormatInt(m.number, 10)
	if missed := m.number - last - 1; missed > 0 {
		b.WriteString(event("", "missed", marshal(Missed{missed})))
	}
	if m.err != nil {
		b.WriteString(event(id, "broken", marshal(errorAnswer{told(m.err)})))
		return b.String(), false
	}
	overview, err := m.overview()
	if err == nil {
		b.WriteString(event(id, "overview", overview))
	}
	if topology == "" {
		return b.String(), false
	}
	run := runOf(m.sample, topology)
	if run != nil {
		if *detail, err = m.detail(topology); err == nil {
			b.WriteString(event("", "detail", *detail))
		}
		if p, ok := m.points[topology]; ok {
			b.WriteString(event("", "point", marshal(p)))
		}
	}
	if over = run == nil || run.Ended; over {
		b.WriteString(event("", "ended", *detail))
	}
	return b.String(), over
}

// marshal is JSON of what always has some.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}

// tap sends what a tap shows: events tapped with view.Tapped, and at the end ended with
// null, or broken with the error; for who does not ask for events, lines of view.Tapped.
func (s *Server) tap(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "component", "stream", "where", "most")
	if err != nil {
		return err
	}
	t := view.Tap{Topology: r.PathValue("topology"), Component: q.Get("component"), Stream: q.Get("stream"), Where: q.Get("where")}
	if t.Component == "" {
		return &Error{Invalid, "component is missing: name the one whose stream is to be tapped"}
	}
	if text := q.Get("most"); text != "" {
		if t.Most, err = strconv.ParseFloat(text, 64); err != nil || !(t.Most > 0 && t.Most <= mostTapped) {
			return &Error{Invalid, fmt.Sprintf("most is %q: use tuples a second, above 0 and up to %d", short(text), mostTapped)}
		}
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	lines := !strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	var out *stream
	gone := errors.New("the client has gone")
	ctx, cancel := s.watch.until(r.Context())
	defer cancel()
	err = s.Source.Tap(ctx, t, func(x *view.Tapped) bool {
		text := string(marshal(x)) + "\n"
		if !lines {
			text = event("", "tapped", []byte(strings.TrimSuffix(text, "\n")))
		}
		if out == nil { // until here an error has a status of its own
			if out, gone = begin(w, lines); gone != nil || r.Method == http.MethodHead {
				return false
			}
		}
		gone = out.sent(text)
		return gone == nil
	})
	switch {
	case out == nil && err != nil:
		return err
	case out == nil:
		if out, gone = begin(w, lines); gone != nil {
			return nil
		}
	case gone != nil || r.Context().Err() != nil:
		return nil
	}
	switch {
	case err != nil && lines:
		_ = out.sent(string(marshal(view.Tapped{At: time.Now(), Error: told(err).Text})) + "\n")
	case err != nil:
		_ = out.sent(event("", "broken", marshal(errorAnswer{told(err)})))
	case !lines:
		_ = out.sent(event("", "ended", []byte("null")))
	}
	return nil
}

// mostTapped is how many tuples a second a tap may ask for.
const mostTapped = 1000
