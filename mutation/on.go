//go:build mutation

package mutation

import "hash/maphash"

var (
	active  Mutation
	reached = func() {}
	process = int(256 + maphash.Bytes(maphash.MakeSeed(), nil)%512)
)

// Is reports whether m is on.
func Is(m Mutation) bool {
	if m != active {
		return false
	}
	reached()
	return true
}

// Set turns m on, and every other mutation off. hook is called each time when the
// engine comes to a place that m breaks, by the goroutine that does. Nothing of the
// engine may run meanwhile.
func Set(m Mutation, hook func()) { active, reached = m, hook }

// Process returns a number from 1 to 1023 that differs from process to process. It
// moves many keys to another owner.
func Process() int { return process }
