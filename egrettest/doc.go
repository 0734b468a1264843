// Package egrettest runs topologies in tests: over given messages, in the process
// of the test, with everything that travels sent through the codec.
//
//	r := egrettest.Run(t, wordcount, egrettest.Input("lines", "the cow", "the moon"))
//	require.Equal(t, []string{"the", "cow", "the", "moon"}, r.Tuples("split").Lines())
//
// The topology is the one that ships: the inputs take the place of the sources of
// its spouts, and everything else stays as it is. The result has every tuple, every
// execution, and what became of every message.
//
// The rows of the inputs are taken one at a time, in the order in which they are
// given: the next one when everything that came of the one before has been
// executed. So the same inputs give the same result, whatever the scheduler does and
// however many tasks there are. Within one message several tasks still work at the
// same time: a bolt that remembers what came first among tuples of one message that
// come from several tasks may answer differently from run to run. [AtOnce] takes the
// rows as fast as they go.
//
// Run may be called inside a synctest bubble; then [Wait] and the intervals of
// ticks take no real time.
package egrettest
