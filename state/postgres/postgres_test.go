package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/postgres/postgrestest"
	"github.com/egretstream/egret/state/statetest"
	"github.com/egretstream/egret/tuple"
)

// One server for all that needs one.
func TestPostgres(t *testing.T) {
	url := postgrestest.Start(t)
	t.Run("store", func(t *testing.T) {
		statetest.Run(t, func(t *testing.T) state.Backend { return URL(url) })
	})
	for _, tt := range []struct {
		name string
		test func(t *testing.T, url string)
	}{
		{"the view has what is committed", committedView},
		{"the view of states without undo", lastView},
		{"many make the schema at once", createdOnce},
		{"another layout is refused", otherLayout},
		{"what is written belongs to a state that is there", deletedState},
		{"a user who may not create uses what is there", poorUser},
		{"a zombie that does nothing holds up nobody", idleZombie},
		{"a commit whose answer is lost is not said again", lostCommit},
		{"connections that were ended", ended},
		{"keys that are too long", longKeys},
		{"a commit is durable where others are not", durable},
		{"two who lock in another order do not wait for each other", ordered},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, database(t, url)) })
	}
}

// database makes an empty database and returns its URL.
func database(t *testing.T, url string) string {
	name := fmt.Sprint("test", databases.Add(1))
	exec(t, url, "CREATE DATABASE "+name)
	return strings.Replace(url, "///postgres?", "///"+name+"?", 1)
}

var databases atomic.Int64

