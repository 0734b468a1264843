package egret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/live"
	"github.com/egretstream/egret/topology"
)

// liveOptions are the flags of "chaos live".
type liveOptions struct {
	run     runOptions
	set     []string
	kill    string
	every   time.Duration
	file    string
	faults  string
	seed    uint64
	before  time.Duration
	lasts   time.Duration
	after   time.Duration
	verbose bool
	json    bool
}

// chaosLiveCommand is "chaos live", with a command for each topology below it.
func chaosLiveCommand(topologies []*topology.Topology) *cobra.Command {
	if len(topologies) == 1 {
		return liveCommand(topologies[0], "live")
	}
	c := &cobra.Command{Use: "live NAME", Short: "Run a topology and do harm to its tasks, or to the nodes of a cluster", Args: cobra.ArbitraryArgs}
	var nodes fleetOptions
	nodes.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("nodes") {
			return nodes.live(c, args)
		}
		_, err := chosen(topologies, args)
		return &usageError{err} // a known one is a command of its own
	}
	for _, t := range topologies {
		c.AddCommand(liveCommand(t, t.Name()))
	}
	return c
}

func liveCommand(t *topology.Topology, use string) *cobra.Command {
	params, wrong := t.Params()
	o := liveOptions{run: runOptions{params: map[string]*textValue{}}}
	example := "  " + program() + " chaos live "
	if use != "live" {
		example += use + " "
	}
	flags, known := lasting(t)
	examples := []string{example + strings.Join(append(flags, "--kill '*' --every 200ms"), " ")}
	if !known {
		examples = append(examples, example+"--before 0s --faults 'at 0s kill *'   (if the input is over at once)")
	}
	c := &cobra.Command{
		Use:     use,
		Short:   "Run the topology " + t.Name() + " and do harm to its tasks",
		Example: strings.Join(examples, "\n"),
		Long: `Run the topology ` + t.Name() + ` and do harm to its tasks, while a record outside of them
counts what was executed of each message. At the end everything is healed, the sources
are paused, the run drains, and a report says what became of the messages: it fails if
one was never executed to the end, or Egret has said of one what is not so.

A fault is a line, or several with semicolons between them:

  ` + strings.Join(faultHelp(), "\n  ") + `

WHO is count/2 for a task, count for one of its tasks, drawn each time, count/* for all, *
for any. Before it stands when: at 2s, every 200ms, from 1s to 2s; times are counted from
when the faults begin.

The rate before, during and after is that of messages done; so give the topology an
input that does not end, and no more of it than it can take.

A message that is lost or times out is charged to the last fault before it. What is not
looked at: which task a tuple is routed to, and values of kind any.`,
		Args: func(_ *cobra.Command, args []string) error {
			if wrong != nil || len(args) == 0 || len(args) == 1 && use == "live" && args[0] == t.Name() {
				return nil
			}
			return &usageError{fmt.Errorf("unknown argument %q", args[0])}
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if wrong != nil {
				return &usageError{errorOf("topology "+t.Name(), wrong)}
			}
			return o.runLive(c, t)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	o.flags(f)
	f.Bool("help", false, "help for "+use) // here already, so that no parameter takes it
	var taken []string
	for _, p := range params {
		v := &textValue{kind: p.Kind, def: p.Default}
		o.run.params[p.Name] = v
		if f.Lookup(p.Name) != nil {
			taken = append(taken, p.Name)
			continue
		}
		if flag := f.VarPF(v, p.Name, "", p.Usage); p.Kind == topology.BoolParam {
			flag.NoOptDefVal = "true"
		}
	}
	if len(taken) > 0 {
		c.Long += "\n\nParameters of the topology that have the name of a flag are given with --set: " + strings.Join(taken, ", ") + "."
	}
	return c
}

func (o *liveOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.kill, "kill", "", "whom to kill every so often: WHO (default: *, if there is no other fault)")
	f.DurationVar(&o.every, "every", 500*time.Millisecond, "time between kills")
	f.StringVar(&o.faults, "faults", "", "faults to do, as in 'at 2s stall count for 1s; every 1s kill lines'")
	f.StringVar(&o.file, "plan", "", "file of faults, one a line; - is standard input")
	f.Uint64Var(&o.seed, "seed", 1, "draws who is meant by a component and by *")
	f.DurationVar(&o.before, "before", 5*time.Second, "quiet time before the faults, to compare with")
	f.DurationVar(&o.lasts, "for", 10*time.Second, "time with faults")
	f.DurationVar(&o.after, "after", 5*time.Second, "quiet time after them")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "tell each fault; else the first 20 and then each tenth or hundredth")
	f.BoolVar(&o.json, "json", false, "print the report as JSON, in one line behind the output of the topology")
	f.StringArrayVar(&o.set, "set", nil, "value of a parameter, `name=value`, also of one that has the name of a flag")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.run.flags(all)
	for _, name := range []string{"guarantee", "parallel", "max-pending", "max-replays", "message-timeout", "stuck-after", "stop-timeout"} {
		f.AddFlag(all.Lookup(name))
	}
}

