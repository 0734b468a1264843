package egret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
)

// nodeVariable is the environment variable with the default of --node.
const nodeVariable = "EGRET_NODE"

// defaultNode is where a node is if nobody says so.
const (
	defaultNode = "127.0.0.1:7101"
	defaultPort = 7101
)

const (
	answerWithin = 15 * time.Second // longer than a node waits for others
	waitWithin   = 2 * time.Minute
	leaderWithin = 5 * time.Second // a new one is found in less
	askAgain     = 200 * time.Millisecond
)

// A client is how commands talk to a cluster, with the flags that they have for it.
type client struct {
	node, secret string
	timeout      time.Duration
	json, wait   bool
	preview      bool // of commands that move tasks: say what would move, and do nothing

	http *http.Client
	stop context.CancelFunc
}

// command returns a command that talks to a cluster.
func (l *client) command(use, short, long string, args cobra.PositionalArgs, run func(ctx context.Context, c *cobra.Command, args []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: short + ".\n\n" + long + exitCodes, Args: args}
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, err := l.open(c.Context())
		if err != nil {
			return err
		}
		defer l.close()
		return run(ctx, c, args)
	}
	l.flags(c)
	return c
}

func (l *client) flags(c *cobra.Command) {
	def := os.Getenv(nodeVariable)
	if def == "" {
		def = defaultNode
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&l.node, "node", def, "host:port of any node of the cluster (default: $"+nodeVariable+", else "+defaultNode+")")
	f.Lookup("node").DefValue = ""
	f.StringVar(&l.secret, "secret-file", "", "file with the secret of the cluster (default: the variable "+wire.SecretVariable+")")
	f.DurationVar(&l.timeout, "timeout", 0, "how long to wait at most (default 15s, with --wait 2m)")
	f.BoolVar(&l.json, "json", false, "print JSON")
}

const exitCodes = `
Exit codes: 0 done, 1 failed, 2 the command line is wrong, 4 no such topology,
component, node, state or key, 5 a parameter that cannot be, 6 no quorum, 7 the nodes run
another program, 8 no node can be reached, 9 refused as things are.`

// open makes the client ready, and returns a context that ends with its timeout.
func (l *client) open(ctx context.Context) (context.Context, error) {
	if _, _, err := net.SplitHostPort(l.node); err != nil {
		return nil, &usageError{fmt.Errorf("--node is %q: use host:port, as in %s", l.node, defaultNode)}
	}
	if l.timeout < 0 {
		return nil, &usageError{fmt.Errorf("--timeout is %v: use a time above 0", l.timeout)}
	}
	secret, err := wire.ReadSecret(l.secret)
	if err != nil {
		return nil, &usageError{err}
	}
	dial := wire.NewClient(secret, wire.Secret{}).Dial
	l.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			c, err := dial(ctx, addr)
			if err != nil {
				return nil, &dialError{err}
			}
			return c, nil
		},
	}}
	if l.timeout == 0 {
		l.timeout = answerWithin
		if l.wait {
			l.timeout = waitWithin
		}
	}
	ctx, l.stop = context.WithTimeoutCause(ctx, l.timeout, fmt.Errorf("no answer within %v", l.timeout))
	return ctx, nil
}

func (l *client) close() {
	l.stop()
	l.http.CloseIdleConnections()
}

// ask asks the node that was named. What may pass, such as that a new leader is being
// found, it asks again for a while.
func (l *client) ask(ctx context.Context, q *node.Request) (*node.Answer, error) {
	return l.askAt(ctx, l.node, q)
}

func (l *client) askAt(ctx context.Context, addr string, q *node.Request) (*node.Answer, error) {
	return patiently(ctx, q, func() (*node.Answer, error) { return l.askOnce(ctx, addr, q) })
}

