package postgres_test

import (
	"testing"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/postgres"
	"github.com/egretstream/egret/state/postgres/postgrestest"
	"github.com/egretstream/egret/state/statetest"
)

func TestStore(t *testing.T) {
	url := postgrestest.Start(t)
	statetest.Run(t, func(t *testing.T) state.Backend { return postgres.URL(url) })
}
