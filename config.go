package egret

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Values of [Config.MaxReplays] that are no number of replays.
const (
	ReplayForever = -1
	NoReplays     = -2
)

// A Config sets up a run. Its zero value is good for most.
type Config struct {
	// Params are the values of the topology's parameters, as text; several for a
	// parameter that takes several. Default: those of the topology.
	Params map[string][]string
	// Parallel is the number of tasks of a component, by its name, where it is to
	// be other than what the topology says.
	Parallel map[string]int
	// Guarantee overrides the topology's own.
	Guarantee *topology.Guarantee

	// MaxPending is how many messages of one spout task may be open, that is neither
	// done nor dead. Messages that are tracked together (TreeSize, and at most an eighth
	// of this) are emitted together, so there may be so many more. Default 65,536.
	MaxPending int
	// MaxPendingBytes bounds what a spout task keeps of open messages for replay.
	// What values made with tuple.Any hold is not known and does not count. Default
	// 64 MB.
	MaxPendingBytes int
	// MaxQueuedBytes bounds the text of the tuples that may wait for one bolt task,
	// as far as that leaves each of its senders one parcel. Default 64 MB.
	MaxQueuedBytes int
	// TreeSize is how many messages are tracked together at most: an ack comes when
	// all of them are done. 1 tracks each by itself. Default 256, or an eighth of
	// MaxPending if that is less.
	TreeSize int
	// MessageTimeout is for how long nothing may be heard of a message before it is
	// replayed. Waiting in a queue does not count. Default 30 s.
	MessageTimeout time.Duration
	// MaxReplays is how often a message that fails is replayed before it is dead.
	// Losses and timeouts do not count; messages of queues are never replayed. Default 8;
	// ReplayForever, NoReplays.
	MaxReplays int

	// BatchSize is about how many messages a spout task of an exactly-once topology puts
	// into one batch. Default 50,000.
	BatchSize int
	// BatchInterval is how long a batch of an exactly-once topology is filled at most. It
	// is the better part of the time from a message to what it has changed in a state.
	// Default 100 ms.
	BatchInterval time.Duration
	// MaxBatches is how many batches of an exactly-once topology may be under way at a
	// time, up to 64; they are committed one after the other. Default 3.
	MaxBatches int

	// ParcelSize is how many tuples travel together at most, 1 to 1,024. Default 256.
	ParcelSize int
	// Linger is how long a busy task may hold back a parcel that is not full; one
	// that has nothing to do holds back nothing. Default 1 ms.
	Linger time.Duration

	// StuckAfter is how long a task may be in one call of user code (Execute, Prepare,
	// Tick, Finish, Close, and Next of a prompt reader) before it is said to be stuck,
	// with its stack, in the log. Tuples that Execute takes together, because they were
	// quick until now, count as one call: 16 at most. Calls that are made elsewhere and
	// should not wait (Splits, Open, Commit and Close of a source, Open of a queue, Join,
	// Commit and Settle of a state) are reported in the same way; a source's Commit that is so old and all that a run waits for is
	// left behind, and the position counts as committed. A run that is stopped waits so
	// long for a call, and one second from when its context has ended; then it ends
	// with an error and leaves the goroutine behind. Default 10 s; negative: nobody
	// looks, and such a call holds up a stop for ever.
	StuckAfter time.Duration
	// OnStuck says what is done about it, beside saying so. Default Report.
	OnStuck StuckAction

	// StopTimeout is how long a run that is stopped may take to finish what is
	// open. Default 30 s.
	StopTimeout time.Duration

	// StateDir is a directory in which positions and dead letters survive the run: the
	// next one with the same directory goes on where everything before was done. It is
	// made if it is not there, and has a part for each topology, which one run can use
	// at a time. On Unix only. Default: none; what is committed and dead then ends with
	// the run.
	StateDir string
	// Reset forgets the positions in StateDir, so that sources are read from their
	// beginning. Dead letters stay. An exactly-once topology is not started if its states
	// have anything: they are to be deleted, too, or messages would count again.
	Reset bool
	// MaxDeadLetterBytes bounds the dead letters in StateDir, for each topology. A run
	// that has no room for another one fails and loses none. Default 1 GB.
	MaxDeadLetterBytes int64

	// AlwaysEncode sends every parcel through the codec, as between nodes. For tests.
	AlwaysEncode bool
	// Seed makes random choices repeatable as far as the scheduler allows. Default:
	// a random one.
	Seed uint64
	// Logger gets panics, dead letters and errors of sources, and is what bolts
	// log to. Each record has attributes that say of which topology, component and
	// task it is. Of what happens again and again ten records in ten seconds are
	// written for each kind and component, and the attribute unlogged says how many
	// were not. Default: slog.Default().
	Logger *slog.Logger

	// HTTP serves a page to look at the run, an API and metrics, until it has ended.
	// Default: none.
	HTTP HTTP

	// Metrics is where the run registers its metrics when it starts, and takes them
	// back at its end; docs/metrics.md lists them. Runs of different topologies may
	// share one. They are read when it is asked for them and cost nothing between; a
	// pedantic registry does not take the metrics that bolts make for themselves.
	// Default: none.
	Metrics prometheus.Registerer
	// MetricsPerTask shows in Metrics each task by itself, with the label task. Default:
	// the tasks of a component are added up.
	MetricsPerTask bool
}

