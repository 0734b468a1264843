package node

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// Lives of a coordinator on several nodes ask for changes of one record. What they send
// comes to the log several times, late and in any order, or never, and each node sees an
// older log than there is. Whoever is told that an entry is in the record has put it there;
// what somebody is told is stale does not come into it any more.
func TestRecordAnswersWhoAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type made struct {
			epoch uint32
			life  tuple.Incarnation // that sent it
			tx    tuple.TxID        // 0: Begin
		}
		type sent struct {
			batch.Entry
			by tuple.Incarnation
		}
		type asker struct {
			life   tuple.Incarnation
			seen   int // of history
			epoch  uint32
			record *batch.Record
			asks   *recording
			over   bool
		}
		history := []*batch.Record{{}}
		last := func() *batch.Record { return history[len(history)-1] }
		var network []sent
		by := map[made]bool{}
		refused := map[made]bool{}
		var all []*asker
		for i := range rapid.IntRange(1, 3).Draw(t, "lives") {
			all = append(all, &asker{life: tuple.NewIncarnation(uint32(1+i/2), uint32(1+i%2))})
		}
		answer := func(x *asker, h head, r *batch.Record) {
			known, err := x.asks.outcome(&h)
			if !known {
				return
			}
			e := x.asks.Entry
			x.asks = nil
			switch {
			case errors.Is(err, batch.ErrReplaced), err != nil && !e.Begin:
				x.over = true
				if e.Commit != nil {
					refused[made{e.Epoch, x.life, e.Commit.Tx}] = true
				}
			case e.Begin:
				require.Greater(t, r.Epoch, x.epoch, "what was asked for before may still come in this epoch")
				x.record, x.epoch = r.Clone(), r.Epoch
				require.True(t, by[made{r.Epoch, x.life, 0}], "epoch %d is another life's", r.Epoch)
			default:
				require.True(t, by[made{e.Epoch, x.life, e.Commit.Tx}], "another one has done that")
				require.NoError(t, x.record.Apply(e))
			}
		}
		for range rapid.IntRange(10, 150).Draw(t, "steps") {
			x := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			switch rapid.SampledFrom([]string{"ask", "send", "send", "apply", "apply", "apply", "see", "see", "head", "plan"}).Draw(t, "step") {
			case "ask":
				if x.over || x.asks != nil {
					break
				}
				m := &task.SaveRecord{Life: x.life, Entry: &batch.Entry{Begin: true}}
				if x.record != nil && rapid.IntRange(0, 4).Draw(t, "anew") > 0 {
					m.Entry = &batch.Entry{Epoch: x.epoch, Commit: &batch.Commit{Tx: x.record.Committed + 1}}
				}
				x.asks = &recording{SaveRecord: m, above: history[x.seen].Epoch}
			case "plan": // another machine begins anew, whatever was asked for
				if x.asks != nil && !x.over {
					x.record = nil
					x.asks = &recording{SaveRecord: &task.SaveRecord{Life: x.life, Entry: &batch.Entry{Begin: true}}, above: history[x.seen].Epoch}
				}
			case "send":
				if x.asks == nil {
					break
				}
				e := *x.asks.Entry
				if e.Begin {
					e.Life, e.Epoch = x.life, history[x.seen].Epoch+1
				}
				network = append(network, sent{e, x.life})
			case "apply":
				if len(network) == 0 {
					break
				}
				i := rapid.IntRange(0, len(network)-1).Draw(t, "which")
				s := network[i]
				if rapid.Bool().Draw(t, "gone") {
					network = append(network[:i:i], network[i+1:]...)
				}
				next := last().Clone()
				if next.Apply(&s.Entry) != nil {
					break
				}
				key := made{s.Epoch, s.by, 0}
				if s.Commit != nil {
					key.tx = s.Commit.Tx
				}
				require.False(t, refused[key], "its sender was told that it is stale: %v", key)
				by[key] = true
				history = append(history, next)
			case "see":
				x.seen = rapid.IntRange(x.seen, len(history)-1).Draw(t, "seen")
				if x.asks != nil {
					answer(x, headOf(1, history[x.seen]), history[x.seen])
				}
			case "head": // of who leads, but for Begin
				if x.asks != nil && !x.asks.Entry.Begin {
					answer(x, headOf(1, history[rapid.IntRange(0, len(history)-1).Draw(t, "of")]), nil)
				}
			}
		}
	})
}
