package egret

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// cards is a topology that gives cards and numbers until it is stopped.
func cards(name string, more func(*topology.Builder)) *topology.Topology {
	return topology.New(name, func(b *topology.Builder) {
		n := 0
		in := b.Spout("in", spout.Func(func(_ context.Context, out *spout.Out) error {
			for range 100 {
				out.Emit("4111", n, fmt.Sprint("<b>", n))
				n++
			}
			return nil
		})).Emits("card", "n", "zz-text").Mask("card")
		half := b.Bolt("half.of", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			if in.Int64("n")%2 == 0 {
				out.Emit(in.Int64("n"))
			}
			return nil
		}), in.Shuffle()).Emits("n").EmitsTo("more", "x")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), half.Shuffle())
		if more != nil {
			more(b)
		}
	})
}

const testToken = "0123456789abcdef-look"

// served starts a run with a page, which ends with the test.
func servedRun(t *testing.T, top *topology.Topology) *Running {
	r, err := Start(context.Background(), top, Config{HTTP: HTTP{Address: "127.0.0.1:0", LookToken: testToken}, Logger: slog.New(slog.DiscardHandler), MaxPending: 100})
	require.NoError(t, err)
	t.Cleanup(func() {
		r.Stop()
		_, _ = r.Wait()
	})
	return r
}

