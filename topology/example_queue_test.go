package topology_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A mailroom stands for the client of a message broker. Each letter is answered
// by its id.
type mailroom struct{ letters []string }

func (m *mailroom) Next(_ context.Context, out *spout.QueueOut) error {
	for len(m.letters) > 0 && !out.Full() {
		out.Emit("letter "+m.letters[0], m.letters[0])
		m.letters = m.letters[1:]
	}
	if len(m.letters) == 0 {
		return io.EOF
	}
	return nil
}

func (m *mailroom) Ack(_ context.Context, id string) error {
	fmt.Println(id, "is done")
	return nil
}

func (m *mailroom) Fail(_ context.Context, id string, why error) error {
	if errors.Is(why, spout.ErrRejected) {
		fmt.Println(id, "goes aside:", why)
	} else {
		fmt.Println(id, "is delivered again later:", why)
	}
	return nil
}

func ExampleBuilder_Queue() {
	t := topology.New("post", func(b *topology.Builder) {
		letters := b.Queue("letters", func() spout.Queue {
			return &mailroom{letters: []string{"a", "b", "c"}}
		}).Emits("letter")
		b.Bolt("read", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			switch in.String("letter") {
			case "b":
				return errors.New("the lamp is out")
			case "c":
				return bolt.Reject(errors.New("that is no letter"))
			}
			return nil
		}), letters.Shuffle())
	})
	_, err := egret.Run(context.Background(), t, egret.Config{})
	fmt.Println(err)
	// Output:
	// letter a is done
	// letter b is delivered again later: failed: bolt read: the lamp is out
	// letter c goes aside: rejected: bolt read: that is no letter
	// <nil>
}
