package scrape

import "github.com/egretstream/egret/metrics"

// The engine's metrics. docs/metrics.md is held against what is exported.

// ownPrefix is put before the names of bolts' own metrics, so that none can be
// taken for one of the engine or of the process.
const ownPrefix = "egret_own_"

// Names that are used in more places than one.
const (
	up              = "egret_up"
	uptime          = "egret_uptime_seconds"
	buildInfo       = "egret_build_info"
	maxPending      = "egret_max_pending_messages"
	maxPendingBytes = "egret_max_pending_bytes"
	tasks           = "egret_tasks"
	emitted         = "egret_emitted_tuples_total"
	transferred     = "egret_transferred_tuples_total"
	executed        = "egret_executed_tuples_total"
	execute         = "egret_execute_latency_seconds"
	complete        = "egret_complete_latency_seconds"
	messages        = "egret_messages_total"
	settled         = "egret_messages_settled_total"
	open            = "egret_messages_open"
	attempts        = "egret_attempts_total"
	ended           = "egret_attempts_ended_total"
	trying          = "egret_attempts_trying"
	replays         = "egret_replays_total"
	kept            = "egret_kept_bytes"
	queued          = "egret_queued_tuples"
	held            = "egret_held_tuples"
	room            = "egret_room_tuples"
	throttled       = "egret_throttled_seconds_total"
	restarts        = "egret_restarts_total"
	refused         = "egret_refused_total"
	stuck           = "egret_stuck_calls_total"
	abandoned       = "egret_abandoned_calls_total"
	batches         = "egret_batches_total"
	batchesFailed   = "egret_batches_failed_total"
	batchesReplayed = "egret_batches_replayed_total"
	batchesUnderWay = "egret_batches_under_way"
	batchLast       = "egret_batch_last"
	batchMessages   = "egret_batch_messages_total"
	batchKeys       = "egret_batch_keys_total"
	batchRounds     = "egret_batch_rounds_total"
	stale           = "egret_stale_total"
)

// A family is a metric and its labels beside topology, component and task.
type family struct {
	name, help string
	labels     []string
}

var ofRun = []family{
	{name: up, help: "1 while the topology runs."},
	{name: uptime, help: "Time since the topology was started."},
	{name: buildInfo, help: "1, with the versions of Egret and Go as labels.", labels: []string{"version", "goversion"}},
	{name: maxPendingBytes, help: "Bytes that one task may keep for replay."},
}

var ofComponents = []family{
	{name: tasks, help: "Tasks of the component."},
	{name: emitted, help: "Tuples that the component has emitted.", labels: []string{"stream"}},
	{name: transferred, help: "Tuples that were sent to tasks, one for each that gets a copy.", labels: []string{"stream"}},
	{name: executed, help: "Tuples that Execute has returned from, or panicked on.", labels: []string{"from", "stream", "result"}},
	{name: execute, help: "Time that Execute takes for a tuple."},
	{name: complete, help: "Time from the emission of a message until everything that came of it is done."},
	{name: messages, help: "Messages, each counted once."},
	{name: settled, help: "Messages that are open no more.", labels: []string{"outcome"}},
	{name: maxPending, help: "Messages of spout tasks that may be open."},
	{name: open, help: "Messages of which it is not known what becomes of them."},
	{name: attempts, help: "Emissions of messages, replays included."},
	{name: ended, help: "Attempts that have ended.", labels: []string{"outcome"}},
	{name: trying, help: "Attempts that have not ended."},
	{name: replays, help: "Messages that were emitted again, by what ended the attempt before.", labels: []string{"cause"}},
	{name: kept, help: "Size of the messages that are kept for replay."},
	{name: held, help: "Tuples that are retained."},
	{name: queued, help: "Tuples that were received and not executed."},
	{name: room, help: "Tuples that may be sent before a receiver must give more room."},
	{name: throttled, help: "Time in which a receiver without room held tasks up."},
	{name: restarts, help: "Incarnations of tasks after the first."},
	{name: refused, help: "Parcels and messages of the engine that came from or for a dead incarnation, or of an attempt at batches that is over."},
	{name: stuck, help: "Calls of user code that lasted longer than StuckAfter."},
	{name: abandoned, help: "Calls of sources and queues that ignored the end of their context."},
	{name: batches, help: "Batches that are committed."},
	{name: batchesFailed, help: "Attempts at batches in which user code has failed."},
	{name: batchesReplayed, help: "Batches that have begun again."},
	{name: batchesUnderWay, help: "Batches that have begun and are not committed."},
	{name: batchLast, help: "Number of the last batch that is committed."},
	{name: batchMessages, help: "Messages in committed batches."},
	{name: batchKeys, help: "Keys that were written in committed batches."},
	{name: batchRounds, help: "Rounds, by why they have begun.", labels: []string{"cause"}},
	{name: stale, help: "What was dropped or refused since its attempt at batches or its incarnation is over.", labels: []string{"what"}},
}

