package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/state/file"
)

// Records keeps the record of an exactly-once topology in the file batches of its state
// directory: a line "egret batches 2", the record as JSON, and the CRC-32C of both. It is
// a batch.Records.
type Records struct {
	mu     sync.Mutex
	name   string // "": in memory alone
	record batch.Record
}

// MemoryRecords keeps a record that ends with the process.
func MemoryRecords() *Records { return &Records{} }

// Records returns what keeps the record of the topology, if there is one from an earlier
// run with what that has left.
func (s *Store) Records() (*Records, error) {
	r := &Records{name: filepath.Join(s.dir, batchesFile)}
	b, err := os.ReadFile(r.name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of batches: %w", err)
	}
	if r.record, err = decodeRecord(b); err != nil {
		return nil, unreadable(r.name, err, "put it right, or start over with --reset, which keeps it under another name, and with empty states")
	}
	return r, nil
}

// ReadRecord returns the record of a topology, which may be running. The error is
// fs.ErrNotExist if no run with this directory has begun a batch.
func ReadRecord(root, topology string) (*batch.Record, error) {
	name := filepath.Join(root, topology, batchesFile)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(b)
	if err != nil {
		return nil, unreadable(name, err, "a run says what to do")
	}
	return &r, nil
}

const batchesFile = "batches"

// forgetRecord moves the record away; see Options.Reset.
func (s *Store) forgetRecord() error {
	name := filepath.Join(s.dir, batchesFile)
	err := os.Rename(name, name+beforeReset+strconv.FormatUint(uint64(s.epoch), 10))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Begin implements batch.Records.
func (r *Records) Begin(context.Context) (*batch.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.apply(&batch.Entry{Epoch: r.record.Epoch + 1, Begin: true}); err != nil {
		return nil, err
	}
	return r.record.Clone(), nil
}

// Append implements batch.Records.
func (r *Records) Append(_ context.Context, e *batch.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.apply(e)
}

// Forget forgets what the record has of some states, durably, and nothing else.
func (r *Records) Forget(states []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keep(r.record.Without(states))
}

// Record returns the record as it is now.
func (r *Records) Record() *batch.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Clone()
}

// apply makes the changed record durable before it is the present one.
func (r *Records) apply(e *batch.Entry) error {
	if r.name == "" {
		return r.record.Apply(e)
	}
	next := r.record.Clone()
	if err := next.Apply(e); err != nil {
		return err
	}
	return r.keep(next)
}

func (r *Records) keep(next *batch.Record) error {
	b, err := encodeRecord(next)
	if err != nil {
		return err
	}
	if err := file.Write(r.name, b); err != nil {
		return fmt.Errorf("record of batches: %w", err)
	}
	r.record = *next
	return nil
}

const (
	batchesMagic = "egret batches 2\n"
	batchesEarly = "egret batches 1\n" // without attempts
)

func encodeRecord(r *batch.Record) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return addSum(append(append([]byte(batchesMagic), b...), '\n')), nil
}

// decodeRecord reads what encodeRecord has written. An error is ErrCorrupt or ErrNewer, but
// for what an earlier version has written.
func decodeRecord(b []byte) (batch.Record, error) {
	fail := func(why string) (batch.Record, error) {
		return batch.Record{}, fmt.Errorf("%w: %s", ErrCorrupt, why)
	}
	if bytes.HasPrefix(b, []byte(batchesEarly)) {
		return batch.Record{}, errors.New("it was written by an earlier Egret: its format has the number 1, and this Egret knows 2")
	}
	if err := newer(b, "egret batches ", 2); err != nil {
		return batch.Record{}, err
	}
	if !bytes.HasPrefix(b, []byte(batchesMagic)) {
		return fail("it does not begin with \"egret batches 2\"")
	}
	end, _, why := summed(b)
	if why != "" {
		return fail(why)
	}
	var r batch.Record
	if err := json.Unmarshal(b[len(batchesMagic):end], &r); err != nil {
		return fail(err.Error())
	}
	return r, nil
}
