package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A Backend keeps states below a directory. Its methods may be called by several
// goroutines.
type Backend struct {
	// Log, if not nil, is told what goes wrong while nobody waits for it, such as a
	// compaction for which the disk has no room. Of several backends of one directory the
	// one whose Open comes first counts.
	Log *slog.Logger

	dir string
	fs  vfs.FS
}

func init() { state.Register("pebble", func(path string) state.Backend { return Dir(path) }) }

// Dir returns the states below a directory, which is made when it is needed.
func Dir(path string) *Backend { return &Backend{dir: path, fs: vfs.Default} }

func (b *Backend) String() string { return b.dir }

// Local says that the states are on one machine: one process at a time can open them.
func (b *Backend) Local() {}

// opened are the databases that this process has open, by file system and directory.
var opened = struct {
	sync.Mutex
	tables map[place]*table
}{tables: map[place]*table{}}

type place struct {
	fs  vfs.FS
	dir string
}

// Open opens the database of a state, or joins those of this process who have it open.
func (b *Backend) Open(_ context.Context, name state.Name) (state.Store, error) {
	return b.open(name, true)
}

// Find opens a database that is there.
func (b *Backend) Find(_ context.Context, name state.Name) (state.Store, error) {
	return b.open(name, false)
}

func (b *Backend) open(name state.Name, create bool) (state.Store, error) {
	if b.dir == "" {
		return nil, fmt.Errorf("state %v: the directory of pebble.Dir has no name", name)
	}
	dir, err := filepath.Abs(filepath.Join(b.dir, fileName(name.Topology), fileName(name.State)))
	if err != nil {
		return nil, fmt.Errorf("state %v in %s: %w", name, b.dir, err)
	}
	at := place{b.fs, dir}
	opened.Lock()
	defer opened.Unlock()
	t := opened.tables[at]
	if t == nil {
		if _, err := b.fs.Stat(b.fs.PathJoin(dir, "LOCK")); !create && errors.Is(err, fs.ErrNotExist) { // which is made first
			return nil, fmt.Errorf("state %v in %s: %w", name, dir, state.ErrNone)
		}
		if t, err = open(at, name, b.Log); err != nil {
			return nil, err // says which state
		}
		opened.tables[at] = t
	}
	if err := t.broken.Load(); err != nil { // those who have it open find that, too, and close it
		return nil, *err
	}
	t.users++
	return &store{table: t}, nil
}

// fileName makes a name that any file system takes, and another one for each s. What is
// not a lower-case letter, a digit or one of -_ is written as %XX.
func fileName(s string) string {
	if s == "" {
		return "%"
	}
	var b []byte
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b = append(b, c)
		default:
			b = fmt.Appendf(b, "%%%02X", c)
		}
	}
	return string(b)
}

// Bounds of what a database has in memory.
const (
	cacheSize    = 64 << 20
	memTableSize = 16 << 20 // up to four of them
)

func open(at place, name state.Name, log *slog.Logger) (*table, error) {
	if err := makeDir(at.fs, at.dir); err != nil {
		return nil, fmt.Errorf("state %v: %w", name, err)
	}
	t := &table{at: at, name: name, log: log}
	lock, err := pebble.LockDirectory(at.dir, at.fs)
	if err != nil {
		return nil, fmt.Errorf("state %v in %s: another process has it open, or it cannot be locked: %w", name, at.dir, err)
	}
	options := &pebble.Options{
		FS: at.fs, Lock: lock, CacheSize: cacheSize, MemTableSize: memTableSize,
		FormatMajorVersion: pebble.FormatNewest, Logger: t, EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { t.Errorf("%v", err) },
			// Who reads it gets an error.
			DataCorruption: func(info pebble.DataCorruptionInfo) { t.Errorf("%v", info) },
		},
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most keys that a batch asks for first are not there
	}
	if t.db, err = pebble.Open(at.dir, options); err == nil {
		if err = t.load(); err != nil {
			err = errors.Join(err, t.db.Close())
		}
	}
	if err != nil {
		if !pebble.IsCorruptionError(err) && !errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("it cannot be opened (if files are damaged or missing, put back a copy of the directory, or delete it and start the topology anew): %w", err)
		}
		return nil, errors.Join(t.fault(err), lock.Close())
	}
	t.lock = lock
	return t, nil
}

// makeDir makes a directory that is there when the power has gone. The two above it are
// ours, too; what is above them may be anybody's, and is synced if it is new.
func makeDir(disk vfs.FS, dir string) error {
	sync := []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))}
	for up := sync[1]; ; {
		if _, err := disk.Stat(up); err == nil || filepath.Dir(up) == up {
			break
		}
		up = filepath.Dir(up)
		sync = append(sync, up)
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range sync {
		f, err := disk.OpenDir(d)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

// load reads what the table keeps in memory of its groups.
func (t *table) load() error {
	switch b, closer, err := t.db.Get([]byte{versionKey}); {
	case errors.Is(err, pebble.ErrNotFound):
		if err := t.db.Set([]byte{versionKey}, []byte{layout}, pebble.Sync); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		version := int(b[0]) // pebble has no empty value of it
		closer.Close()
		if version != layout {
			return &state.UnusableError{Err: fmt.Errorf("it has layout %d, and this program knows layout %d only", version, layout)}
		}
	}
	all, err := t.db.NewIter(&pebble.IterOptions{LowerBound: []byte{groupKey}, UpperBound: []byte{groupKey + 1}})
	if err != nil {
		return err
	}
	for ok := all.First(); ok; ok = all.Next() {
		g, err := groupOf(all.Key())
		if err == nil {
			t.groups[g].fence, t.groups[g].last, err = readGroup(all.Value())
		}
		if err != nil {
			return errors.Join(err, all.Close())
		}
	}
	return all.Close() // and what has gone wrong
}

func groupOf(key []byte) (uint16, error) {
	if len(key) < keyHead || key[1] >= tuple.KeyGroups>>8 {
		return 0, errLayout
	}
	return uint16(key[1])<<8 | uint16(key[2]), nil
}
