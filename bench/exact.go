package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// The word count in batches, which counts into a state.

// Where the state of a Setup is.
const (
	inMemory = "memory"
	onDisk   = "disk"
)

// exact reports whether s counts in batches.
func (s *Setup) exact() bool { return s.Guarantee == topology.ExactlyOnce }

// checkExact reports what is wrong with what s says of batches.
func (s *Setup) checkExact() error {
	switch {
	case !s.exact() && (s.State != "" || s.Combiner):
		return errors.New("--state and --combiner need --guarantee exactly-once")
	case !s.exact():
		return nil
	case s.Topology != "wordcount" || s.Nodes == 2:
		return errors.New("--guarantee exactly-once is measured with --topology wordcount, on one node")
	case s.Rate > 0:
		return errors.New("--rate: messages in batches are not paced; the time of a commit is in ack_latency_us")
	case s.State != inMemory && s.State != onDisk:
		return fmt.Errorf("--state is %q: use memory or disk", s.State)
	}
	return nil
}

// place makes the state of s, and where its record is: a directory that is to be removed,
// or "".
func (s *Setup) place() (dir string, err error) {
	if !s.exact() {
		return "", nil
	}
	var where state.Backend = memory.New()
	if s.State == onDisk {
		if dir, err = os.MkdirTemp("", "egret-bench-"); err != nil {
			return "", err
		}
		if where, err = state.At("pebble", filepath.Join(dir, "states")); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	s.counts = trident.StateOf[string, int64]("count", where, trident.Opaque)
	return dir, nil
}

// defineExact is the word count of s in batches.
func (s *Setup) defineExact(p *probe) *topology.Topology {
	own := *s
	own.Latency = false // lines alone: the time of a commit is the coordinator's
	return trident.New("bench-wordcount", func(b *trident.Builder) {
		lines := trident.From[string](b, "lines", own.source(p)).Parallel(s.Spouts)
		words := trident.FlatMap(lines.Shuffle(), func(line string, emit func(string)) {
			for word, rest := cut(line); word != ""; word, rest = cut(rest) {
				emit(word)
			}
		}).Name("split").Parallel(s.Bolts)
		byWord := trident.GroupBy(words, trident.Identity)
		if !s.Combiner {
			byWord = byWord.WithoutParts()
		}
		trident.PersistentAggregate(byWord, s.counts, trident.Count[string]()).Parallel(s.Bolts)
	})
}

// exactDigest returns the digest of what the state has when the run has ended.
func (s *Setup) exactDigest(ctx context.Context) (sum string, err error) {
	r, err := s.counts.Open(ctx, "bench-wordcount", trident.Latest)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c := counts{}
	err = r.All(ctx, func(word string, n int64) bool { c[word] = &n; return true })
	return digest([]counts{c}), err
}
