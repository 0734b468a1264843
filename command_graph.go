package egret

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/topology"
)

// graphOptions are the flags of "graph".
type graphOptions struct {
	format   string
	output   string
	set      []string
	parallel tasksValue
}

// graphCommand is "graph".
func graphCommand(topologies []*topology.Topology) *cobra.Command {
	var o graphOptions
	use := "graph NAME"
	if len(topologies) == 1 {
		use = "graph [NAME]"
	}
	c := &cobra.Command{
		Use:   use,
		Short: "Draw a topology as text, DOT or SVG",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			t, err := chosen(topologies, args)
			if err != nil {
				return &usageError{err}
			}
			picture, err := o.draw(t)
			if err != nil {
				return &usageError{err}
			}
			if o.output == "" {
				_, err = io.WriteString(c.OutOrStdout(), picture)
			} else {
				err = os.WriteFile(o.output, []byte(picture), 0o644)
			}
			if err != nil {
				return &runError{err}
			}
			return nil
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.format, "format", "", "text, dot (for Graphviz) or svg (default: as the file to write is called, else text)")
	f.StringVarP(&o.output, "output", "o", "", "file to write (default: standard output)")
	f.StringArrayVar(&o.set, "set", nil, "value of a parameter, `name=value`; as often as needed")
	f.Var(&o.parallel, "parallel", "tasks of components, as in count=4,split=2")
	c.SetFlagErrorFunc(parameterHint(topologies, "here it is --set NAME=VALUE"))
	return c
}

// chosen returns the topology that the arguments name, or the only one.
func chosen(topologies []*topology.Topology, args []string) (*topology.Topology, error) {
	switch {
	case len(args) > 1:
		return nil, fmt.Errorf("unknown argument %q: name one topology", args[1])
	case len(args) == 0 && len(topologies) == 1:
		return topologies[0], nil
	case len(args) == 0:
		return nil, fmt.Errorf("name one of %s", list(topologies, "or"))
	}
	for _, t := range topologies {
		if t.Name() == args[0] {
			return t, nil
		}
	}
	return nil, fmt.Errorf("there is no topology %q: the program has %s", args[0], list(topologies, "and"))
}

func (o *graphOptions) draw(t *topology.Topology) (string, error) {
	formats := map[string]func(*topology.Plan) string{"text": (*topology.Plan).Draw, "dot": graph.DOT, "svg": graph.SVG}
	draw := formats[o.format]
	switch {
	case o.format == "":
		if draw = formats[strings.TrimPrefix(strings.ToLower(filepath.Ext(o.output)), ".")]; draw == nil {
			draw = formats["text"]
		}
	case draw == nil:
		return "", fmt.Errorf("--format is %q: use text, dot or svg", o.format)
	}
	params, err := settings(o.set)
	if err != nil {
		return "", err
	}
	plan, err := t.Build(topology.Options{Params: params, Parallel: o.parallel})
	if err != nil {
		return "", errorOf("topology "+t.Name(), err)
	}
	return draw(plan), nil
}

// settings reads what --set says of parameters.
func settings(set []string) (map[string][]string, error) {
	params := map[string][]string{}
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("--set %s has no value: write --set %s=VALUE", s, s)
		}
		params[name] = append(params[name], value)
	}
	return params, nil
}
