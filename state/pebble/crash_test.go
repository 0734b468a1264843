package pebble

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

var counts = state.Name{Topology: "wordcount", State: "counts"}

// A writer counts in some groups as a task does: each batch changes some keys of each.
type writer struct {
	store state.Store
	fence tuple.Fence
	rand  *rand.Rand
	acked tuple.TxID    // what is durable, and committed
	by    tuple.BatchID // the same, with its attempt
	rows  map[state.Key]state.Row
	// next is what the batch acked+1 makes of rows; nil: it was not tried.
	next map[state.Key]state.Row
}

const writerGroups = 4

func newWriter(t *testing.T, b *Backend, seed uint64) *writer {
	w := &writer{rand: rand.New(rand.NewPCG(seed, 1)), rows: map[state.Key]state.Row{}}
	require.NoError(t, w.open(t, b))
	return w
}

// open opens the store and joins. Only what was acknowledged is there then.
func (w *writer) open(t *testing.T, b *Backend) (err error) {
	if w.store, err = b.Open(t.Context(), counts); err != nil {
		return err
	}
	w.fence.Round++
	w.by = tuple.BatchID{Attempt: w.store.(*store).groups[0].last.Attempt, Tx: w.acked} // another process may have written that
	j := &state.Join{Fence: w.fence, Committed: w.acked, Undo: true, Last: w.last()}
	for g := range uint16(writerGroups) {
		j.Groups.Add(g)
	}
	if _, err := w.store.Join(t.Context(), j); err != nil {
		return err
	}
	w.next = nil
	return nil
}

// last are the stamps that are durable.
func (w *writer) last() []tuple.BatchID {
	last := make([]tuple.BatchID, tuple.KeyGroups)
	for g := range writerGroups {
		last[g] = w.by
	}
	return last
}

// write writes a batch of n rows of size bytes in each group.
func (w *writer) write(t *testing.T, n, size int) error {
	b := &state.Write{Fence: w.fence, Tx: w.acked + 1, Last: w.last()}
	w.next = map[state.Key]state.Row{}
	for g := range uint16(writerGroups) {
		for _, i := range w.rand.Perm(3 * n)[:n] {
			k := state.Key{Group: g, Bytes: fmt.Sprint("key ", i)}
			value := make([]byte, 0, size+8) // of chance, which does not get smaller
			for len(value) < size {
				value = binary.LittleEndian.AppendUint64(value, w.rand.Uint64())
			}
			w.next[k] = state.Row{Tx: b.Tx, Value: value, Prev: w.rows[k].Value}
			b.Rows = append(b.Rows, state.Change{Key: k, Row: w.next[k]})
		}
	}
	if err := w.store.Write(t.Context(), b); err != nil {
		return err
	}
	for k, r := range w.next {
		w.rows[k] = r
	}
	w.next, w.acked, w.by = nil, b.Tx, b.Stamp()
	return nil
}

// check compares all values with what was acknowledged.
func (w *writer) check(t *testing.T, store state.Store) error {
	seen := 0
	var groups tuple.Groups
	for g := range uint16(writerGroups) {
		groups.Add(g)
	}
	wrong := ""
	err := store.Scan(t.Context(), &groups, func(k state.Key, r state.Row) bool {
		seen++
		if string(w.rows[k].Value) != string(r.Value) {
			wrong = fmt.Sprintf("%v is not what was acknowledged", k)
		}
		return wrong == ""
	})
	if err != nil {
		return err
	}
	require.Empty(t, wrong)
	require.Equal(t, len(w.rows), seen)
	return nil
}

// A process that is killed leaves what it has acknowledged, and of the batch that was
// under way all or nothing.
func TestNothingIsLostWhenTheProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	again := newWriter(t, &Backend{dir: "/elsewhere", fs: vfs.NewMem()}, 1)
	for kills := range 4 {
		p := process(t, dir, "no such file", strconv.Itoa(int(again.acked)))
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		acked := 0
		for lines := bufio.NewScanner(out); lines.Scan(); acked++ {
			require.Equal(t, "acked", lines.Text())
			if acked == 3*kills {
				require.NoError(t, p.Process.Kill())
			}
		}
		require.Error(t, p.Wait())
		for range acked {
			require.NoError(t, again.write(t, 10, 1_000)) // the same
		}
	}
	require.NoError(t, again.store.Close())
	again.fence.Epoch++
	require.NoError(t, again.open(t, Dir(dir)))
	require.NoError(t, again.check(t, again.store))
	require.NoError(t, again.store.Close())
}

