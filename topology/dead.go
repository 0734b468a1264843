package topology

import "github.com/egretstream/egret/tuple"

// DeadLetterStream is the name of the stream that [Component.DeadLetters] returns.
const DeadLetterStream = "dead-letters"

// DeadLetters returns the stream of the component's messages that are given up: a
// spout's, whichever bolt has refused them, or those that a bolt emits in Tick and
// Finish. Subscribe to it as to any other stream. Its fields are
//
//	id         string     for "deadletters show"; empty without a state directory
//	time       time.Time  when the message was given up
//	component  string     whose message it is
//	task       string     the task that emitted it, "lines/0"
//	stream     string     the stream that it was emitted on
//	error      string     the last failure
//	failures   int64      attempts that failed
//	losses     int64      attempts that were lost with a task or timed out
//	history    string     what ended each attempt, the last ones, a JSON array
//	values     string     the message itself, a JSON object
//
// A letter is tracked and replayed like a message, and until it is done its
// message counts as open. A letter that dies itself is stored and logged, and makes
// no other one. A topology that is not tracked has no dead letters, nor has a queue.
func (c *Component) DeadLetters() *Stream { return c.Stream(DeadLetterStream) }

// deadLetters is the schema that DeadLetters documents; package task fills it.
// If a value of a message is masked, all of them are.
func (c *Component) deadLetters() *tuple.Schema {
	s := &tuple.Schema{Component: c.name, Stream: DeadLetterStream, Fields: []string{
		"id", "time", "component", "task", "stream", "error", "failures", "losses", "history", "values",
	}}
	for _, of := range c.streams {
		if len(of.Masked) > 0 {
			s.Masked = []string{"values"}
		}
	}
	return s
}
