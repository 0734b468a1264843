package tuple

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// mistakeOf returns what f is a misuse of, or "".
func mistakeOf(f func()) (what string) {
	defer func() {
		if v := recover(); v != nil {
			what = Misused(v).Error()
		}
	}()
	f()
	return ""
}

func TestDirect(t *testing.T) {
	plain := &Schema{Component: "in", Stream: "default", Fields: []string{"a"}}
	direct := &Schema{Component: "in", Stream: "to", Fields: []string{"a"}, Direct: 3}
	var r Row
	r.SetDirect(direct, 2, []any{7})
	require.Equal(t, 3, r.Direct)
	require.Equal(t, "7", CloneRow(r.Cells, r.Kinds)[0].String())
	for task, want := range map[int]string{
		3:  "stream in.to is direct to tasks 0 to 2, but task 3 was chosen",
		-1: "stream in.to is direct to tasks 0 to 2, but task -1 was chosen",
	} {
		require.Equal(t, want, mistakeOf(func() { r.SetDirect(direct, task, []any{7}) }))
	}
	require.Equal(t, "stream in.default is not direct: use Emit, or subscribe to it with Direct()", mistakeOf(func() { r.SetDirect(plain, 0, []any{7}) }))
	require.Equal(t, "stream in.to is direct: use EmitDirect and choose a task from 0 to 2", mistakeOf(direct.NeedsTask))
	require.Empty(t, mistakeOf(plain.NeedsTask))
}

// A view shows the row that it was given last, and nothing when it is closed.
func TestView(t *testing.T) {
	s := &Schema{Component: "in", Stream: "default", Fields: []string{"word", "n"}}
	var r Row
	var v View
	r.Set(s, []any{"whale", 3})
	a := v.Tuple(s, &r)
	require.Equal(t, "whale", a.String("word"))
	require.Equal(t, "in", a.Component())
	v.Close()
	require.Contains(t, mistakeOf(func() { a.Int64("n") }), "tuple used after")
	r.Set(s, []any{nil, 4})
	b := v.Tuple(s, &r)
	require.True(t, b.Value("word").IsNil())
	require.EqualValues(t, 4, b.Int64("n"))
	require.Contains(t, mistakeOf(func() { b.Int64("m") }), `no field "m"`)
	require.Contains(t, mistakeOf(func() { a.Int64("n") }), "tuple used after")
	require.Zero(t, testing.AllocsPerRun(100, func() { v.Tuple(s, &r).Int64("n"); v.Close() }))
}

// The two owners of a key are two and in range, and the first one is the owner by
// the whole key.
func TestOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks, hash := rapid.IntRange(1, 4096).Draw(t, "tasks"), rapid.Uint64().Draw(t, "hash")
		a, b := Owners(hash, tasks)
		require.Equal(t, Owner(KeyGroup(hash), tasks), a)
		require.True(t, 0 <= b && b < tasks)
		require.Equal(t, tasks == 1, a == b)
	})
	a, b := Owners(hashOf("whale"), 8) // for ever
	require.Equal(t, [2]int{2, 4}, [2]int{a, b})
}

// All pairs of tasks are about as frequent.
func TestOwnersSpread(t *testing.T) {
	const tasks, keys = 8, 56_000
	n := map[[2]int]int{}
	for i := range keys {
		a, b := Owners(hashOf(fmt.Sprint("key ", i)), tasks)
		n[[2]int{a, b}]++
	}
	require.Len(t, n, tasks*(tasks-1))
	for pair, k := range n {
		require.InDelta(t, keys/len(n), k, 200, "%v", pair)
	}
}
