package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
)

// A childConfig is the first line that a child reads. It ends when there is nothing more
// to read, so none is left behind.
type childConfig struct {
	Name     string           `json:"name"`
	Listen   string           `json:"listen"`
	Join     []string         `json:"join"`
	Data     string           `json:"data"`
	Pace     cluster.Pace     `json:"pace"`
	Patience cluster.Patience `json:"patience"`
	Insecure bool             `json:"insecure"`
	Log      string           `json:"log"` // file; "": none
}

// refusedPath is where a node of a fleet says how much its tasks have refused of lives that
// are over. It says that itself: who leads collects the counters, and there may be nobody.
const refusedPath = "/v1/fleet/refused"

// departWithin is for the tasks of a node that is interrupted to be moved away.
const departWithin = 20 * time.Second

// Child is a node of a fleet, in the process that it is. It returns when the process is
// interrupted, or when who has started it is gone.
func Child(in io.Reader) error { return sail(in, Numbers()) }

// sail is Child with other topologies.
func sail(in io.Reader, topologies ...*topology.Topology) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a node of a fleet is started by chaos live: %w", err)
	}
	var c childConfig
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, lines)
		os.Exit(1)
	}()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	logger := slog.New(slog.DiscardHandler)
	if c.Log != "" {
		f, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		logger = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	p, err := process.Start(context.Background(), process.Config{
		Listen: c.Listen, Join: c.Join, Data: c.Data, Name: c.Name, Pace: c.Pace, Patience: c.Patience, Insecure: c.Insecure, Logger: logger,
		Program: node.Program{Topologies: topologies, Settings: func(cluster.Run, *cluster.Spec) (*task.Settings, error) {
			return settings(logger), nil
		}},
	})
	if err != nil {
		return err
	}
	p.Handle(refusedPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts, err := p.Parts(r.Context())
		if err != nil {
			return // who asks, or the node, is gone
		}
		n := int64(0)
		for _, part := range parts {
			for _, t := range part.Tasks {
				n += t.Metrics.Refused.Load() + t.Metrics.Stale.Load()
			}
		}
		_ = json.NewEncoder(w).Encode(n)
	}))
	<-interrupted
	ctx, cancel := context.WithTimeout(context.Background(), departWithin)
	defer cancel()
	err = p.Depart(ctx)
	return errors.Join(err, p.Close())
}

// settings are the defaults of egret.Config, but for replays: a sink that cannot tell the
// recorder fails its numbers until it can.
func settings(logger *slog.Logger) *task.Settings {
	return &task.Settings{
		ParcelSize: 256, Linger: time.Millisecond, MaxPending: 65536, PendingBytes: 64 << 20, QueuedBytes: 64 << 20, TreeSize: 256,
		MessageTimeout: 30 * time.Second, MaxReplays: -1, BatchSize: 50_000, BatchInterval: 100 * time.Millisecond, MaxBatches: 3, StuckAfter: 10 * time.Second, Logger: logger,
		Event: func(e task.Event) { logger.Warn("event", "event", fmt.Sprint(e)) },
	}
}
