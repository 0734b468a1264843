package egret

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/view"
)

// lacks returns the node that a topology waits for, because it has states of it that no
// other one has; "" if it is there.
func lacks(v *node.View, sub *cluster.Submission) string {
	seat := sub.Seat()
	if seat == 0 || !sub.Status.Runs() {
		return ""
	}
	name := seat.String()
	for _, n := range v.Nodes {
		if n.ID == seat {
			name = n.Name
		}
	}
	for _, m := range v.Members {
		if m.Node == seat && m.Alive {
			return ""
		}
	}
	return name
}

// printBatches says how the batches of an exactly-once topology are.
func printBatches(w io.Writer, b *view.Batches) {
	now := b.Now
	if now == nil {
		fmt.Fprintf(w, "batches: %s committed last\n", amount.Digits(b.Last))
		return
	}
	fmt.Fprintf(w, "batches: %s committed last, attempt %s, %s\n", amount.Digits(b.Last), now.Attempt, phase(now))
	for _, x := range now.Batches {
		fmt.Fprintf(w, "  %s is %s: %s in %s\n", amount.Digits(x.Tx), stageWords(x.Stage), amount.Of(x.Messages, "message"), short(x.Age))
	}
	line := fmt.Sprintf("committed here: %s", amount.Of(b.Messages, "message"))
	if b.Latency.Count > 0 {
		line += fmt.Sprintf(", in p50 %s, p99 %s from the beginning of their batch", short(b.Latency.P50), short(b.Latency.P99))
	}
	if b.InWindow.Count > 0 {
		line += fmt.Sprintf("; now p50 %s, p99 %s", short(b.InWindow.P50), short(b.InWindow.P99))
	}
	var rounds []string
	for _, cause := range metrics.RoundCauses {
		if n := b.Rounds[cause]; n > 0 {
			rounds = append(rounds, amount.Digits(n)+" "+cause)
		}
	}
	if len(rounds) > 0 {
		line += "; rounds: " + strings.Join(rounds, ", ")
	}
	if b.Replayed > 0 {
		line += fmt.Sprintf("; begun again: %s", amount.Digits(b.Replayed))
	}
	if b.Failed > 0 {
		line += fmt.Sprintf("; failed: %s", amount.Digits(b.Failed))
	}
	fmt.Fprintln(w, line)
}

// phase is what the coordinator does, and for what it waits.
func phase(now *metrics.BatchesNow) string {
	text := now.Phase
	if now.Held {
		text += ", no batch begins"
	}
	switch {
	case now.Record:
		text += ", waits for the record"
	case len(now.Missing) > 0:
		text += ", waits for " + strings.Join(now.Missing, ", ")
	}
	return text
}

func stageWords(stage string) string {
	if stage == "failed" {
		return "one that has failed"
	}
	return stage
}

// short is a time of three digits or so.
func short(d time.Duration) string {
	if d < time.Microsecond {
		return "<1µs"
	}
	unit := time.Microsecond
	for unit < time.Second && d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}
