// Package topology turns the definition of a topology, which is Go code, into a
// plan of numbers that the engine can run.
//
//	define(*Builder)            Build(Options)                  engine
//	  Spout, Bolt,     ------>  all mistakes at once   ------>  *Plan
//	  parameters                or a plan                       components, tasks, routes
//
// A definition is run as often as somebody wants to know something: once for
// the parameters, once for each plan. It should only describe, not open files or
// count its calls. Its parameters are declared where they are used.
package topology
