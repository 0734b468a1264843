package scrape

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func TestLoopback(t *testing.T) {
	for _, tt := range []struct{ in, want, err string }{
		{"9090", "127.0.0.1:9090", ""},
		{":9090", "127.0.0.1:9090", ""},
		{"0", "127.0.0.1:0", ""},
		{"127.0.0.1:9090", "127.0.0.1:9090", ""},
		{"127.0.0.2:9090", "127.0.0.2:9090", ""},
		{"localhost:9090", "127.0.0.1:9090", ""},
		{"[::1]:9090", "[::1]:9090", ""},
		{"0.0.0.0:9090", "", "served to this machine only, and 0.0.0.0 is not its loopback: use 127.0.0.1:9090"},
		{"[::]:9090", "", "served to this machine only"},
		{"10.0.0.1:9090", "", "served to this machine only"},
		{"example.com:9090", "", "served to this machine only"},
		{"localhost.example.com:1", "", "served to this machine only"},
		{"", "", `"" is no address`},
		{"localhost", "", "no address"},
		{"127.0.0.1", "", "no address"},
		{"127.0.0.1:", "", "no address"},
		{"127.0.0.1:http", "", "no address"},
		{"::1:9090", "", "no address"},
		{"-1", "", "no address"},
		{"http://127.0.0.1:9090/metrics", "", "no address"},
	} {
		got, err := loopback(tt.in)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, tt.in)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt.in)
	}
}

// get asks once, on a connection of its own.
func get(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	req.Header.Set("Accept", accept)
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestServer(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "x_total", Help: "X."}, func() float64 { return 7 }))
	s, err := Listen("0", r, quiet)
	require.NoError(t, err)
	defer s.Close()
	require.Regexp(t, `^http://127\.0\.0\.1:[1-9]\d*/metrics$`, s.URL)

	resp, body := get(t, s.URL, "")
	require.Equal(t, 200, resp.StatusCode)
	require.Contains(t, resp.Header.Get("Content-Type"), "text/plain")
	require.Contains(t, body, "x_total 7\n")
	resp, body = get(t, s.URL, "application/openmetrics-text; version=1.0.0")
	require.Contains(t, resp.Header.Get("Content-Type"), "application/openmetrics-text")
	require.True(t, strings.HasSuffix(body, "# EOF\n"))
	resp, _ = get(t, s.URL, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	require.Contains(t, resp.Header.Get("Content-Type"), "application/vnd.google.protobuf")
	resp, body = get(t, strings.TrimSuffix(s.URL, "metrics"), "")
	require.Equal(t, 200, resp.StatusCode)
	require.Contains(t, resp.Header.Get("Content-Type"), "text/html")
	require.Contains(t, body, `<a href="/metrics">`)
	resp, _ = get(t, strings.TrimSuffix(s.URL, "metrics")+"other", "")
	require.Equal(t, 404, resp.StatusCode)

	_, err = Listen(strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/metrics"), r, quiet)
	require.ErrorContains(t, err, "address already in use")
}

// A slow one is a collector that waits in the middle of a scrape.
type slow struct{ began, done chan struct{} }

func (s slow) Describe(c chan<- *prometheus.Desc) { c <- prometheus.NewDesc("slow", "Slow.", nil, nil) }

func (s slow) Collect(c chan<- prometheus.Metric) {
	close(s.began)
	<-s.done
	c <- prometheus.MustNewConstMetric(prometheus.NewDesc("slow", "Slow.", nil, nil), prometheus.GaugeValue, 1)
}

// A scrape that is under way when the server closes gets its answer, while nobody
// listens any more.
func TestCloseWaitsForAScrape(t *testing.T) {
	r := prometheus.NewRegistry()
	c := slow{make(chan struct{}), make(chan struct{})}
	r.MustRegister(c)
	s, err := Listen("127.0.0.1:0", r, quiet)
	require.NoError(t, err)
	body := make(chan string)
	go func() {
		_, b := get(t, s.URL, "")
		body <- b
	}()
	<-c.began
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/metrics")
	for { // nobody new is let in from some moment on
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case err := <-closed:
		t.Fatal("closed with a scrape under way: ", err)
	default:
	}
	close(c.done)
	require.Contains(t, <-body, "slow 1\n")
	require.NoError(t, <-closed)
}

// A client that does not finish its request does not hold up the end.
func TestCloseWaitsForNoSlowClient(t *testing.T) {
	s, err := Listen("127.0.0.1:0", prometheus.NewRegistry(), quiet)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/metrics"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(scrapeTime/2))) // of the test's patience
	_, err = conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n"))
	require.NoError(t, err)
	require.ErrorIs(t, s.Close(), context.DeadlineExceeded)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "the connection is closed")
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// A scrape whose client was cut off has ended when the server has.
func TestCloseWaitsForAScrapeCutOff(t *testing.T) {
	r := prometheus.NewRegistry()
	began, cut, ended := make(chan struct{}), make(chan struct{}), false
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow", Help: "Slow."}, func() float64 {
		close(began)
		<-cut
		time.Sleep(50 * time.Millisecond) // a server that does not wait is closed by then
		ended = true
		return 1
	}))
	s, err := Listen("127.0.0.1:0", r, quiet)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/metrics"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	<-began
	go func() {
		_, _ = conn.Read(make([]byte, 1))
		close(cut)
	}()
	require.ErrorIs(t, s.Close(), context.DeadlineExceeded)
	require.True(t, ended)
}
