package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// bbolt has two meta pages, which say where everything else is. The transactions write them
// in turn, so that one which is cut off by a loss of power leaves the other. If one cannot be
// read bbolt takes the other without a word. That is right if the page was cut off, for what
// was in it nobody has heard of. It is wrong if the page was whole and the disk has lost it:
// then the last transaction is forgotten, with the vote or the entries that this node has
// promised to keep. The file alone does not tell these two apart.
//
// So a file beside it has the number of the last transaction that anybody may rely on. It is
// written, and synced, after the transaction and before that is answered. A meta page and
// the mark are never being written at the same time, so a loss of power damages one of them
// at most:
//
//	both pages whole, no mark            the mark was cut off: nothing is missing
//	one page whole, at the mark          the other was cut off, or is older: nothing is missing
//	one page whole, no mark              the disk has lost something
//	the newest whole page before it      the disk has lost something, or this is an old copy
//
// The last two are refused.
const markFile = "log.mark"

// A mark is the open file. Its bytes are written in place: 8 of the number, 4 of checksum.
type mark struct{ *os.File }

func openMark(dir string) (mark, error) {
	f, err := os.OpenFile(filepath.Join(dir, markFile), os.O_RDWR|os.O_CREATE, 0o600)
	return mark{f}, err // names the file
}

// set is durable when it returns.
func (m mark) set(transaction uint64) error {
	b := binary.LittleEndian.AppendUint64(nil, transaction)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if _, err := m.WriteAt(b, 0); err != nil {
		return err
	}
	return m.Sync()
}

// readMark returns the last transaction to rely on; whole is false if there is none, or it
// was cut off.
func readMark(dir string) (transaction uint64, whole bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, markFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	if len(b) != 12 || binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[:8], castagnoli) {
		return 0, false, nil
	}
	return binary.LittleEndian.Uint64(b), true, nil
}

// A meta is what a meta page says.
type meta struct {
	pageSize    uint32
	pages       uint64 // of the file, at least
	transaction uint64
}

// readMeta reads a meta page, as bbolt writes it in the order of bytes of this machine; ok
// is false if it is none, or not as it was written.
func readMeta(r io.ReaderAt, at int64) (m meta, ok bool) {
	b := make([]byte, 16+64) // the head of the page, and the meta
	if _, err := r.ReadAt(b, at); err != nil {
		return m, false
	}
	b = b[16:]
	sum := fnv.New64a()
	sum.Write(b[:56])
	n := binary.NativeEndian
	if n.Uint32(b) != 0xED0CDAED || n.Uint32(b[4:]) != 2 || n.Uint64(b[56:]) != sum.Sum64() || n.Uint32(b[8:]) < smallestPage {
		return m, false
	}
	return meta{n.Uint32(b[8:]), n.Uint64(b[40:]), n.Uint64(b[48:])}, true
}

const smallestPage, largestPage = 1 << 10, 1 << 24 // of bbolt

// checkMetas reports why a file of bbolt does not have all that was marked, if so.
func checkMetas(name string) error {
	marked, whole, err := readMark(filepath.Dir(name))
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	newest, first := readMeta(f, 0)
	var other meta
	var second bool
	if first {
		other, second = readMeta(f, int64(newest.pageSize))
	} else {
		for at := int64(smallestPage); at <= largestPage && !second; at *= 2 {
			other, second = readMeta(f, at)
			second = second && int64(other.pageSize) == at
		}
	}
	if second && other.transaction > newest.transaction {
		newest = other
	}
	switch {
	case !first && !second:
		return corrupt(name, errors.New("it does not begin as a log does"))
	case whole && newest.transaction < marked:
		why := "it is an older copy"
		if !first || !second {
			why = "one of its first two pages is damaged"
		}
		return corrupt(name, fmt.Errorf("change %d is the last in it, and this node has made %d: %s", newest.transaction, marked, why))
	case !whole && first != second:
		return corrupt(name, errors.New("one of its first two pages is damaged, and nothing says that it was not the newer one"))
	case newest.pages > uint64(info.Size())/uint64(newest.pageSize):
		return corrupt(name, fmt.Errorf("%d bytes of it are there, of at least %d: its end is missing", info.Size(), newest.pages*uint64(newest.pageSize)))
	}
	return nil
}

// corrupt says what is the matter with the log, and what to do.
func corrupt(name string, err error) error {
	return fmt.Errorf("%w: %s: %w. This node may have forgotten what it has agreed to, so it must not go on: start a new one with an empty"+
		" directory, and let the others forget this one (docs/operations.md, Symptoms)", ErrCorrupt, name, err)
}
