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
	b.Add(Error{Component: "count", Task: "count/0", Kind: "failed", Text: "no", Stack: "main.f", Tuple: "a", Last: at(1), Count: 1})
	b.Add(Error{Component: "split", Task: "split/0", Kind: "failed", Text: "no", Last: at(2), Count: 1})
	b.Add(Error{Component: "count", Task: "count/1", Kind: "died", Text: "no", Last: at(3), Count: 1})
	b.Add(Error{Component: "count", Task: "count/2", Kind: "failed", Text: "no", Tuple: "b", Last: at(4), Count: 5})
	require.Equal(t, []Error{
		{Component: "count", Task: "count/2", Kind: "failed", Text: "no", Stack: "main.f", Tuple: "b", First: at(1), Last: at(4), Count: 6},
		{Component: "count", Task: "count/1", Kind: "died", Text: "no", First: at(3), Last: at(3), Count: 1},
		{Component: "split", Task: "split/0", Kind: "failed", Text: "no", First: at(2), Last: at(2), Count: 1},
	}, b.All())
	for i := range 2 * mostErrors {
		b.Add(Error{Component: "count", Kind: "failed", Text: strconv.Itoa(i), Last: at(10 + i), Count: 2})
	}
	all := b.All()
	require.Len(t, all, mostErrors+3, "those of others stay")
	require.Equal(t, strconv.Itoa(2*mostErrors-1), all[0].Text)
	require.Equal(t, "split", all[mostErrors+2].Component)
	counts := map[string]int64{}
	for _, e := range all {
		counts[e.Component+" "+e.Kind] += e.Count
		if e.Text == OtherErrors && e.Kind == "failed" {
			require.Equal(t, Error{Component: "count", Kind: "failed", Text: OtherErrors, First: at(1), Last: at(10 + mostErrors - 1), Count: 6 + 2*mostErrors}, e)
		}
	}
	require.Equal(t, map[string]int64{"count failed": 6 + 4*mostErrors, "count died": 1, "split failed": 1}, counts, "no count is lost with a text")
	b.Add(Error{Component: "count", Kind: "failed", Text: strconv.Itoa(2*mostErrors - 1), Last: at(1000)})
	require.EqualValues(t, 2, b.All()[0].Count, "it goes on")
	for i := range 2 * mostComponents {
		b.Add(Error{Component: strconv.Itoa(i), Count: 1})
	}
	require.Len(t, b.All(), mostErrors+3+mostComponents-2)
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