func exec(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// query returns the rows of a query as text, one after the other.
func query(t *testing.T, url, sql string, args ...any) (all []string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	for rows.Next() {
		values, err := rows.Values()
		require.NoError(t, err)
		all = append(all, fmt.Sprint(values...))
	}
	require.NoError(t, rows.Err())
	return all
}

var counts = state.Name{Topology: "wordcount", State: "counts"}

func open(t *testing.T, url string, name state.Name) *store {
	s, err := URL(url).Open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s.(*store)
}

func join(t *testing.T, s state.Store, round uint32, committed, last tuple.TxID, undo bool) tuple.Fence {
	j := &state.Join{Fence: tuple.Fence{Attempt: tuple.Attempt{Epoch: 1, Round: round}, Life: 1 << 63}, Committed: committed, Undo: undo}
	j.Last = make([]tuple.BatchID, tuple.KeyGroups)
	for g := range uint16(4) {
		j.Groups.Add(g)
		j.Last[g].Tx = last
	}
	_, err := s.Join(t.Context(), j)
	require.NoError(t, err)
	return j.Fence
}

func batch(f tuple.Fence, tx tuple.TxID, value, prev string, keys ...string) *state.Write {
	w := &state.Write{Fence: f, Tx: tx}
	for i, k := range keys {
		c := state.Change{Key: state.Key{Group: uint16(i % 4), Bytes: k}, Row: state.Row{Value: []byte(value)}}
		if prev != "" {
			c.Prev = []byte(prev)
		}
		w.Rows = append(w.Rows, c)
	}
	return w
}

// onTop has w go on top of what is there.
func onTop(t *testing.T, s *store, w *state.Write) *state.Write {
	groups := w.Groups()
	w.Last = make([]tuple.BatchID, tuple.KeyGroups)
	require.NoError(t, s.transact(t.Context(), func(tx pgx.Tx) error {
		all, err := s.lock(t.Context(), tx, list(&groups))
		for g, f := range all {
			w.Last[g] = f.last
		}
		return err
	}))
	return w
}

func committedView(t *testing.T, url string) {
	counts, sums, other := open(t, url, counts), open(t, url, state.Name{Topology: "wordcount", State: "sums"}), open(t, url, state.Name{Topology: "other", State: "counts"})
	see := func(want ...string) {
		t.Helper()
		require.Equal(t, want, query(t, url, `SELECT state || ' ' || convert_from(key, 'UTF8') || ' ' || convert_from(value, 'UTF8') || ' ' || txid
			FROM egret.committed WHERE topology = 'wordcount' ORDER BY 1`))
	}
	see()
	f := join(t, counts, 1, 0, 0, true)
	join(t, sums, 1, 0, 0, true)
	require.NoError(t, counts.Write(t.Context(), onTop(t, counts, batch(f, 1, "1", "", "a", "b"))))
	require.NoError(t, sums.Write(t.Context(), onTop(t, sums, batch(f, 1, "100", "", "x"))))
	see()

	// Of another state's batch 2 it follows that 1 is committed, for all; not from another
	// topology's.
	o := join(t, other, 1, 0, 0, true)
	require.NoError(t, other.Write(t.Context(), onTop(t, other, batch(o, 7, "7", "", "a"))))
	see()
	require.NoError(t, counts.Write(t.Context(), onTop(t, counts, batch(f, 2, "2", "1", "a"))))
	see("counts a 1 1", "counts b 1 1", "sums x 100 1")
	require.Equal(t, []string{"1"}, query(t, url, "SELECT committed FROM egret.progress WHERE topology = 'wordcount'"))

	require.NoError(t, counts.Settle(t.Context(), f, 2))
	see("counts a 2 2", "counts b 1 1", "sums x 100 1")

	// Batch 3 makes new rows and deletes one; it is not committed, and undone.
	w := batch(f, 3, "3", "2", "a")
	w.Rows = append(w.Rows, batch(f, 3, "3", "", "", "new").Rows[1], state.Change{Key: state.Key{Group: 1, Bytes: "b"}, Row: state.Row{Prev: []byte("1")}})
	require.NoError(t, counts.Write(t.Context(), onTop(t, counts, w)))
	see("counts a 2 2", "counts b 1 2", "sums x 100 1")
	last := &state.Join{Fence: tuple.Fence{Attempt: tuple.Attempt{Epoch: 1, Round: 2}, Life: 1}, Committed: 2, Undo: true, Last: make([]tuple.BatchID, tuple.KeyGroups)}
	last.Groups.Add(0)
	last.Groups.Add(1)
	last.Last[0], last.Last[1] = tuple.BatchID{Attempt: f.Attempt, Tx: 2}, tuple.BatchID{Attempt: f.Attempt, Tx: 1}
	_, err := counts.Join(t.Context(), last)
	require.NoError(t, err)
	see("counts a 2 2", "counts b 1 1", "sums x 100 1")

	// Who has been replaced says nothing more.
	require.NoError(t, counts.Write(t.Context(), onTop(t, counts, batch(last.Fence, 3, "3", "2", "a"))))
	require.NoError(t, counts.Settle(t.Context(), tuple.Fence{Life: 3}, 3))
	see("counts a 2 2", "counts b 1 1", "sums x 100 1")
	require.NoError(t, counts.Settle(t.Context(), last.Fence, 3))
	require.NoError(t, counts.Settle(t.Context(), last.Fence, 1), "it does not go back")
	see("counts a 3 3", "counts b 1 1", "sums x 100 1")
}

func lastView(t *testing.T, url string) {
	s := open(t, url, counts)
	f := join(t, s, 1, 0, 0, false)
	require.NoError(t, s.Write(t.Context(), batch(f, 1, "1", "", "a")))
	require.NoError(t, s.Write(t.Context(), onTop(t, s, batch(f, 2, "2", "", "a"))))
	require.Equal(t, []string{"2"}, query(t, url, "SELECT convert_from(value, 'UTF8') FROM egret.committed"), "a value, although there is none before it")
}

func createdOnce(t *testing.T, url string) {
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			s, err := URL(url).Open(t.Context(), counts)
			if err == nil {
				err = s.Close()
			}
			errs[i] = err
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Len(t, query(t, url, "SELECT id FROM egret.states"), 1)
}

func otherLayout(t *testing.T, url string) {
	require.NoError(t, open(t, url, counts).Close())
	exec(t, url, "UPDATE egret.version SET version = 1")
	_, err := URL(url).Open(t.Context(), counts)
	require.ErrorContains(t, err, "state wordcount/counts in PostgreSQL database test")
	require.ErrorContains(t, err, "the schema egret has layout 1, and this program knows layout 2 only: run the Egret that has made it, or drop the schema")
}

func poorUser(t *testing.T, url string) {
	exec(t, url, "CREATE ROLE poor LOGIN")
	poor := strings.Replace(url, "user=egret", "user=poor", 1)
	_, err := URL(poor).Open(t.Context(), counts)
	require.ErrorContains(t, err, "make the schema egret")
	require.ErrorContains(t, err, "permission denied")
	require.NoError(t, open(t, url, counts).Close())
	exec(t, url, "GRANT USAGE ON SCHEMA egret TO poor; GRANT ALL ON ALL TABLES IN SCHEMA egret TO poor")
	s := open(t, poor, state.Name{Topology: "wordcount", State: "sums"})
	f := join(t, s, 1, 0, 0, true)
	require.NoError(t, s.Write(t.Context(), batch(f, 1, "1", "", "a")))
}

func idleZombie(t *testing.T, url string) {
	short := url + "&idle_in_transaction_session_timeout=100"
	s := open(t, short, counts)
	f := join(t, s, 1, 0, 0, true)
	// It has locked its fences and written rows, and was stopped before its COMMIT.
	tx, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	_, err = s.lock(t.Context(), tx, []int16{0, 1, 2, 3})
	require.NoError(t, err)
	require.NoError(t, s.put(t.Context(), tx, 1, batch(f, 1, "zombie", "", "a").Rows))

	f = join(t, open(t, url, counts), 2, 0, 0, true)
	require.Error(t, tx.Commit(t.Context()))
	require.NoError(t, s.Write(t.Context(), batch(f, 1, "1", "", "a")))
	rows, err := s.Get(t.Context(), []state.Key{{Bytes: "a"}})
	require.NoError(t, err)
	require.Equal(t, []state.Row{{Tx: 1, Value: []byte("1")}}, rows)

	// All sessions are so, if nothing else is said.
	var timeout string
	require.NoError(t, open(t, url, counts).pool.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&timeout))
	require.Equal(t, "10s", timeout)
}