// faultHelp says of each fault that can be done to a running topology how it is written.
func faultHelp() (lines []string) {
	for _, k := range chaos.Kinds() {
		if !k.Live() {
			continue
		}
		usage, help := k.Usage(), k.Help()
		switch k { // the other forms need a simulator
		case chaos.Panic:
			usage, help = "panic WHO on 100", "panic on the Nth tuple from then on"
		case chaos.Break:
			usage, help = "break WHO", "the next call of a source errs"
		}
		lines = append(lines, fmt.Sprintf("%-20s %s", usage, help))
	}
	return lines
}

// lasting is what makes an input of a topology last as long as a run with the other flags,
// as far as its parameters say.
func lasting(t *topology.Topology) (flags []string, known bool) {
	params, _ := t.Params()
	endless := false
	for _, p := range params {
		if strings.Contains(p.Usage, forEver) {
			endless = true
			if p.Default != "0" {
				flags = append(flags, "--"+p.Name+" 0")
			}
		}
	}
	for _, p := range params {
		if p.Name == "rate" && p.Default == "0" {
			rate := "--rate 10" // of an input of a few hundred messages
			if endless {
				rate += "000"
			}
			return append(flags, rate), true
		}
	}
	return flags, endless
}

// forEver is what the usage of a parameter has of which 0 gives an input without an end.
const forEver = "0: for ever"

// longer is what to do about an input that has ended, for people.
func longer(t *topology.Topology) string {
	if flags, _ := lasting(t); len(flags) > 0 {
		return ", as with " + flags[0]
	}
	return ""
}

// config is what the run is made with, or every mistake in the flags.
func (o *liveOptions) config() (Config, error) {
	config, err := o.run.build()
	errs := []error{err}
	config.StateDir, config.Reset = "", false // the record's positions are not the source's
	if config.MaxReplays = o.run.replays; o.run.replays == 0 {
		config.MaxReplays = NoReplays
	}
	for _, s := range o.set {
		name, value, ok := strings.Cut(s, "=")
		v := o.run.params[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("--set %s has no value: write --set %s=VALUE", s, s))
			continue
		case v != nil && v.kind != topology.StringsParam && len(config.Params[name]) > 0:
			errs = append(errs, fmt.Errorf("--set %s: %s has a value already, and takes one", s, name))
			continue
		}
		config.Params[name] = append(config.Params[name], value)
	}
	for _, d := range []struct {
		flag  string
		d     time.Duration
		least time.Duration
	}{{"every", o.every, time.Millisecond}, {"for", o.lasts, time.Millisecond}, {"before", o.before, 0}, {"after", o.after, 0}} {
		if d.d < d.least || d.d > 24*time.Hour {
			errs = append(errs, fmt.Errorf("--%s is %v: use %v to 24h", d.flag, d.d, d.least))
		}
	}
	return config, errors.Join(errs...)
}

// plan is what the flags say together.
func (o *liveOptions) plan(in io.Reader) (all chaos.Plan, err error) {
	add := func(flag, text string) {
		p, e := chaos.Parse(text)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("--%s: %w", flag, e))
		}
		all = append(all, p...)
	}
	switch o.file {
	case "":
	case "-":
		text, e := io.ReadAll(in)
		if e != nil {
			return nil, fmt.Errorf("--plan: %w", e)
		}
		add("plan", string(text))
	default:
		text, e := os.ReadFile(o.file)
		if e != nil {
			return nil, fmt.Errorf("--plan: %w", e)
		}
		add("plan", string(text))
	}
	add("faults", o.faults)
	who := o.kill
	if who == "" && o.file == "" && o.faults == "" {
		who = "*"
	}
	if who != "" && o.every >= o.lasts {
		return nil, fmt.Errorf("--every is %v and --for %v: there would be no kill", o.every, o.lasts)
	}
	if who != "" {
		add("kill", "every "+o.every.String()+" kill "+who)
	}
	if err == nil && len(all) == 0 {
		err = errors.New("the plan has no fault: nothing would be done")
	}
	if err == nil {
		err = all.Live()
	}
	return all, err
}

