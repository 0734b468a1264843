package egret

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/web"
)

// mostDev is how many nodes "dev" starts at most: each is a process with all of Egret.
const mostDev = 9

// devOptions are the flags of "dev".
type devOptions struct {
	nodes int
	keep  bool
	http  string
}

// devCommand is "dev".
func devCommand(topologies []*topology.Topology) *cobra.Command {
	o := &devOptions{}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster of several nodes on this machine, to try things",
		Long: `Run a cluster of several nodes on this machine, to try things, until it is interrupted.

Each node is a process of its own, which may be killed to see what becomes of its
tasks; it is not started again. Their data is removed at the end.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c, topologies) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.nodes, "nodes", 3, fmt.Sprintf("how many, 1 to %d", mostDev))
	f.StringVar(&o.http, "http", defaultPage, "where the first node serves a page, an API and metrics; empty: nowhere")
	f.BoolVar(&o.keep, "keep", false, "leave the directory with their data, and say where it is")
	return c
}

// A child is a node that is a process of its own.
type child struct {
	name   string
	cmd    *exec.Cmd
	member chan struct{} // closed when it has said that it is a node of a cluster
	last   string        // line that it has written of what is wrong; read when it has ended
	ended  chan struct{} // closed when it has
	err    error         // how
}

func (n *child) isMember() bool {
	select {
	case <-n.member:
		return true
	default:
		return false
	}
}

// failed returns why a node has never been one of the cluster, if that is so and nobody has
// killed it: then the others would wait for it for ever, or try what it does in vain.
func (n *child) failed() error {
	e, is := errors.AsType[*exec.ExitError](n.err)
	if n.isMember() || !is || !e.Exited() {
		return nil
	}
	return &codedError{e.ExitCode(), fmt.Errorf("node %s could not start: %s", n.name, n.last)}
}

func (o *devOptions) run(c *cobra.Command, topologies []*topology.Topology) (err error) {
	if o.nodes < 1 || o.nodes > mostDev {
		return &usageError{fmt.Errorf("--nodes is %d: use 1 to %d", o.nodes, mostDev)}
	}
	if o.http != "" && c.Flags().Changed("http") { // before there is anything to end
		l, err := web.Listen((&HTTP{Address: o.http}).door(slog.Default()))
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return serveError(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return &runError{err}
	}
	dir, err := os.MkdirTemp("", "egret-dev-")
	if err != nil {
		return &placeError{err}
	}
	stdout, out := &lines{w: c.OutOrStdout()}, &lines{w: c.ErrOrStderr()} // of all nodes
	interrupted, stop := interrupts(nil)
	defer stop()
	defer func() {
		if o.keep {
			out.print("the data of the nodes is in " + dir)
		} else if rerr := os.RemoveAll(dir); rerr != nil {
			err = errors.Join(err, &runError{rerr})
		}
	}()
	addrs, err := freePorts(o.nodes)
	if err != nil {
		return &placeError{err}
	}
	where := ""
	if !c.Flags().Changed("http") {
		if o.http, err = freePage(); err != nil {
			return &placeError{err}
		}
		where = "the page is http://" + o.http + "\n"
	}
	deaths := make(chan *child, o.nodes)
	var all []*child
	defer func() { end(all, interrupted, out) }()
	for i, addr := range addrs {
		name := "n" + fmt.Sprint(i+1)
		args := []string{"node", "--listen", addr, "--name", name, "--data", filepath.Join(dir, name)}
		if i > 0 {
			args = append(args, "--join", addrs[0])
		} else if o.http != "" {
			args = append(args, "--http", o.http)
		}
		n, err := startChild(self, name, args, stdout, out, deaths)
		if err != nil {
			return &runError{err}
		}
		all = append(all, n)
		if i > 0 {
			continue
		}
		select { // or the others would ask where nobody listens yet
		case <-n.member:
		case <-n.ended: // see below
		case <-interrupted:
			out.print("interrupted: ending all nodes")
			return nil
		}
	}
	out.print(fmt.Sprintf(`%s on this machine; in another terminal:
  export %s=%s
  %[4]s submit %[5]s
  %[4]s status
%[6]san interrupt ends them all`, amount.Of(o.nodes, "node"), nodeVariable, addrs[0], program(), topologies[0].Name(), where))
	for living := len(all); living > 0; {
		select {
		case <-interrupted:
			out.print("interrupted: ending all nodes")
			return nil
		case n := <-deaths:
			living--
			if err := n.failed(); err != nil {
				return err
			}
			out.print(fmt.Sprintf("node %s has ended (%v); %s left", n.name, n.err, amount.Of(living, "node")))
		}
	}
	return &runError{errors.New("all nodes have ended")}
}

// startChild starts a node, whose output appears with its name before each line.
func startChild(self, name string, args []string, stdout, stderr *lines, deaths chan<- *child) (*child, error) {
	n := &child{name: name, cmd: exec.Command(self, args...), member: make(chan struct{}), ended: make(chan struct{})}
	apart(n.cmd)
	outs, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := n.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the child, which end waits for
		var reading sync.WaitGroup
		reading.Go(func() { stdout.copy(name+"  ", outs, func(string) {}) })
		reading.Go(func() {
			stderr.copy(name+"  ", errs, func(line string) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Try: ") {
					n.last = line
				}
				if !n.isMember() && strings.HasPrefix(line, "node ") && strings.Contains(line, " of cluster ") { // see nodeOptions.run
					close(n.member)
				}
			})
		})
		reading.Wait() // before Wait, which closes the pipes
		n.err = errors.New("exit status 0")
		if err := n.cmd.Wait(); err != nil {
			n.err = err
		}
		close(n.ended)
		deaths <- n // there is room for each
	}()
	return n, nil
}

// end ends all nodes, and waits for them. They do not move their tasks to each other, since
// each hears that all of them go.
func end(all []*child, interrupted <-chan int, out *lines) {
	interrupt := func() {
		for _, n := range all {
			_ = n.cmd.Process.Signal(os.Interrupt) // one that has ended does not mind
		}
	}
	interrupt()
	second, last := time.After(devAgain), time.After(devPatience)
	for _, n := range all {
		for ended := false; !ended; {
			select {
			case <-n.ended:
				ended = true
				continue
			case <-second:
				interrupt()
				continue
			case <-interrupted:
			case <-last:
			}
			out.print("killing the nodes that have not ended")
			for _, n := range all {
				_ = n.cmd.Process.Kill()
			}
		}
	}
}

const (
	devAgain    = 5 * time.Second // then the second interrupt stops a node at once; one that was killed is known to be dead before
	devPatience = 10 * time.Second
)

// freePorts returns addresses of this machine that nobody listens at now: the default
// of commands and those behind it, or if they are taken any.
func freePorts(n int) (addrs []string, err error) {
	for i := range n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", defaultPort+i))
		if err != nil {
			addr, err := wire.Spare()
			if err != nil {
				return nil, err
			}
			addrs = append(addrs, addr)
			continue
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// freePage returns where a page can be served at the moment: the default, or if that is
// taken anywhere.
func freePage() (string, error) {
	l, err := net.Listen("tcp", defaultPage)
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// lines writes whole lines of several writers.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) print(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, strings.TrimSuffix(text, "\n")+"\n")
}

// copy copies lines, with something before each, until there are no more. Each is shown to
// see as well.
func (l *lines) copy(before string, r io.Reader, see func(line string)) {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		if line != "" {
			l.print(before + line)
			see(line)
		}
		if err != nil {
			return
		}
	}
}
