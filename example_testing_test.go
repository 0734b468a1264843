package egret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/bolttest"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func TestWordcount(t *testing.T) {
	r := egrettest.Run(t, topology.New("wordcount", wordcount),
		egrettest.Input("lines", "the cow jumped", "over the moon"), // instead of the file
		egrettest.Bolt("print", bolt.Each(ignore)))
	require.NoError(t, r.Err)
	require.Equal(t, []string{"the", "cow", "jumped", "over", "the", "moon"}, r.Tuples("split").Lines())
	require.Equal(t, []string{"the 2", "cow 1", "jumped 1"}, r.Tuples("top").Lines())
	require.Equal(t, []string{"the cow jumped", "over the moon"}, r.Acked("lines").Lines())
}

func TestCount(t *testing.T) {
	r := bolttest.Run(t, bolt.Count("word"), bolttest.Emits("word", "count"),
		bolttest.In("word").Rows("the", "cow", "the"))
	require.Equal(t, []string{"cow 1", "the 2"}, r.Tuples().Lines())
}

func ignore(tuple.Tuple, *bolt.Collector) error { return nil } // in place of what prints
