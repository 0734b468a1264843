package from

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
)

// Nobody has to look into the directory to hear of files that were given up, and many
// of them do not flood the log.
func TestSpoolSaysWhatItGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		q := Spool(dir, SpoolOptions{MaxSize: 30})().(*spool)
		require.NoError(t, q.Open(t.Context(), &spout.Task{Logger: logger}))
		reject := func(from, to int) {
			for i := from; i < to; i++ {
				put(t, dir, fmt.Sprintf("%02d", i))
			}
			some, err := deliver(t.Context(), q, 100)
			require.NoError(t, err)
			require.Len(t, some, to-from)
			for _, l := range some {
				require.NoError(t, q.Fail(t.Context(), l.id, fmt.Errorf("%w: bolt x: bad", spout.ErrRejected)))
			}
		}
		said := func() []string {
			defer log.Reset()
			return strings.Split(strings.TrimSpace(strings.ReplaceAll(log.String(), dir, "DIR")), "\n")
		}
		reject(0, 25)
		lines := said()
		require.Len(t, lines, 10)
		require.Equal(t, `level=WARN msg="file was given up: rejected: bolt x: bad" file=DIR/failed/09`, lines[9])
		require.Equal(t, "rejected: bolt x: bad\n", text(t, dir, "failed", "24.error"))

		time.Sleep(burstTime)
		reject(25, 26)
		require.Equal(t, []string{`level=WARN msg="file was given up: rejected: bolt x: bad" file=DIR/failed/25 unlogged=15`}, said())

		put(t, dir, strings.Repeat("large", 20)) // not delivered at all
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := deliver(ctx, q, 1)
		require.ErrorIs(t, err, context.Canceled)
		require.Contains(t, said()[0], "file was given up: the file is too large")

		require.NoError(t, q.Close())
		require.Equal(t, []string{`level=WARN msg="files were given up and are in ` + filepath.Join("DIR", "failed") + `" files=27`}, said())

		require.NoError(t, q.Open(t.Context(), &spout.Task{Logger: logger}))
		require.NoError(t, q.Close())
		require.Empty(t, log.String(), "nothing was given up")
	})
}
