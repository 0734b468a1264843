// Package page has the page's files: what people see in a browser of a run or a cluster.
// It is not for use outside Egret.
//
//	index.html   an empty frame
//	main.js      which view is shown, and whether the server answers
//	overview.js  topologies and nodes
//	topology.js  one topology: graph.js, charts.js, tabs.js
//	component.js and tap.js   what is beside it when a box or an edge was chosen
//	actions.js   what changes something, after a dialog
//
// Nothing is built or fetched from elsewhere: the files are as they were written, and work
// under a content security policy of "default-src 'self'". What comes from a topology (names,
// values, errors) is put into the page as text, never as HTML.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed files vendored
var embedded embed.FS

// Handler serves the page: index.html at its root, and what that needs. A browser asks each
// time whether a file has changed, so that a page and the server that it talks to are of one
// version.
func Handler() http.Handler {
	all := map[string]file{}
	for _, dir := range []string{"files", "vendored"} {
		names, _ := fs.Glob(embedded, dir+"/*")
		for _, name := range names {
			text, _ := embedded.ReadFile(name)
			sum := sha256.Sum256(text)
			all["/"+strings.TrimPrefix(name, "files/")] = file{text, `"` + hex.EncodeToString(sum[:12]) + `"`}
		}
	}
	all["/"] = all["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := all[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", kind(r.URL.Path))
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", f.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.text))
	})
}

// A file is served as it is.
type file struct {
	text []byte
	etag string
}

// kind does not ask the machine, which may have its own idea of what .js is.
func kind(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case "", ".html":
		return "text/html; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
