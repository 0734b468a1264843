package bolttest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/bolttest"
)

func TestX(t *testing.T) {
	r := bolttest.Run(t, bolt.Count("word"), bolttest.Emits("word", "count"), bolttest.In("word").Rows("the", "cow", "the"))
	require.NoError(t, r.Err)
	require.Equal(t, []string{"cow 1", "the 2"}, r.Tuples().Lines())
	require.Len(t, r.Inputs, 3)
	require.True(t, r.Inputs[2].Acked)
}
