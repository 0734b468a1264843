package egret

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/egretstream/egret/topology"
)

// A tasksValue is the flag --parallel: how many tasks components have, by name.
type tasksValue map[string]int

func (v *tasksValue) Type() string { return "component=n,..." }

func (v *tasksValue) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*v)) {
		parts = append(parts, name+"="+strconv.Itoa((*v)[name]))
	}
	return strings.Join(parts, ",")
}

// Set adds what s says; the flag may be given several times.
func (v *tasksValue) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, number, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return fmt.Errorf("%q is no component and its number of tasks, as in count=4", part)
		}
		if *v == nil {
			*v = tasksValue{}
		}
		(*v)[name] = n
	}
	return nil
}

// parameterHint returns what is said of a flag that a command does not have: more
// than that if it is a parameter of a topology, here called NAME. how says where it
// belongs.
func parameterHint(topologies []*topology.Topology, how string) func(*cobra.Command, error) error {
	return func(_ *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			name := unknown.GetSpecifiedName()
			for _, t := range topologies {
				params, _ := t.Params()
				if slices.ContainsFunc(params, func(p topology.Param) bool { return p.Name == name }) {
					err = fmt.Errorf("%w, which is a parameter of the topology %s: %s", err, t.Name(), strings.ReplaceAll(how, "NAME", name))
					break
				}
			}
		}
		return &usageError{err}
	}
}