func copyFiles(t *testing.T, from, to string) {
	require.NoError(t, filepath.Walk(from, func(name string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(name, from))
		if info.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(at, b, 0o600)
	}))
}

// When the power goes, some of what was not synced is lost, whatever the order. What was
// acknowledged is there, and a batch that was under way is there as a whole or undone.
func TestNothingIsLostWhenThePowerGoes(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7))
	for seed := range uint64(6) {
		disk := vfs.NewCrashableMem()
		w := newWriter(t, &Backend{dir: "/states", fs: disk}, seed)
		for crash := range 4 {
			for range 1 + chance.IntN(8) {
				require.NoError(t, w.write(t, 50, 400))
			}
			// One more is under way while the power goes.
			zombie := *w
			zombie.rows, zombie.rand = map[state.Key]state.Row{}, rand.New(rand.NewPCG(seed, uint64(crash)))
			for k, r := range w.rows {
				zombie.rows[k] = r
			}
			var writing sync.WaitGroup
			writing.Go(func() { _ = zombie.write(t, 50, 400) })
			disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: chance.IntN(101), RNG: chance})
			writing.Wait()
			require.NoError(t, zombie.store.Close()) // of the disk that is no more
			require.NoError(t, w.open(t, &Backend{dir: "/states", fs: disk}), "seed %d, crash %d", seed, crash)
			require.NoError(t, w.check(t, w.store))
		}
		require.NoError(t, w.store.Close())
	}
}

// A disk that fails at whatever write to the log: the store says so, nothing hangs, and
// what was acknowledged is there when the disk works again.
func TestALogThatFailsLosesNothing(t *testing.T) {
	for n := range int64(20) {
		disk, left := failing(vfs.NewMem(), ".log")
		b := &Backend{dir: "/states", fs: disk}
		w := newWriter(t, b, uint64(n))
		left.Store(n)
		var err error
		for try := 0; err == nil && try < 40; try++ {
			err = w.write(t, 10, 100) // so little that one log is enough
		}
		left.Store(1 << 40)
		require.ErrorContains(t, err, "state wordcount/counts in /states/wordcount/counts: writing has failed, so it has to be opened anew")
		require.ErrorContains(t, err, "input/output error")
		require.NotErrorIs(t, err, state.ErrFenced)
		_, err = w.store.Get(t.Context(), []state.Key{{}})
		require.Error(t, err, "what it has in memory may never be on disk")
		_ = w.store.Close()
		require.NoError(t, w.open(t, b), "after %d writes", n)
		require.NoError(t, w.check(t, w.store), "after %d writes", n)
		require.NoError(t, w.store.Close())
	}
}

// failing is a disk that takes a number of writes to files with such names.
func failing(disk vfs.FS, name string) (vfs.FS, *atomic.Int64) {
	left := &atomic.Int64{}
	left.Store(1 << 40)
	return errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(filepath.Base(op.Path), name) && left.Add(-1) < 0 {
			return syscall.EIO
		}
		return nil
	})), left
}

// When the manifest cannot be written, or a log not be closed, pebble ends the process:
// then nothing that was acknowledged is lost either.
func TestAProcessThatPebbleEndsLosesNothing(t *testing.T) {
	for _, file := range []string{"MANIFEST", ".log"} {
		dir := t.TempDir()
		out, err := process(t, dir, file, "0").Output()
		require.Error(t, err, "%s: it has ended well", file)
		acked := strings.Count(string(out), "acked\n")
		require.GreaterOrEqual(t, acked, 10, file)

		again := newWriter(t, &Backend{dir: "/elsewhere", fs: vfs.NewMem()}, 1)
		for range acked {
			require.NoError(t, again.write(t, 10, 10_000))
		}
		require.NoError(t, again.store.Close())
		again.fence.Epoch++
		require.NoError(t, again.open(t, Dir(dir)))
		require.NoError(t, again.check(t, again.store))
		require.NoError(t, again.store.Close())
	}
}

// Another process that has a state open is named as the reason.
func TestAnotherProcessHasItOpen(t *testing.T) {
	dir := t.TempDir()
	p := process(t, dir, "", "")
	hold, err := p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "acked\n", line)
	_, err = Dir(dir).Open(t.Context(), counts)
	require.ErrorContains(t, err, "another process has it open")
	require.ErrorContains(t, err, filepath.Join(dir, "wordcount", "counts"))
	require.NoError(t, hold.Close())
	require.NoError(t, p.Wait())
	store, err := Dir(dir).Open(t.Context(), counts)
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// process is this program as one that writes to a directory, behind so many batches, until
// it is killed or a file fails; without a file, until its input ends.
func process(t *testing.T, dir, file, batches string) *exec.Cmd {
	program, err := os.Executable()
	require.NoError(t, err)
	p := exec.CommandContext(t.Context(), program, "-test.run=^TestProcess$")
	p.Env = append(os.Environ(), "EGRET_PEBBLE="+dir, "EGRET_PEBBLE_FILE="+file, "EGRET_PEBBLE_BATCHES="+batches)
	return p
}

