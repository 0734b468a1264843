//go:build !unix

package file

import (
	"errors"
	"os"
)

// Lock is there on Unix.
func Lock(*os.File) error {
	return errors.New("this needs locks of files that end with their process, which Egret has on Unix only")
}

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }
