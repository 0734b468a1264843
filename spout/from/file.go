package from

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/spout"
)

// A sizedFile is a file that is known to have had at least size bytes. If it ends
// before, it was cut off while it was read: what comes last may be half a line, so
// that end is no end but an error.
type sizedFile struct {
	fs.File
	at, size int64
}

// sized wraps a file that has just been opened. before is how long it was when it was
// seen earlier.
func sized(f fs.File, before int64) (*sizedFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, failed(err)
	}
	s := &sizedFile{File: f, size: max(before, info.Size())}
	if info.Size() < before {
		return nil, s.shrunk(info.Size())
	}
	return s, nil
}

func (f *sizedFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if f.at += int64(n); err == io.EOF && f.at < f.size {
		now := f.at
		if info, err := f.Stat(); err == nil {
			now = min(now, info.Size())
		}
		return n, f.shrunk(now)
	}
	return n, err
}

func (f *sizedFile) shrunk(now int64) error {
	return spout.Fatal(fmt.Errorf("the file is shorter than it was (%s, had %s): it was changed while it was read", amount.Of(now, "byte"), amount.Digits(f.size)))
}

// goTo makes the reader begin at a position of text, which is the text of its file f
// from the beginning.
func (r *lineReader) goTo(ctx context.Context, f *sizedFile, text io.Reader, pos position) error {
	unit := "byte"
	seeker, _ := f.File.(io.Seeker)
	if text != io.Reader(f) {
		unit, seeker = "decompressed byte", nil // none of the file
	} else if f.size < pos.at {
		return tooShort(f.size, unit, pos.at)
	}
	head := make([]byte, headSize)
	n, err := io.ReadFull(text, head) // what is wrong is still wrong at the next read
	r.head = head[:n]
	switch want := pos.head; {
	case want.n > n && err != io.EOF && err != io.ErrUnexpectedEOF:
		return failed(err)
	case want.n > n:
		return tooShort(int64(n), unit, pos.at)
	case want.n > 0 && want != fingerprintOf(r.head[:want.n]):
		return spout.Fatal(fmt.Errorf("the file is not the one that was read up to byte %d, for it begins differently: name the right one, or start over with --reset", pos.at))
	}
	r.c.r = text
	switch {
	case seeker != nil:
		if _, err := seeker.Seek(pos.at, io.SeekStart); err != nil {
			return failed(err)
		}
		f.at = pos.at
	case pos.at <= int64(n):
		r.c.r = io.MultiReader(bytes.NewReader(r.head[pos.at:]), text)
	default:
		done, err := discard(ctx, text, pos.at-int64(n))
		if err == io.EOF {
			return tooShort(int64(n)+done, unit, pos.at)
		}
		if err != nil {
			return failed(fmt.Errorf("reading up to byte %d, at byte %d: %w", pos.at, int64(n)+done, err))
		}
	}
	return nil
}

func tooShort(size int64, unit string, pos int64) error {
	return spout.Fatal(fmt.Errorf("the file has %s and cannot be read from byte %d: it is shorter than it was; name the right one, or start over with --reset", amount.Of(size, unit), pos))
}

// discard reads n bytes of r and returns how many it has read; io.EOF means that
// r has fewer.
func discard(ctx context.Context, r io.Reader, n int64) (done int64, err error) {
	for done < n {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		k, err := io.CopyN(io.Discard, r, min(n-done, 1<<20))
		done += k
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
