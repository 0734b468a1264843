package egret

import (
	"fmt"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
)

// Stats are what a run has done so far. All counts are exact; while a run goes on
// they are those of a moment ago and not all of the same moment.
//
// When a run has come to rest,
//
//	Messages = Acked + Dead + HandedBack + Abandoned + Open
//	Attempts = Acked + Failed + Lost + TimedOut + Trying
//
// where the messages include what bolts emit in Tick and Finish.
type Stats struct {
	Topology  string        `json:"topology"`
	Guarantee string        `json:"guarantee"`
	Elapsed   time.Duration `json:"elapsed_ns"`

	Input      int64 `json:"input"`       // messages of spouts and queues
	Messages   int64 `json:"messages"`    // those, and what bolts emit in Tick and Finish
	Acked      int64 `json:"acked"`       // everything that came of them is done
	Dead       int64 `json:"dead"`        // given up
	HandedBack int64 `json:"handed_back"` // messages of queues that were failed; what comes again is a new message
	Abandoned  int64 `json:"abandoned"`   // open when their task died: a spout reads them again, as new messages
	Open       int64 `json:"open"`

	Attempts int64 `json:"attempts"` // emissions, replays included
	Failed   int64 `json:"failed"`
	Lost     int64 `json:"lost"`
	TimedOut int64 `json:"timed_out"`
	Trying   int64 `json:"trying"`
	Replayed int64 `json:"replayed"`

	Batches *BatchStat `json:"batches,omitempty"` // of an exactly-once topology

	Restarts int64      `json:"restarts"` // of tasks
	Latency  Latency    `json:"complete_latency"`
	Tasks    []TaskStat `json:"tasks"`
}

// A BatchStat is what has become of the batches of an exactly-once topology. Messages of
// Stats are those that were emitted, also in batches that came again; here are those
// that count.
type BatchStat struct {
	Last      int64 `json:"last"` // the number of the last one that is committed
	Committed int64 `json:"committed"`
	Messages  int64 `json:"messages"` // in committed batches
	Keys      int64 `json:"keys"`     // written in committed batches
	Rounds    int64 `json:"rounds"`   // in which what was not committed came again
	Failed    int64 `json:"failed"`   // batches in which user code has failed
	Replayed  int64 `json:"replayed"` // batches that have begun again, each time they did
	// Causes are why rounds have begun: start, death, moved, failure, timeout, unknown entry.
	Causes map[string]int64 `json:"causes"`
	// Now is how the coordinator was up to 100 ms ago; nil: it has not begun, or the run has ended.
	Now *metrics.BatchesNow `json:"now,omitempty"`
}

// A Latency is some quantiles of a time.
type Latency = metrics.Latency

// A TaskStat is what one task has done.
type TaskStat struct {
	Task            string        `json:"task"` // "count/2"
	Component       string        `json:"component"`
	Streams         []StreamStat  `json:"streams,omitempty"`
	Inputs          []InputStat   `json:"inputs,omitempty"`
	Messages        int64         `json:"messages"`
	Acked           int64         `json:"acked"`
	Dead            int64         `json:"dead"`
	HandedBack      int64         `json:"handed_back"`
	Abandoned       int64         `json:"abandoned"`
	Attempts        int64         `json:"attempts"`
	Failed          int64         `json:"failed"`
	Lost            int64         `json:"lost"`
	TimedOut        int64         `json:"timed_out"`
	Trying          int64         `json:"trying"`
	ReplayedFailed  int64         `json:"replayed_failed"`
	ReplayedLost    int64         `json:"replayed_lost"`
	ReplayedTimeout int64         `json:"replayed_timeout"`
	Queued          int64         `json:"queued"`
	Held            int64         `json:"held"` // tuples retained
	Room            int64         `json:"room"`
	Throttled       time.Duration `json:"throttled_ns"`
	Restarts        int64         `json:"restarts"`
	Refused         int64         `json:"refused"`         // parcels, reports and limits of or for the dead
	Stuck           int64         `json:"stuck"`           // calls of user code that lasted longer than Config.StuckAfter
	AbandonedCalls  int64         `json:"abandoned_calls"` // of the source, that ignored their context
	Stale           int64         `json:"stale"`           // positions of the dead, refused
	Execute         Latency       `json:"execute_latency"`
}

// A StreamStat counts what a task has sent on one stream.
type StreamStat struct {
	Stream      string `json:"stream"`
	Emitted     int64  `json:"emitted"`
	Transferred int64  `json:"transferred"` // one for each task that got a copy
}

// An InputStat counts what a task has got by one input.
type InputStat struct {
	From     string `json:"from"` // component and stream
	Executed int64  `json:"executed"`
	Acked    int64  `json:"acked"`
	Failed   int64  `json:"failed"`
}

// String is one line for people.
func (s *Stats) String() string { return s.line(true) }

