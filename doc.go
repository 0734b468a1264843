// Package egret runs topologies of spouts and bolts: sources of messages, and
// steps that work on what comes of them, in parallel and in one process.
//
//	topology.New("wordcount", define)
//	     |
//	     +--> Main(t)                      a command line: run, list, graph,
//	     |                                 deadletters, bench, chaos
//	     +--> Run(ctx, t, Config{})        *Stats, error
//	     +--> Start(ctx, t, Config{})      *Running: Stats, Drain, Stop, Wait
//
// Every task of a component is an actor. Tuples travel between tasks in parcels,
// as far as the receiver's limit allows; the spout task knows of each message when
// everything that came of it is done, and replays what failed or was lost. So a
// message is executed at least once, or once at most if the topology says so
// ([topology.AtMostOnce]).
//
// What a bolt keeps in its own fields dies with its incarnation, by a panic for
// example: executions are promised, not memory.
//
// A topology is defined with package topology, of sources (packages spout and
// spout/from) and bolts (packages bolt and bolt/to). See the examples for both,
// and for a source and a bolt of one's own.
package egret
