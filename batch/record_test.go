package batch

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// A record takes only what its coordinator may want, and nothing changes of what it
// refuses (T9).
func TestApply(t *testing.T) {
	full := func() *Record {
		r := &Record{}
		for _, e := range []*Entry{
			{Epoch: 3, Begin: true, Life: 5},
			{Epoch: 3, Fix: &Fix{1, map[string]Ranges{"in": {"a": {To: "5", Messages: 5}}}}},
			{Epoch: 3, Commit: &Commit{Tx: 1, Round: 2, Positions: map[string]Positions{"in": {"a": "5"}}, Written: map[string]tuple.Groups{"sum": {1: 1}}}},
		} {
			require.NoError(t, r.Apply(e))
		}
		return r
	}
	r := full()
	require.Equal(t, tuple.TxID(1), r.Last["sum"][64])
	require.Nil(t, r.Fixed)
	for _, tt := range []struct {
		name string
		e    Entry
		want string // in the error; "" for none
	}{
		{"next epoch", Entry{Epoch: 4, Begin: true, Life: 5}, ""},
		{"epochs may be left out", Entry{Epoch: 9, Begin: true, Life: 6}, ""},
		{"the same epoch", Entry{Epoch: 3, Begin: true, Life: 6}, "epoch 3 begins, and it has 3"},
		{"an earlier life", Entry{Epoch: 4, Begin: true, Life: 4}, "a later life of the coordinator has begun: this is 0.4, and that is 0.5"},
		{"nobody else can be there", Entry{Epoch: 4, Begin: true}, ""},
		{"an earlier epoch", Entry{Epoch: 2, Commit: &Commit{Tx: 2}}, "it is of epoch 2, and it has 3"},
		{"a later epoch", Entry{Epoch: 4, Commit: &Commit{Tx: 2}}, "it is of epoch 4, and it has 3"},
		{"next batch", Entry{Epoch: 3, Commit: &Commit{Tx: 2, Round: 2}}, ""},
		{"next round", Entry{Epoch: 3, Commit: &Commit{Tx: 2, Round: 3}}, ""},
		{"a round that is over", Entry{Epoch: 3, Commit: &Commit{Tx: 2, Round: 1}}, "batch 2 of attempt 3.1, and attempt 3.2 has committed the one before"},
		{"the same batch", Entry{Epoch: 3, Commit: &Commit{Tx: 1}}, "batch 1, and batch 1 is committed"},
		{"a batch is left out", Entry{Epoch: 3, Commit: &Commit{Tx: 3}}, "batch 3, and batch 1 is committed"},
		{"fix", Entry{Epoch: 3, Fix: &Fix{2, map[string]Ranges{"in": nil}}}, ""},
		{"fix another batch", Entry{Epoch: 3, Fix: &Fix{3, map[string]Ranges{"in": nil}}}, "the ranges of batch 3"},
		{"fix nothing", Entry{Epoch: 3, Fix: &Fix{Tx: 2}}, "fixes nothing of batch 2"},
		{"nothing", Entry{Epoch: 3}, "0 parts"},
		{"two things", Entry{Epoch: 3, Fix: &Fix{2, map[string]Ranges{"in": nil}}, Commit: &Commit{Tx: 2}}, "2 parts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := full()
			err := r.Apply(&tt.e)
			if tt.want == "" {
				require.NoError(t, err)
				require.NotEqual(t, full(), r)
				return
			}
			require.ErrorIs(t, err, ErrStale)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, full(), r)
			require.Equal(t, strings.HasPrefix(tt.want, "a later life"), errors.Is(err, ErrReplaced))
		})
	}
	require.NoError(t, r.Apply(&Entry{Epoch: 3, Fix: &Fix{2, map[string]Ranges{"in": nil}}}))
	require.ErrorIs(t, r.Apply(&Entry{Epoch: 3, Fix: &Fix{2, map[string]Ranges{"in": {"a": {}}}}}), ErrStale, "ranges are fixed for ever")
}

