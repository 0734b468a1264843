package batch

import (
	"fmt"
	"maps"
	"slices"
)

// A program changes from run to run, and the record of its batches goes on. What has only
// got another name would be read from its beginning once more, or begin in the middle.

// A Shape is what a topology has that a record knows by name.
type Shape struct {
	Sources, States []string
	FromHere        []string // States that may begin in the middle of the input
	Dropped         []string // sources and states that earlier versions had
}

// A Misfit says why a topology cannot go on with a record.
type Misfit struct {
	What   string // behind "the record ..."
	Remedy string // what to do if that is meant
}

// Fit returns the states that a topology has dropped, which the record is to forget (see
// Without), or why the topology cannot go on with it.
func (r *Record) Fit(s *Shape) (dropped []string, m *Misfit) {
	for _, name := range slices.Sorted(maps.Keys(r.Positions)) {
		if !slices.Contains(s.Sources, name) && !slices.Contains(s.Dropped, name) {
			return nil, &Misfit{fmt.Sprintf("has positions of source %q, which the topology does not have", name),
				fmt.Sprintf("if it was left out on purpose, say Dropped(%q) in the definition", name)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Fixed)) {
		if !slices.Contains(s.Sources, name) && slices.ContainsFunc(slices.Collect(maps.Values(r.Fixed[name])), func(r Range) bool { return r.Messages > 0 }) {
			return nil, &Misfit{fmt.Sprintf("has messages of source %q in batch %d, which states may have written, and the topology does not have it", name, r.Committed+1),
				"let a run of the version that had it come to its end, and leave it out then"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Last)) {
		switch {
		case slices.Contains(s.States, name):
		case slices.Contains(s.Dropped, name):
			dropped = append(dropped, name)
		default:
			return nil, &Misfit{fmt.Sprintf("has batches of state %q, which the topology does not have", name),
				fmt.Sprintf("if it was left out on purpose, say Dropped(%q) in the definition, and it is forgotten for good", name)}
		}
	}
	for _, name := range s.States {
		if r.Committed > 0 && r.Last[name] == nil && !slices.Contains(s.FromHere, name) {
			return nil, &Misfit{fmt.Sprintf("does not know state %q, which the topology has", name),
				"if it is new, and is to begin in the middle of the input, say FromHere of it"}
		}
	}
	return dropped, nil
}
