package egret

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// unending is a topology whose input does not end.
func unending() *topology.Topology {
	return topology.New("unending", func(b *topology.Builder) {
		b.String("dsn", "", "of a database")
		in := b.Spout("in", spout.Func(func(ctx context.Context, out *spout.Out) error { out.Emit("a"); <-ctx.Done(); return ctx.Err() })).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
	})
}

// requested asks once, and returns the status and the body.
func requested(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// A run is looked at where the command says, by who has a token, and stopped by who has
// the other.
func TestCommandServesAPage(t *testing.T) {
	const act, look = "0123456789abcdef-act", "0123456789abcdef-look"
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(act+"\n"), 0o600))
	t.Setenv(lookTokenVariable, look)
	screen, code := newScreen(), make(chan int, 1)
	go func() { // ends with the command, whose code is waited for
		code <- execute([]*topology.Topology{unending()}, []string{"--http", ":0", "--http-token-file", file, "--dsn", "postgres://me:hidden@db/x"}, strings.NewReader(""), io.Discard, screen)
	}()
	screen.waitFor("page: http://127.0.0.1:")
	screen.waitFor("\n")
	url := regexp.MustCompile(`page: (http://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(screen.String())[1]
	status, _ := requested(t, "GET", url+"/", "", "")
	require.Equal(t, 200, status)
	status, _ = requested(t, "GET", url+"/api/v1/overview", "", "")
	require.Equal(t, 401, status)
	status, body := requested(t, "GET", url+"/api/v1/topologies/unending", look, "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"dsn":"postgres://me:•••@db/x"`)
	require.NotContains(t, body, "hidden")
	const stop = `{"do":"stop","topology":"unending"}`
	status, _ = requested(t, "POST", url+"/api/v1/actions", look, stop)
	require.Equal(t, 403, status)
	status, body = requested(t, "POST", url+"/api/v1/actions", act, `{"do":"stop","topology":"unending","preview":true}`)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"done":false,"text":"unending: reads no more input and finishes`)
	status, body = requested(t, "GET", url+"/api/v1/overview", look, "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"status":"running"`)
	taken, _, errs := runLine([]*topology.Topology{unending()}, "--http", strings.TrimPrefix(url, "http://"))
	require.Equal(t, ExitUsage, taken)
	require.Contains(t, errs, "bind: address already in use")
	require.NotContains(t, errs, "Try: ")
	status, _ = requested(t, "POST", url+"/api/v1/actions", act, stop)
	require.Equal(t, 200, status)
	require.Equal(t, ExitDone, <-code)
	require.NotContains(t, screen.String(), act)
	require.NotContains(t, screen.String(), look)
}

func TestCommandHTTPRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
		return filepath.Join(dir, name)
	}
	for _, tt := range []struct {
		line []string
		want string
	}{
		{[]string{"--http", "there"}, `"there" is no address to serve a page at`},
		{[]string{"--http", "0.0.0.0:0"}, "beyond this machine's loopback"},
		{[]string{"--http-cert", "x"}, "--http-cert is for a page: say where with --http"},
		{[]string{"--http", "0", "--http-token-file", filepath.Join(dir, "nowhere")}, "--http-token-file: open"},
		{[]string{"--http", "0", "--http-token-file", file("open", "0123456789abcdef", 0o644)}, "can be read or written by others"},
		{[]string{"--http", "0", "--http-look-token-file", file("empty", "\n", 0o600)}, "--http-look-token-file: "},
		{[]string{"--http", "0", "--http-token-file", file("short", "secret7", 0o600)}, "a token of 7 bytes can be guessed"},
	} {
		code, _, errs := runLine([]*topology.Topology{unending()}, tt.line...)
		require.Equal(t, ExitUsage, code, errs)
		require.Contains(t, errs, tt.want)
		require.NotContains(t, errs, "secret7")
	}
}

