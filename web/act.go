package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/egretstream/egret/view"
)

// deeds are the words of view.Action, and whether they are about a node.
var deeds = []struct {
	do     string
	ofNode bool
}{{"activate", false}, {"deactivate", false}, {"stop", false}, {"kill", false}, {"rebalance", false}, {"cancel", false}, {"drain", true}, {"undrain", true}}

// checkAction says what is wrong with an action whatever it is done to.
func checkAction(a *view.Action) error {
	invalid := func(format string, args ...any) error { return &Error{Invalid, fmt.Sprintf(format, args...)} }
	var words []string
	at := -1
	for i, d := range deeds {
		words = append(words, d.do)
		if d.do == a.Do {
			at = i
		}
	}
	switch {
	case at < 0:
		return invalid("do is %q: use one of %s", short(a.Do), strings.Join(words, ", "))
	case deeds[at].ofNode && (a.Node == "" || a.Topology != ""):
		return invalid("%s is done to a node: give node, and no topology", a.Do)
	case !deeds[at].ofNode && (a.Topology == "" || a.Node != ""):
		return invalid("%s is done to a topology: give topology, and no node", a.Do)
	case len(a.Parallel) > 0 && a.Do != "rebalance":
		return invalid("%s has no parallel: only rebalance has", a.Do)
	}
	for component, n := range a.Parallel {
		if n < 1 {
			return invalid("parallel of %q is %d: use at least 1", short(component), n)
		}
	}
	return nil
}

func (s *Server) act(w http.ResponseWriter, r *http.Request) error {
	var a view.Action
	if err := decode(w, r, &a); err != nil {
		return err
	}
	if err := checkAction(&a); err != nil {
		return err
	}
	ctx, cancel := within(r, actTime)
	defer cancel()
	effect, err := s.Source.Act(ctx, &a)
	if err == nil && !a.Preview {
		s.Log.Info("asked by HTTP: "+a.Do, "topology", a.Topology, "node", a.Node, "from", r.RemoteAddr, "effect", effect.Text)
	}
	return affected(w, effect, err)
}

// A settling is what is to become of dead letters.
type settling struct {
	Do  string   `json:"do"` // replay or drop
	IDs []string `json:"ids"`
}

func (s *Server) settle(w http.ResponseWriter, r *http.Request) error {
	var do settling
	if err := decode(w, r, &do); err != nil {
		return err
	}
	switch {
	case do.Do != "replay" && do.Do != "drop":
		return &Error{Invalid, fmt.Sprintf("do is %q: use replay or drop", short(do.Do))}
	case len(do.IDs) == 0 || len(do.IDs) > mostLetters || slices.Contains(do.IDs, ""):
		return &Error{Invalid, fmt.Sprintf("ids has %d: give from 1 to %d, none of them empty", len(do.IDs), mostLetters)}
	}
	ctx, cancel := within(r, actTime)
	defer cancel()
	topology := r.PathValue("topology")
	effect, err := s.Source.Settle(ctx, topology, do.IDs, do.Do == "replay")
	if err == nil {
		s.Log.Info("asked by HTTP: "+do.Do+" dead letters", "topology", topology, "letters", len(do.IDs), "from", r.RemoteAddr)
	}
	return affected(w, effect, err)
}

func affected(w http.ResponseWriter, effect *view.Effect, err error) error {
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, effect)
	return nil
}