func TestTapCommand(t *testing.T) {
	t.Setenv(httpVariable, "")
	t.Setenv(nodeVariable, "")
	r, closed := servedRun(t, cards("cards", nil)), servedRun(t, cards("closed", (*topology.Builder).NoTaps))
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(testToken+"\n"), 0o600))
	tops := []*topology.Topology{greet(io.Discard)}
	tap := func(r *Running, args ...string) (int, string, string) {
		return runLine(tops, append([]string{"tap", "--http", r.URL(), "--token-file", file}, args...)...)
	}

	code, out, errs := tap(r, "cards", "in", "-n", "3", "--rate", "1000", "--where", `n % 2 == 1 && $env["zz-text"] startsWith "<b>"`)
	require.Equal(t, ExitDone, code, errs)
	require.Empty(t, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3)
	for _, line := range lines {
		var x struct {
			At     time.Time
			Task   string
			Values struct {
				Card string
				N    int64
				Text string `json:"zz-text"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &x))
		require.Equal(t, "in/0", x.Task)
		require.False(t, x.At.IsZero())
		require.EqualValues(t, 1, x.Values.N%2)
		require.Equal(t, "•••", x.Values.Card)
		require.Equal(t, fmt.Sprint("<b>", x.Values.N), x.Values.Text)
		require.Less(t, strings.Index(line, `"card"`), strings.Index(line, `"n"`), "in the order of the fields")
		require.NotContains(t, line, "<")
		require.NotContains(t, line, `"node"`)
	}
	for _, name := range []string{"cards half.of", "cards half.of.default", "cards half.of/default", "cards/half.of", "cards/half.of/default"} {
		code, out, errs = tap(r, append(strings.Fields(name), "-n", "1")...)
		require.Equal(t, ExitDone, code, errs)
		require.Contains(t, out, `"task":"half.of/0","values":{"n":`)
	}

	for _, tt := range []struct {
		r    *Running
		args []string
		code int
		errs string
	}{
		{r, []string{"other", "in"}, ExitUnknown, `there is no topology "other"`},
		{r, []string{"cards", "half"}, ExitUnknown, `the topology cards has no stream "half": it has in.default, half.of.default, half.of.more`},
		{r, []string{"cards", "out"}, ExitUnknown, `has no stream "out"`},
		{r, []string{"cards", "half.of.more"}, ExitUsage, `nobody subscribes to the stream half.of.more`},
		{r, []string{"cards", "in", "--where", "m > 3"}, ExitUsage, `column 1: unknown name m: the fields of in.default are n, zz-text`},
		{r, []string{"cards", "in", "--where", `card == "4111"`}, ExitUsage, `the field card is masked`},
		{r, []string{"cards", "in", "--rate", "0"}, ExitUsage, `--rate is 0: use tuples a second, above 0 and up to 1000`},
		{r, []string{"cards", "in", "--rate", "NaN"}, ExitUsage, `--rate is NaN`},
		{r, []string{"cards", "in", "-n", "-1"}, ExitUsage, `-n is -1`},
		{r, []string{"cards"}, ExitUsage, `say which stream of cards to show: egret tap cards COMPONENT[.STREAM]`},
		{r, nil, ExitUsage, `say which topology to look at, and which stream of it: egret tap TOPOLOGY COMPONENT[.STREAM]`},
		{r, []string{"cards/other/default"}, ExitUnknown, `the topology cards has no stream "other/default": it has in.default`},
		{r, []string{"cards", "in", "--where", `$env["zz-text"] > 3`}, ExitUsage, "failed with column 17: invalid operation: string > int"},
		{closed, []string{"closed", "in"}, ExitRefused, `the topology closed forbids taps (NoTaps)`},
	} {
		code, out, errs := tap(tt.r, tt.args...)
		require.Equal(t, tt.code, code, errs)
		require.Contains(t, errs, tt.errs)
		require.Empty(t, out)
	}
	code, _, errs = runLine(tops, "tap", "--http", r.URL(), "cards", "in")
	require.Equal(t, ExitRefused, code, errs)
	require.Contains(t, errs, "a token is needed")
	r.Stop()
	_, _ = r.Wait()
	require.Zero(t, Taps(r), "no tap is left")
}

// The environment says whom to ask, and what cannot be right is refused before anybody is.
func TestWhomToAsk(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("s", 40)), 0o600))
	for _, tt := range []struct {
		name   string
		l      looker
		env    map[string]string
		base   string
		bearer string
		err    string
	}{
		{name: "nothing is said", base: "http://127.0.0.1:8080/api/v1"},
		{name: "by the environment", env: map[string]string{httpVariable: "https://x:1/", tokenVariable: "abc"}, base: "https://x:1/api/v1", bearer: "abc"},
		{name: "a node by the environment", l: looker{secret: secret}, env: map[string]string{nodeVariable: "x:7101"}, base: "http://x:7101/api/v1"},
		{name: "the page before the node", env: map[string]string{httpVariable: "x:1", nodeVariable: "x:7101"}, base: "http://x:1/api/v1"},
		{name: "the flag before the environment", l: looker{url: "y:2"}, env: map[string]string{httpVariable: "x:1"}, base: "http://y:2/api/v1"},
		{name: "below a path", l: looker{url: "http://localhost/egret/"}, env: map[string]string{lookTokenVariable: "abc"}, base: "http://localhost/egret/api/v1", bearer: "abc"},
		{name: "who may do everything first", l: looker{url: "http://[::1]:1"}, env: map[string]string{tokenVariable: "a", lookTokenVariable: "b"}, base: "http://[::1]:1/api/v1", bearer: "a"},
		{name: "both", l: looker{url: "x:1", node: "y:2"}, err: "give one of the two"},
		{name: "a token to a node", l: looker{node: "x:1", token: "file"}, err: "--token-file goes with --http"},
		{name: "no port", l: looker{node: "x"}, err: "use host:port"},
		{name: "no secret", l: looker{node: "x:1", secret: "nowhere"}, err: "nowhere"},
		{name: "another scheme", l: looker{url: "ftp://x"}, err: "use a URL, as in http://127.0.0.1:8080"},
		{name: "no host", l: looker{url: "http:///x"}, err: "use a URL"},
		{name: "a question", l: looker{url: "http://x?a=b"}, err: "use a URL"},
		{name: "a password", l: looker{url: "http://a:b@x"}, err: "use a URL"},
		{name: "no such token", l: looker{url: "x:1", token: "nowhere"}, err: "nowhere"},
		{name: "a token in the clear", l: looker{url: "http://x:1"}, env: map[string]string{tokenVariable: "abc"}, err: "a token is not sent to x:1 without TLS: use https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{httpVariable, nodeVariable, tokenVariable, lookTokenVariable} {
				t.Setenv(name, tt.env[name])
			}
			err := tt.l.open()
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.Equal(t, ExitUsage, exitCode(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.base, tt.l.base)
			require.Equal(t, tt.bearer, tt.l.bearer)
		})
	}
}

// What answers may be something else, break off, or say nothing.
func TestStrangeAnswers(t *testing.T) {
	t.Setenv(httpVariable, "")
	t.Setenv(nodeVariable, "")
	detail := func(w http.ResponseWriter) {
		d := view.Detail{Summary: view.Summary{Topology: "t"}, Streams: []view.Stream{{Component: "a", Stream: "default", Fields: []string{"x", "y"}}}}
		_ = json.NewEncoder(w).Encode(d)
	}
	for _, tt := range []struct {
		name string
		tap  http.HandlerFunc // nil: the topology is no answer
		code int
		out  string
		errs string
	}{
		{"another page", nil, ExitFailed, "", "404 Not Found: is it Egret's page, and of this version?"},
		{"tuples", func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "component=a&most=10&stream=default", r.URL.RawQuery)
			fmt.Fprintln(w, `{"at":"2026-11-30T10:00:00Z","task":"a/1","node":"n:1","values":[1,"`+"\\u001b"+`[2J"]}`)
			fmt.Fprintln(w, `{"at":"2026-11-30T10:00:01Z","emitted":5,"error":"of an expression"}`)
			fmt.Fprintln(w, `{"at":"2026-11-30T10:00:02Z","task":"a/1","node":"local","values":[1,2,3]}`)
		}, ExitDone, `{"at":"2026-11-30T10:00:00Z","task":"a/1","node":"n:1","values":{"x":1,"y":"` + "\\u001b" + `[2J"}}
{"at":"2026-11-30T10:00:02Z","task":"a/1","values":{"x":1,"y":2,"field 2":3}}
`, "tap: of an expression\n"},
		{"text", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `hello`) }, ExitUnreachable, "", "has broken off: invalid character 'h'"},
		{"another value", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `[1]`) }, ExitFailed, "", "sends what is no tuple: is it another version of Egret?"},
		{"half a value", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"at":`) }, ExitUnreachable, "", "has broken off: unexpected EOF"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, ExitFailed, "", "302 Found: is it Egret's page"},
		{"busy", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": web.Error{Code: web.Busy, Text: "too many"}})
		}, ExitRefused, "", "too many"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/api/v1/topologies/t" && tt.tap != nil:
					detail(w)
				case r.URL.Path == "/api/v1/topologies/t/tap":
					tt.tap(w, r)
				default:
					http.NotFound(w, r)
				}
			}))
			defer s.Close()
			code, out, errs := runLine([]*topology.Topology{greet(io.Discard)}, "tap", "t", "a", "--http", s.URL)
			require.Equal(t, tt.code, code, errs)
			require.Equal(t, tt.out, out)
			require.Contains(t, errs, tt.errs)
		})
	}
	code, _, errs := runLine([]*topology.Topology{greet(io.Discard)}, "tap", "t", "a", "--http", "127.0.0.1:1")
	require.Equal(t, ExitUnreachable, code, errs)
	require.Contains(t, errs, "http://127.0.0.1:1: dial tcp")
}

