package egret_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A mortal is a bolt whose lives end now and then, with what they have written
// acked or not.
type mortal struct {
	bolt.Bolt
	executed *atomic.Int64 // over all lives
}

func (m mortal) Prepare(ctx context.Context, task *bolt.Task) error {
	return m.Bolt.(bolt.Preparer).Prepare(ctx, task)
}
func (m mortal) Finish(out *bolt.Collector) error { return m.Bolt.(bolt.Finisher).Finish(out) }
func (m mortal) Close() error                     { return m.Bolt.(bolt.Closer).Close() }

func (m mortal) Execute(in tuple.Tuple, out *bolt.Collector) error {
	n := m.executed.Add(1)
	if n%700 == 350 {
		panic("before it is written")
	}
	err := m.Bolt.Execute(in, out)
	if n%700 == 0 {
		panic("after it is written")
	}
	return err
}

// Every record is in the file when it appears, though the tasks that write it die.
func TestFilesSurviveTheirTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const records = 5000
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out-{task}.jsonl")
		var text strings.Builder
		text.WriteString("n,text\n")
		for i := range records {
			fmt.Fprintf(&text, "%d,\"line\n%d\"\n", i, i)
		}
		text.WriteString("none,x\n")
		require.NoError(t, os.WriteFile(in, []byte(text.String()), 0o600))
		bad := newTally()
		top := topology.New("files", func(b *topology.Builder) {
			read := b.Spout("read", from.CSV(in).Int("n").BadTo("bad")).Emits("n", "text").EmitsTo("bad", "error", "record")
			write := to.JSONLines(out)
			var executed atomic.Int64
			b.Bolt("write", func() bolt.Bolt { return mortal{write(), &executed} }, read.Shuffle()).Parallel(2)
			b.Bolt("bad", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				bad.add(in.String("record"))
				return nil
			}), read.Stream("bad").Global())
		})
		_, err := egret.Run(t.Context(), top, egret.Config{TreeSize: 4})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"none,x": 1}, bad.get())

		seen, twice := map[int64]bool{}, 0
		again := topology.New("again", func(b *topology.Builder) {
			paths := []string{strings.Replace(out, "{task}", "0", 1), strings.Replace(out, "{task}", "1", 1)}
			read := b.Spout("read", from.JSONLines(paths...)).Emits("text", "n")
			b.Bolt("check", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				n := in.Int64("n")
				if in.String("text") != fmt.Sprint("line\n", n) {
					return bolt.Reject(fmt.Errorf("%q with %d", in.String("text"), n))
				}
				if seen[n] {
					twice++
				}
				seen[n] = true
				return nil
			}), read.Global())
		})
		_, err = egret.Run(t.Context(), again, egret.Config{})
		require.NoError(t, err)
		require.Len(t, seen, records)
		require.Positive(t, twice, "at least once: a life that ends behind its work does it again")
	})
}

// Bad records that nobody wants are skipped and counted.
func TestBadRecordsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		files := fstest.MapFS{"a.jsonl": {Data: []byte(strings.Repeat("{\"n\": 1}\nno object\n", 500))}}
		good := newTally()
		top := topology.New("skip", func(b *topology.Builder) {
			read := b.Spout("read", from.JSONLinesFS(files, "a.jsonl").BadTo("bad")).Emits("n").EmitsTo("bad", "error", "record")
			b.Bolt("good", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				good.add(fmt.Sprint(in.Int64("n")))
				return nil
			}), read.Global())
		})
		stats, err := egret.Run(t.Context(), top, egret.Config{})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"1": 500}, good.get())
		streams := stats.Tasks[0].Streams
		require.Equal(t, "bad", streams[1].Stream)
		require.Equal(t, int64(500), streams[1].Emitted)
	})
}
