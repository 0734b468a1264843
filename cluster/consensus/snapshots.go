package consensus

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// openSnapshots opens the snapshots of a directory, and returns the last entry in the
// newest one, 0 if there is none. raft would pass over one that it cannot read and take an
// older one, and then miss the entries between the two; so the newest one has to be good.
func openSnapshots(dir string, logger hclog.Logger) (*raft.FileSnapshotStore, uint64, error) {
	s, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, logger)
	if err != nil {
		return nil, 0, err
	}
	newest, err := newestSnapshot(filepath.Join(dir, "snapshots"))
	if err != nil || newest == "" {
		return s, 0, err
	}
	meta, r, err := s.Open(newest)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, filepath.Join(dir, "snapshots", newest), err)
	}
	return s, meta.Index, r.Close()
}

// newestSnapshot returns the name of the newest snapshot that was finished, "" if there
// is none. raft calls it TERM-INDEX-MILLISECONDS.
func newestSnapshot(dir string) (newest string, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var best [3]uint64
	for _, e := range all {
		var n [3]uint64
		if strings.HasSuffix(e.Name(), ".tmp") || !e.IsDir() {
			continue
		}
		if _, err := fmt.Sscanf(e.Name(), "%d-%d-%d", &n[0], &n[1], &n[2]); err != nil {
			continue
		}
		if newest == "" || slices.CompareFunc(n[:], best[:], cmp.Compare) > 0 {
			newest, best = e.Name(), n
		}
	}
	return newest, err
}

// A machine shows a Machine to raft, on the one goroutine that raft has for that.
type machine struct {
	Machine
	logger *slog.Logger
	last   uint64 // index of the last entry that it was given
}

func (m *machine) Apply(l *raft.Log) any {
	m.last = l.Index
	return m.Machine.Apply(l.Index, l.Data)
}

// StoreConfiguration lets raft count a change of the servers as applied. Otherwise it
// refuses to make a snapshot until another entry comes.
func (m *machine) StoreConfiguration(uint64, raft.Configuration) {}

// Snapshot has the index in its first 8 bytes, since raft does not tell Restore.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	b, err := m.Machine.Snapshot()
	if err != nil {
		m.logger.Error("there is no snapshot of the log, which grows until there is one", "error", err)
		return nil, err
	}
	return &snapshot{binary.LittleEndian.AppendUint64(nil, m.last), b}, nil
}

func (m *machine) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(b) < 8 {
		return fmt.Errorf("%w: the snapshot is too short", ErrCorrupt)
	}
	m.last = binary.LittleEndian.Uint64(b)
	return m.Machine.Restore(m.last, b[8:])
}

// A snapshot is what a Machine has given, and nobody changes it.
type snapshot struct{ index, data []byte }

func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	_, err := sink.Write(s.index)
	if err == nil {
		_, err = sink.Write(s.data)
	}
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

func (s *snapshot) Release() {}
