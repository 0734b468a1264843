package trident_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/trident"
)

// A partitionLog is a topic as Kafka has it, as a source: its partitions are the splits, and
// the position is the offset of the next record. Offsets have holes, where records were
// compacted or are markers of transactions; a fetch begins at any offset and brings as
// many records as the broker likes; and it fails when another broker leads.
type partitionLog struct {
	mu         sync.Mutex
	partitions [][]logRecord
	fetches    int
	opened     map[spout.Split][]string
}

type logRecord struct {
	offset int64
	word   string
}

func (l *partitionLog) Splits(context.Context) (all []spout.Split, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.partitions {
		all = append(all, spout.Split(strconv.Itoa(p)))
	}
	return all, nil
}

func (l *partitionLog) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened[split] = append(l.opened[split], position)
	p, err := strconv.Atoi(string(split))
	if err != nil {
		return nil, spout.Fatal(err)
	}
	next := int64(0)
	if position != "" {
		if next, err = strconv.ParseInt(position, 10, 64); err != nil {
			return nil, spout.Fatal(err)
		}
	}
	return &partitionReader{l, p, next}, nil
}

type partitionReader struct {
	log  *partitionLog
	p    int
	next int64
}

var errOtherLeads = errors.New("another broker leads this partition")

func (r *partitionReader) Next(_ context.Context, out *spout.Out) error {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetches++
	if l.fetches%17 == 5 {
		return errOtherLeads
	}
	room := 1 + l.fetches%7
	for _, x := range l.partitions[r.p] {
		switch {
		case x.offset < r.next:
			continue
		case room == 0 || out.Full():
			return nil
		}
		out.Emit(x.word)
		r.next, room = x.offset+1, room-1
	}
	return io.EOF // a reader of a topic without end would wait here
}

func (r *partitionReader) Position() string { return strconv.FormatInt(r.next, 10) }

// fill appends records to a partition, with holes between offsets.
func (l *partitionLog) fill(p, n int) {
	next := int64(3)
	if all := l.partitions[p]; len(all) > 0 {
		next = all[len(all)-1].offset + 4
	}
	for i := range n {
		l.partitions[p] = append(l.partitions[p], logRecord{next, "w" + strconv.Itoa(i%5)})
		next += 1 + int64(i%3)
	}
}

// end is the position behind the last record of a partition.
func (l *partitionLog) end(p int) string {
	all := l.partitions[p]
	if len(all) == 0 {
		return ""
	}
	return strconv.FormatInt(all[len(all)-1].offset+1, 10)
}

// What sources have to be is what Kafka is: a topic is counted exactly once, over several runs
// and with partitions that were added, and where a run goes on are offsets.
func TestPartitionLog(t *testing.T) {
	l := &partitionLog{partitions: make([][]logRecord, 3), opened: map[spout.Split][]string{}}
	counts := trident.StateOf[string, int64]("counts", memory.New(), trident.Opaque)
	top := trident.New("topic", func(b *trident.Builder) {
		words := trident.From[string](b, "words", l).Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), counts, trident.Count[string]()).Parallel(2)
	})
	config := egret.Config{StateDir: t.TempDir(), BatchSize: 20, Logger: slog.New(slog.DiscardHandler)}
	for _, sizes := range [][]int{{200, 0, 77}, {10, 60, 0, 90}} {
		from := map[spout.Split]string{}
		for p, n := range sizes {
			if p == len(l.partitions) {
				l.partitions = append(l.partitions, nil)
			}
			split := spout.Split(strconv.Itoa(p))
			from[split], l.opened[split] = l.end(p), nil
			l.fill(p, n)
		}
		_, err := egret.Run(t.Context(), top, config)
		require.NoError(t, err)
		truth := map[string]int64{}
		for p, all := range l.partitions {
			split := spout.Split(strconv.Itoa(p))
			require.Equal(t, from[split], l.opened[split][0], "partition %d is read on where it was", p)
			for _, x := range all {
				truth[x.word]++
			}
		}
		r, err := counts.Open(t.Context(), "topic", trident.Latest)
		require.NoError(t, err)
		got := map[string]int64{}
		require.NoError(t, r.All(t.Context(), func(word string, n int64) bool { got[word] = n; return true }))
		require.NoError(t, r.Close())
		require.Equal(t, truth, got)
	}
}
