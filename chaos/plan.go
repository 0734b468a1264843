package chaos

import (
	"fmt"
	"strings"
)

// A Plan is what is done to a run. Its faults are in no order but that of their
// times. A nil Plan does nothing.
type Plan []Fault

// Parse reads a plan: faults with semicolons or newlines between them. Its error
// says which line or fault cannot be read, and what would be one.
func Parse(text string) (Plan, error) {
	var p Plan
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, s := range strings.Split(line, ";") {
			s = strings.TrimSpace(s)
			if s == "" {
				continue
			}
			f, err := ParseFault(s)
			if err != nil {
				return nil, fmt.Errorf("line %d, %q: %w", n+1, s, err)
			}
			p = append(p, f)
		}
	}
	return p, nil
}

// String returns the plan in one line, which Parse reads.
func (p Plan) String() string {
	var parts []string
	for _, f := range p {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, "; ")
}

// MarshalText returns what String does.
func (p Plan) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is Parse.
func (p *Plan) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// Live returns an error for the first fault that cannot be done to a running
// topology: messages between its tasks are not lost, and nothing there counts
// events.
func (p Plan) Live() error {
	var can []Kind
	for _, k := range kinds {
		if k.Live() {
			can = append(can, k)
		}
	}
	for _, f := range p {
		switch {
		case !f.Kind.Live() || f.Kind == Break && f.Rate > 0 || f.Kind == Panic && f.Rate > 0 || f.Call != "":
			return fmt.Errorf("%q can only be simulated: a running topology can be told to %s", f, list(can))
		case f.When.From.Clock != Time:
			return fmt.Errorf("%q: only a simulation counts %ss: say at 2s", f, clockNames[f.When.From.Clock])
		}
	}
	return nil
}
