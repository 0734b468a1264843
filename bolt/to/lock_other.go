//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package to

const posix = false

// claim cannot be made here: who writes one file twice is not told.
func claim(string, string) (release func() error, err error) {
	return func() error { return nil }, nil
}
