package host_test

import (
	"testing"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
)

type parcel struct{}

// BenchmarkSend/to=one is a producer that never waits, in rounds of 512 messages;
// to=pingpong two actors of which only one has something to do at a time.
func BenchmarkSend(b *testing.B) {
	b.Run("to=one", func(b *testing.B) {
		b.ReportAllocs()
		h := host.New(host.Config{})
		defer h.Close()
		const window = 512
		round := make(chan struct{}, 1)
		got := 0
		a := h.Spawn("a", &script{receive: func(actor.Context, any) {
			if got++; got%window == 0 {
				round <- struct{}{}
			}
		}})
		msg := &parcel{}
		b.ResetTimer()
		for i := 1; i <= b.N; i++ {
			h.Send(a, msg)
			if i%window == 0 {
				<-round
			}
		}
	})
	b.Run("to=pingpong", func(b *testing.B) {
		b.ReportAllocs()
		h := host.New(host.Config{})
		defer h.Close()
		done := make(chan struct{})
		left := b.N
		echo := h.Spawn("echo", &script{receive: func(c actor.Context, msg any) {
			m := msg.(*ball)
			c.Send(m.from, m)
		}})
		ping := h.Spawn("ping", &script{receive: func(c actor.Context, msg any) {
			if left--; left <= 0 {
				close(done)
				return
			}
			c.Send(echo, msg)
		}})
		b.ResetTimer()
		h.Send(echo, &ball{ping})
		<-done
	})
}

type ball struct{ from actor.Ref }
