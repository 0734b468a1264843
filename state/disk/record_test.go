package disk

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

func recordOf(t testing.TB, s *Store) *Records {
	t.Helper()
	r, err := s.Records()
	require.NoError(t, err)
	return r
}

// What was appended is there in the next run, whose coordinator has a later epoch; and
// one of an earlier epoch changes nothing.
func TestRecordSurvives(t *testing.T) {
	root, ctx := t.TempDir(), context.Background()
	s := open(t, root, Options{})
	r := recordOf(t, s)
	first, err := r.Begin(ctx)
	require.NoError(t, err)
	require.Equal(t, &batch.Record{Epoch: 1}, first)
	var groups tuple.Groups
	groups.Add(7)
	commit := &batch.Entry{Epoch: 1, Commit: &batch.Commit{
		Tx: 1, Round: 3, Positions: map[string]batch.Positions{"lines": {"a": "10"}}, Written: map[string]tuple.Groups{"count": groups},
	}}
	require.NoError(t, r.Append(ctx, commit))
	require.ErrorIs(t, r.Append(ctx, commit), batch.ErrStale, "once")
	require.NoError(t, s.Close())

	s = open(t, root, Options{})
	r = recordOf(t, s)
	second, err := r.Begin(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, second.Epoch)
	require.EqualValues(t, 1, second.Committed)
	require.Equal(t, "10", second.Positions["lines"]["a"])
	require.Equal(t, tuple.BatchID{Attempt: tuple.Attempt{Epoch: 1, Round: 3}, Tx: 1}, second.Stamps("count")[7])
	require.ErrorIs(t, r.Append(ctx, &batch.Entry{Epoch: 1, Commit: &batch.Commit{Tx: 2}}), batch.ErrStale)
	second.Committed = 99
	require.EqualValues(t, 1, r.Record().Committed, "what Begin returns is the caller's")
	require.NoError(t, s.Close())

	s = open(t, root, Options{Reset: true})
	third, err := recordOf(t, s).Begin(ctx)
	require.NoError(t, err)
	require.Equal(t, &batch.Record{Epoch: 1}, third)
	kept, err := filepath.Glob(filepath.Join(root, "t", batchesFile+beforeReset+"*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
}

// A change takes the place of the file: one that was written over would be no record any
// more where the power is lost meanwhile.
func TestRecordIsReplaced(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	r := recordOf(t, s)
	_, err := r.Begin(t.Context())
	require.NoError(t, err)
	name, before := filepath.Join(root, "t", batchesFile), filepath.Join(t.TempDir(), "before")
	require.NoError(t, os.Link(name, before))
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, r.Append(t.Context(), &batch.Entry{Epoch: 1, Commit: &batch.Commit{Tx: 1}}))
	got, err := os.ReadFile(before)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "what was there is still what it was")
	now, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NotEqual(t, string(want), string(now))
}

func TestRecordDamaged(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	_, err := recordOf(t, s).Begin(context.Background())
	require.NoError(t, err)
	name := filepath.Join(root, "t", batchesFile)
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	for i := range whole {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 0x20
		for _, b := range [][]byte{bad, whole[:i]} {
			require.NoError(t, os.WriteFile(name, b, 0o600))
			_, err := s.Records()
			require.Error(t, err)
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, "left as it is")
		}
	}
	require.NoError(t, os.WriteFile(name, []byte("egret batches 3\nx"), 0o600))
	_, err = s.Records()
	require.ErrorIs(t, err, ErrNewer)
	require.NoError(t, os.WriteFile(name, []byte("egret batches 1\nx"), 0o600))
	_, err = s.Records()
	require.ErrorContains(t, err, "it was written by an earlier Egret: its format has the number 1, and this Egret knows 2; it was left as it is: put it right, or start over with --reset")
}

func FuzzRecord(f *testing.F) {
	b, err := encodeRecord(&batch.Record{Epoch: 3, Committed: 2, Fixed: map[string]batch.Ranges{"in": {"a": {Messages: 3}}}})
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(batchesMagic + "{}\nsum 00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := encodeRecord(&r)
		require.NoError(t, err)
		back, err := decodeRecord(again)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}
