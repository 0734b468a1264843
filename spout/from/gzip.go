package from

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/egretstream/egret/spout"
)

// unzip returns the decompressed text of f.
func unzip(f io.Reader) (io.Reader, error) {
	t := &zippedText{}
	var err error
	if t.gz, err = gzip.NewReader(bufio.NewReaderSize(f, blockSize)); err != nil {
		if err == io.EOF { // not even a header
			err = io.ErrUnexpectedEOF
		}
		return nil, t.damaged(err)
	}
	return t, nil
}

// zippedText counts what it decompresses, so that its errors can say where.
type zippedText struct {
	gz *gzip.Reader // reads all members of the file as one text
	n  int64
}

func (t *zippedText) Read(b []byte) (int, error) {
	n, err := t.gz.Read(b)
	t.n += int64(n)
	if err != nil && err != io.EOF {
		err = t.damaged(err)
	}
	return n, err
}

// damaged says where the file is damaged, if it is that.
func (t *zippedText) damaged(err error) error {
	if corrupt, ok := errors.AsType[flate.CorruptInputError](err); ok {
		return spout.Fatal(fmt.Errorf("the file is corrupt behind byte %d of its decompressed text: %w", t.n, corrupt))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return spout.Fatal(fmt.Errorf("the file is cut off behind byte %d of its decompressed text: %w", t.n, err))
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return spout.Fatal(fmt.Errorf("the file is corrupt behind byte %d of its decompressed text: %w", t.n, err))
	default:
		return failed(err)
	}
}
