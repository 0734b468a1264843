package egret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A screen is what a command writes, and can be waited for.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote sync.Cond
}

func newScreen() *screen {
	s := new(screen)
	s.wrote.L = &s.mu
	return s
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote.Broadcast()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) waitFor(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), text) {
		s.wrote.Wait()
	}
}

// runLine runs a command line.
func runLine(topologies []*topology.Topology, args ...string) (code int, out, errs string) {
	o, e := newScreen(), newScreen()
	code = execute(topologies, args, strings.NewReader(""), o, e)
	return code, o.String(), e.String()
}

// greet says hello as often as it is asked, and fails as it is asked.
func greet(w io.Writer) *topology.Topology {
	var mu sync.Mutex
	return topology.New("greet", func(b *topology.Builder) {
		times := b.Int("times", 3, "how often")
		names := b.Strings("name", []string{"you"}, "whom")
		fail := b.String("fail", "", "what is to go wrong: fail, reject or source")
		loud := b.Bool("loud", false, "in capitals")
		if times < 0 {
			b.Check(errors.New("times must not be negative"))
		}
		in := b.Spout("in", spout.Generate(int64(len(names)*times), func(i int64, out *spout.Out) {
			if fail == "source" {
				panic("no source")
			}
			out.Emit(names[int(i)%len(names)])
		})).Emits("name")
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			text := "hello, " + in.String("name")
			if loud {
				text = strings.ToUpper(text)
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(w, text)
			switch fail {
			case "fail":
				return errors.New("it was to fail")
			case "reject":
				return bolt.Reject(errors.New("it was to fail"))
			}
			return nil
		}), in.Shuffle())
	})
}

func TestCommandRuns(t *testing.T) {
	for _, tt := range []struct {
		line string
		code int
		out  string // lines
		errs string // is in the errors
	}{
		{"", ExitDone, "hello, you;hello, you;hello, you;", "greet: 3 messages in "},
		{"run", ExitDone, "hello, you;hello, you;hello, you;", ", all done; 0 failed"},
		{"--times 1", ExitDone, "hello, you;", "greet: 1 message"},
		{"run --times=1 --loud", ExitDone, "HELLO, YOU;", ""},
		{"--times 1 --loud=false", ExitDone, "hello, you;", ""},
		{"--times 1 --name a --name b,c", ExitDone, "hello, a;hello, b,c;", ""},
		{"--times 1 --guarantee at-most-once", ExitDone, "hello, you;", "not tracked"},
		{"--times 1 --guarantee at-least-once --max-pending 1 --message-timeout 1s --stop-timeout 1s --parallel out=3", ExitDone, "hello, you;", ""},
		{"--times 1 --fail fail --max-replays 1", ExitDead, "hello, you;hello, you;", "topology greet: messages are dead: 1"},
		{"--times 2 --fail fail --max-replays 0", ExitDead, "hello, you;hello, you;", "messages are dead: 2"},
		{"--times 1 --fail reject", ExitDead, "hello, you;", "greet: 1 message in "},
		{"--times 1 --fail source", ExitFailed, "", "task in/0 has died 6 times in a row, the last time of: in/0: panic in Next: no source"},
		{"--times x", ExitUsage, "", `parameter "times"`},
		{"--times -1", ExitUsage, "", "times must not be negative"},
		{"--tiems 1", ExitUsage, "", "unknown flag: --tiems"},
		{"--guarantee exactly-once", ExitUsage, "", `--guarantee is exactly-once: that is what a topology of package trident is without the flag`},
		{"--guarantee sometimes", ExitUsage, "", `--guarantee is "sometimes": use at-most-once or at-least-once`},
		{"--parallel nobody=2", ExitUsage, "", "nobody"},
		{"--parallel out=0", ExitUsage, "", "out"},
		{"--parallel out=many", ExitUsage, "", `"out=many" is no component and its number of tasks, as in count=4`},
		{"--parallel out=2 --parallel=in=1,out=3", ExitDone, "hello, you;hello, you;hello, you;", ""},
		{"--max-pending -5", ExitUsage, "", "--max-pending is -5: use at least 1"},
		{"--message-timeout -1s", ExitUsage, "", "--message-timeout is -1s: use at least 1ms"},
		{"--message-timeout 0", ExitUsage, "", "--message-timeout is 0s: use at least 1ms"},
		{"--stop-timeout -1s --stuck-after 1us", ExitUsage, "", "PROG:\n  --stop-timeout is -1s: use a time above 0\n  --stuck-after is 1µs: use at least 1ms, or a negative time to switch it off\nTry: PROG --help\n"},
		{"run --max-replays -2", ExitUsage, "", "--max-replays is -2: use 0 for none, -1 for ever\nTry: PROG run --help\n"},
		{"--max-pending 0", ExitUsage, "", "--max-pending is 0: use at least 1"},
		{"--on-stuck worry", ExitUsage, "", `--on-stuck is "worry": use report or replace`},
		{"bench --duration 0s", ExitUsage, "", "PROG: --duration is 0s: use 1ms to 1h\nTry: PROG bench --help\n"},
		{"--message-timeout soon", ExitUsage, "", "message-timeout"},
		{"--times 1 --metrics 0", ExitDone, "hello, you;", "metrics: http://127.0.0.1:"},
		{"--times 1 --metrics 0.0.0.0:9090", ExitUsage, "", "--metrics: metrics are served to this machine only, and 0.0.0.0 is not its loopback: use 127.0.0.1:9090"},
		{"--times 1 --metrics there", ExitUsage, "", `--metrics: "there" is no address to serve metrics at`},
		{"nothing", ExitUsage, "", "nothing"},
		{"run nothing", ExitUsage, "", `unknown argument "nothing"`},
		{"list nothing", ExitUsage, "", "nothing"},
		{"list --nothing", ExitUsage, "", "unknown flag: --nothing"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			var said bytes.Buffer
			code, out, errs := runLine([]*topology.Topology{greet(&said)}, strings.Fields(tt.line)...)
			require.Equal(t, tt.code, code, "%s", errs)
			require.Empty(t, out)
			require.Equal(t, tt.out, strings.ReplaceAll(said.String(), "\n", ";"))
			require.Contains(t, errs, strings.ReplaceAll(tt.errs, "PROG", program()))
			require.Equal(t, code == ExitUsage, strings.Contains(errs, "Try: "), "%s", errs)
			if code != ExitDone {
				require.Contains(t, errs, program()+":")
			}
		})
	}
}

