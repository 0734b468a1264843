package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/egretstream/egret/view"
)

//go:embed openapi.json
var openapi []byte

const (
	mostTrees   = 1000 // of one answer
	mostLetters = 1000
)

// A Me is what the one who asks may do.
type Me struct {
	Look  bool `json:"look"`
	Act   bool `json:"act"`
	Login bool `json:"login"` // there are tokens, which POST /api/v1/login takes
}

// me answers where no door is.
func (s *Server) me(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	answer(w, http.StatusOK, Me{Look: true, Act: true})
	return nil
}

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) error {
	written(w, http.StatusOK, openapi)
	return nil
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	m, err := s.watch.now(r.Context())
	if err != nil {
		return err
	}
	text, err := m.overview()
	if err != nil {
		return err
	}
	written(w, http.StatusOK, text)
	return nil
}

func (s *Server) detail(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	m, err := s.watch.now(r.Context())
	if err != nil {
		return err
	}
	topology := r.PathValue("topology")
	text, err := m.detail(topology)
	if err != nil {
		return err
	}
	if text == nil {
		return noTopology(topology)
	}
	written(w, http.StatusOK, text)
	return nil
}

func noTopology(name string) error {
	return &Error{Unknown, fmt.Sprintf("there is no topology %q: it has ended or was killed, or there never was one", short(name))}
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "since")
	if err != nil {
		return err
	}
	var since time.Time
	if text := q.Get("since"); text != "" {
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return &Error{Invalid, fmt.Sprintf("since is %q: use a moment as in 2026-01-31T12:00:00Z", short(text))}
		}
	}
	m, err := s.watch.now(r.Context())
	if err != nil {
		return err
	}
	topology := r.PathValue("topology")
	points, known := s.watch.points(topology, since)
	if !known && !m.has(topology) {
		return noTopology(topology)
	}
	return listed(w, points, nil)
}

func (s *Server) errors(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	ctx, cancel := within(r, lookTime)
	defer cancel()
	all, err := s.Source.Errors(ctx, r.PathValue("topology"))
	return listed(w, all, err)
}

func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	return oldest(w, r, func(ctx context.Context, topology string, n int) ([]view.Tree, error) {
		all, err := s.Source.Oldest(ctx, topology, n)
		for i := range all { // a list is never null
			all[i].Places = append([]view.Place{}, all[i].Places...)
		}
		return all, err
	})
}

// oldest answers with open trees, of a whole or of one node.
func oldest[T any](w http.ResponseWriter, r *http.Request, ask func(ctx context.Context, topology string, n int) ([]T, error)) error {
	q, err := query(r, "n")
	if err != nil {
		return err
	}
	n, err := number(q, 20, mostTrees)
	if err != nil {
		return err
	}
	ctx, cancel := within(r, lookTime)
	defer cancel()
	all, err := ask(ctx, r.PathValue("topology"), n)
	return listed(w, all, err)
}

func (s *Server) letters(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "component", "n")
	if err != nil {
		return err
	}
	n, err := number(q, 100, mostLetters)
	if err != nil {
		return err
	}
	ctx, cancel := within(r, lookTime)
	defer cancel()
	all, err := s.Source.Letters(ctx, r.PathValue("topology"), q.Get("component"), n)
	for i := range all {
		all[i].Fields, all[i].Values = append([]string{}, all[i].Fields...), append([]json.RawMessage{}, all[i].Values...)
	}
	return listed(w, all, err)
}
