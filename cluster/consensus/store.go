package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/egretstream/egret/state/file"
)

const storeFile = "log.db"

var (
	entries = []byte("entries") // by index
	terms   = []byte("terms")   // what raft has to remember: its term and its vote
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A store keeps entries of the log, and what raft must not forget, in a bbolt file: a
// raft.LogStore and a raft.StableStore. Every value has a checksum that covers its key,
// since bbolt has none for data. There are no gaps: entry n stands between n-1 and n+1.
type store struct {
	name   string
	db     *bbolt.DB
	mark   mark
	logger *slog.Logger
	closed chan struct{}

	updating sync.Mutex // from the beginning of a transaction until it is marked

	mu      sync.Mutex
	failing bool // it was said that nothing can be written
}

// openStore opens the file, which is there if had. Its entries begin where the newest
// snapshot ends, or before; end is the last entry in that, 0 if there is none. A file that
// is not as it was written, or that does not meet the snapshot, gives ErrCorrupt, and is
// left alone.
func openStore(dir string, had bool, end uint64, logger *slog.Logger) (*store, error) {
	name := filepath.Join(dir, storeFile)
	var first, last uint64
	info, err := os.Stat(name)
	if had && (err != nil || info.Size() == 0) {
		return nil, fmt.Errorf("%w: the log of this node, %s, is gone: a node that may have voted must not forget it. Put it"+
			" back, or start with an empty directory, as a new node, and let the others remove this one", ErrCorrupt, name)
	}
	if had {
		if err = checkMetas(name); err != nil {
			return nil, err
		}
		if first, last, err = verify(name); err != nil {
			return nil, err
		}
		if first > end+1 {
			return nil, fmt.Errorf("%w: %s begins with entry %d, and the snapshot beside it ends with %d: the entries between"+
				" are missing", ErrCorrupt, name, first, end)
		}
	}
	s := &store{name: name, logger: logger, closed: make(chan struct{})}
	err = guard(name, func() (err error) {
		if s.db, err = bbolt.Open(name, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if s.mark, err = openMark(dir); err != nil {
			return err
		}
		if !had {
			err = s.update(func(tx *bbolt.Tx) error {
				_, err1 := tx.CreateBucketIfNotExists(entries)
				_, err2 := tx.CreateBucketIfNotExists(terms)
				return errors.Join(err1, err2)
			})
			return errors.Join(err, file.SyncDir(dir))
		}
		// Entries that all lie before the end of the snapshot are of no use, and the next
		// one would come after a gap. They are there if the process ended when it had just
		// been given the snapshot.
		if last != 0 && last < end {
			return s.DeleteRange(first, last)
		}
		return nil
	})
	if err != nil {
		if s.db != nil {
			s.db.Close()
		}
		if s.mark.File != nil {
			s.mark.Close()
		}
		return nil, err
	}
	return s, nil
}

// guard turns what a damaged file does to bbolt into an error: it panics on pages that
// make no sense, and where the end of the file is missing its memory faults.
func guard(name string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error: // of no interest to people
			err = corrupt(name, errors.New("its pages do not fit together"))
		default:
			err = corrupt(name, fmt.Errorf("%v", p))
		}
	}()
	return f()
}

// verify reads all of a file without changing it, and returns its first and last entry.
func verify(name string) (first, last uint64, err error) {
	err = guard(name, func() error {
		db, err := bbolt.Open(name, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
		if _, unread := errors.AsType[*os.PathError](err); unread || errors.Is(err, bbolterrors.ErrTimeout) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return corrupt(name, err)
		}
		defer db.Close()
		err = db.View(func(tx *bbolt.Tx) error {
			e, t := tx.Bucket(entries), tx.Bucket(terms)
			if e == nil || t == nil {
				return errors.New("it is no log")
			}
			err := e.ForEach(func(k, v []byte) error {
				if _, err := unseal(k, v); err != nil {
					return err
				}
				i := index(k)
				if last != 0 && i != last+1 {
					return fmt.Errorf("after entry %d comes %d", last, i)
				}
				if first == 0 {
					first = i
				}
				last = i
				return nil
			})
			return errors.Join(err, t.ForEach(func(k, v []byte) error {
				_, err := unseal(k, v)
				return err
			}))
		})
		if err != nil {
			return corrupt(name, err)
		}
		return nil
	})
	return first, last, err
}

// update changes the file by one transaction, which is marked before anybody hears of it, and
// before the next one begins: raft stores entries and deletes them in two goroutines.
func (s *store) update(f func(*bbolt.Tx) error) error {
	s.updating.Lock()
	defer s.updating.Unlock()
	var transaction int
	err := s.db.Update(func(tx *bbolt.Tx) error {
		transaction = tx.ID()
		return f(tx)
	})
	if err != nil {
		return err
	}
	return s.mark.set(uint64(transaction))
}

func key(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func index(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// seal puts the checksum of key and value before the value.
func seal(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
}

// unseal returns a value as it was sealed. It is part of the file's memory.
func unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < 4 || binary.LittleEndian.Uint32(sealed) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, sealed[4:]) {
		if len(key) == 8 {
			return nil, fmt.Errorf("entry %d is not as it was written", index(key))
		}
		return nil, fmt.Errorf("%q is not as it was written", key)
	}
	return sealed[4:], nil
}

