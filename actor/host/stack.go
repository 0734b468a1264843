package host

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
)

// The goroutines of an actor are found by a label that they carry, one number for
// each actor of the process. Another label has its name, so that a profile can be
// read by tasks.
const (
	numberLabel = "egret_actor"
	nameLabel   = "egret_task"
)

var labelled atomic.Uint64

// setLabels makes the labels of a's goroutines.
func (a *address) setLabels() {
	a.label = strconv.FormatUint(labelled.Add(1), 10)
	a.labels = pprof.WithLabels(context.Background(), pprof.Labels(numberLabel, a.label, nameLabel, a.name))
}

// wear labels the goroutine that runs.
func (a *address) wear() { pprof.SetGoroutineLabels(a.labels) }

// readStacks returns what each actor of the process does, by label. It stops the
// world for a moment.
func readStacks() map[string]string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1) // to memory, which cannot fail
	return parseStacks(b.Bytes())
}

// parseStacks reads a goroutine profile in its text form. Of goroutines with a
// label it keeps those that this package has started, and of their stacks the part
// above it, if that is code of an actor: this package calls the standard library, too. What
// it does not understand it passes over.
//
//	1 @ 0x47d92e 0x480b25
//	# labels: {"egret_actor":"7", "egret_task":"count/2"}
//	#	0x480b24	time.Sleep+0x164	/usr/local/go/src/runtime/time.go:363
func parseStacks(profile []byte) map[string]string {
	all := map[string]string{}
	for group := range bytes.SplitSeq(profile, []byte("\n\n")) {
		label, stack, above, ours := "", "", "", false // above: the function that the next line calls
		lines := bufio.NewScanner(bytes.NewReader(group))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() && !ours {
			line := lines.Text()
			if labels, is := strings.CutPrefix(line, "# labels: "); is {
				label = labelIn(labels)
				continue
			}
			fields := strings.Split(line, "\t")
			if len(fields) < 4 || fields[0] != "#" {
				continue
			}
			function := fields[2]
			if i := strings.LastIndexByte(function, '+'); i > 0 {
				function = function[:i]
			}
			if ours = strings.HasPrefix(function, pkg); !ours {
				stack += fmt.Sprintf("%s\n\t%s\n", function, fields[len(fields)-1])
				above = function
			} else if !strings.HasPrefix(above, module) {
				label = "" // it waits for a message or the goroutine of callStopped; or looks
			}
		}
		if label != "" && ours {
			if all[label] != "" {
				all[label] += "\n"
			}
			all[label] += stack
		}
	}
	return all
}

const (
	module = "github.com/egretstream/egret/" // all actors are of it
	pkg    = module + "actor/host."
)

// labelIn finds the number of an actor in {"key":"value", ...}.
func labelIn(labels string) string {
	_, after, found := strings.Cut(labels, `"`+numberLabel+`":"`)
	if !found {
		return ""
	}
	number, _, found := strings.Cut(after, `"`)
	if !found {
		return ""
	}
	return number
}
