package egret_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

type order struct {
	id    string
	cents int
}

// orders is a source: a service that lists the orders of each shop, page by page.
type orders struct {
	shops []spout.Split
	fetch func(ctx context.Context, shop spout.Split, cursor string) (page []order, next string, err error)
}

func (o orders) Splits(context.Context) ([]spout.Split, error) { return o.shops, nil }

func (o orders) Open(_ context.Context, shop spout.Split, cursor string) (spout.Reader, error) {
	return &pages{o, shop, cursor}, nil
}

type pages struct {
	orders
	shop   spout.Split
	cursor string // of the next page
}

func (p *pages) Next(ctx context.Context, out *spout.Out) error {
	page, next, err := p.fetch(ctx, p.shop, p.cursor) // may wait
	if err != nil {
		return err // opened again at the last committed cursor, after a pause
	}
	if len(page) == 0 {
		return io.EOF
	}
	for _, o := range page {
		out.Emit(string(p.shop), o.id, o.cents)
	}
	p.cursor = next
	return nil
}

func (p *pages) Position() string { return p.cursor }

// totals is a bolt with a memory. Each task has one of its own, so no lock.
type totals map[string]int64

func newTotals() bolt.Bolt { return totals{} }

func (t totals) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	shop, cents := in.String("shop"), in.Int64("cents")
	if cents < 0 {
		return bolt.Reject(fmt.Errorf("order %s costs %d cents", in.String("id"), cents))
	}
	t[strings.Clone(shop)] += cents // cloned, because it is kept
	return nil
}

func (t totals) Finish(out *bolt.Collector) error { // once, when all input has ended
	for shop, cents := range t {
		out.Emit(shop, cents)
	}
	return nil
}

// A source and a bolt of one's own. One order can never be right, so its message
// is dead: it is logged, the others are done, and the run says so at its end.
func Example_source() {
	book := map[spout.Split][]order{
		"Lyon": {{"a1", 1200}, {"a2", 700}, {"a3", -5}, {"a4", 90}},
		"Oslo": {{"b1", 3000}, {"b2", 1}},
	}
	service := func(_ context.Context, shop spout.Split, cursor string) ([]order, string, error) {
		var at int
		fmt.Sscan(cursor, &at)
		end := min(at+2, len(book[shop]))
		return book[shop][at:end], fmt.Sprint(end), nil
	}
	t := topology.New("orders", func(b *topology.Builder) {
		in := b.Spout("orders", orders{[]spout.Split{"Lyon", "Oslo"}, service}).Emits("shop", "id", "cents")
		sums := b.Bolt("totals", newTotals, in.By("shop")).Emits("shop", "cents").Parallel(2)
		top := b.Bolt("order", bolt.Top(0, "cents"), sums.Global()).Emits("shop", "cents")
		b.Bolt("print", to.Stdout(), top.Global())
	})
	stats, err := egret.Run(context.Background(), t, egret.Config{Logger: slog.New(slog.DiscardHandler)})
	fmt.Println(err)
	fmt.Println(errors.Is(err, egret.ErrDead), stats.Dead, "dead")
	// Output:
	// Oslo 3001
	// Lyon 1990
	// topology orders: messages are dead: 1
	// true 1 dead
}
