package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/topology"
)

// A pairing is what runs topologies on two nodes: halves, one of them in another process.
type pairing struct {
	halve Halver
	child child
}

// A session is one run of the other process. Its methods may be called from any
// goroutine, one call waits for the other.
type session struct {
	mu       sync.Mutex
	process  *exec.Cmd
	in       io.WriteCloser
	answers  *json.Decoder
	requests *json.Encoder
	said     bytes.Buffer // on standard error
	addr     string
	last     answer
	err      error // the first
}

// open starts the other process.
func (c *child) open(ctx context.Context, o order) (*session, error) {
	s := &session{process: exec.CommandContext(ctx, c.program, append(c.command[:len(c.command):len(c.command)], "--"+halfFlag)...)}
	s.process.Stderr = &s.said
	in, err := s.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	s.in, s.answers, s.requests = in, json.NewDecoder(out), json.NewEncoder(in)
	a, err := s.ask(o)
	if err != nil {
		return nil, joined(err, s.close())
	}
	s.addr = a.Addr
	return s, nil
}

// ask sends an order or a request and waits for the answer. What comes after an error is
// what was answered last.
func (s *session) ask(what any) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		var a answer
		err := s.requests.Encode(what)
		if err == nil {
			err = s.answers.Decode(&a)
		}
		switch {
		case err != nil:
			s.err = fmt.Errorf("the other process says nothing: %w", err)
		case a.Error != "":
			s.err = errors.New("the other process: " + a.Error)
		default:
			s.last = a
		}
	}
	return s.last, s.err
}

func (s *session) snap() answer {
	a, _ := s.ask(request{Op: opSnap}) // the end tells of errors
	return a
}

// close ends the process and waits for it.
func (s *session) close() error {
	err := s.in.Close()
	if e := s.process.Wait(); e != nil {
		err = fmt.Errorf("the other process: %w: %s", e, strings.TrimSpace(s.said.String()))
	}
	return err
}

// joined is errors.Join, without what is not there.
func joined(errs ...error) error { return errors.Join(errs...) }

// measure is Measure on two nodes.
func (c *pairing) measure(ctx context.Context, s Setup, d time.Duration) (Result, error) {
	s.passes = 0
	p := newProbe()
	var last answer
	r, err := measure(ctx, c.run(&s, p, &last), &s, d, p)
	r.Latency, r.Due = last.Latency, last.Due
	return r, err
}

// digest is Digest on two nodes.
func (c *pairing) digest(ctx context.Context, s Setup) (string, error) {
	s = s.counting()
	p := newProbe()
	var last answer
	err := count(ctx, c.run(&s, p, &last), &s, p)
	return last.Digest, err
}

// run runs a topology on two nodes. last is what the other process has said last, when
// the run is over.
func (c *pairing) run(s *Setup, p *probe, last *answer) Runner {
	return func(ctx context.Context, t *topology.Topology, g topology.Guarantee, _ string, _ bool) Running {
		o := order{Setup: *s, Passes: s.passes, Kernel: p.clock.kernel}
		if s.TLS {
			o.Secret = rand.Text()
		}
		// The other process outlives ctx, which only ends the spouts.
		other, err := c.child.open(context.WithoutCancel(ctx), o)
		if err != nil {
			return failed(err)
		}
		h, err := c.halve(ctx, t, g, Side{Peer: other.addr, Secret: o.Secret})
		if err != nil {
			return failed(joined(err, other.close()))
		}
		p.phase = func(from, until int64) {
			_, _ = other.ask(request{Op: opPhase, From: from, Until: until}) // as snap
		}
		return Running{
			Stats: func() Counts {
				counts := h.Stats()
				counts.include(other.snap())
				counts.other.Wire += h.Wire()
				return counts
			},
			Wait: func() (Counts, error) {
				_, err := h.Wait()
				if err == nil {
					*last, err = other.ask(request{Op: opEnd})
				}
				err = joined(err, h.Close(), other.close())
				counts := h.Stats()
				counts.include(*last)
				return counts, err
			},
		}
	}
}

// include adds what another process has done.
func (c *Counts) include(a answer) {
	c.Executed += a.Counts.Executed
	for name, n := range a.Counts.ExecutedBy {
		c.ExecutedBy[name] += n
	}
	c.Failed += a.Counts.Failed
	c.other = a.Used
}

func failed(err error) Running {
	return Running{Stats: func() Counts { return Counts{} }, Wait: func() (Counts, error) { return Counts{}, err }}
}
