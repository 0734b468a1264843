package egret

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/task"
)

// Panics that are all of another kind, and long, take a bounded room; one that comes again
// is known.
func TestPanicsAreBounded(t *testing.T) {
	v := &events{}
	long := strings.Repeat("é", 64<<10)
	for i := range 20 * mostPanics {
		p := &task.PanicError{Component: "x", During: "Execute", Value: fmt.Sprint(i, long), Stack: []byte("goroutine 1")}
		require.True(t, v.unseen(p))
		require.False(t, v.unseen(p))
		require.LessOrEqual(t, len(v.stacks.seen), mostPanics)
	}
	size := 0
	for text := range v.stacks.seen {
		size += len(text)
	}
	require.LessOrEqual(t, size, mostPanics*(mostPanic+len("...")))
	require.False(t, v.unseen(&task.PanicError{Component: "x"}), "without a stack there is nothing to log")
}
