package topology

import (
	"errors"
	"strconv"
	"strings"
)

// What can be wrong with a topology. Each is the Err of a [BuildError].
var (
	// ErrName reports a name that is empty, reserved, taken or has characters
	// that names do not have.
	ErrName = errors.New("bad name")
	// ErrNil reports a spout without a source, a bolt without a factory or a
	// topology without a definition.
	ErrNil = errors.New("missing code")
	// ErrField reports a field that is not there, declared twice or missing.
	ErrField = errors.New("bad field")
	// ErrStream reports a stream that is not there, declared twice or missing.
	ErrStream = errors.New("bad stream")
	// ErrComponent reports the use of a component that is not there.
	ErrComponent = errors.New("no such component")
	// ErrSubscription reports an input that is empty, twice the same or of
	// another Builder.
	ErrSubscription = errors.New("bad subscription")
	// ErrParallel reports a number of tasks outside 1 to 4,096.
	ErrParallel = errors.New("bad parallelism")
	// ErrInterval reports a time given to Every or Holds that is not positive, or on a
	// spout.
	ErrInterval = errors.New("bad interval")
	// ErrCycle reports a component whose output comes back to it.
	ErrCycle = errors.New("cycle")
	// ErrUnreachable reports a bolt that no spout sends to.
	ErrUnreachable = errors.New("unreachable bolt")
	// ErrNoSpout reports a topology without a spout.
	ErrNoSpout = errors.New("no spout")
	// ErrParam reports a parameter that is not declared, badly declared or has a
	// value that is not of its kind.
	ErrParam = errors.New("bad parameter")
	// ErrGuarantee reports a guarantee that does not exist.
	ErrGuarantee = errors.New("bad guarantee")
)

// A BuildError is one mistake in a topology or in the options of Build. Fields
// that do not apply are empty.
type BuildError struct {
	Component string // the component that has to be changed
	Stream    string // "component.stream" of what it is about
	Field     string
	Detail    string // what is wrong, for people, without the component
	Err       error  // one of this package's sentinels, or what was given to Builder.Check
	kind      kind   // of the component
}

func (e *BuildError) Error() string {
	if e.kind == none {
		return e.Detail
	}
	return string(e.kind) + " " + shown(e.Component) + ": " + e.Detail
}

func (e *BuildError) Unwrap() error { return e.Err }

// maxName is the longest name in bytes; names become parts of file names.
const maxName = 100

// badName says what is wrong with the name of a topology, component, stream or
// field, or returns "".
func badName(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > maxName:
		return "is longer than " + strconv.Itoa(maxName) + " bytes"
	case strings.HasPrefix(s, "__"):
		return `starts with "__", which is reserved`
	case s[0] == '-' || s[0] == '.':
		return "does not start with a letter, a digit or _"
	}
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		default:
			return "has " + strconv.QuoteRune(r) + " in it; allowed are letters, digits, _ - ."
		}
	}
	return ""
}

// badParamName is badName for parameters, which are flags as well.
func badParamName(s string) string {
	const rule = "; allowed are lower-case letters and digits with single dashes between them, a letter first"
	if s == "" {
		return "is empty" + rule
	}
	if len(s) > maxName {
		return "is longer than " + strconv.Itoa(maxName) + " bytes"
	}
	before := '-'
	for i, r := range s {
		switch {
		case 'a' <= r && r <= 'z':
		case '0' <= r && r <= '9' && i > 0:
		case r == '-' && before != '-' && i < len(s)-1:
		default:
			return "has " + strconv.QuoteRune(r) + " at " + strconv.Itoa(i+1) + rule
		}
		before = r
	}
	return ""
}

// shown returns a name as it stands in a sentence: bare if it is a good one.
func shown(name string) string {
	if badName(name) != "" {
		return strconv.Quote(name)
	}
	return name
}

// list returns names for "(have a, b)".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return list(q)
}
