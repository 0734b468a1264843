package spout_test

import (
	"context"
	"fmt"
	"io"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

func ExampleGenerate() {
	squares := spout.Generate(4, func(i int64, out *spout.Out) { out.Emit(i, i*i) })
	t := topology.New("squares", func(b *topology.Builder) {
		in := b.Spout("squares", squares).Emits("n", "square")
		b.Bolt("print", to.Stdout(), in.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 0
	// 1 1
	// 2 4
	// 3 9
}

// Func suits what comes once and cannot be asked for again.
func ExampleFunc() {
	calls := make(chan string, 3)
	calls <- "ring"
	calls <- "ring ring"
	close(calls)
	phone := spout.Func(func(ctx context.Context, out *spout.Out) error {
		select {
		case call, more := <-calls:
			if !more {
				return io.EOF
			}
			out.Emit(call)
			return nil
		case <-ctx.Done(): // the run is being stopped
			return ctx.Err()
		}
	})
	t := topology.New("phone", func(b *topology.Builder) {
		b.Bolt("print", to.Stdout(), b.Spout("phone", phone).Emits("call").Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ring
	// ring ring
}