func (o *liveOptions) runLive(c *cobra.Command, t *topology.Topology) error {
	config, err := o.config()
	plan, wrong := o.plan(c.InOrStdin())
	if c.Flags().Changed("every") && o.kill == "" && o.file+o.faults != "" {
		wrong = errors.Join(wrong, errors.New("--every is the time between kills: say whom with --kill, or write every into the faults"))
	}
	if err := errors.Join(err, wrong); err != nil {
		return &usageError{err}
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	tells := &liveTeller{w: c.ErrOrStderr(), show: newProgress(c.ErrOrStderr()), all: o.verbose}
	interrupted, stop := interrupts(func(n int) {
		if n == 1 {
			tells.say("interrupted: no more faults, finishing what is open; again to stop")
		} else {
			tells.say("interrupted again: stopping; once more to exit at once")
		}
	})
	defer stop() // last of all
	start := starter(t, config)
	report, err := live.Run(ctx, live.Options{
		Plan: plan, Seed: o.seed, Before: o.before, For: o.lasts, After: o.after, Settle: config.StopTimeout,
		Interrupted: interrupted, Told: tells.told, Shown: tells.shown,
		Start: func(ctx context.Context) (*live.Engine, error) {
			e, err := start(ctx)
			if err == nil {
				tells.say(fmt.Sprintf("%s, seed %d: %v quiet, %v with faults, %v quiet: %s", t.Name(), o.seed, o.before, o.lasts, o.after, live.Outline(plan)))
			}
			return e, err
		},
	})
	if err != nil {
		return &usageError{err}
	}
	tells.clear()
	if o.json {
		if err := json.NewEncoder(c.OutOrStdout()).Encode(report); err != nil {
			return &runError{err}
		}
	} else {
		report.Print(c.OutOrStdout())
	}
	err = liveOutcome(report)
	if len(report.Done) == 0 && report.Err == nil {
		tells.say("give the topology an input that lasts" + longer(t) + ", or begin with the faults at once: --before 0s")
	}
	return err
}

// liveOutcome is the error of a run that harm was done to.
func liveOutcome(r *live.Report) error {
	var errs []error
	if r.Lost > 0 {
		errs = append(errs, fmt.Errorf("%s never executed to the end", amount.Of(r.Lost, "message")))
	}
	if n := len(r.Violations) + r.More; n > 0 {
		errs = append(errs, fmt.Errorf("%s", amount.Of(n, "violation")))
	}
	for _, u := range r.Unsteady {
		errs = append(errs, errors.New(u.String()))
	}
	if r.Err != nil && (len(errs) == 0 || !errors.Is(r.Err, ErrDead)) {
		errs = append(errs, r.Err)
	}
	if len(r.Done) == 0 {
		why := "none could be"
		if r.Cut != "" {
			why = r.Cut
		}
		errs = append(errs, fmt.Errorf("no fault was done, so nothing was tried: %s", why))
	}
	if len(errs) == 0 {
		return nil
	}
	return &runError{errors.Join(errs...)}
}

// starter starts a topology for package live.
func starter(t *topology.Topology, config Config) func(context.Context) (*live.Engine, error) {
	return func(ctx context.Context) (*live.Engine, error) {
		r, err := Start(context.WithoutCancel(ctx), t, config)
		if err != nil {
			return nil, err
		}
		return &live.Engine{
			Kill: r.host.Kill, Drain: r.Drain, Stop: r.Stop, Ended: r.ended,
			Err: func() (error, bool) {
				_, err := r.Wait()
				return err, err == nil || errors.Is(err, ErrDead) || errors.Is(err, errLaw)
			},
		}, nil
	}
}

// A liveTeller says on standard error what is done. Its methods are called from several
// goroutines; told, which tasks call, waits for no terminal.
type liveTeller struct {
	mu    sync.Mutex // around what is written
	w     io.Writer
	show  *progress
	at    time.Duration // of the last line of progress where there is no terminal
	all   bool
	lines struct {
		sync.Mutex
		times int
		told  []string // and not written yet
	}
}

func (l *liveTeller) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write()
	l.show.clear()
	fmt.Fprintln(l.w, line)
}

func (l *liveTeller) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write()
	l.show.clear()
}

// write writes what was told; l.mu is held.
func (l *liveTeller) write() {
	l.lines.Lock()
	told := l.lines.told
	l.lines.told = nil
	l.lines.Unlock()
	for _, line := range told {
		l.show.clear()
		fmt.Fprintln(l.w, line)
	}
}

// told tells a fault, if there were not too many before.
func (l *liveTeller) told(d live.Done) {
	l.lines.Lock()
	defer l.lines.Unlock()
	l.lines.times++
	every := 1
	switch {
	case l.all || l.lines.times <= 20:
	case l.lines.times <= 200:
		every = 10
	default:
		every = 100
	}
	if l.lines.times%every != 0 {
		return
	}
	text := fmt.Sprintf("%8.3fs  %s: %s", d.At.Seconds(), d.Fault, d.Task)
	if d.Life > 0 {
		text += fmt.Sprintf(", life %d", d.Life)
	}
	if d.Ends {
		text += ", is over"
	}
	if every > 1 {
		text += fmt.Sprintf(" (the %d. fault; -v tells all)", l.lines.times)
	}
	l.lines.told = append(l.lines.told, text)
}

func (l *liveTeller) shown(p live.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write()
	text := fmt.Sprintf("%v  %s  %s done  %s/s  %s open  %s", p.Elapsed.Round(time.Second), p.Phase,
		amount.Of(p.Done, "message"), amount.Digits(int64(p.Rate)), amount.Digits(p.Open), amount.Of(p.Faults, "fault"))
	if l.show.terminal {
		l.show.text(text)
	} else if p.Elapsed-l.at >= lineEvery/3 {
		l.at = p.Elapsed
		fmt.Fprintln(l.w, text)
	}
}
