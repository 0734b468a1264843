package sim

import (
	gocontext "context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// BatchOptions are how [Batches] and [BatchSeeds] run. The zero value will do.
type BatchOptions struct {
	// Log, if given, gets what a seed has drawn and a line for each event.
	Log io.Writer
	// Unshrunk does not look for fewer deeds when a seed fails.
	Unshrunk bool
	// Once does not run a seed a second time to see that it gives the same run.
	Once bool

	deeds []batchDeed // in place of those that the seed draws, if only is set
	only  bool
}

// Batches runs an exactly-once topology, the code that ships from the supervisor down, on
// stores and a record that are models, with faults that are drawn from a seed. It checks
// that what is committed is in each state once, and in the end everything. The rest is as
// with [Seed].
func Batches(seed uint64, o BatchOptions) (Report, error) {
	report, bad := playBatch(seed, &o)
	if bad == nil {
		return report, nil
	}
	deeds := drawBatch(seed, &o).deeds
	f := &Failure{Seed: seed, Violation: *bad, Drawn: len(deeds), batches: true}
	if o.Log == nil && !o.Unshrunk && bad.Invariant != repeatable {
		o.only = true
		deeds = fewerDeeds(deeds, f, func(deeds []batchDeed) playable {
			o.deeds = deeds
			return newBatchRun(drawBatch(seed, &o), nil)
		})
	}
	if len(deeds) > 0 {
		var texts []string
		for _, d := range deeds {
			texts = append(texts, d.String())
		}
		f.What += "; deeds: " + strings.Join(texts, "; ")
	}
	return report, f
}

// BatchSeeds is [Seeds] for exactly-once topologies.
func BatchSeeds(ctx gocontext.Context, first uint64, n int, o BatchOptions, progress func(*Summary)) *Summary {
	players := runtime.GOMAXPROCS(0)
	if o.Log != nil {
		players = 1
	}
	return playAll(ctx, first, n, players, func(seed uint64) (Report, error) { return Batches(seed, o) }, progress)
}

// playBatch runs a seed, as [playTwice].
func playBatch(seed uint64, o *BatchOptions) (Report, *Violation) {
	return playTwice(o.Log, o.Once, func(log io.Writer) playable { return newBatchRun(drawBatch(seed, o), log) })
}

// describeBatch is describe for what is said about batches as well.
func describeBatch(msg any) string {
	switch m := msg.(type) {
	case *task.Order:
		return fmt.Sprintf("%d.%v->%d.%v %v", m.From, m.FromLife, m.To, m.ToLife, m.BatchID)
	case *task.Answer:
		return fmt.Sprintf("%d.%v->%d.%v %v ranges %v more %v ended %v %s", m.From, m.FromLife, m.To, m.ToLife, m.BatchID, m.Ranges, m.More, m.Ended, m.Err)
	case *tuple.Parcel:
		return fmt.Sprintf("%d.%v->%d.%v %d tuples of %v", m.From, m.FromLife, m.To, m.ToLife, m.Len(), m.Batch)
	}
	return describe(msg)
}
