package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
)

// A ship is one node of a fleet, through all its processes.
type ship struct {
	name    string // node/1
	number  int
	config  childConfig
	space   string // its network namespace; "": that of this process
	cmd     *exec.Cmd
	leash   io.Closer
	ended   chan struct{} // closed when the process has
	running bool
	frozen  bool
	cut     bool // nobody here reaches it
}

// A fleet is some nodes, each a process. Its methods are called by one goroutine at a
// time, but for ask.
type fleet struct {
	command func() *exec.Cmd
	ships   []*ship
	client  *http.Client

	mu        sync.Mutex
	said      bytes.Buffer  // standard error of all
	processes map[int]*ship // by pid, also those that have ended
	asked     int           // who was last asked
}

func newFleet(command func() *exec.Cmd) *fleet {
	c := wire.NewClient(wire.Secret{}, wire.Secret{})
	return &fleet{command: command, processes: map[int]*ship{}, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }, DisableKeepAlives: true,
	}}}
}

// add makes a node that is not started yet.
func (f *fleet) add(dir string, o *Options, addr, space string) {
	name := "node/" + strconv.Itoa(len(f.ships)+1)
	s := &ship{name: name, number: len(f.ships) + 1, space: space, config: childConfig{
		Name: name, Listen: addr, Data: filepath.Join(dir, strconv.Itoa(len(f.ships)+1)), Pace: o.Pace, Patience: o.Patience, Insecure: space != "",
	}}
	if o.Logs != "" {
		s.config.Log = filepath.Join(o.Logs, strconv.Itoa(len(f.ships)+1)+".log")
	}
	f.ships = append(f.ships, s)
}

// start starts a process of a node. The first node founds the cluster; afterwards each
// joins by any of the others.
func (f *fleet) start(s *ship) error {
	c := s.config
	if _, err := os.Stat(c.Data); err == nil || s != f.ships[0] {
		for _, other := range f.ships {
			if other != s {
				c.Join = append(c.Join, other.config.Listen)
			}
		}
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := f.command()
	if s.space != "" {
		in := exec.Command("ip", append([]string{"netns", "exec", s.space, cmd.Path}, cmd.Args[1:]...)...)
		in.Env, cmd = cmd.Env, in
	}
	// Its own group, so that an interrupt of the terminal is for this process alone.
	cmd.SysProcAttr = apart()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = &saying{f, s.name}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.mu.Lock()
	f.processes[cmd.Process.Pid] = s
	f.mu.Unlock()
	s.cmd, s.leash, s.running, s.frozen, s.ended = cmd, stdin, true, false, make(chan struct{})
	go func(ended chan struct{}) { // ends with the process, which close waits for
		_ = cmd.Wait()
		close(ended)
	}(s.ended)
	_, err = stdin.Write(append(line, '\n'))
	return err
}

// saying keeps what a process says on standard error.
type saying struct {
	f    *fleet
	name string
}

func (s *saying) Write(b []byte) (int, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.said.Len() < 256<<10 {
		fmt.Fprintf(&s.f.said, "%s: %s", s.name, b)
	}
	return len(b), nil
}

// heard returns what all processes have said on standard error.
func (f *fleet) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said.String()
}

// kill is kill -9.
func (f *fleet) kill(s *ship) {
	if s.running {
		_ = s.cmd.Process.Kill()
		<-s.ended
		s.running, s.frozen = false, false
	}
}

// freeze is SIGSTOP, and thaw SIGCONT.
func (f *fleet) freeze(s *ship) error {
	s.frozen = true
	return s.cmd.Process.Signal(syscall.SIGSTOP)
}

func (f *fleet) thaw(s *ship) error {
	if !s.frozen { // killed meanwhile
		return nil
	}
	s.frozen = false
	return s.cmd.Process.Signal(syscall.SIGCONT)
}

// interrupt ends a process in good order, or after some time in no order.
func (f *fleet) interrupt(s *ship, within time.Duration) error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case <-s.ended:
		s.running, s.frozen = false, false
		return nil
	case <-time.After(within):
		f.kill(s)
		return fmt.Errorf("%s has not ended within %v of an interrupt", s.name, within)
	}
}

// close ends all processes.
func (f *fleet) close() {
	for _, s := range f.ships {
		f.kill(s)
		if s.leash != nil {
			s.leash.Close()
		}
	}
	f.client.CloseIdleConnections()
}

// of returns which node a process belongs to.
func (f *fleet) of(pid int) *ship {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[pid]
}

// ask asks the nodes one after the other until one answers. An answer with an error is
// one, unless that says that there is no quorum, or that nobody knows what was agreed on.
func (f *fleet) ask(ctx context.Context, q *node.Request) (a *node.Answer, err error) {
	err = errors.New("no node is running")
	for i := range f.ships {
		s := f.ships[(f.asked+i)%len(f.ships)]
		if !s.running || s.frozen || s.cut {
			continue
		}
		if a, err = f.askOne(ctx, s, q); err == nil && (a.Error == nil || a.Error.Reason != node.ErrNoQuorum && a.Error.Reason != node.ErrUnsure) {
			f.asked = (f.asked + i) % len(f.ships)
			return a, nil
		}
	}
	if err == nil {
		err = a.Error
	}
	return nil, err
}

func (f *fleet) askOne(ctx context.Context, s *ship, q *node.Request) (*node.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	a := new(node.Answer)
	return a, f.post(ctx, s, process.Path, q, a)
}

// refused returns how much the tasks of a node have refused of lives that are over.
func (f *fleet) refused(ctx context.Context, s *ship) (n int64, err error) {
	err = f.post(ctx, s, refusedPath, nil, &n)
	return n, err
}

// post asks a node for something.
func (f *fleet) post(ctx context.Context, s *ship, path string, q, a any) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.config.Listen+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return fmt.Errorf("%s answers %s: %s", s.name, answer.Status, text)
	}
	return json.NewDecoder(answer.Body).Decode(a)
}

// insist asks until there is an answer without an error, or ctx ends.
func (f *fleet) insist(ctx context.Context, q *node.Request) (*node.Answer, error) {
	for {
		a, err := f.ask(ctx, q)
		switch {
		case err == nil && a.Error == nil:
			return a, nil
		case err == nil && a.Error.Reason != cluster.ErrStale:
			return nil, a.Error
		case err == nil:
			err = a.Error
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// view returns how a node sees the cluster.
func (f *fleet) view(ctx context.Context) (*node.View, error) {
	a, err := f.insist(ctx, &node.Request{Op: node.OpState})
	if err != nil {
		return nil, err
	}
	return a.State, nil
}

// until asks for views until one is as wanted.
func (f *fleet) until(ctx context.Context, what string, good func(*node.View) bool) (*node.View, error) {
	for {
		v, err := f.view(ctx)
		if err == nil && good(v) {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("it was waited in vain for this: %s: %w", what, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