// A lossy connection is closed when the answer to a COMMIT comes.
type lossy struct {
	net.Conn
	commits   *atomic.Int64 // that were sent
	committed bool
}

func (c *lossy) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit\x00")) {
		c.commits.Add(1)
		c.committed = true
	}
	return c.Conn.Write(b)
}

func (c *lossy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.committed && n > 0 {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func lostCommit(t *testing.T, url string) {
	s := open(t, url, counts)
	f := join(t, s, 1, 0, 0, true)
	var commits atomic.Int64
	b := URL(url)
	plain := b.config
	b.config = func() (*pgxpool.Config, error) {
		c, err := plain()
		if err == nil {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &lossy{Conn: conn, commits: &commits}, err
			}
		}
		return c, err
	}
	zombie, err := b.Open(t.Context(), counts)
	require.NoError(t, err)
	defer zombie.Close()
	err = zombie.Write(t.Context(), batch(f, 1, "1", "", "a"))
	require.ErrorContains(t, err, "commit, which may have happened or not")
	require.NotErrorIs(t, err, state.ErrFenced)
	require.Equal(t, int64(1), commits.Load())

	rows, err := s.Get(t.Context(), []state.Key{{Bytes: "a"}})
	require.NoError(t, err)
	require.Equal(t, tuple.TxID(1), rows[0].Tx, "it was written")
	join(t, s, 2, 0, 0, true)
	rows, err = s.Get(t.Context(), []state.Key{{Bytes: "a"}})
	require.NoError(t, err)
	require.Zero(t, rows[0], "and the join has found that out")
}

func ended(t *testing.T, url string) {
	s := open(t, url, counts)
	f := join(t, s, 1, 0, 0, true)
	exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'egret' AND datname = current_database()")
	// A dead connection is an error once, and then there is another one.
	if err := s.Write(t.Context(), batch(f, 1, "1", "", "a")); err != nil {
		require.NotErrorIs(t, err, state.ErrFenced)
		f = join(t, s, 2, 0, 0, true)
		require.NoError(t, s.Write(t.Context(), batch(f, 1, "1", "", "a")))
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, s.Write(stopped, batch(f, 2, "2", "1", "a")), context.Canceled)
	require.NoError(t, s.Write(t.Context(), onTop(t, s, batch(f, 2, "2", "1", "a"))))
}

func longKeys(t *testing.T, url string) {
	s := open(t, url, counts)
	f := join(t, s, 1, 0, 0, true)
	key := make([]byte, maxKey)
	for i := range key { // not to be compressed
		key[i] = byte(i*i>>3 ^ i*7)
	}
	require.NoError(t, s.Write(t.Context(), batch(f, 1, "1", "", string(key))))
	err := s.Write(t.Context(), batch(f, 2, "1", "", string(key)+"x"))
	require.ErrorContains(t, err, "a key of 2601 bytes")
	require.ErrorContains(t, err, "PostgreSQL takes at most 2600")
	require.NotErrorIs(t, err, state.ErrFenced)
}

// durable has the settings that transactions of joins and writes end with.
func durable(t *testing.T, url string) {
	s := open(t, url, counts)
	exec(t, url, `CREATE TABLE ends (setting text);
		CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN INSERT INTO ends VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER ends AFTER UPDATE ON egret.fences DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ends()`)
	require.NoError(t, s.Close())
	for round, tt := range []struct{ set, want string }{{"off", "on"}, {"local", "local"}, {"on", "on"}} {
		exec(t, url, fmt.Sprintf("TRUNCATE ends; ALTER DATABASE %s SET synchronous_commit = %s", name(t, url), tt.set))
		require.Equal(t, []string{tt.set}, query(t, url, "SHOW synchronous_commit"))
		s := open(t, url, counts)
		f := join(t, s, uint32(round+1), 0, 0, true)
		require.Equal(t, []string{tt.want}, query(t, url, "SELECT DISTINCT setting FROM ends"))
		exec(t, url, "TRUNCATE ends")
		require.NoError(t, s.Write(t.Context(), onTop(t, s, batch(f, 1, "1", "", "a"))))
		require.Equal(t, []string{tt.want}, query(t, url, "SELECT DISTINCT setting FROM ends"))
	}
}

func name(t *testing.T, url string) string {
	return query(t, url, "SELECT current_database()")[0]
}

// Joins and writes of the same groups, as zombies and their successors do them, wait in
// one order: PostgreSQL would end one of two that wait for each other.
func ordered(t *testing.T, url string) {
	s := open(t, url, counts)
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		all.Go(func() {
			for round := range uint32(10) {
				f := tuple.Fence{Attempt: tuple.Attempt{Epoch: 1, Round: round}, Life: tuple.Incarnation(i + 1)}
				j := &state.Join{Fence: f, Undo: true}
				w := &state.Write{Fence: f, Tx: 1}
				for g := range uint16(200) {
					j.Groups.Add(g)
					w.Rows = append(w.Rows, state.Change{Key: state.Key{Group: 199 - g, Bytes: "a"}, Row: state.Row{Value: []byte("1")}})
				}
				_, err := s.Join(t.Context(), j)
				for _, err := range []error{err, s.Write(t.Context(), w)} {
					if err != nil && !errors.Is(err, state.ErrFenced) {
						errs[i] = err
						return
					}
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestPasswordsAreNotShown(t *testing.T) {
	t.Setenv("PGPASSFILE", "/nowhere")
	for _, url := range []string{
		"postgres://me:secret@127.0.0.1:1/words?connect_timeout=1",
		"host=127.0.0.1 port=1 user=me password=secret dbname=words",
		"postgres://me:secret@127.0.0.1:port/words",
		"postgres://me:secret@[::1/words",
		"postgres://me:se%zzcret@127.0.0.1/words",
		"host=127.0.0.1 password='secret",
		"postgres://me:secret@127.0.0.1:1/words?sslmode=secret",
		"postgres://me:more@secret@127.0.0.1:1/words",
		"postgres://me:more/secret@127.0.0.1:1/words",
		"postgres://me:more#secret@127.0.0.1:1/words",
		"postgres://me:more@secret@127.0.0.1:1,127.0.0.2:1/words",
		"host=127.0.0.2,secret@127.0.0.1 port=1 user=me",
	} {
		b := URL(url)
		_, err := b.Open(t.Context(), counts)
		require.Error(t, err)
		for _, text := range []string{
			err.Error(), b.String(), fmt.Sprint(b), fmt.Sprintf("%+v", b), fmt.Sprintf("%#v", b), fmt.Sprintf("%#v", *b), fmt.Sprintf("%+v", err),
		} {
			require.NotContains(t, text, "secret", url)
			require.NotContains(t, text, "cret@", url)
		}
		require.ErrorContains(t, err, "state wordcount/counts in PostgreSQL")
	}
	b := URL("postgres://me:secret@127.0.0.1:1/words")
	require.Equal(t, "PostgreSQL database words on 127.0.0.1:1 as user me", b.String())
	t.Setenv("PGHOST", "/run/db")
	t.Setenv("PGUSER", "you")
	t.Setenv("PGDATABASE", "counts")
	t.Setenv("PGPASSWORD", "secret")
	require.Equal(t, "PostgreSQL database counts on /run/db:5432 as user you", URL("").String())
	require.Contains(t, URL("postgres://me:secret@127.0.0.1:port/words").String(), "cannot be read")
}

// Of a server that does not wait for its disk.
func BenchmarkStore(b *testing.B) { statetest.Bench(b, URL(postgrestest.Start(b))) }

// deletedState: somebody deletes what names the states. The next one who opened the state
// would find an empty one, and the one who has it open would go on with what nobody finds.
func deletedState(t *testing.T, url string) {
	s := open(t, url, counts)
	f := join(t, s, 1, 0, 0, true)
	first := &state.Write{Fence: f, Tx: 1, Rows: []state.Change{{Key: state.Key{Group: 1, Bytes: "a"}, Row: state.Row{Value: []byte("x")}}}}
	require.NoError(t, s.Write(t.Context(), first))
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	for _, sql := range []string{"DELETE FROM egret.states", "TRUNCATE egret.states"} {
		_, err = c.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "foreign key constraint", sql)
	}
	require.Equal(t, []string{"wordcountcounts"}, query(t, url, "SELECT topology || name FROM egret.states"))

	// With everything that it refers to it goes, and then nobody goes on.
	exec(t, url, "TRUNCATE egret.states CASCADE")
	first.Tx, first.Last = 2, make([]tuple.BatchID, tuple.KeyGroups)
	first.Last[1] = tuple.BatchID{Attempt: f.Attempt, Tx: 1}
	require.ErrorIs(t, s.Write(t.Context(), first), state.ErrFenced)
	j := &state.Join{Fence: f, Undo: true}
	j.Groups.Add(1)
	_, err = s.Join(t.Context(), j)
	require.ErrorContains(t, err, "foreign key constraint")
	j.Committed, j.Last = 1, first.Last
	_, err = open(t, url, counts).Join(t.Context(), j)
	require.ErrorIs(t, err, state.ErrLost)
}