// An entry is its kind, term, time and the length of its extensions, then the
// extensions, then the data.
const entryHead = 1 + 8 + 8 + 4

func encodeEntry(l *raft.Log) []byte {
	b := make([]byte, 0, entryHead+len(l.Extensions)+len(l.Data))
	b = append(b, byte(l.Type))
	b = binary.LittleEndian.AppendUint64(b, l.Term)
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(b, l.Extensions...)
	return append(b, l.Data...)
}

func decodeEntry(index uint64, b []byte) (l raft.Log, err error) {
	if len(b) < entryHead {
		return l, fmt.Errorf("entry %d is too short", index)
	}
	l.Index, l.Type, l.Term = index, raft.LogType(b[0]), binary.LittleEndian.Uint64(b[1:])
	if at := int64(binary.LittleEndian.Uint64(b[9:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	n := binary.LittleEndian.Uint32(b[17:])
	if b = b[entryHead:]; uint64(n) > uint64(len(b)) {
		return l, fmt.Errorf("entry %d is too short", index)
	}
	if n > 0 {
		l.Extensions = append([]byte(nil), b[:n]...)
	}
	l.Data = append([]byte(nil), b[n:]...) // b is memory of the file
	return l, nil
}

// FirstIndex and LastIndex are 0 if there is no entry.
func (s *store) FirstIndex() (uint64, error) { return s.end((*bbolt.Cursor).First) }

func (s *store) LastIndex() (uint64, error) { return s.end((*bbolt.Cursor).Last) }

func (s *store) end(which func(*bbolt.Cursor) (k, v []byte)) (i uint64, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		k, _ := which(tx.Bucket(entries).Cursor())
		i = index(k)
		return nil
	})
	return i, err
}

func (s *store) GetLog(index uint64, l *raft.Log) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		k := key(index)
		v := tx.Bucket(entries).Get(k)
		if v == nil {
			return raft.ErrLogNotFound
		}
		b, err := unseal(k, v)
		if err == nil {
			*l, err = decodeEntry(index, b)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil
	})
}

func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs leaves nothing behind these entries: if it could not be synced, an earlier call
// has given an error, and what it was given may be there all the same.
func (s *store) StoreLogs(logs []*raft.Log) error {
	return s.said(s.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(entries)
		b.FillPercent = 0.9 // entries are appended
		c := b.Cursor()
		for k, _ := c.Last(); k != nil && index(k) > logs[len(logs)-1].Index; k, _ = c.Last() {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		for _, l := range logs {
			k := key(l.Index)
			if err := b.Put(k, seal(k, encodeEntry(l))); err != nil {
				return err
			}
		}
		return nil
	}))
}

// DeleteRange deletes the entries from min to max, both included.
func (s *store) DeleteRange(min, max uint64) error {
	return s.said(s.update(func(tx *bbolt.Tx) error {
		c := tx.Bucket(entries).Cursor()
		for k, _ := c.Seek(key(min)); k != nil && index(k) <= max; k, _ = c.Seek(key(min)) {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// IsMonotonic says that raft has to delete what lies before a snapshot that it was
// given, rather than leave a gap. What is not yet agreed must not reach beyond such a
// snapshot, or raft looks for entries that are gone, again and again; see maxPending.
func (s *store) IsMonotonic() bool { return true }

// Set keeps a vote. raft ends the process if it cannot, which would take the tasks of
// the node with it because its disk is full. So it is tried until it works: until then
// the node neither votes nor follows. A Log that is closed in the meantime ends the
// goroutine.
func (s *store) Set(k, v []byte) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := s.said(s.update(func(tx *bbolt.Tx) error { return tx.Bucket(terms).Put(k, seal(k, v)) }))
		if err == nil {
			return nil
		}
		select {
		case <-s.closed:
			runtime.Goexit()
		case <-time.After(wait):
		}
	}
}

func (s *store) SetUint64(k []byte, v uint64) error {
	return s.Set(k, binary.LittleEndian.AppendUint64(nil, v))
}

// Get is nil for what was never set.
func (s *store) Get(k []byte) (v []byte, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		sealed := tx.Bucket(terms).Get(k)
		if sealed == nil {
			return nil
		}
		b, err := unseal(k, sealed)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		v = append([]byte{}, b...)
		return nil
	})
	return v, err
}

func (s *store) GetUint64(k []byte) (uint64, error) {
	v, err := s.Get(k)
	if err != nil || v == nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: %q is no number", ErrCorrupt, k)
	}
	return binary.LittleEndian.Uint64(v), nil
}

// said tells people once that nothing can be written, and once that it works again.
func (s *store) said(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failing := err != nil; failing != s.failing && !errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		s.failing = failing
		if failing {
			s.logger.Error("the cluster's log cannot be written: this node does not take part in decisions until it can", "file", s.name, "error", err)
		} else {
			s.logger.Info("the cluster's log can be written again", "file", s.name)
		}
	}
	return err
}

func (s *store) close() error { return errors.Join(s.db.Close(), s.mark.Close()) }
