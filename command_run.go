package egret

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/metrics/scrape"
	"github.com/egretstream/egret/topology"
)

// runCommand is "run", with a command for each topology below it.
func runCommand(topologies []*topology.Topology) *cobra.Command {
	if len(topologies) == 1 {
		return topologyCommand(topologies[0], "run")
	}
	run := &cobra.Command{Use: "run NAME", Short: "Run a topology until its input ends", Args: cobra.ArbitraryArgs}
	run.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &usageError{fmt.Errorf("name one of %s", list(topologies, "or"))}
		}
		return &usageError{fmt.Errorf("there is no topology %q: the program has %s", args[0], list(topologies, "and"))}
	}
	for _, t := range topologies {
		run.AddCommand(topologyCommand(t, t.Name()))
	}
	return run
}

// topologyCommand runs one topology, whose parameters are its flags. What is wrong
// with its parameters is said when it is to be run, for the others are not to
// suffer from it.
func topologyCommand(t *topology.Topology, use string) *cobra.Command {
	params, wrong := t.Params()
	var o runOptions
	o.params = map[string]*textValue{}
	c := &cobra.Command{
		Use:   use,
		Short: "Run the topology " + t.Name() + " until its input ends",
		Args: func(_ *cobra.Command, args []string) error {
			if wrong != nil || len(args) == 0 || len(args) == 1 && use == "run" && args[0] == t.Name() {
				return nil
			}
			return &usageError{fmt.Errorf("unknown argument %q", args[0])}
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if wrong != nil {
				return &usageError{errorOf("topology "+t.Name(), wrong)}
			}
			return o.run(c, t)
		},
	}
	if wrong != nil {
		c.DisableFlagParsing = true
		return c
	}
	f := c.Flags()
	f.SortFlags = false
	taken := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(runOptions).flags(taken)
	taken.Bool("help", false, "")
	for _, p := range params {
		if taken.Lookup(p.Name) != nil {
			wrong = fmt.Errorf("parameter %q has the name of a flag that every topology has: choose another", p.Name)
			continue
		}
		v := &textValue{kind: p.Kind, def: p.Default}
		o.params[p.Name] = v
		flag := f.VarPF(v, p.Name, "", p.Usage)
		if p.Kind == topology.BoolParam {
			flag.NoOptDefVal = "true"
		}
	}
	o.flags(f)
	return c
}

// runOptions are the flags that every topology has.
type runOptions struct {
	params    map[string]*textValue
	guarantee string
	parallel  tasksValue
	replays   int
	onStuck   string
	config    Config
	json      bool
	metrics   string // address
	http      httpOptions
}

func (o *runOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.guarantee, "guarantee", "", guaranteeUsage)
	f.Var(&o.parallel, "parallel", "tasks of components, as in count=4,split=2")
	o.tuning(f)
	f.DurationVar(&o.config.StopTimeout, "stop-timeout", 30*time.Second, "for what is open when the run is interrupted")
	f.StringVar(&o.config.StateDir, "state", os.Getenv(stateVariable), "directory in which positions and dead letters survive (default: $"+stateVariable+", else none)")
	f.BoolVar(&o.config.Reset, "reset", false, "forget the positions in the state directory and read everything again; states of an exactly-once topology are to be deleted before")
	f.BoolVar(&o.json, "json", false, "print the statistics on stderr as JSON")
	o.http.flags(f)
	f.StringVar(&o.metrics, "metrics", "", "serve metrics for Prometheus at this address, as in 127.0.0.1:9090; port 0: any that is free")
	f.BoolVar(&o.config.MetricsPerTask, "metrics-per-task", false, "show in them each task by itself")
}

const guaranteeUsage = "at-most-once or at-least-once, of a topology that is not exactly-once (default: as the topology says)"

// tuning are those of them that a topology is also submitted with.
func (o *runOptions) tuning(f *pflag.FlagSet) {
	f.IntVar(&o.config.MaxPending, "max-pending", 65536, "open messages a spout task, and a tree of them (256, or an eighth of it) more")
	f.IntVar(&o.replays, "max-replays", 8, "replays of a message that fails; 0: none, -1: for ever")
	f.DurationVar(&o.config.MessageTimeout, "message-timeout", 30*time.Second, "without a word of a message, then it is replayed")
	f.IntVar(&o.config.BatchSize, "batch-size", 50_000, "messages of a spout task in a batch, about; of an exactly-once topology")
	f.DurationVar(&o.config.BatchInterval, "batch-interval", 100*time.Millisecond, "then a batch is cut, however small")
	f.IntVar(&o.config.MaxBatches, "max-batches", 3, "batches under way; they are committed one after the other")
	f.DurationVar(&o.config.StuckAfter, "stuck-after", 10*time.Second, "in one call of a task's code, then it is stuck; negative: never")
	f.StringVar(&o.onStuck, "on-stuck", "report", "what is done about it: report or replace")
	f.Int64Var(&o.config.MaxDeadLetterBytes, "max-dead-letter-bytes", 1<<30, "of dead letters in the state directory; a run that has more fails, and loses none")
}