func TestCommandOfSeveral(t *testing.T) {
	var said bytes.Buffer
	other := topology.New("other", func(b *topology.Builder) {
		b.Guarantee(topology.AtMostOnce)
		in := b.Spout("in", spout.Slice(1)).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.All()).Parallel(2)
	})
	both := []*topology.Topology{greet(&said), other}
	code, _, errs := runLine(both, "run", "greet", "--times", "2")
	require.Equal(t, ExitDone, code, "%s", errs)
	require.Equal(t, "hello, you\nhello, you\n", said.String())
	code, _, errs = runLine(both, "run", "other")
	require.Equal(t, ExitDone, code)
	require.Contains(t, errs, "other: 1 message in")
	code, _, _ = runLine(both, "run", "third", "--loud")
	require.Equal(t, ExitUsage, code)
	code, _, errs = runLine(both, "run", "third")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, `there is no topology "third": the program has the topologies greet and other`)
	code, _, errs = runLine(both, "run")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "name one of the topologies greet or other")
	code, _, errs = runLine(both, "run", "other", "--times", "2")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "unknown flag: --times")

	code, out, _ := runLine(both, "topologies")
	require.Equal(t, ExitDone, code)
	for _, text := range []string{"greet (at-least-once)", "other (at-most-once)", "--times INT", "how often (default 3)", "--name STRINGS"} {
		require.Contains(t, out, text)
	}
	code, out, _ = runLine(both, "topologies", "--json")
	require.Equal(t, ExitDone, code)
	var l []listed
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	require.Len(t, l, 2)
	require.Equal(t, "greet", l[0].Name)
	require.Equal(t, topology.Param{Name: "times", Usage: "how often", Default: "3", Kind: topology.IntParam}, l[0].Params[0])
	require.Equal(t, []listedNode{{"in", "spout", 1}, {"out", "bolt", 2}}, l[1].Components)

	code, out, _ = runLine(both, "--help")
	require.Equal(t, ExitDone, code)
	require.Contains(t, out, "greet and other")
	code, out, _ = runLine(both, "run", "greet", "--help")
	require.Equal(t, ExitDone, code)
	require.Contains(t, out, "--times int")
}

func TestCommandNeedsTopologies(t *testing.T) {
	code, _, errs := runLine(nil)
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "egret.Main needs a topology")
	code, _, errs = runLine([]*topology.Topology{greet(nil), greet(nil)})
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "two topologies have the name greet")
	wrong := topology.New("wrong", func(b *topology.Builder) { b.Spout("in", nil) })
	for _, args := range [][]string{{"run"}, {"topologies"}} {
		code, _, errs = runLine([]*topology.Topology{wrong}, args...)
		require.NotEqual(t, ExitDone, code)
		require.Contains(t, errs, "in")
	}
}

func TestCommandJSON(t *testing.T) {
	var said bytes.Buffer
	code, _, errs := runLine([]*topology.Topology{greet(&said)}, "--json", "--fail", "reject")
	require.Equal(t, ExitDead, code)
	d := json.NewDecoder(strings.NewReader(errs[strings.Index(errs, "{"):]))
	d.DisallowUnknownFields()
	var s Stats
	require.NoError(t, d.Decode(&s))
	require.Equal(t, "greet", s.Topology)
	require.Equal(t, []int64{3, 3, 0, 3, 3}, []int64{s.Input, s.Messages, s.Acked, s.Dead, s.Failed})
	require.Positive(t, s.Elapsed)
	require.Len(t, s.Tasks, 2)
	require.Equal(t, []InputStat{{"in.default", 3, 0, 3}}, s.Tasks[1].Inputs)
	require.Equal(t, []StreamStat{{"default", 3, 3}}, s.Tasks[0].Streams)
}

// While a topology runs its metrics are served where the command says, and an
// address that another has is refused before anything starts.
func TestCommandServesMetrics(t *testing.T) {
	begun, free := make(chan struct{}), make(chan struct{})
	top := topology.New("served", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice("a")).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { close(begun); <-free; return nil }), in.Shuffle())
	})
	screen, code := newScreen(), make(chan int, 1)
	go func() { // ends with the command, whose code is waited for
		code <- execute([]*topology.Topology{top}, []string{"--metrics", ":0", "--metrics-per-task"}, strings.NewReader(""), io.Discard, screen)
	}()
	<-begun
	url := regexp.MustCompile(`metrics: (http://(127\.0\.0\.1:\d+)/metrics)\n`).FindStringSubmatch(screen.String())
	require.NotNil(t, url, "%s", screen)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url[1])
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for _, line := range []string{
		`egret_messages_open{component="in",task="0",topology="served"} 1`, `egret_up{topology="served"} 1`,
		`egret_complete_latency_seconds_bucket{component="in",task="0",topology="served",le="+Inf"} 0`,
		`go_goroutines `, `process_start_time_seconds `,
	} {
		require.Contains(t, string(body), "\n"+line)
	}
	var said bytes.Buffer
	taken, _, errs := runLine([]*topology.Topology{greet(&said)}, "--metrics", url[2])
	require.Equal(t, ExitUsage, taken)
	require.Contains(t, errs, "--metrics: listen tcp "+url[2]+": bind: address already in use")
	require.NotContains(t, errs, "Try: ", "no help page says how to free an address")
	require.Empty(t, said.String(), "nothing was started")
	close(free)
	require.Equal(t, ExitDone, <-code)
	_, err = client.Get(url[1])
	require.Error(t, err, "the listener ends with the run")
}

// The first interrupt finishes what is open, the second one stops.
func TestCommandInterrupts(t *testing.T) {
	safe := make(chan os.Signal, 10) // the test must survive whatever the command does
	signal.Notify(safe, os.Interrupt)
	defer signal.Stop(safe)
	interrupt := func() { require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT)) }
	for _, tt := range []struct {
		name  string
		stuck bool
		code  int
	}{{"once", false, ExitDone}, {"twice", true, ExitFailed}} {
		t.Run(tt.name, func(t *testing.T) {
			begun := make(chan struct{})
			var once sync.Once
			finished := false
			top := topology.New("endless", func(b *topology.Builder) {
				in := b.Spout("in", spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
				b.Bolt("out", func() bolt.Bolt { return &finisher{&finished, tt.stuck, func() { once.Do(func() { close(begun) }) }} }, in.Shuffle())
			})
			screen, code := newScreen(), make(chan int, 1)
			go func() { // ends with the command, whose code is waited for
				code <- execute([]*topology.Topology{top}, []string{"--max-replays", "-1", "--stop-timeout", "1h"}, strings.NewReader(""), io.Discard, screen)
			}()
			<-begun
			interrupt()
			screen.waitFor("interrupted: finishing what is open (at most 1h0m0s); again to stop\n")
			if tt.stuck {
				interrupt()
				screen.waitFor("interrupted again: stopping; once more to exit at once\n")
			}
			require.Equal(t, tt.code, <-code)
			require.Equal(t, !tt.stuck, finished)
			if tt.stuck {
				require.Contains(t, screen.String(), "topology endless: "+ErrDrain.Error())
			} else {
				require.Contains(t, screen.String(), "all done")
			}
		})
	}
}

type finisher struct {
	finished *bool
	stuck    bool
	begun    func()
}

func (f *finisher) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	f.begun()
	if f.stuck && in.Int64("n") == 0 {
		return errors.New("never")
	}
	return nil
}

func (f *finisher) Finish(*bolt.Collector) error {
	*f.finished = true
	return nil
}