// line is String, or with done false what is said of a run that an error ended.
func (s *Stats) line(done bool) string {
	rate := 0.0
	if s.Elapsed > 0 {
		rate = float64(s.Input) / s.Elapsed.Seconds()
	}
	line := fmt.Sprintf("%s: %s in %v (%s/s)", s.Topology, amount.Of(s.Input, "message"), s.Elapsed.Round(time.Millisecond), amount.Digits(int64(rate)))
	if s.Guarantee == topology.AtMostOnce.String() {
		line += ", not tracked"
		if n := s.failedExecutions(); n > 0 {
			line += fmt.Sprintf("; %s failed", amount.Of(n, "execution"))
		}
		return line
	}
	if b := s.Batches; b != nil {
		batches := amount.Digits(b.Committed) + " batches"
		if b.Committed == 1 {
			batches = "1 batch"
		}
		line += fmt.Sprintf(", %s committed in %s", amount.Digits(b.Messages), batches)
		if b.Rounds > 0 {
			line += fmt.Sprintf("; %s again", amount.Of(b.Rounds, "round"))
		}
		if s.Restarts > 0 {
			line += fmt.Sprintf("; %s", amount.Of(s.Restarts, "restart"))
		}
		return line
	}
	if s.Open == 0 && s.Dead == 0 && done {
		line += ", all done"
	} else {
		line += fmt.Sprintf(", %s dead, %s open", amount.Digits(s.Dead), amount.Digits(s.Open))
	}
	line += fmt.Sprintf("; %s failed, %s lost, %s timed out, %s replayed", amount.Digits(s.Failed), amount.Digits(s.Lost), amount.Digits(s.TimedOut), amount.Digits(s.Replayed))
	if s.HandedBack > 0 {
		line += fmt.Sprintf("; %s handed back", amount.Digits(s.HandedBack))
	}
	if s.Restarts > 0 {
		line += fmt.Sprintf("; %s", amount.Of(s.Restarts, "restart"))
	}
	return line
}

func (s *Stats) failedExecutions() (n int64) {
	for _, t := range s.Tasks {
		for _, in := range t.Inputs {
			n += in.Failed
		}
	}
	return n
}

func readStats(plan *topology.Plan, ms []*metrics.Task, elapsed time.Duration) *Stats {
	s := &Stats{Topology: plan.Topology, Guarantee: plan.Guarantee.String(), Elapsed: elapsed}
	complete := make([]*metrics.Histogram, 0, len(ms))
	for id, m := range ms {
		n := &plan.Components[plan.Tasks[id].Component]
		t := TaskStat{
			Task: m.Name, Component: n.Name,
			Messages: m.Messages.Load() + m.Untracked.Load(), Acked: m.Acked.Load(), Dead: m.Dead.Load(), HandedBack: m.HandedBack.Load(), Abandoned: m.Abandoned.Load(),
			Attempts: m.Attempts.Load(), Failed: m.Failed.Load(), Lost: m.Lost.Load(), TimedOut: m.TimedOut.Load(), Trying: m.Trying.Load(),
			ReplayedFailed: m.ReplayedFailed.Load(), ReplayedLost: m.ReplayedLost.Load(), ReplayedTimeout: m.ReplayedTimeout.Load(),
			Queued: m.Queued.Load(), Held: m.Held.Load(), Room: m.Room.Load(), Throttled: time.Duration(m.Throttled.Load()),
			Restarts: m.Restarts.Load(), Refused: m.Refused.Load(), Stale: m.Stale.Load(),
			Stuck: m.Stuck.Load(), AbandonedCalls: m.AbandonedCalls.Load(),
			Execute: metrics.Read(&m.Execute),
		}
		for i := range m.Streams {
			t.Streams = append(t.Streams, StreamStat{n.Streams[i].Stream, m.Streams[i].Emitted.Load(), m.Streams[i].Transferred.Load()})
		}
		for i := range m.Inputs {
			in := n.Inputs[i].Stream
			t.Inputs = append(t.Inputs, InputStat{in.Component + "." + in.Stream, m.Inputs[i].Executed.Load(), m.Inputs[i].Acked.Load(), m.Inputs[i].Failed.Load()})
		}
		if n.Coordinates {
			b := &m.Batches
			s.Batches = &BatchStat{
				Last: b.Last.Load(), Committed: b.Committed.Load(), Messages: b.Messages.Load(), Keys: b.Keys.Load(),
				Rounds: b.Rounds.Load(), Failed: b.Failed.Load(), Replayed: b.Replayed.Load(), Causes: b.RoundsBegan(), Now: b.Now.Load(),
			}
		}
		if n.Reads() {
			s.Input += t.Messages - m.Letters.Load()
		}
		s.Messages += t.Messages
		s.Acked += t.Acked
		s.Dead += t.Dead
		s.HandedBack += t.HandedBack
		s.Abandoned += t.Abandoned
		s.Open += m.Open()
		s.Attempts += t.Attempts
		s.Failed += t.Failed
		s.Lost += t.Lost
		s.TimedOut += t.TimedOut
		s.Trying += t.Trying
		s.Replayed += t.ReplayedFailed + t.ReplayedLost + t.ReplayedTimeout
		s.Restarts += t.Restarts
		s.Tasks = append(s.Tasks, t)
		complete = append(complete, &m.Complete)
	}
	s.Latency = metrics.Read(complete...)
	return s
}

// laws checks both laws of conservation, and that nothing is left when the run
// has come to its end.
func (s *Stats) laws() error {
	if s.Guarantee != topology.AtLeastOnce.String() {
		return nil // nothing is tracked
	}
	for _, t := range s.Tasks {
		if t.Messages != t.Acked+t.Dead+t.HandedBack+t.Abandoned {
			return fmt.Errorf("%w: task %s: %s, but %d acked, %d dead, %d handed back and %d abandoned", errLaw, t.Task, amount.Of(t.Messages, "message"), t.Acked, t.Dead, t.HandedBack, t.Abandoned)
		}
		if t.Attempts != t.Acked+t.Failed+t.Lost+t.TimedOut {
			return fmt.Errorf("%w: task %s: %s, but %d acked, %d failed, %d lost and %d timed out", errLaw, t.Task, amount.Of(t.Attempts, "attempt"), t.Acked, t.Failed, t.Lost, t.TimedOut)
		}
		if t.Queued != 0 {
			return fmt.Errorf("%w: task %s ended with %s in its queue", errLaw, t.Task, amount.Of(t.Queued, "tuple"))
		}
	}
	return nil
}
