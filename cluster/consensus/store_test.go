package consensus

import (
	"bytes"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var quiet = slog.New(slog.DiscardHandler)

// Whatever is stored and deleted, the file has what a map would have, also when it is
// opened again.
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		s, err := openStore(dir, false, 0, quiet)
		require.NoError(t, err)
		model := map[uint64]raft.Log{}
		words := map[string]uint64{}
		next := rapid.Uint64Range(1, 300).Draw(t, "first")
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var logs []*raft.Log
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					l := raft.Log{Index: next, Term: rapid.Uint64().Draw(t, "term"), Type: raft.LogType(rapid.IntRange(0, 5).Draw(t, "type")),
						Data: rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data")}
					if rapid.Bool().Draw(t, "more") {
						l.Extensions, l.AppendedAt = []byte("ext"), time.Unix(0, rapid.Int64Range(1, 1<<60).Draw(t, "at"))
					}
					logs = append(logs, &l)
					model[next] = l
					next++
				}
				require.NoError(t, s.StoreLogs(logs))
			},
			"delete": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				all := slices.Sorted(maps.Keys(model))
				n := rapid.IntRange(1, len(all)).Draw(t, "n")
				if rapid.Bool().Draw(t, "end") {
					all = all[len(all)-n:]
					next = all[0]
				} else {
					all = all[:n]
				}
				require.NoError(t, s.DeleteRange(all[0], all[len(all)-1]))
				for _, i := range all {
					delete(model, i)
				}
			},
			"set": func(t *rapid.T) {
				k := rapid.SampledFrom([]string{"a", "b", "12345678"}).Draw(t, "key")
				words[k] = rapid.Uint64().Draw(t, "value")
				require.NoError(t, s.SetUint64([]byte(k), words[k]))
			},
			"open": func(t *rapid.T) {
				require.NoError(t, s.close())
				first := max(next, 1)
				for i := range model {
					first = min(first, i)
				}
				s, err = openStore(dir, true, first-1, quiet)
				require.NoError(t, err)
			},
			"": func(t *rapid.T) {
				var first, last uint64
				if all := slices.Sorted(maps.Keys(model)); len(all) > 0 {
					first, last = all[0], all[len(all)-1]
				}
				f, err := s.FirstIndex()
				require.NoError(t, err)
				l, err := s.LastIndex()
				require.NoError(t, err)
				require.Equal(t, [2]uint64{first, last}, [2]uint64{f, l})
				for i, want := range model {
					var got raft.Log
					require.NoError(t, s.GetLog(i, &got))
					require.True(t, want.AppendedAt.Equal(got.AppendedAt))
					got.AppendedAt = want.AppendedAt
					require.Equal(t, want, got)
				}
				require.ErrorIs(t, s.GetLog(last+1, new(raft.Log)), raft.ErrLogNotFound)
				for k, v := range words {
					got, err := s.GetUint64([]byte(k))
					require.NoError(t, err)
					require.Equal(t, v, got)
				}
				got, err := s.Get([]byte("never"))
				require.NoError(t, err)
				require.Nil(t, got)
			},
		})
		require.NoError(t, s.close())
	})
}

func FuzzEntry(f *testing.F) {
	f.Add(encodeEntry(&raft.Log{Type: raft.LogCommand, Term: 3, Data: []byte("x"), Extensions: []byte("y"), AppendedAt: time.Unix(1, 0)}))
	f.Add(append(make([]byte, 17), 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeEntry(7, b)
		if err != nil {
			return
		}
		require.True(t, bytes.Equal(b, encodeEntry(&l)))
		sealed := seal(key(7), b)
		v, err := unseal(key(7), sealed)
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, v))
		_, err = unseal(key(8), sealed)
		require.Error(t, err, "a value belongs to its key")
	})
}

// A disk that cannot be written keeps the node out of elections; it does not end the
// process, and Close still works.
func TestVoteIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := openStore(dir, false, 0, quiet)
		require.NoError(t, err)
		require.NoError(t, s.close())
		var returned, ended bool
		go func() {
			defer func() { ended = true }()
			_ = s.SetUint64([]byte("term"), 1)
			returned = true
		}()
		time.Sleep(time.Minute)
		require.False(t, ended, "it is still tried")
		close(s.closed)
		synctest.Wait()
		require.True(t, ended)
		require.False(t, returned, "raft would panic")
	})
}

// files returns what lies in a directory, except for its lock.
func files(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" || d.Name() == identityFile {
			return err // the boot is counted there
		}
		b, err := os.ReadFile(p)
		all[strings.TrimPrefix(p, dir)] = string(b)
		return err
	}))
	return all
}

