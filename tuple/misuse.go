package tuple

import "errors"

// misuse is the panic of a mistake in the use of tuples: a field that is not
// there or is of another kind, a wrong Emit. It is no failure of the task but of
// the tuple in hand, which is rejected.
type misuse struct{ what string }

func (m misuse) Error() string { return m.what }

// Misuse panics with a mistake that rejects the tuple in hand.
func Misuse(what string) { panic(misuse{what}) }

// Misused returns the mistake if a recovered panic was one, else nil.
func Misused(recovered any) error {
	if m, ok := recovered.(misuse); ok {
		return errors.New(m.what)
	}
	return nil
}