// TestProcess is what process runs; otherwise it has nothing to do.
func TestProcess(t *testing.T) {
	dir, file := os.Getenv("EGRET_PEBBLE"), os.Getenv("EGRET_PEBBLE_FILE")
	if dir == "" {
		return
	}
	if file == "" {
		w := newWriter(t, Dir(dir), 1)
		require.NoError(t, w.write(t, 10, 100))
		fmt.Println("acked")
		_, _ = io.ReadAll(os.Stdin)
		require.NoError(t, w.store.Close())
		return
	}
	batches, err := strconv.Atoi(os.Getenv("EGRET_PEBBLE_BATCHES"))
	require.NoError(t, err)
	w := newWriter(t, &Backend{dir: "/elsewhere", fs: vfs.NewMem()}, 1)
	size := 10_000
	if file == "no such file" {
		size = 1_000
	}
	for range batches { // so that chance is where it was
		require.NoError(t, w.write(t, 10, size))
	}
	require.NoError(t, w.store.Close())
	disk, left := failing(vfs.Default, file)
	w.fence.Round += uint32(batches)
	require.NoError(t, w.open(t, &Backend{dir: dir, fs: disk}))
	for {
		require.NoError(t, w.write(t, 10, size))
		fmt.Println("acked")
		if file != "no such file" && w.acked == 10 {
			left.Store(3)
		}
	}
}

// A fullDisk is one with some bytes left.
type fullDisk struct {
	vfs.FS
	left atomic.Uint64
}

func (d *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.left.Load()}, nil
}

// Of a disk that is almost full the store says so, in time, and goes on when it is not.
func TestAFullDiskIsTold(t *testing.T) {
	disk := &fullDisk{FS: vfs.NewMem()}
	disk.left.Store(1 << 40)
	w := newWriter(t, &Backend{dir: "/states", fs: disk}, 1)
	require.NoError(t, w.write(t, 10, 100))
	disk.left.Store(minFree)
	err := w.write(t, 10, 100)
	require.ErrorContains(t, err, "the disk has 67108864 bytes left")
	require.ErrorContains(t, err, "/states/wordcount/counts")
	require.NoError(t, w.check(t, w.store))
	disk.left.Store(2 * minFree)
	require.NoError(t, w.write(t, 10, 100))
	require.NoError(t, w.check(t, w.store))
	require.NoError(t, w.store.Close())
}

// Damage is told: by an error that names the place, or since the record has more.
func TestDamageIsTold(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, Dir(dir), 1)
	for range 3 { // and each time what the log has becomes a table
		for range 3 {
			require.NoError(t, w.write(t, 20, 1_000))
		}
		require.NoError(t, w.store.Close())
		require.NoError(t, w.open(t, Dir(dir)))
	}
	for range 5 {
		require.NoError(t, w.write(t, 20, 1_000))
	}
	require.NoError(t, w.store.Close())
	healthy := dir

	chance := rand.New(rand.NewPCG(3, 3))
	files, err := filepath.Glob(filepath.Join(healthy, "wordcount", "counts", "*"))
	require.NoError(t, err)
	require.Greater(t, len(files), 4)
	told := 0
	for _, file := range files {
		for _, cut := range []bool{false, true} {
			bad := t.TempDir()
			copyFiles(t, healthy, bad)
			at := filepath.Join(bad, "wordcount", "counts", filepath.Base(file))
			b, err := os.ReadFile(at)
			require.NoError(t, err)
			if len(b) == 0 {
				continue
			}
			if cut {
				b = b[:len(b)/2]
			} else {
				b[chance.IntN(len(b))] ^= 1 << chance.IntN(8)
			}
			require.NoError(t, os.WriteFile(at, b, 0o600))
			again := *w
			again.store = nil
			err = again.open(t, Dir(bad))
			if err == nil && !strings.HasPrefix(filepath.Base(file), "MANIFEST") { // see doc.go
				err = again.check(t, again.store)
			}
			if err != nil {
				told++
				require.ErrorContains(t, err, filepath.Join(bad, "wordcount", "counts"))
				require.NotErrorIs(t, err, state.ErrFenced)
			}
			if again.store != nil {
				_ = again.store.Close()
			}
		}
	}
	require.NotZero(t, told)
}
