package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kinds are the backends of this program that can be named, by their names. It is written
// by init functions alone.
var kinds = map[string]func(place string) Backend{}

// Register gives a kind of backend a name, for [At]. A package of a backend calls it from
// its init function, so a program has the kinds that it imports, and is no larger for the
// others.
func Register(kind string, at func(place string) Backend) { kinds[kind] = at }

// At returns the backend of a kind at a place, such as a directory. It is an error if this
// program has no such kind.
func At(kind, place string) (Backend, error) {
	if at := kinds[kind]; at != nil {
		return at(place), nil
	}
	have := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
	if have == "" {
		have = "none"
	}
	return nil, fmt.Errorf("this program has no states of kind %q (it has %s): import the package of that kind", kind, have)
}
