// Package trident describes exactly-once topologies by operators on typed streams:
//
//	wordcount := trident.New("wordcount", func(b *trident.Builder) {
//		lines := trident.From[string](b, "lines", from.Lines(b.String("file", "-", "text to count")))
//		words := trident.FlatMap(lines, split).Name("split").Parallel(2)
//		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), counts, trident.Count[string]())
//	})
//
// Messages of the sources come in batches. A batch is processed by all operators and
// then changes all states, once, or else it comes again as if it had never been. Batches
// are processed a few at a time, and committed in their order.
//
// The operators become components of a topology as any other. They run one after the
// other in one task, by calls, until elements have to go to other tasks:
//
//	lines ----> split: FlatMap, count what there is of each word ----by word----> counts
//	source      2 tasks, no tuple from one operator to the next                   state
//
// What is exactly-once are the states. A side effect of an operator happens again when
// its batch does.
package trident