// patiently asks, and for a while asks again when what hinders it may pass.
func patiently(ctx context.Context, q *node.Request, ask func() (*node.Answer, error)) (*node.Answer, error) {
	var last error // that may pass
	for began := time.Now(); ; {
		asked := time.Now()
		a, err := ask()
		switch {
		case last != nil && ctx.Err() != nil:
			return nil, last
		case err == nil || !passes(q, err) || time.Since(asked) > time.Second || time.Since(began) > leaderWithin:
			return a, err // one that took long may have been done
		}
		last = err
		if !pause(ctx, askAgain) {
			return nil, err
		}
	}
}

// passes reports whether a refusal is one that may be over in a moment. A node that has
// just joined is seen before it is in the log.
func passes(q *node.Request, err error) bool {
	return errors.Is(err, node.ErrNoQuorum) || errors.Is(err, node.ErrBusy) || errors.Is(err, node.ErrNotPlaced) || q.Op == node.OpDrain && errors.Is(err, cluster.ErrUnknown)
}

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// askOnce returns an answer that is no refusal.
func (l *client) askOnce(ctx context.Context, addr string, q *node.Request) (*node.Answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, &runError{err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+process.Path, bytes.NewReader(body))
	if err != nil {
		return nil, &usageError{err}
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := l.http.Do(r)
	if err != nil {
		return nil, unreachable(ctx, addr, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, unreachable(ctx, addr, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, &runError{fmt.Errorf("node %s: %s", addr, strings.TrimSpace(string(text)))}
	}
	var a node.Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, &runError{fmt.Errorf("node %s gives an answer that cannot be read: is it another version of Egret? (%w)", addr, err)}
	}
	if a.Error != nil {
		return nil, refusal(a.Error)
	}
	return &a, nil
}

// A dialError says that a node has not heard what was asked.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// A codedError is one with an exit code of its own.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func unreachable(ctx context.Context, addr string, err error) error {
	if u, is := errors.AsType[*url.Error](err); is {
		err = u.Err
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("node %s: %w", addr, context.Cause(ctx))
	}
	return &codedError{ExitUnreachable, err}
}

// refusal is what a node has refused, with its exit code.
func refusal(r *cluster.Refusal) error {
	code := ExitFailed
	switch r.Reason {
	case cluster.ErrUnknown, node.ErrComponent, node.ErrState:
		code = ExitUnknown
	case node.ErrParameter:
		code = ExitParameter
	case node.ErrNoQuorum, node.ErrUnsure:
		code = ExitNoQuorum
	case node.ErrFingerprint:
		code = ExitFingerprint
	case cluster.ErrRunning, cluster.ErrEnded, cluster.ErrStale, cluster.ErrNoNode, cluster.ErrUnfit, node.ErrBusy, node.ErrNotPlaced:
		code = ExitRefused
	}
	return &codedError{code, r}
}

// refused says why a command does nothing as things are.
func refused(format string, args ...any) error {
	return &codedError{ExitRefused, fmt.Errorf(format, args...)}
}

// view asks how a node sees the cluster.
func (l *client) view(ctx context.Context) (*node.View, error) { return l.viewAt(ctx, l.node) }

func (l *client) viewAt(ctx context.Context, addr string) (*node.View, error) {
	a, err := l.askAt(ctx, addr, &node.Request{Op: node.OpState})
	if err != nil {
		return nil, err
	}
	if a.State == nil {
		return nil, &runError{fmt.Errorf("node %s gives no state: is it another version of Egret?", addr)}
	}
	return a.State, nil
}

// until waits until a node's view is as it should be. doing says what else goes on when
// the time is over.
func (l *client) until(ctx context.Context, doing string, is func(*node.View) bool) error {
	for {
		v, err := l.view(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case is(v):
			return nil
		}
		if !pause(ctx, askAgain) {
			return &runError{fmt.Errorf("%s; --timeout is over after %v, and it goes on", doing, l.timeout)}
		}
	}
}

// print writes a value as JSON, or as text.
func (l *client) print(c *cobra.Command, value any, text string) error {
	if l.json {
		return encode(c.OutOrStdout(), value)
	}
	fmt.Fprint(c.OutOrStdout(), plainText(text))
	return nil
}
