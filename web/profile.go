package web

import (
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Profiles of the process, at the addresses where go tool pprof looks for them. They are
// not those of net/http/pprof: to import that shows them on every port where a user's
// program serves http.DefaultServeMux.

const mostProfile = 120 // seconds

// profile answers below /debug/pprof/.
func profile(w http.ResponseWriter, r *http.Request) {
	q, err := query(r, "seconds", "debug", "gc")
	if err == nil {
		err = profileOf(w, r, q.Get("seconds"), q.Get("debug"))
	}
	if err != nil {
		fail(w, err)
	}
}

func profileOf(w http.ResponseWriter, r *http.Request, seconds, debug string) error {
	switch name := r.PathValue("profile"); name {
	case "":
		var all []string
		for _, p := range pprof.Profiles() {
			all = append(all, p.Name())
		}
		all = append(all, "profile?seconds=30", "trace?seconds=1")
		slices.Sort(all)
		plain(w, http.StatusOK, "profiles, for go tool pprof:\n"+strings.Join(all, "\n"))
		return nil
	case "profile":
		return during(w, r, seconds, 30, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		return during(w, r, seconds, 1, trace.Start, trace.Stop)
	default:
		p := pprof.Lookup(name)
		if p == nil {
			return &Error{Unknown, fmt.Sprintf("there is no profile %q: /debug/pprof/ lists them", short(name))}
		}
		level, err := strconv.Atoi(debug)
		if debug != "" && (err != nil || level < 0 || level > 2) {
			return &Error{Invalid, fmt.Sprintf("debug is %q: use 0, 1 or 2", short(debug))}
		}
		kind := "application/octet-stream"
		if level > 0 {
			kind = "text/plain; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		_ = p.WriteTo(w, level) // who does not hear it has gone
		return nil
	}
}

// during records for some seconds, of which def is the default.
func during(w http.ResponseWriter, r *http.Request, seconds string, def int, start func(io.Writer) error, stop func()) error {
	n := def
	if seconds != "" {
		var err error
		if n, err = strconv.Atoi(seconds); err != nil || n < 1 || n > mostProfile {
			return &Error{Invalid, fmt.Sprintf("seconds is %q: use 1 to %d", short(seconds), mostProfile)}
		}
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Duration(n)*time.Second + slowest))
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(w); err != nil {
		return &Error{Refused, err.Error()}
	}
	defer stop()
	end := time.NewTimer(time.Duration(n) * time.Second)
	defer end.Stop()
	select {
	case <-end.C:
	case <-r.Context().Done():
	}
	return nil
}
