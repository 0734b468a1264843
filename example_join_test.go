package egret_test

import (
	"context"
	"fmt"
	"time"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// match is a bolt with two inputs: orders and their payments, in any order.
type match struct{ orders, payments map[string]*bolt.Held }

func newMatch() bolt.Bolt {
	return &match{map[string]*bolt.Held{}, map[string]*bolt.Held{}}
}

func (m *match) Execute(in tuple.Tuple, out *bolt.Collector) error {
	mine, others := m.orders, m.payments
	if in.Component() == "payments" {
		mine, others = others, mine
	}
	h := out.Retain(in) // it is not acked when Execute returns
	id := h.String("id")
	other := others[id]
	if other == nil {
		if again := mine[id]; again != nil {
			again.Ack() // a replay has come, of which h is
		}
		mine[id] = h // waits for the other
		return nil
	}
	out.Anchor(h, other).Emit(id, "paid") // both are done when all is that comes of this
	h.Ack()
	other.Ack()
	delete(others, id)
	return nil
}

func (m *match) Flush(out *bolt.Collector) error { // nothing more comes for now
	for id, h := range m.orders {
		out.Anchor(h).Emit(id, "not paid")
		h.Ack()
		delete(m.orders, id)
	}
	return nil
}

func Example_join() {
	t := topology.New("payments", func(b *topology.Builder) {
		orders := b.Spout("orders", spout.Slice("a1", "a2", "a3")).Emits("id")
		payments := b.Spout("payments", spout.Slice("a3", "a1")).Emits("id")
		matched := b.Bolt("match", newMatch, orders.By("id"), payments.By("id")).
			Emits("id", "state").Parallel(2).Holds(10 * time.Minute)
		b.Bolt("print", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			fmt.Println(in.String("id"), in.String("state"))
			return nil
		}), matched.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// a1 paid
	// a2 not paid
	// a3 paid
}