// What is damaged is said, and neither deleted nor changed; nothing that was agreed on is
// silently left out.
func TestDamaged(t *testing.T) {
	good := t.TempDir()
	bubble(t, func(t *testing.T, n *network) {
		d := n.start(t, "a:1", good, true, nil)
		leader(t, d)
		done := make(chan error, maxPending)
		for i := range 5000 {
			d.log.Propose([]byte("entry "+strconv.Itoa(i)), func(_ any, err error) { done <- err })
			if i%maxPending == maxPending-1 {
				for range maxPending {
					require.NoError(t, <-done)
				}
			}
			if i%2400 == 2399 {
				time.Sleep(15 * time.Second) // a snapshot
			}
		}
		d.stop()
	})
	db := filepath.Join(good, storeFile)
	data, err := os.ReadFile(db)
	require.NoError(t, err)
	snapshots, err := filepath.Glob(filepath.Join(good, "snapshots", "*"))
	require.NoError(t, err)
	require.Len(t, snapshots, 2)
	newest, err := newestSnapshot(filepath.Join(good, "snapshots"))
	require.NoError(t, err)
	require.Equal(t, snapshots[1], filepath.Join(good, "snapshots", newest))
	require.Contains(t, string(data), "entry 4990")

	change := func(name string, f func([]byte) []byte) func(dir string) error {
		return func(dir string) error {
			name := filepath.Join(dir, name)
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			return os.WriteFile(name, f(b), 0o600)
		}
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 1; return b }
	}
	for _, tt := range []struct {
		name string
		harm func(dir string) error
		want string // "" if it is as good as before
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"a snapshot that was not finished", func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "snapshots", "9-99999-1.tmp"), 0o700)
		}, ""},
		{"one bit of an entry", change(storeFile, func(b []byte) []byte { // there are old copies of it in pages not in use
			return bytes.ReplaceAll(b, []byte("entry 4990"), []byte("entry 4991"))
		}), "is not as it was written"},
		{"half of the file", change(storeFile, func(b []byte) []byte { return b[:len(b)/2] }), storeFile},
		{"most of the file", change(storeFile, func(b []byte) []byte { return b[:3*4096] }), storeFile},
		{"all of the file", change(storeFile, func(b []byte) []byte { return nil }), "is gone"},
		{"the file", func(dir string) error { return os.Remove(filepath.Join(dir, storeFile)) }, "is gone"},
		{"its beginning", change(storeFile, func(b []byte) []byte { clear(b[:8192]); return b }), storeFile},
		{"its pages", change(storeFile, func(b []byte) []byte {
			for i := 8192; i < len(b); i += 4096 {
				copy(b[i:], bytes.Repeat([]byte{0xa5}, 16))
			}
			return b
		}), storeFile},
		{"another file", change(storeFile, func(b []byte) []byte { return bytes.Repeat([]byte("text\n"), 10000) }), storeFile},
		{"one bit of the newest snapshot", change(filepath.Join("snapshots", newest, "state.bin"), flip(100)), newest},
		{"the end of the newest snapshot", change(filepath.Join("snapshots", newest, "state.bin"), func(b []byte) []byte { return b[:len(b)-1] }), newest},
		{"what the newest snapshot is", change(filepath.Join("snapshots", newest, "meta.json"), func(b []byte) []byte { return b[:20] }), newest},
		{"the newest snapshot", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "snapshots", newest)) }, "the entries between are missing"},
		{"all snapshots", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "snapshots")) }, "the entries between are missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(good)))
			require.NoError(t, tt.harm(dir))
			before := files(t, dir)
			id, err := Identify(dir)
			require.NoError(t, err)
			defer id.Close()
			bubble(t, func(t *testing.T, n *network) {
				l, err := Open(Config{Identity: id, Addr: "a:1", Listener: n.listen("a:1"), Dial: n.dial("a:1"), Machine: &tape{}})
				if tt.want == "" {
					require.NoError(t, err)
					require.NoError(t, l.Close())
					return
				}
				if err == nil {
					l.Close()
				}
				require.ErrorIs(t, err, ErrCorrupt)
				require.ErrorContains(t, err, tt.want)
				require.True(t, maps.Equal(before, files(t, dir)), "it is as it was")
			})
		})
	}
}

// A process that ended when it had just been given a snapshot begins with it.
func TestSnapshotBeyondTheEntries(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, false, 0, quiet)
	require.NoError(t, err)
	var logs []*raft.Log
	for i := range uint64(10) {
		logs = append(logs, &raft.Log{Index: i + 1, Term: 1})
	}
	require.NoError(t, s.StoreLogs(logs))
	require.NoError(t, s.close())
	snapshots, end, err := openSnapshots(dir, newNoise(quiet))
	require.NoError(t, err)
	require.Zero(t, end)
	_, transport := raft.NewInmemTransport("x")
	for _, tt := range []struct{ end, first uint64 }{{5, 1}, {10, 1}, {11, 0}} {
		sink, err := snapshots.Create(1, tt.end, 1, raft.Configuration{}, 1, transport)
		require.NoError(t, err)
		require.NoError(t, sink.Close())
		_, end, err := openSnapshots(dir, newNoise(quiet))
		require.NoError(t, err)
		require.Equal(t, tt.end, end)
		s, err := openStore(dir, true, end, quiet)
		require.NoError(t, err)
		first, err := s.FirstIndex()
		require.NoError(t, err)
		require.Equal(t, tt.first, first, "a snapshot that ends with %d", tt.end)
		require.NoError(t, s.close())
	}
}

// What a stranger says is not listened to.
func TestStranger(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		d := n.start(t, "a:1", "", true, nil)
		leader(t, d)
		for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n and so on", greeting + strings.Repeat("x", 16), greeting} {
			c, err := n.dial("b:1")(t.Context(), "a:1")
			require.NoError(t, err)
			if text != "" {
				_, err = c.Write([]byte(text)[:min(len(text), greetingBytes)])
				require.NoError(t, err)
			}
			_, err = c.Read(make([]byte, 1))
			require.Error(t, err, "it is closed, at the latest when patience is over")
			require.NoError(t, c.Close())
		}
		require.NoError(t, d.propose("x"))
		d.stop()
	})
	_, _, err := place("a:1")
	require.Error(t, err)
	addr, node, err := place(address("a:1", 7))
	require.NoError(t, err)
	require.Equal(t, "a:1", addr)
	require.EqualValues(t, 7, node)
	require.ErrorIs(t, func() error {
		s := &stream{closed: true}
		a, _ := net.Pipe()
		_, err := s.keep(&conn{Conn: a, stream: s})
		return err
	}(), net.ErrClosed)
}
