package trident_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/trident"
)

// run runs a topology and prints what a state then has, by its keys.
func run[K cmp.Ordered, V any](define func(b *trident.Builder), st *trident.State[K, V]) {
	ctx := context.Background()
	if _, err := egret.Run(ctx, trident.New("example", define), egret.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		fmt.Println(err)
		return
	}
	r, err := st.Open(ctx, "example", trident.Latest)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	all, err := r.Top(ctx, 100, func(a, b trident.Pair[K, V]) int { return cmp.Compare(a.Key, b.Key) })
	for _, p := range all {
		fmt.Println(p.Key, p.Value)
	}
	if err != nil {
		fmt.Println(err)
	}
}

// The words of two lines are counted: combined in the tasks that split, then in those
// of the state.
func ExamplePersistentAggregate() {
	counts := trident.StateOf[string, int64]("counts", memory.New(), trident.Opaque)
	run(func(b *trident.Builder) {
		lines := trident.From[string](b, "lines", spout.Slice("the cow jumped", "over the moon"))
		words := trident.FlatMap(lines, func(line string, emit func(string)) {
			for w := range strings.FieldsSeq(line) {
				emit(w)
			}
		}).Name("split").Parallel(2)
		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), counts, trident.Count[string]()).Parallel(2)
	}, counts)
	// Output:
	// cow 1
	// jumped 1
	// moon 1
	// over 1
	// the 2
}

type Order struct {
	Customer string
	Cents    int
}

// Elements are structs, whose fields are those of tuples; a value of a state is one, too.
func ExampleUpdate() {
	type account struct{ Orders, Cents int }
	accounts := trident.StateOf[string, account]("accounts", memory.New(), trident.Opaque)
	run(func(b *trident.Builder) {
		orders := trident.From[Order](b, "orders", spout.Rows([]any{"ann", 250}, []any{"bob", 100}, []any{"ann", 50}))
		big := orders.Filter(func(o Order) bool { return o.Cents >= 100 })
		trident.Update(trident.GroupBy(big, func(o Order) string { return o.Customer }), accounts,
			func(_ string, a account, _ bool, batch []Order) account {
				for _, o := range batch {
					a.Orders++
					a.Cents += o.Cents
				}
				return a
			})
	}, accounts)
	// Output:
	// ann {1 250}
	// bob {1 100}
}

// Two streams are joined within each batch.
func ExampleJoin() {
	totals := trident.StateOf[string, int64]("totals", memory.New(), trident.Opaque)
	type price struct {
		Thing string
		Cents int64
	}
	type sale struct {
		Thing  string
		Number int64
	}
	run(func(b *trident.Builder) {
		events := trident.From[string](b, "events", spout.Slice("price tea 300", "sold tea 2", "price bun 150", "sold bun 1", "sold tea 1"))
		prices := trident.FlatMap(events, func(e string, emit func(price)) {
			var p price
			if n, _ := fmt.Sscanf(e, "price %s %d", &p.Thing, &p.Cents); n == 2 {
				emit(p)
			}
		})
		sales := trident.FlatMap(events, func(e string, emit func(sale)) {
			var s sale
			if n, _ := fmt.Sscanf(e, "sold %s %d", &s.Thing, &s.Number); n == 2 {
				emit(s)
			}
		})
		paid := trident.Join(
			trident.GroupBy(sales, func(s sale) string { return s.Thing }),
			trident.GroupBy(prices, func(p price) string { return p.Thing }),
			func(thing string, s sale, p price) price { return price{thing, s.Number * p.Cents} })
		trident.PersistentAggregate(trident.GroupBy(paid, func(p price) string { return p.Thing }), totals, trident.Sum(func(p price) int64 { return p.Cents }))
	}, totals)
	// Output:
	// bun 150
	// tea 900
}
