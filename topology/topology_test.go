package topology

import (
	"context"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
)

// source is a source that is never read.
type source struct{}

func (source) Splits(context.Context) ([]spout.Split, error) { return nil, nil }
func (source) Open(context.Context, spout.Split, string) (spout.Reader, error) {
	return nil, nil
}

// noBolt is a factory that is never called.
func noBolt() bolt.Bolt { return nil }