// A textValue is the flag of a parameter: the topology parses it.
type textValue struct {
	kind  topology.ParamKind
	def   string
	given []string
}

func (v *textValue) String() string {
	if len(v.given) > 0 {
		return strings.Join(v.given, ",")
	}
	return v.def
}

func (v *textValue) Type() string { return string(v.kind) }

func (v *textValue) Set(s string) error {
	if v.kind == topology.StringsParam {
		v.given = append(v.given, s)
	} else {
		v.given = []string{s}
	}
	return nil
}

// build returns the configuration that the flags are, or every mistake in them.
func (o *runOptions) build() (Config, error) {
	c := o.config
	c.Params = map[string][]string{}
	for name, v := range o.params {
		if v.given != nil {
			c.Params[name] = v.given
		}
	}
	c.Parallel = o.parallel
	var errs []error
	wrong := func(flag string, value any, use string) {
		errs = append(errs, fmt.Errorf("--%s is %v: use %s", flag, value, use))
	}
	switch c.MaxReplays = o.replays; {
	case o.replays == 0:
		c.MaxReplays = NoReplays
	case o.replays < ReplayForever:
		wrong("max-replays", o.replays, "0 for none, -1 for ever")
	}
	if c.MaxPending < 1 {
		wrong("max-pending", c.MaxPending, "at least 1")
	}
	if c.BatchSize < 1 {
		wrong("batch-size", c.BatchSize, "at least 1")
	}
	if c.BatchInterval <= 0 {
		wrong("batch-interval", c.BatchInterval, "a time above 0")
	}
	if c.MaxBatches < 1 {
		wrong("max-batches", c.MaxBatches, "at least 1")
	}
	if c.MessageTimeout < time.Millisecond {
		wrong("message-timeout", c.MessageTimeout, "at least 1ms")
	}
	if c.StopTimeout <= 0 {
		wrong("stop-timeout", c.StopTimeout, "a time above 0")
	}
	if c.StuckAfter >= 0 && c.StuckAfter < time.Millisecond {
		wrong("stuck-after", c.StuckAfter, "at least 1ms, or a negative time to switch it off")
	}
	if c.MaxDeadLetterBytes < 1 {
		wrong("max-dead-letter-bytes", c.MaxDeadLetterBytes, "at least 1")
	}
	switch o.onStuck {
	case Report.String():
	case Replace.String():
		c.OnStuck = Replace
	default:
		wrong("on-stuck", strconv.Quote(o.onStuck), "report or replace")
	}
	switch o.guarantee {
	case "":
	case topology.AtLeastOnce.String():
		c.Guarantee = new(topology.AtLeastOnce)
	case topology.AtMostOnce.String():
		c.Guarantee = new(topology.AtMostOnce)
	case topology.ExactlyOnce.String():
		errs = append(errs, errors.New("--guarantee is exactly-once: that is what a topology of package trident is without the flag, and no other can be"))
	default:
		wrong("guarantee", strconv.Quote(o.guarantee), "at-most-once or at-least-once")
	}
	if c.Reset && c.StateDir == "" {
		errs = append(errs, errors.New("--reset forgets the positions in a state directory: name it with --state"))
	}
	return c, errors.Join(errs...)
}

func (o *runOptions) run(c *cobra.Command, t *topology.Topology) error {
	config, err := o.build()
	var herr error
	config.HTTP, herr = o.http.build()
	if err := errors.Join(err, herr); err != nil {
		return &usageError{err}
	}
	stderr := c.ErrOrStderr()
	var started atomic.Bool
	interrupted, stop := interrupts(func(n int) {
		switch {
		case started.Load():
		case n == 1:
			fmt.Fprintln(stderr, "interrupted: the run has not started yet, and will end when it has")
		default:
			fmt.Fprintln(stderr, "interrupted again: the run has not started yet; once more to exit at once")
		}
	})
	defer stop() // last of all
	if o.metrics != "" {
		registry := newRegistry()
		config.Metrics = registry
		server, err := scrape.Listen(o.metrics, registry, slog.Default())
		if err != nil {
			return serveError(fmt.Errorf("--metrics: %w", err))
		}
		defer server.Close()
		fmt.Fprintln(stderr, "metrics: "+server.URL)
	}
	r, err := Start(c.Context(), t, config)
	switch {
	case err == nil:
	case errors.Is(err, ErrState), errors.As(err, new(*unreached)):
		return &runError{err}
	case errors.Is(err, errHTTP):
		return serveError(err)
	default:
		return &usageError{err}
	}
	started.Store(true)
	if r.URL() != "" {
		fmt.Fprintln(stderr, "page: "+r.URL())
	}
	show := newProgress(stderr)
	show.lines = !o.json
	beat := time.NewTicker(200 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-r.ended:
			show.clear()
			s, err := r.Wait()
			if o.json {
				encode(stderr, s)
			} else {
				fmt.Fprintln(stderr, s.line(err == nil))
			}
			if err == nil && r.resumed && s.Messages == 0 {
				fmt.Fprintln(stderr, "nothing to do: all input was done before; --reset starts over")
			}
			if err != nil {
				return &runError{err}
			}
			return nil
		case <-beat.C:
			show.line(r)
		case n := <-interrupted:
			if n == 1 {
				show.clear()
				fmt.Fprintf(stderr, "interrupted: finishing what is open (at most %v); again to stop\n", r.config.StopTimeout)
				r.Drain()
			} else {
				show.clear()
				fmt.Fprintln(stderr, "interrupted again: stopping; once more to exit at once")
				r.Stop()
			}
		}
	}
}

