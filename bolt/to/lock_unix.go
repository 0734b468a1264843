//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package to

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// posix: a file that is open can be renamed, and a directory synced.
const posix = true

// claiming: within a process, who finds a claim finds the name of its owner too.
var claiming sync.Mutex

// claim takes path for who, until the claim is released or the process ends, however
// that happens. The error says who has it, and is a rejection then.
//
// What is locked is a file beside path, which is there as long as the claim: path and
// path.partial are renamed meanwhile.
func claim(path, who string) (release func() error, err error) {
	claiming.Lock()
	defer claiming.Unlock()
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, lasting(err)
		}
		switch err := lock(f); {
		case errors.Is(err, unix.EWOULDBLOCK):
			by := owner(f)
			return nil, errors.Join(taken(path, by, who), f.Close())
		case err != nil:
			return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), f.Close())
		}
		have, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if at, err := os.Stat(name); err != nil || !os.SameFile(have, at) {
			f.Close() // removed by who had the claim before, after it was opened here
			continue
		}
		if err := f.Truncate(0); err == nil {
			_, _ = fmt.Fprintf(f, "%s, process %d\n", who, os.Getpid()) // for people
		}
		return func() error { return errors.Join(os.Remove(name), f.Close()) }, nil
	}
}

// owner reads who has a claim, as far as that was said.
func owner(f *os.File) string {
	b := make([]byte, 1024)
	n, _ := f.ReadAt(b, 0)
	if by := strings.TrimSpace(string(b[:n])); by != "" {
		return by
	}
	return "somebody else"
}

func lock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = conn.Control(func(fd uintptr) { locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	return errors.Join(err, locked)
}
