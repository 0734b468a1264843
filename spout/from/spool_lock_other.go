//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package from

import (
	"errors"
	"os"

	"github.com/egretstream/egret/spout"
)

// flock says that a spool directory needs locks that end with their process.
func flock(*os.File) error {
	return spout.Fatal(errors.New("a spool directory needs flock, which this operating system has not"))
}