// A series is one number of a task.
type series struct {
	name     string
	values   []string // of the family's labels
	gauge    bool
	spouts   bool    // not of bolts
	bolts    bool    // not of spouts
	messages bool    // of spouts, and of bolts that have messages of their own
	batches  bool    // of the coordinator of batches alone
	per      float64 // of what is counted, one of the unit; 0: 1
	of       func(*metrics.Task) int64
}

var ofTasks = []series{
	{name: messages, messages: true, of: func(m *metrics.Task) int64 { return m.Messages.Load() + m.Untracked.Load() }},
	{name: settled, values: []string{"acked"}, messages: true, of: func(m *metrics.Task) int64 { return m.Acked.Load() }},
	{name: settled, values: []string{"dead"}, messages: true, of: func(m *metrics.Task) int64 { return m.Dead.Load() }},
	{name: settled, values: []string{"handed_back"}, messages: true, of: func(m *metrics.Task) int64 { return m.HandedBack.Load() }},
	{name: settled, values: []string{"abandoned"}, messages: true, of: func(m *metrics.Task) int64 { return m.Abandoned.Load() }},
	{name: open, gauge: true, messages: true, of: (*metrics.Task).Open},
	{name: attempts, messages: true, of: func(m *metrics.Task) int64 { return m.Attempts.Load() }},
	{name: ended, values: []string{"acked"}, messages: true, of: func(m *metrics.Task) int64 { return m.Acked.Load() }},
	{name: ended, values: []string{"failed"}, messages: true, of: func(m *metrics.Task) int64 { return m.Failed.Load() }},
	{name: ended, values: []string{"lost"}, messages: true, of: func(m *metrics.Task) int64 { return m.Lost.Load() }},
	{name: ended, values: []string{"timed_out"}, messages: true, of: func(m *metrics.Task) int64 { return m.TimedOut.Load() }},
	{name: trying, gauge: true, messages: true, of: func(m *metrics.Task) int64 { return m.Trying.Load() }},
	{name: replays, values: []string{"failed"}, messages: true, of: func(m *metrics.Task) int64 { return m.ReplayedFailed.Load() }},
	{name: replays, values: []string{"lost"}, messages: true, of: func(m *metrics.Task) int64 { return m.ReplayedLost.Load() }},
	{name: replays, values: []string{"timed_out"}, messages: true, of: func(m *metrics.Task) int64 { return m.ReplayedTimeout.Load() }},
	{name: maxPending, gauge: true, spouts: true, of: func(m *metrics.Task) int64 { return m.MaxPending.Load() }},
	{name: kept, gauge: true, messages: true, of: func(m *metrics.Task) int64 { return m.Kept.Load() }},
	{name: queued, gauge: true, bolts: true, of: func(m *metrics.Task) int64 { return m.Queued.Load() }},
	{name: held, gauge: true, bolts: true, of: func(m *metrics.Task) int64 { return m.Held.Load() }},
	{name: room, gauge: true, of: func(m *metrics.Task) int64 { return m.Room.Load() }},
	{name: throttled, per: 1e9, of: func(m *metrics.Task) int64 { return m.Throttled.Load() }},
	{name: restarts, of: func(m *metrics.Task) int64 { return m.Restarts.Load() }},
	{name: refused, of: func(m *metrics.Task) int64 { return m.Refused.Load() }},
	{name: stuck, of: func(m *metrics.Task) int64 { return m.Stuck.Load() }},
	{name: abandoned, of: func(m *metrics.Task) int64 { return m.AbandonedCalls.Load() }},
	{name: batches, batches: true, of: func(m *metrics.Task) int64 { return m.Batches.Committed.Load() }},
	{name: batchesFailed, batches: true, of: func(m *metrics.Task) int64 { return m.Batches.Failed.Load() }},
	{name: batchesReplayed, batches: true, of: func(m *metrics.Task) int64 { return m.Batches.Replayed.Load() }},
	{name: batchesUnderWay, batches: true, gauge: true, of: func(m *metrics.Task) int64 {
		if now := m.Batches.Now.Load(); now != nil {
			return int64(len(now.Batches))
		}
		return 0
	}},
	{name: batchLast, batches: true, gauge: true, of: func(m *metrics.Task) int64 { return m.Batches.Last.Load() }},
	{name: batchMessages, batches: true, of: func(m *metrics.Task) int64 { return m.Batches.Messages.Load() }},
	{name: batchKeys, batches: true, of: func(m *metrics.Task) int64 { return m.Batches.Keys.Load() }},
}
