package egret

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/broker/wire"
)

// defaultPage is where "ui" and "dev" serve a page if nobody says so.
const defaultPage = "127.0.0.1:8080"

// uiOptions are the flags of "ui".
type uiOptions struct {
	http         httpOptions
	node, secret string
}

// uiCommand is "ui".
func uiCommand() *cobra.Command {
	o := &uiOptions{}
	c := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page of a cluster on this machine",
		Long: `Serve a page of a cluster, and its API, on this machine, until it is interrupted.

What the page asks for is passed on to a node, with the secret of the cluster. When that
is gone or silent, another node that it knows of is asked.
` + exitCodes,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.SortFlags = false
	o.http.flags(f)
	f.Lookup("http").DefValue = defaultPage
	f.Lookup("http").Usage = "where to serve the page, as in " + defaultPage + "; port 0: any that is free"
	o.http.http.Address = defaultPage
	f.StringVar(&o.node, "node", "", "host:port of any node of the cluster (default: $"+nodeVariable+", else "+defaultNode+")")
	f.StringVar(&o.secret, "secret-file", "", "file with the secret of the cluster (default: the variable "+wire.SecretVariable+")")
	return c
}

func (o *uiOptions) run(c *cobra.Command) error {
	at, err := o.http.build()
	if err == nil && at.Address == "" {
		err = errors.New("--http is empty: say where to serve the page, as in " + defaultPage)
	}
	if err != nil {
		return &usageError{err}
	}
	l := &client{node: o.node, secret: o.secret}
	if l.node == "" {
		if l.node = os.Getenv(nodeVariable); l.node == "" {
			l.node = defaultNode
		}
	}
	ctx, err := l.open(c.Context())
	if err != nil {
		return err
	}
	defer l.close()
	v, err := l.view(ctx)
	if err != nil {
		return err
	}
	interrupted, stop := interrupts(nil)
	defer stop()
	listener, err := at.listen(slog.Default())
	if err != nil {
		return serveError(err)
	}
	r := newRelay(l, v)
	listener.Serve(r.handler())
	fmt.Fprintf(c.ErrOrStderr(), "page: %s (of cluster %s, by node %s)\n", listener.URL, v.Cluster, l.node)
	r.watch(interrupted)
	return failed(listener.Close())
}
