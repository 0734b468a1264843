package egret_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// match is a bolt with two inputs: orders and their payments, in any order.
type match struct {
	orders, payments map[string]*bolt.Held
	paid             map[string]bool
}

func newMatch() bolt.Bolt {
	return &match{map[string]*bolt.Held{}, map[string]*bolt.Held{}, map[string]bool{}}
}

func (m *match) Execute(in tuple.Tuple, out *bolt.Collector) error {
	mine, others := m.orders, m.payments
	if in.Component() == "payments" {
		mine, others = others, mine
	}
	h := out.Retain(in) // it is not acked when Execute returns
	id := h.String("id")
	if again := mine[id]; again != nil {
		again.Ack() // ids are unique, so h is a replay of it
	}
	mine[id] = h
	if other := others[id]; other != nil {
		out.Anchor(h, other).Emit(id, "paid") // both are done when all is that comes of this
		h.Ack()
		other.Ack()
		delete(others, id)
		delete(mine, id)
		m.paid[id] = true
	} else if m.paid[id] { // a replay of one side alone
		out.Anchor(h).Emit(id, "paid")
		h.Ack()
		delete(mine, id)
	} // else it waits for the other
	return nil
}

func (m *match) Flush(out *bolt.Collector) error { // nothing more comes for now
	for id, h := range m.orders {
		out.Anchor(h).Emit(id, "not paid")
		h.Ack()
	}
	for _, h := range m.payments {
		h.Fail(bolt.Reject(errors.New("nobody has ordered this")))
	}
	clear(m.orders)
	clear(m.payments)
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