// A StuckAction is what is done about a task that is stuck in user code.
type StuckAction uint8

const (
	// Report waits: the task goes on when its code comes back. Its senders wait for
	// it, as for any slow task, and others do not.
	Report StuckAction = iota
	// Replace ends the task's incarnation, as after a panic, and starts a new one. What
	// the old one had is replayed, and the new one takes one tuple at a time for a
	// while; a message that is alone in hand when Execute hangs, and was in hand at a
	// hang before, is dead. When the old code comes back after all, what it says is
	// refused and its Close is called. Until then two incarnations run beside each
	// other, so what they share needs a lock. Calls of a source or a queue that are made
	// elsewhere are not replaced; those of a state are, with what runs in them, as the
	// functions of trident.Update and of combiners.
	Replace
)

func (a StuckAction) String() string {
	switch a {
	case Report:
		return "report"
	case Replace:
		return "replace"
	}
	return fmt.Sprintf("StuckAction(%d)", uint8(a))
}

func (c Config) withDefaults() Config {
	def(&c.MaxPending, 65_536)
	def(&c.MaxPendingBytes, 64<<20)
	def(&c.MaxQueuedBytes, 64<<20)
	def(&c.TreeSize, 256)
	def(&c.MessageTimeout, 30*time.Second)
	def(&c.MaxReplays, 8)
	def(&c.BatchSize, 50_000)
	def(&c.BatchInterval, 100*time.Millisecond)
	def(&c.MaxBatches, 3)
	def(&c.ParcelSize, 256)
	def(&c.Linger, time.Millisecond)
	def(&c.StuckAfter, 10*time.Second)
	def(&c.StopTimeout, 30*time.Second)
	def(&c.MaxDeadLetterBytes, 1<<30)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func def[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// check reports every mistake in c at once.
func (c *Config) check() error {
	var errs []error
	least := func(name string, v, min int) {
		if v < min {
			errs = append(errs, fmt.Errorf("config: %s is %d, but must be at least %d", name, v, min))
		}
	}
	least("MaxPending", c.MaxPending, 1)
	least("MaxPendingBytes", c.MaxPendingBytes, 1)
	least("MaxQueuedBytes", c.MaxQueuedBytes, 1)
	least("TreeSize", c.TreeSize, 1)
	least("MaxReplays", c.MaxReplays, NoReplays)
	least("ParcelSize", c.ParcelSize, 1)
	least("BatchSize", c.BatchSize, 1)
	least("MaxBatches", c.MaxBatches, 1)
	if c.MaxBatches > bolt.MaxAhead {
		errs = append(errs, fmt.Errorf("config: MaxBatches is %d, but must be at most %d", c.MaxBatches, bolt.MaxAhead))
	}
	if c.ParcelSize > tuple.MaxParcel {
		errs = append(errs, fmt.Errorf("config: ParcelSize is %d, but must be at most %d", c.ParcelSize, tuple.MaxParcel))
	}
	if c.MaxDeadLetterBytes < 1 {
		errs = append(errs, fmt.Errorf("config: MaxDeadLetterBytes is %d, but must be at least 1", c.MaxDeadLetterBytes))
	}
	if c.Reset && c.StateDir == "" {
		errs = append(errs, errors.New("config: Reset forgets the positions in StateDir, but no StateDir is given"))
	}
	if c.MessageTimeout > 0 && c.MessageTimeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("config: MessageTimeout is %v, but must be at least 1ms", c.MessageTimeout))
	}
	if c.StuckAfter > 0 && c.StuckAfter < time.Millisecond {
		errs = append(errs, fmt.Errorf("config: StuckAfter is %v, but must be at least 1ms, or negative to switch it off", c.StuckAfter))
	}
	if c.OnStuck > Replace {
		errs = append(errs, fmt.Errorf("config: OnStuck is %v, but must be Report or Replace", c.OnStuck))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"MessageTimeout", c.MessageTimeout}, {"Linger", c.Linger}, {"BatchInterval", c.BatchInterval}, {"StopTimeout", c.StopTimeout}} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("config: %s is %v, but must not be negative", d.name, d.d))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) settings() *task.Settings {
	replays := c.MaxReplays
	if replays == NoReplays {
		replays = 0
	}
	return &task.Settings{
		ParcelSize: c.ParcelSize, Linger: c.Linger,
		MaxPending: c.MaxPending, PendingBytes: c.MaxPendingBytes, QueuedBytes: c.MaxQueuedBytes, TreeSize: c.TreeSize,
		MessageTimeout: c.MessageTimeout, MaxReplays: replays,
		BatchSize: c.BatchSize, BatchInterval: c.BatchInterval, MaxBatches: c.MaxBatches,
		AlwaysEncode: c.AlwaysEncode, Logger: c.Logger,
		StuckAfter: max(0, c.StuckAfter), Replace: c.OnStuck == Replace,
	}
}
