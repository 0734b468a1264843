package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/egretstream/egret/state"
)

// layout is the version of the layout in schema.sql.
const layout = 2

//go:embed schema.sql
var schema string

//go:embed readers.sql
var readers string

// creating is the lock of who makes the schema: "egret" as a number.
const creating = 0x6567726574

// idleTimeout is how long a transaction may do nothing before the server ends it, in
// milliseconds.
const idleTimeout = "10000"

// A Backend keeps states in a database. Its methods may be called by several goroutines.
type Backend struct {
	// config reads the URL. A function, since no way to print a value shows what it knows.
	config func() (*pgxpool.Config, error)
}

// URL returns the states in a database: postgres://user@host:port/database, or in the
// form "user=... host=...". What it does not say comes from the environment variables that
// psql has (PGHOST, PGUSER, PGPASSWORD, ...) and from ~/.pgpass, so that a password need
// not be in it; "" takes all from there. pool_max_conns is how many connections a task
// may have open: 4 or the number of cores, whichever is more.
//
// A URL that cannot be read is an error of Open.
func URL(url string) *Backend {
	return &Backend{func() (*pgxpool.Config, error) {
		c, err := pgxpool.ParseConfig(url)
		if err != nil || split(c) {
			// pgx's error has parts of the URL.
			return nil, &state.UnusableError{Err: errors.New("the URL of the database cannot be read (it is not shown, since it may have a password): postgres://user@host:port/database is what it should be, with %40 for an @ in the user or the password")}
		}
		params := c.ConnConfig.RuntimeParams
		if params["application_name"] == "" {
			params["application_name"] = "egret"
		}
		if params["idle_in_transaction_session_timeout"] == "" {
			params["idle_in_transaction_session_timeout"] = idleTimeout
		}
		return c, nil
	}}
}

// split reports whether a host is the end of a password with an @ in it: no host has one,
// but for a directory of a socket.
func split(c *pgxpool.Config) bool {
	hosts := []string{c.ConnConfig.Host}
	for _, f := range c.ConnConfig.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.Contains(h, "@") && !strings.HasPrefix(h, "/") })
}

// String says which database it is, without the password.
func (b *Backend) String() string {
	c, err := b.config()
	if err != nil {
		return "PostgreSQL, with a URL that cannot be read"
	}
	return fmt.Sprintf("PostgreSQL database %s on %s:%d as user %s", c.ConnConfig.Database, c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.User)
}

// Open connects, and makes the schema if it is not there.
func (b *Backend) Open(ctx context.Context, name state.Name) (state.Store, error) {
	return b.open(ctx, name, true)
}

// Find connects, to a database that has the schema and the state.
func (b *Backend) Find(ctx context.Context, name state.Name) (state.Store, error) {
	return b.open(ctx, name, false)
}

func (b *Backend) open(ctx context.Context, name state.Name, create bool) (state.Store, error) {
	wrap := func(err error) error { return fmt.Errorf("state %v in %v: %w", name, b, err) }
	config, err := b.config()
	if err != nil {
		return nil, wrap(err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, wrap(err)
	}
	s := &store{pool: pool}
	s.wrap = func(err error) error {
		return state.Advise(wrap(err), fmt.Sprintf("delete what egret.rows and egret.fences have WHERE state = %d", s.id))
	}
	if err = prepare(ctx, pool, create); err == nil {
		s.id, err = identify(ctx, pool, name, create)
	}
	if err != nil {
		pool.Close()
		return nil, wrap(err)
	}
	return s, nil
}

// prepare looks at the schema, or makes it, once, whoever else does so at the same time.
func prepare(ctx context.Context, pool *pgxpool.Pool, make bool) error {
	version, err := version(ctx, pool)
	if isMissing(err) && !make {
		return state.ErrNone
	}
	if isMissing(err) {
		if err := create(ctx, pool); err != nil {
			return fmt.Errorf("make the schema egret: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if version != layout {
		return &state.UnusableError{Err: fmt.Errorf("the schema egret has layout %d, and this program knows layout %d only: run the Egret that has made it, or drop the schema and start its topologies anew", version, layout)}
	}
	return nil
}

func version(ctx context.Context, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (v int, err error) {
	err = db.QueryRow(ctx, "SELECT version FROM egret.version").Scan(&v)
	return v, err
}

func create(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(creating)); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass('egret.version') IS NOT NULL").Scan(&there); err != nil || there {
			return err
		}
		_, err := tx.Exec(ctx, schema+readers)
		return err
	})
}

// isMissing reports whether there is no such table or schema.
func isMissing(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "42P01" || pg.Code == "3F000")
}

// identify returns the number of a state, which it gets the first time.
func identify(ctx context.Context, pool *pgxpool.Pool, name state.Name, create bool) (id int32, err error) {
	const find = "SELECT id FROM egret.states WHERE topology = $1 AND name = $2"
	err = pool.QueryRow(ctx, find, name.Topology, name.State).Scan(&id)
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, err
	}
	if !create {
		return 0, state.ErrNone
	}
	if _, err = pool.Exec(ctx, "INSERT INTO egret.states (topology, name) VALUES ($1, $2) ON CONFLICT DO NOTHING", name.Topology, name.State); err != nil {
		return 0, err
	}
	err = pool.QueryRow(ctx, find, name.Topology, name.State).Scan(&id)
	return id, err
}