// A tap that shows nothing says why, once, to whoever reads along.
func TestTapOfNothing(t *testing.T) {
	for _, tt := range []struct {
		name, said string
		note       view.Tapped
	}{
		{"nothing emitted", "tap: a.default has emitted nothing since the tap began\n", view.Tapped{}},
		{"nothing fits", "tap: of 1,234 tuples of a.default that were looked at none fits --where yet\n", view.Tapped{Emitted: 5000, Looked: 1234, Failed: 1}},
		{"something was shown", "", view.Tapped{Emitted: 5000, Looked: 1234, Matched: 1, Shown: 1}},
		{"it is not known yet", "", view.Tapped{Emitted: 5000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			n := noteWriter{w: &out, stream: "a.default"}
			for i := range 20 {
				x := tt.note
				x.At = time.Unix(int64(i), 0)
				require.False(t, n.inVain(&x))
				n.note(&x)
				if i < 4 { // the first one comes after a second
					require.Empty(t, out.String(), i)
				}
			}
			require.Equal(t, tt.said, out.String())
		})
	}
}

// A silent is a transport whose answer begins and then says nothing.
type silent struct{}

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	go func() { fmt.Fprintln(out, `{}`) }()
	return &http.Response{StatusCode: http.StatusOK, Body: in, Request: r}, nil
}

// Who says nothing for so long that a note is missing is taken for gone.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looker{url: "http://x", base: "http://x/api/v1", http: &http.Client{Transport: silent{}}}
		began, n := time.Now(), 0
		err := l.lines(t.Context(), func(json.RawMessage) (bool, error) { n++; return true, nil }, nil, "topologies", "t", "tap")
		require.EqualError(t, err, "http://x: nothing has come for 15s")
		require.Equal(t, ExitUnreachable, exitCode(err))
		require.Equal(t, 1, n)
		require.Equal(t, silentFor, time.Since(began))
		l.close()
	})
}

func TestNoteText(t *testing.T) {
	require.Equal(t, "tap: 1 tuple emitted, 1 looked at, 0 shown", noteText(&view.Tapped{Emitted: 1, Looked: 1, Matched: 1}))
	require.Equal(t, "tap: 12,345 tuples emitted, 10,000 looked at, 7 wanted, 5 shown, 2 missed since they are read too slowly",
		noteText(&view.Tapped{Emitted: 12345, Looked: 10000, Matched: 7, Shown: 5, Missed: 2}))
}

// One tuple that an expression has failed for may be followed by others that fit; a hundred
// are not, nor what has failed for five seconds.
func TestInVain(t *testing.T) {
	at := time.Unix(0, 0)
	for _, tt := range []struct {
		after time.Duration
		x     view.Tapped
		want  bool
	}{
		{0, view.Tapped{}, false},
		{time.Minute, view.Tapped{}, false},
		{0, view.Tapped{Looked: 99, Failed: 99}, false},
		{0, view.Tapped{Looked: 100, Failed: 100}, true},
		{0, view.Tapped{Looked: 101, Failed: 100}, false},
		{vainTime - 1, view.Tapped{Looked: 1, Failed: 1}, false},
		{vainTime, view.Tapped{Looked: 1, Failed: 1}, true},
	} {
		n := noteWriter{first: at}
		tt.x.At = at.Add(tt.after)
		require.Equal(t, tt.want, n.inVain(&tt.x), tt)
	}
}
