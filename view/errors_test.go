package view

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestErrors(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	var b Errors
	require.Equal(t, []Error{}, b.All())
	b.Add(Error{Component: "count", Task: "count/0", Kind: "failed", Text: "no", Stack: "main.f", Tuple: "a", Last: at(1)})
	b.Add(Error{Component: "split", Task: "split/0", Kind: "failed", Text: "no", Last: at(2)})
	b.Add(Error{Component: "count", Task: "count/1", Kind: "died", Text: "no", Last: at(3)})
	b.Add(Error{Component: "count", Task: "count/2", Kind: "failed", Text: "no", Tuple: "b", Last: at(4), Count: 5})
	require.Equal(t, []Error{
		{Component: "count", Task: "count/2", Kind: "failed", Text: "no", Stack: "main.f", Tuple: "b", First: at(1), Last: at(4), Count: 6},
		{Component: "count", Task: "count/1", Kind: "died", Text: "no", First: at(3), Last: at(3), Count: 1},
		{Component: "split", Task: "split/0", Kind: "failed", Text: "no", First: at(2), Last: at(2), Count: 1},
	}, b.All())
	for i := range 2 * mostErrors {
		b.Add(Error{Component: "count", Kind: "failed", Text: strconv.Itoa(i), Last: at(10 + i)})
	}
	all := b.All()
	require.Len(t, all, mostErrors+1, "those of others stay")
	require.Equal(t, strconv.Itoa(2*mostErrors-1), all[0].Text)
	require.Equal(t, "split", all[mostErrors].Component)
	for i := range 2 * mostComponents {
		b.Add(Error{Component: strconv.Itoa(i)})
	}
	require.Len(t, b.All(), mostErrors+mostComponents-1)
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		in   float64
		want string
	}{{1.5, "1.5"}, {0, "0"}, {math.NaN(), "null"}, {math.Inf(1), "null"}, {math.Inf(-1), "null"}} {
		text, err := json.Marshal(Own{Value: Number(tt.in)})
		require.NoError(t, err)
		require.Contains(t, string(text), `"value":`+tt.want)
		var back Own
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, tt.want == "null", math.IsNaN(float64(back.Value)))
	}
}
