package egrettest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }

// Nothing is written to a test that is over, also by who has begun to before.
func TestOutputEnds(t *testing.T) {
	began, written := make(chan struct{}), 0
	out := &output{w: writer(func() {
		close(began)
		time.Sleep(50 * time.Millisecond) // one that does not wait has ended by then
		written++
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = out.Write([]byte("in time"))
	}()
	<-began
	out.end()
	require.Equal(t, 1, written)
	n, err := out.Write([]byte("late"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, 1, written)
	<-done
}
