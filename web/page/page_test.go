package page

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What others have written is as they have published it; vendored/README.md says which
// version, and where these sums are from.
func TestVendoredFilesAreThoseOfTheirAuthors(t *testing.T) {
	text, err := os.ReadFile("vendored/README.md")
	require.NoError(t, err)
	sums := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    ([0-9a-f]{64})  (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		sums[m[2]] = m[1]
	}
	files, err := fs.Glob(embedded, "vendored/*")
	require.NoError(t, err)
	require.Len(t, sums, len(files)-1, "each file but README.md has a sum")
	for _, name := range files {
		if path.Base(name) == "README.md" {
			continue
		}
		b, err := embedded.ReadFile(name)
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		require.Equal(t, sums[path.Base(name)], hex.EncodeToString(sum[:]), name)
	}
}

// Names, values and errors come from topologies, and anybody may have made them. So nothing
// in the page's own files makes HTML of text, and nothing comes from elsewhere.
func TestNothingMakesHTMLOfText(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"HTML made of text":         regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc`),
		"code made of text":         regexp.MustCompile(`\beval\b|new Function|setTimeout\(["'\x60]`),
		"something from elsewhere":  regexp.MustCompile(`https?://`),
		"a style that CSP forbids":  regexp.MustCompile(`style="|"style"|<style|cssText`),
		"a script that CSP forbids": regexp.MustCompile(`<script>|\son[a-z]+="`),
	}
	files, err := fs.Glob(embedded, "files/*")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	for _, name := range files {
		b, err := embedded.ReadFile(name)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "") // a name, not an address
		for what, is := range forbidden {
			if what == "a style that CSP forbids" && path.Ext(name) == ".svg" {
				continue // an image has its own
			}
			require.Empty(t, is.FindString(text), "%s: %s", name, what)
		}
	}
}

func TestFilesAreServed(t *testing.T) {
	h := Handler()
	get := func(method, url, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, url, nil)
		r.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for url, kind := range map[string]string{
		"/": "text/html", "/index.html": "text/html", "/main.js": "text/javascript", "/style.css": "text/css", "/egret.svg": "image/svg+xml",
		"/vendored/uPlot.iife.min.js": "text/javascript", "/vendored/uPlot.min.css": "text/css", "/vendored/uPlot.LICENSE": "text/plain",
	} {
		w := get("GET", url, "")
		require.Equal(t, http.StatusOK, w.Code, url)
		require.Contains(t, w.Header().Get("Content-Type"), kind, url)
		require.Equal(t, "no-cache", w.Header().Get("Cache-Control"), url)
		require.NotEmpty(t, w.Body.Bytes(), url)
		etag := w.Header().Get("ETag")
		require.NotEmpty(t, etag, url)
		require.Equal(t, http.StatusNotModified, get("GET", url, etag).Code, url)
		require.Empty(t, get("HEAD", url, "").Body.Bytes(), url)
	}
	for _, url := range []string{"/nothing.js", "/files/main.js", "/page.go", "/vendored/", "/.."} {
		require.Equal(t, http.StatusNotFound, get("GET", url, "").Code, url)
	}
	require.Equal(t, http.StatusMethodNotAllowed, get("POST", "/", "").Code)
}

// Everybody can read it: texts have the contrast that WCAG calls AA, 4.5, on what they are
// written on, by day and by night.
func TestContrast(t *testing.T) {
	b, err := embedded.ReadFile("files/style.css")
	require.NoError(t, err)
	light, dark, ok := strings.Cut(string(b), "@media (prefers-color-scheme: dark)")
	require.True(t, ok)
	for name, text := range map[string]string{"light": light, "dark": strings.SplitN(dark, "\n}\n", 2)[0]} {
		colours := map[string]float64{} // their luminance
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		require.Len(t, colours, 14, name)
		for _, pair := range strings.Fields("ink/paper soft/paper blue/paper green/paper warn/paper red/paper" +
			" ink/sheet soft/sheet blue/sheet warn/sheet red/sheet sheet/blue sheet/red" + // in boxes, and buttons
			" ink/blue-pale soft/blue-pale blue/blue-pale green/green-pale ink/green-pale soft/green-pale red/green-pale" + // on how busy a box is
			" ink/warn-pale blue/warn-pale warn/warn-pale ink/red-pale blue/red-pale red/red-pale") {
			text, on, _ := strings.Cut(pair, "/")
			a, b := colours[text], colours[on]
			require.GreaterOrEqual(t, (max(a, b)+0.05)/(min(a, b)+0.05), 4.5, "%s: %s", name, pair)
		}
	}
}

func luminance(t *testing.T, hexed string) float64 {
	b, err := hex.DecodeString(hexed)
	require.NoError(t, err)
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(b[i]) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// What index.html and the modules refer to is there: a misspelt import would be a blank page.
func TestReferencesExist(t *testing.T) {
	h := Handler()
	is := regexp.MustCompile(`(?:src|href|from)[= ]"(\./)?([\w./]+\.(?:js|css|svg))"`)
	files, err := fs.Glob(embedded, "files/*")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range files {
		b, err := embedded.ReadFile(name)
		require.NoError(t, err)
		for _, m := range is.FindAllStringSubmatch(string(b), -1) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/"+m[2], nil))
			require.Equal(t, http.StatusOK, w.Code, "%s refers to %s", name, m[2])
			found[m[2]] = true
		}
	}
	for _, name := range files {
		if path.Ext(name) == ".js" {
			require.True(t, found[path.Base(name)], "nothing refers to %s", name)
		}
	}
}
