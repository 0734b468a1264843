// Package file locks directories, and writes files that are whole or not there. It is
// not for use outside Egret.
package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrLocked reports that somebody else has a lock.
var ErrLocked = errors.New("locked by another process")

// PartSuffix marks a file that is being written, beside the one whose place it takes.
const PartSuffix = ".part"

// Hold locks a directory, by a file in it, until what it returns is closed. If the error
// is ErrLocked, by says which process has it, as in " in process 7", as far as that has
// said so.
func Hold(dir string) (lock *os.File, by string, err error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err // names the file
	}
	if err := Lock(f); err != nil {
		by := Owner(f)
		f.Close()
		return nil, by, fmt.Errorf("lock %s: %w", name, err)
	}
	Sign(f)
	return f, "", nil
}

// Sign says in a file who has locked it, for people.
func Sign(f *os.File) {
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}

// Owner says which process holds a lock, as far as it has said so.
func Owner(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return ""
	}
	return " in process " + strconv.Itoa(pid)
}

// Write puts a file in its place, whole or not at all, so that it is there after a loss
// of power when Write has returned.
func Write(name string, b []byte) error {
	return write(name, b, calls{(*os.File).Sync, os.Rename, SyncDir})
}

// calls are those that make something durable, or put it in its place.
type calls struct {
	sync    func(*os.File) error
	rename  func(from, to string) error
	syncDir func(dir string) error
}

func write(name string, b []byte, do calls) error {
	part := name + PartSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = do.sync(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = do.rename(part, name)
	}
	if err != nil {
		os.Remove(part)
		return err
	}
	return do.syncDir(filepath.Dir(name))
}
