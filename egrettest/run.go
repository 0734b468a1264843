package egrettest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
)

// A T is what Run needs of a *testing.T. One that has an Output, as that has, gets
// the log of the run.
type T interface {
	Helper()
	// Fatalf reports a failure and does not return.
	Fatalf(format string, args ...any)
}

// An Option is one of what Run is given.
type Option func(*setup)

// A setup is what the options add up to.
type setup struct {
	config  egret.Config
	params  map[string][]string
	bolts   map[string]bolt.Factory
	script  script
	within  time.Duration
	mistake []error
}

// Config sets up the run. Tests differ from the defaults of its fields: AlwaysEncode
// is true and every parcel has one tuple, whatever c says; a message that fails is
// dead at once (MaxReplays), each is tracked by itself (TreeSize), random choices
// begin with the same Seed, and the Logger is the test's output.
func Config(c egret.Config) Option { return func(s *setup) { s.config = c } }

// Param gives a parameter of the topology its value, or several to one that takes
// several.
func Param(name string, values ...string) Option {
	return func(s *setup) { s.params[name] = values }
}

// Bolt puts another bolt in the place of a component's, such as a fake of one that
// writes to a database.
func Bolt(component string, factory bolt.Factory) Option {
	return func(s *setup) {
		if s.bolts[component] = factory; factory == nil {
			s.wrong("Bolt(%q, nil): a factory is needed", component)
		}
	}
}

// Within sets how long the run may take beside the time that its inputs [Wait].
// Default 30 s. One that takes longer is stopped and fails the test.
func Within(d time.Duration) Option { return func(s *setup) { s.within = d } }

// AtOnce takes the rows of the inputs as fast as the topology lets them in, those of
// several spouts at the same time.
func AtOnce() Option { return func(s *setup) { s.script.atOnce = true } }

func (s *setup) wrong(format string, args ...any) {
	s.mistake = append(s.mistake, fmt.Errorf(format, args...))
}

// Run runs a topology until its inputs have ended and all messages are done or dead.
// Spouts without an [Input] read their own source.
//
// A topology or an option with mistakes fails the test, and so does a run that does
// not come to rest; see [Within]. How a run has ended is in the result.
func Run(t T, top *topology.Topology, options ...Option) *Result {
	t.Helper()
	s := &setup{params: map[string][]string{}, bolts: map[string]bolt.Factory{}, within: 30 * time.Second}
	for _, o := range options {
		o(s)
	}
	out := &output{}
	defer out.end()
	rec := newRecorder()
	ctx := task.WithHook(context.Background(), func(plan *topology.Plan, set *task.Settings) error {
		return s.change(plan, set, rec)
	})
	running, err := egret.Start(ctx, top, s.runConfig(t, out))
	if err != nil {
		t.Fatalf("egrettest: %v", err)
		return nil
	}
	result := &Result{t: t}
	done := make(chan struct{})
	go func() { // ends with the run, for which this function waits
		result.Stats, result.Err = running.Wait()
		close(done)
	}()
	alarm := time.NewTimer(s.within + s.script.waits())
	defer alarm.Stop()
	select {
	case <-done:
	case <-rec.hopeless:
		s.giveUp(t, running, done, rec.why)
		return nil
	case <-alarm.C:
		s.giveUp(t, running, done, fmt.Sprintf("topology %s has not come to rest within %v:%s", top.Name(), s.within, rec.open(running.Stats())))
		return nil
	}
	rec.fill(result)
	return result
}

// giveUp stops a run, waits a second for its end, and fails the test.
func (s *setup) giveUp(t T, running *egret.Running, done <-chan struct{}, why string) {
	t.Helper()
	running.Stop()
	select {
	case <-done:
	case <-time.After(time.Second):
		why += "\n\tand it does not stop: the code of a component does not return"
	}
	t.Fatalf("egrettest: %s", why)
}

// runConfig is the config with the defaults of tests.
func (s *setup) runConfig(t T, out *output) egret.Config {
	c := s.config
	c.AlwaysEncode, c.ParcelSize = true, 1
	if c.MaxReplays == 0 {
		c.MaxReplays = egret.NoReplays
	}
	if c.TreeSize == 0 {
		c.TreeSize = 1
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
		if o, ok := t.(interface{ Output() io.Writer }); ok {
			out.w = o.Output()
			c.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: untimed}))
		}
	}
	if len(s.params) > 0 {
		params := map[string][]string{}
		for name, values := range c.Params {
			params[name] = values
		}
		for name, values := range s.params {
			params[name] = values
		}
		c.Params = params
	}
	return c
}

func untimed(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// An output is a test's, which must not be written to when the test is over: code
// that does not return may log later.
type output struct {
	w io.Writer

	mu   sync.Mutex // also while w is written to, so that the end comes after that
	over bool
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return len(b), nil
	}
	return o.w.Write(b)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

// change puts inputs and bolts into the plan and the recorder into the settings.
func (s *setup) change(plan *topology.Plan, set *task.Settings, rec *recorder) error {
	for name := range s.bolts {
		if n := node(plan, name); n == nil {
			s.wrong("Bolt: there is no component %q (have %s)", name, names(plan))
		} else if n.Bolt == nil {
			s.wrong("Bolt: component %s is a spout: give it an Input", name)
		} else {
			n.Bolt = s.bolts[name]
		}
	}
	s.script.rec = rec
	s.mistake = append(s.mistake, s.script.install(plan)...)
	if len(s.mistake) > 0 {
		return errors.Join(s.mistake...)
	}
	rec.install(plan, set, &s.script)
	return nil
}

func node(plan *topology.Plan, name string) *topology.Node {
	i := slices.IndexFunc(plan.Components, func(n topology.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &plan.Components[i]
}