// serveError says whose mistake it is that nothing can be served at an address.
func serveError(err error) error {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &placeError{err}
	}
	return &usageError{err}
}

// A progress rewrites one line on a terminal. Elsewhere it is silent, or writes a
// line now and then if lines says so.
type progress struct {
	w        io.Writer
	terminal bool
	lines    bool
	shown    int
	messages int64
	at       time.Duration
}

// lineEvery is the time between lines where there is no terminal.
const lineEvery = 30 * time.Second

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// line shows how far a run is.
func (p *progress) line(r *Running) {
	if !p.terminal && (!p.lines || time.Since(r.began)-p.at < lineEvery) {
		return
	}
	s := r.Stats()
	rate := float64(s.Input-p.messages) / max(s.Elapsed-p.at, time.Millisecond).Seconds()
	p.messages, p.at = s.Input, s.Elapsed
	text := fmt.Sprintf("%s  %s  %s/s  %s open  %s failed", s.Elapsed.Round(time.Second), amount.Of(s.Input, "message"), amount.Digits(int64(rate)), amount.Digits(s.Open), amount.Digits(s.failedExecutions()))
	if s.Dead > 0 {
		text += fmt.Sprintf("  %s dead", amount.Digits(s.Dead))
	}
	if !p.terminal {
		fmt.Fprintln(p.w, s.Topology+": "+text)
		return
	}
	p.text(text)
}

// now shows what text returns, ten times a second on a terminal and now and then
// elsewhere if lines says so. took is the time since the beginning.
func (p *progress) now(took time.Duration, text func() string) {
	every := lineEvery
	if p.terminal {
		every = 100 * time.Millisecond
	}
	if took-p.at < every || !p.terminal && !p.lines {
		return
	}
	p.at = took
	if p.terminal {
		p.text(text())
	} else {
		fmt.Fprintln(p.w, text())
	}
}

func (p *progress) text(s string) {
	if p.terminal {
		fmt.Fprintf(p.w, "\r%-*s", p.shown, s)
		p.shown = len(s)
	}
}

func (p *progress) clear() {
	if p.terminal && p.shown > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.shown, "")
		p.shown = 0
	}
}

// topologiesCommand is "topologies".
func topologiesCommand(topologies []*topology.Topology) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "topologies",
		Short: "List the topologies of this program with their parameters and a drawing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var all []listed
			for _, t := range topologies {
				l, err := listing(t)
				if err != nil {
					return &runError{err}
				}
				all = append(all, l)
			}
			if asJSON {
				return encode(c.OutOrStdout(), all)
			}
			for i, l := range all {
				if i > 0 {
					fmt.Fprintln(c.OutOrStdout())
				}
				l.print(c.OutOrStdout())
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.SetFlagErrorFunc(parameterHint(topologies, "give it to run, or to graph with --set NAME=VALUE"))
	return c
}

type listed struct {
	Name       string           `json:"name"`
	Guarantee  string           `json:"guarantee"`
	Params     []topology.Param `json:"params"`
	Components []listedNode     `json:"components"`
	drawing    string
}

type listedNode struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Parallel int    `json:"parallel"`
}

func listing(t *topology.Topology) (listed, error) {
	params, err := t.Params()
	plan, berr := t.Build(topology.Options{})
	if err := errors.Join(err, berr); err != nil {
		return listed{}, errorOf("topology "+t.Name(), err)
	}
	l := listed{Name: t.Name(), Guarantee: plan.Guarantee.String(), Params: params, drawing: plan.Draw()}
	for i := range plan.Components {
		n := &plan.Components[i]
		kind := "bolt"
		switch {
		case n.Source != nil:
			kind = "spout"
		case n.Queue != nil:
			kind = "queue"
		}
		l.Components = append(l.Components, listedNode{n.Name, kind, n.Parallel})
	}
	return l, nil
}

func (l *listed) print(w io.Writer) {
	fmt.Fprintf(w, "%s (%s)\n\n", l.Name, l.Guarantee)
	for _, line := range strings.Split(strings.TrimRight(l.drawing, "\n"), "\n") {
		fmt.Fprintln(w, strings.TrimRight("  "+line, " "))
	}
	if len(l.Params) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range l.Params {
		def := ""
		if p.Default != "" {
			def = " (default " + p.Default + ")"
		}
		fmt.Fprintf(w, "  --%-24s %s%s\n", p.Name+" "+strings.ToUpper(string(p.Kind)), p.Usage, def)
	}
}
