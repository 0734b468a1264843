//go:build !unix

package consensus

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by another process")

func flock(*os.File) error {
	return errors.New("a data directory needs locks of files that end with their process, which Egret has on Unix only")
}

func syncDir(string) error { return nil }
