package egret

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
)

// A nodeProgram is what a node runs: topologies, as they were submitted. Dead letters of
// their tasks are in the node's data directory; positions are the log's. Its methods are
// called from the node's agent, but for close, which comes after it.
type nodeProgram struct {
	topologies []*topology.Topology
	dir        string // of state; "": none
	logger     *slog.Logger

	mu     sync.Mutex
	runs   map[cluster.Run]*partOfRun
	stores map[string]*sharedStore // by topology
	last   map[string]*partOfRun   // by topology: the last run that was here, also when it has ended
}

// A partOfRun is what a run has on this node.
type partOfRun struct {
	run     cluster.Run
	events  events
	store   *sharedStore  // nil: none
	pending int           // Config.MaxPendingBytes
	over    chan struct{} // closed when nothing is left of it here
	tapable sync.Once
	taps    taps // after tapable
	askable sync.Once
	asking  *asking // after askable
}

// A sharedStore has the dead letters of a topology. A run may begin before nothing is
// left of the one before it, so both have it.
type sharedStore struct {
	*disk.Store
	topology string
	users    int
}

func newNodeProgram(topologies []*topology.Topology, data string, logger *slog.Logger) *nodeProgram {
	p := &nodeProgram{topologies: topologies, logger: logger, runs: map[cluster.Run]*partOfRun{}, stores: map[string]*sharedStore{}, last: map[string]*partOfRun{}}
	if data != "" {
		p.dir = filepath.Join(data, "state")
	}
	return p
}

// program is what the node is given.
func (p *nodeProgram) program() node.Program {
	return node.Program{Topologies: p.topologies, Check: check, Settings: p.settings, Ended: p.ended, Lost: p.lost, Query: p.query}
}

// settings are what run makes of the same flags.
func (p *nodeProgram) settings(run cluster.Run, spec *cluster.Spec) (*task.Settings, error) {
	config, err := submitted(spec)
	if err != nil {
		return nil, err
	}
	config.Logger = p.logger
	p.mu.Lock()
	defer p.mu.Unlock()
	part := &partOfRun{run: run, events: events{topology: spec.Topology, logger: plainLogger(p.logger)}, pending: config.MaxPendingBytes, over: make(chan struct{})}
	set := config.settings()
	set.Event = part.events.tell
	if p.dir != "" {
		if part.store, err = p.open(spec, config.MaxDeadLetterBytes); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		set.Store = part.store
	}
	if old := p.last[spec.Topology]; old != nil && old.run == run {
		part.events.book.take(&old.events.book)
	}
	p.runs[run], p.last[spec.Topology] = part, part
	return set, nil
}

// lost keeps what a run has lost with a process. Perhaps nothing of it is here.
func (p *nodeProgram) lost(l *node.Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.last[l.Topology]
	if part == nil || part.run < l.Run {
		part = &partOfRun{run: l.Run, events: events{topology: l.Topology}}
		p.last[l.Topology] = part
	}
	if part.run == l.Run {
		part.events.book.lost(l)
	}
}

// errors returns those that a topology has had here, the latest first.
func (p *nodeProgram) errors(topology string) []view.Error {
	p.mu.Lock()
	defer p.mu.Unlock() // until they are read: another part may take the book
	part := p.last[topology]
	if part == nil {
		return nil
	}
	return part.events.book.all()
}

// troubles returns those of runs that are here, or that have lost tasks elsewhere.
func (p *nodeProgram) troubles() (all []view.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for topology, part := range p.last {
		if part.over != nil && p.runs[part.run] != part {
			continue // it has ended
		}
		if t := part.events.book.allTroubles(); len(t) > 0 {
			all = append(all, view.Run{Topology: topology, Run: runName(part.run), Troubles: t})
		}
	}
	return all
}

// plan is what is known of a topology that does not run here, if it needs no parameters;
// else nil.
func (p *nodeProgram) plan(name string) *topology.Plan {
	for _, t := range p.topologies {
		if t.Name() == name {
			plan, _ := t.Build(topology.Options{})
			return plan
		}
	}
	return nil
}

// open returns the store of a topology. Caller must hold mu.
func (p *nodeProgram) open(spec *cluster.Spec, most int64) (*sharedStore, error) {
	s := p.stores[spec.Topology]
	if s == nil {
		store, err := disk.Open(p.dir, spec.Topology, disk.Options{Fingerprint: spec.Fingerprint, MaxBytes: most})
		if err != nil {
			return nil, err
		}
		s = &sharedStore{Store: store, topology: spec.Topology}
		p.stores[spec.Topology] = s
	}
	s.users++
	return s, nil
}

// check says what is wrong with the flags of a topology that is submitted.
func check(spec *cluster.Spec) error {
	_, err := submitted(spec)
	return err
}

// submitted returns the configuration of a topology that was submitted.
func submitted(spec *cluster.Spec) (Config, error) {
	var o runOptions
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.tuning(f)
	for name, value := range spec.Flags {
		if f.Lookup(name) == nil {
			return Config{}, fmt.Errorf("topology %s was submitted with --%s, which this program does not know", spec.Topology, name)
		}
		if err := f.Set(name, value); err != nil {
			return Config{}, fmt.Errorf("topology %s: %w", spec.Topology, err)
		}
	}
	o.config.StopTimeout = stopTimeout
	config, err := o.build()
	if err != nil {
		return Config{}, fmt.Errorf("topology %s: %w", spec.Topology, err)
	}
	return config.withDefaults(), nil
}

// part returns the run of a topology that is here, and what it has; nil: there is none.
func (p *nodeProgram) part(topology string) (run cluster.Run, part *partOfRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r, x := range p.runs {
		if x.events.topology == topology && r > run {
			run, part = r, x
		}
	}
	return run, part
}

// pendingBytes is Config.MaxPendingBytes of a run that is here; else 0.
func (p *nodeProgram) pendingBytes(run cluster.Run) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if part := p.runs[run]; part != nil {
		return part.pending
	}
	return 0
}

// ended lets go of what a run has had here.
func (p *nodeProgram) ended(run cluster.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.runs[run]
	if part == nil {
		return
	}
	delete(p.runs, run)
	close(part.over)
	part.events.quiet()
	s := part.store
	if s == nil {
		return
	}
	if s.users--; s.users > 0 {
		return
	}
	delete(p.stores, s.topology)
	if n, err := s.Waiting(); err == nil && n > 0 {
		p.logger.Warn("dead letters are still to be replayed: the next run takes those that it can", "topology", s.topology, "letters", n)
	}
	if err := s.Close(); err != nil {
		p.logger.Error("cannot close the dead letters: "+err.Error(), "topology", s.topology)
	}
}

// close lets go of everything, when nothing runs any more.
func (p *nodeProgram) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, part := range p.runs {
		close(part.over)
		part.events.quiet()
	}
	for _, s := range p.stores {
		errs = append(errs, s.Close())
	}
	clear(p.runs)
	clear(p.stores)
	return errors.Join(errs...)
}
