package pebble

import (
	"testing"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/statetest"
)

func TestStore(t *testing.T) {
	statetest.Run(t, func(t *testing.T) state.Backend { return Dir(t.TempDir()) })
}