// What is written of a record is read again, and damage is told and not guessed away.
func TestRecordJSON(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", `{}`, ""},
		{"no groups", `{"committed":3,"last":{"sum":[]}}`, "sum has 0 key groups, and not 1024"},
		{"null", `{"committed":3,"last":{"sum":null}}`, "sum has 0 key groups, and not 1024"},
		{"few groups", `{"committed":3,"last":{"sum":[1,2,3]}}`, "sum has 3 key groups, and not 1024"},
		{"ahead", `{"committed":3,"last":{"sum":[4` + strings.Repeat(",0", tuple.KeyGroups-1) + `]}}`, "batch 4 has written to key group 0 of sum, and batch 3 is committed"},
		{"an earlier version", `{"committed":3,"last":{"sum":[2` + strings.Repeat(",0", tuple.KeyGroups-1) + `]}}`, "or of an earlier version of Egret: batch 2 has written to key group 0 of sum, and no attempt has"},
		{"before the first attempt", `{"epoch":1,"committed":3,"attempts":[{"epoch":1,"round":1,"tx":3}],"last":{"sum":[2` + strings.Repeat(",0", tuple.KeyGroups-1) + `]}}`, "batch 2 has written to key group 0 of sum, and no attempt has"},
		{"an attempt ahead", `{"epoch":1,"committed":3,"attempts":[{"epoch":1,"round":1,"tx":4}]}`, "batch 4 of attempt 1.1 was written, and epoch 1 has committed batch 3"},
		{"a later epoch", `{"epoch":1,"committed":3,"attempts":[{"epoch":2,"round":1,"tx":3}]}`, "batch 3 of attempt 2.1 was written"},
		{"attempts without order", `{"epoch":1,"committed":3,"attempts":[{"epoch":1,"round":2,"tx":1},{"epoch":1,"round":1,"tx":2}]}`, "batch 2 of attempt 1.1 was written behind batch 1 of attempt 1.2"},
		{"batches without order", `{"epoch":1,"committed":3,"attempts":[{"epoch":1,"round":1,"tx":2},{"epoch":1,"round":2,"tx":2}]}`, "was written behind"},
		{"too many attempts", `{"epoch":1,"committed":3,"attempts":[{"epoch":1,"round":1,"tx":2}]}`, "more attempts have written than there are key groups"},
		{"no JSON", `{`, "unexpected end"},
		{"negative", `{"committed":-1}`, "cannot unmarshal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Record{Epoch: 77}
			err := json.Unmarshal([]byte(tt.text), &r)
			if tt.want == "" {
				require.NoError(t, err)
				require.Zero(t, r, "nothing is left of what was there")
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// Whatever is read as a record and as entries, nothing panics, what is refused changes
// nothing, and what comes of it is read again.
func FuzzRecord(f *testing.F) {
	zeros := strings.Repeat(",0", tuple.KeyGroups-1)
	f.Add([]byte(`{"epoch":1,"committed":3,"last":{"sum":[3`+zeros+`]},"attempts":[{"epoch":1,"round":7,"tx":2}],"positions":{"in":null}}`),
		[]byte(`{"epoch":1,"commit":{"tx":4,"round":8,"positions":{"in":{"a":"5"}},"written":{"sum":[1,18446744073709551615],"new":[]}}}`))
	f.Add([]byte(`{"committed":18446744073709551615,"fixed":{}}`), []byte(`{"commit":{"tx":0}}`))
	f.Add([]byte(`{"epoch":4294967295}`), []byte(`{"epoch":4294967295,"fix":{"tx":1,"ranges":{"in":null}}}`))
	f.Add([]byte(`{"last":{"sum":[0]}}`), []byte(`{"epoch":1,"begin":true,"life":1}`))
	f.Fuzz(func(t *testing.T, record, entry []byte) {
		var r Record
		if json.Unmarshal(record, &r) != nil {
			return
		}
		again(t, &r)
		var e Entry
		if json.Unmarshal(entry, &e) != nil {
			return
		}
		before := r.Clone()
		require.Equal(t, &r, before)
		err := r.Apply(&e)
		if err != nil {
			require.ErrorIs(t, err, ErrStale)
			require.Equal(t, before, &r)
			return
		}
		require.False(t, before.Committed == math.MaxUint64 && e.Commit != nil)
		require.True(t, r.Epoch > before.Epoch || e.Epoch == before.Epoch && r.Epoch == before.Epoch)
		require.Equal(t, e.Commit != nil, r.Committed == before.Committed+1)
		again(t, &r)
		require.ErrorIs(t, r.Apply(&e), ErrStale, "an entry is taken once")
	})
}

// again writes and reads a record.
func again(t *testing.T, r *Record) {
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var back Record
	require.NoError(t, json.Unmarshal(text, &back))
	want := r.Clone()
	if len(want.Fixed) == 0 {
		want.Fixed = nil // no Apply leaves it empty
	}
	if len(want.Positions) == 0 {
		want.Positions = nil
	}
	if len(want.Last) == 0 {
		want.Last = nil
	}
	if len(want.Attempts) == 0 {
		want.Attempts = nil
	}
	require.Equal(t, want, &back)
}

// A copy shares nothing that Apply changes.
func TestClone(t *testing.T) {
	r := &Record{Epoch: 1, Positions: map[string]Positions{"in": {"a": "1"}}, Last: map[string][]tuple.TxID{"sum": make([]tuple.TxID, tuple.KeyGroups)}}
	c := r.Clone()
	require.NoError(t, r.Apply(&Entry{Epoch: 1, Commit: &Commit{Tx: 1, Positions: map[string]Positions{"in": {"a": "2"}, "new": {}}, Written: map[string]tuple.Groups{"sum": {1}}}}))
	require.Equal(t, "1", c.Positions["in"]["a"])
	require.Equal(t, []string{"in"}, slices.Collect(maps.Keys(c.Positions)))
	require.Zero(t, c.Last["sum"][0])
}

// Stamps are those of all commits, however many attempts there are; the record keeps no
// more of them than there are key groups, and is the same when it was written and read.
func TestStamps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Record{}
		want := map[string][]tuple.BatchID{}
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			round := uint32(1)
			if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Epoch == r.Epoch {
				round = r.Attempts[n-1].Round
			}
			switch rapid.SampledFrom([]string{"epoch", "round", "commit", "commit", "idle", "read"}).Draw(t, "what") {
			case "epoch":
				require.NoError(t, r.Apply(&Entry{Epoch: r.Epoch + 1, Begin: true}))
				continue
			case "read":
				text, err := json.Marshal(r)
				require.NoError(t, err)
				r = &Record{}
				require.NoError(t, json.Unmarshal(text, r))
				continue
			case "idle":
				require.NoError(t, r.Apply(&Entry{Epoch: r.Epoch, Commit: &Commit{Tx: r.Committed + 1, Round: round + 7}}))
				continue
			case "round":
				round++
			}
			c := &Commit{Tx: r.Committed + 1, Round: round, Written: map[string]tuple.Groups{}}
			for _, component := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"sum", "all"}), rapid.ID).Draw(t, "components") {
				var groups tuple.Groups
				for _, g := range rapid.SliceOfN(rapid.SampledFrom([]uint16{0, 1, 1023}), 0, 3).Draw(t, "groups") {
					groups.Add(g)
					if want[component] == nil {
						want[component] = make([]tuple.BatchID, tuple.KeyGroups)
					}
					want[component][g] = tuple.BatchID{Attempt: tuple.Attempt{Epoch: r.Epoch, Round: round}, Tx: c.Tx}
				}
				if groups != (tuple.Groups{}) {
					c.Written[component] = groups
				}
			}
			require.NoError(t, r.Apply(&Entry{Epoch: r.Epoch, Commit: c}))
		}
		for _, component := range []string{"sum", "all"} {
			require.Equal(t, want[component], r.Stamps(component))
		}
		require.LessOrEqual(t, len(r.Attempts), 6, "groups that were written to")
		require.NoError(t, r.checkStamps())
	})
}
