// Package page has the page's files: what people see in a browser of a run or a cluster.
// It is not for use outside Egret.
package page

import "net/http"

// Handler serves the page's files.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><title>Egret</title><p>The page is not there yet, but <a href="api/v1/overview">the API</a> is.` + "\n"))
	})
}
