//go:build !mutation

package mutation

// Is reports whether m is on.
func Is(Mutation) bool { return false }

// Process returns a number from 1 to 1023 that differs from process to process.
func Process() int { return 1 }
