package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// patience is how long a condition may take to become true, on a busy machine.
const patience = 60 * time.Second

var chromium context.Context // one for all tests

func TestMain(m *testing.M) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	var end context.CancelFunc
	chromium, end = chromedp.NewContext(allocated)
	if err := chromedp.Do(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "no Chromium: apt-get install chromium:", err)
		os.Exit(1)
	}
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// serve serves a world on loopback, through the same door as always.
func serve(t *testing.T, w *world, token, look string) string {
	t.Helper()
	url, _ := listen(t, w, web.Door{Address: "127.0.0.1:0", Token: token, LookToken: look})
	return url
}

// serveAt serves it at an address, until stop is called.
func serveAt(t *testing.T, w *world, address string) (url string, stop func()) {
	t.Helper()
	return listen(t, w, web.Door{Address: address})
}

func listen(t *testing.T, w *world, d web.Door) (url string, stop func()) {
	t.Helper()
	d.Log = slog.New(slog.DiscardHandler)
	l, err := web.Listen(d)
	require.NoError(t, err)
	s := web.New(web.Config{Source: w, Log: d.Log})
	l.Serve(w.before(s))
	stop = sync.OnceFunc(func() {
		require.NoError(t, l.Close())
		s.Close()
	})
	t.Cleanup(stop)
	return l.URL, stop
}

// before answers for an hour that the server has not seen.
func (w *world) before(s http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.held != nil && strings.HasSuffix(r.URL.Path, "/live") {
			select {
			case <-w.held:
			case <-r.Context().Done():
				return
			}
		}
		if !strings.HasSuffix(r.URL.Path, "/history") {
			s.ServeHTTP(&slow{ResponseWriter: out, world: w}, r)
			return
		}
		w.mu.Lock()
		w.since = append(w.since, r.URL.Query().Get("since"))
		w.mu.Unlock()
		since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/topologies/"), "/history")
		points, last := []view.Point{}, (*view.Sample)(nil)
		for at := w.began.Add(-history * time.Second); !at.After(time.Now()); at = at.Add(5 * time.Second) {
			now := w.sample(at)
			if p, ok := view.Compare(last, now).Point(name); ok && last != nil && at.After(since) {
				points = append(points, p)
			}
			last = now
		}
		_ = json.NewEncoder(out).Encode(points)
	})
}

// A slow one who looks does not take as many moments as its world says.
type slow struct {
	http.ResponseWriter
	world  *world
	missed int64
}

func (s *slow) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *slow) Write(b []byte) (int, error) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if !strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream") || len(b) == 0 {
		return s.ResponseWriter.Write(b)
	}
	if s.world.skips > 0 {
		s.world.skips, s.missed = s.world.skips-1, s.missed+1
		return len(b), nil
	}
	if s.missed > 0 {
		_, _ = fmt.Fprintf(s.ResponseWriter, "event: missed\ndata: {\"missed\":%d}\n\n", s.missed)
		s.missed = 0
	}
	return s.ResponseWriter.Write(b)
}

// A page is one in a browser of its own: no cookies, nothing remembered.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // that the console has
}

type look struct {
	width, height int64
	dark, phone   bool
}

var desk = look{width: 1440, height: 1000}

func open(t *testing.T, address string, l look) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, p.listen))
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(p, log.Enable, cdp.Empty{})
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.phone})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	p.do(chromedp.Navigate(address))
	return p
}

func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var all []string
			for _, a := range e.Args {
				all = append(all, string(a.Value)+a.Description)
			}
			p.faults = append(p.faults, "console: "+strings.Join(all, " "))
		}
	case *runtime.EventExceptionThrown:
		p.faults = append(p.faults, "exception: "+e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case *log.EventEntryAdded: // violations of the policy, files that are not there, and the like
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.faults = append(p.faults, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *cdppage.EventJavascriptDialogOpening:
		p.faults = append(p.faults, "a dialog opened: "+e.Message)
	}
}

// clean fails if the console has had an error or a violation; those that are meant to be are given.
func (p *page) clean(but ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if !slices.ContainsFunc(but, func(s string) bool { return strings.Contains(f, s) }) {
			p.t.Error(f)
		}
	}
}

// broken reports whether a script has stopped where it should not: then waiting is in vain.
func (p *page) broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.faults, func(f string) bool { return strings.HasPrefix(f, "exception") })
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, steps...))
}

func call[P, R any](p *page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, command, params)
	require.NoError(p.t, err)
}

// js is the value of an expression.
func js[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return v
}

// until waits for an expression to be true. The browser's own way would need eval, which the
// page's policy forbids.
func (p *page) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; {
		if js[bool](p, "(() => { try { return Boolean("+expression+") } catch { return false } })()") {
			return
		}
		if time.Now().After(end) || p.broken() {
			p.shot("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
			p.t.Fatalf("never true: %s\nfaults: %q\n%s", expression, p.faults, js[string](p, "document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// text is what is written in an element.
func (p *page) text(selector string) string {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%q)", selector))
	return js[string](p, fmt.Sprintf("document.querySelector(%q).textContent", selector))
}

func (p *page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (p *page) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

var navigate = chromedp.Navigate

// setValue writes into a field as somebody would who types.
func setValue(selector, s string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.Clear(chromedp.CSS(selector)), chromedp.SendKeys(chromedp.CSS(selector), s))
}

// escaped is evil as a part of an address.
var escaped = url.PathEscape(evil)

// has is an expression that is true if the page shows a text.
func has(s string) string { return fmt.Sprintf("document.body.innerText.includes(%q)", s) }

// shot leaves a picture of all of the page, or of the window if something lies over it.
func (p *page) shot(name string) {
	p.t.Helper()
	if js[bool](p, `[...document.querySelectorAll("dialog, .panel")].some((x) => getComputedStyle(x).position === "fixed" && !x.hidden)`) {
		p.take(name, chromedp.CaptureScreenshot())
	} else {
		p.take(name, chromedp.FullScreenshot(100))
	}
}

// take leaves a picture, with EGRET_SCREENSHOTS in that directory.
func (p *page) take(name string, shoot chromedp.Action[[]byte]) {
	p.t.Helper()
	dir := os.Getenv("EGRET_SCREENSHOTS")
	if dir == "" {
		dir = p.t.ArtifactDir()
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, shoot)
	require.NoError(p.t, err)
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644))
}
