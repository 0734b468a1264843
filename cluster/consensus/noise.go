package consensus

import (
	"bytes"
	"context"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newNoise lets raft talk at the level of debugging, also when it warns: what people have
// to know is said by this package and its owner.
func newNoise(logger *slog.Logger) hclog.Logger {
	o := &hclog.LoggerOptions{Name: "raft", Level: hclog.Off, Output: io.Discard}
	if logger.Enabled(context.Background(), slog.LevelDebug) {
		o.Level, o.Output, o.DisableTime = hclog.Info, noise{logger}, true
	}
	return hclog.New(o)
}

type noise struct{ logger *slog.Logger }

func (n noise) Write(line []byte) (int, error) {
	n.logger.Debug(string(bytes.TrimSpace(line)))
	return len(line), nil
}