// What a run in one process can do, and what it says of the rest.
func TestActions(t *testing.T) {
	code := func(err error) string {
		e, _ := errors.AsType[*web.Error](err)
		require.NotNil(t, e)
		require.NotEmpty(t, e.Text)
		return e.Code
	}
	for _, do := range []string{"stop", "kill"} {
		r, err := Start(t.Context(), unending(), Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		s := newRunSource(r)
		for _, other := range []string{"activate", "deactivate", "rebalance"} {
			_, err := s.Act(t.Context(), &view.Action{Do: other, Topology: "unending"})
			require.Equal(t, web.NotHere, code(err))
		}
		_, err = s.Act(t.Context(), &view.Action{Do: "drain", Node: "local"})
		require.Equal(t, web.NotHere, code(err))
		_, err = s.Act(t.Context(), &view.Action{Do: do, Topology: "other"})
		require.Equal(t, web.Unknown, code(err))
		_, err = s.Errors(t.Context(), "other")
		require.Equal(t, web.Unknown, code(err))
		effect, err := s.Act(t.Context(), &view.Action{Do: do, Topology: "unending", Preview: true})
		require.NoError(t, err)
		require.False(t, effect.Done)
		sample, err := s.Sample(t.Context())
		require.NoError(t, err)
		require.Equal(t, "running", sample.Runs[0].Status)
		effect, err = s.Act(t.Context(), &view.Action{Do: do, Topology: "unending"})
		require.NoError(t, err)
		require.True(t, effect.Done)
		_, err = r.Wait()
		require.Equal(t, do == "stop", err == nil, "%v", err)
		sample, err = s.Sample(t.Context())
		require.NoError(t, err)
		require.True(t, sample.Runs[0].Ended)
		_, err = s.Act(t.Context(), &view.Action{Do: do, Topology: "unending"})
		require.Equal(t, web.Refused, code(err))
	}
}

// All that happens is kept, also what the log leaves out, and long things are cut.
func TestBook(t *testing.T) {
	v := events{topology: "top", node: "n1", logger: slog.New(slog.DiscardHandler)}
	long := strings.Repeat("ä", 100_000)
	panicked := &task.PanicError{Component: "count", Task: 2, During: "Execute", Value: "oops", Tuple: long, Stack: []byte("goroutine 1:\npanic(x)\n\tx.go:1\n" + strings.Repeat("main.f()\n\tx.go:2\n", 10_000) + "github.com/egretstream/egret/task.run()\n\tx.go:3\n")}
	value := tuple.String(long)
	for range 100 {
		for _, e := range []task.Event{
			&task.Died{Task: "count/2", Err: panicked},
			&task.Died{Task: "count/1", Err: errors.New("killed")},
			&task.Stuck{Task: "count/1", During: "Execute", For: time.Minute, Tuple: "{n: 1}", Others: 3, Stack: "main.f()\n\tx.go:1\ngithub.com/egretstream/egret/task.run()"},
			&task.Failure{Task: "count/1", Err: "no", Tuple: "{n: 2}", Quiet: true},
			&task.TimedOut{Task: "in/0", Err: "nothing was heard", Messages: 1, Quiet: true},
			&task.Notice{Task: "in/0", Text: "look at this"},
			&task.DeadLetter{Task: "in/0", Stream: "default", Fields: []string{"n"}, Values: []tuple.Value{value}, Err: "never"},
			&task.SourceError{Task: "in/0", Split: "a", Position: "7", Err: errors.New("away")},
			&task.QueueError{Task: "q/0", Err: errors.New("away")},
			&task.StoreError{Doing: "save positions", Err: errors.New("disk full")},
		} {
			v.tell(e)
		}
	}
	all := map[string]view.Error{}
	for _, e := range v.book.all() {
		require.EqualValues(t, 100, e.Count, e.Text)
		require.Equal(t, "top", e.Topology)
		require.Equal(t, "n1", e.Node)
		require.False(t, e.Last.Before(e.First))
		require.LessOrEqual(t, len(e.Stack), mostStack+3)
		require.LessOrEqual(t, len(e.Tuple), mostTuple+3)
		all[e.Kind+" "+e.Text] = e
	}
	require.Len(t, all, 10)
	require.True(t, strings.HasPrefix(all["died panic in Execute: oops"].Stack, "main.f()"), "cut to what is the user's")
	require.Equal(t, "main.f()\n\tx.go:1", all["stuck does not come back from Execute"].Stack)
	require.Equal(t, "{n: 1}, or one of the 3 behind it", all["stuck does not come back from Execute"].Tuple)
	require.Equal(t, "count", all["failed no"].Component)
	require.Equal(t, "count/1", all["failed no"].Task)
	require.Contains(t, all["dead letter never"].Tuple, "{n: ä")
	require.Equal(t, `split a, position "7"`, all["source away"].Tuple)
	require.Contains(t, all, "timed out nothing was heard")
	require.Contains(t, all, "notice look at this")
	require.Contains(t, all, "queue away")
	require.Empty(t, all["state cannot save positions: disk full"].Component)
}

// A task is stuck until its call is back, its life has ended, or another one has its place.
func TestTroubles(t *testing.T) {
	v := events{topology: "top", logger: slog.New(slog.DiscardHandler)}
	kinds := func() (all []string) {
		for _, x := range v.book.allTroubles() {
			all = append(all, x.Kind+" "+x.Task+" "+x.Text)
		}
		return all
	}
	stuck := func(name string, replaced bool) *task.Stuck {
		return &task.Stuck{Task: name, During: "Execute", For: time.Minute, Replaced: replaced}
	}
	v.tell(stuck("count/0", false))
	v.tell(stuck("count/1", false))
	v.tell(stuck("count/2", true))
	require.Equal(t, []string{"stuck count/0 does not come back from Execute", "stuck count/1 does not come back from Execute"}, kinds())
	require.Greater(t, time.Since(v.book.allTroubles()[0].At), time.Minute-time.Nanosecond)
	v.tell(&task.Notice{Task: "count/0", Text: "something else"})
	require.Len(t, kinds(), 2)
	v.tell(&task.Notice{Task: "count/0", Back: true, Text: "it is back"})
	v.tell(&task.Died{Task: "count/1", Err: errors.New("one")})
	v.tell(&task.Died{Task: "count/2", Err: errors.New("two")})
	require.Equal(t, []string{"died count/2 two"}, kinds())
}

func TestSecretsAreNotShown(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"file", "book.txt", "book.txt"},
		{"url", "postgres://me:hidden@db:5432/x?sslmode=off", "postgres://me:•••@db:5432/x?sslmode=off"},
		{"dsn", "host=db user=me password=hidden dbname=x", "host=db user=me password=••• dbname=x"},
		{"endpoint", "https://x.example/?token=hidden&n=1", "https://x.example/?token=•••&n=1"},
		{"api-key", "hidden", "•••"},
		{"Password", "hidden", "•••"},
		{"secret", "", ""},
		{"db", "postgres://u:p%zzhidden@h/db", "postgres://u:•••@h/db"},
		{"db", "postgres://u:hid den@h/db", "postgres://u:•••@h/db"},
		{"db", "postgres://u:hid/d?e#n@h/db", "postgres://u:•••@h/db"},
		{"db", "redis://:hidden@h", "redis://:•••@h"},
		{"db", "root:hidden@tcp(db)/x", "root:•••@tcp(db)/x"},
		{"db", "root:hi:d@d,en@tcp(db)/x", "root:•••@tcp(db)/x"},
		{"db", "user=u password='hid den' host=h", "user=u password=••• host=h"},
		{"db", `user=u password='hid\'d en' host=h`, "user=u password=••• host=h"},
		{"db", "user=u PASSWORD = hid,den host=h", "user=u PASSWORD = ••• host=h"},
		{"db", "Server=h;Uid=u;Pwd=hidden;", "Server=h;Uid=u;Pwd=•••;"},
		{"db", `{"user": "u", "password": "hidden"}`, `{"user": "u", "password": •••}`},
		{"brokers", "amqp://u:hidden@a/,amqp://v:hidden@b/", "amqp://u:•••@a/,amqp://v:•••@b/"},
		{"brokers", "amqp://u:hid%zzden@a/,amqp://b/", "amqp://u:•••@a/,amqp://b/"},
		{"url", "http://h/?proxy=http://u:hidden@p", "http://h/?proxy=http:•••@p"},
		{"url", "http://h:80/users/a@b?api_key=hidden", "http://h:80/users/a@b?api_key=•••"},
		{"brokers", "a:9092,b:9092", "a:9092,b:9092"},
		{"to", "me@example.com", "me@example.com"},
		{"at", "10:30", "10:30"},
	} {
		got := withoutSecret(tt.name, tt.value)
		require.Equal(t, tt.want, got)
		require.NotContains(t, got, "den")
	}
	require.Equal(t, "amqp://u:•••@a,x", withoutSecrets("brokers", []string{"amqp://u:hidden@a", "x"}))
}
