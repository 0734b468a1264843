// Package postgrestest starts PostgreSQL servers for tests. It is not for use outside
// Egret.
package postgrestest

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Start starts a server without data in a directory of its own, which ends with the test,
// or with its process, and returns the URL of a database. It listens on a socket in that
// directory only. Where PostgreSQL is not installed the test is skipped, unless CI is
// "true" in the environment: then it fails.
//
// It does not wait for its disk, so it is no test of what is there after a crash.
func Start(t testing.TB) string {
	programs := installed()
	if programs == "" {
		const text = "no PostgreSQL is installed here, and this needs a server: apt-get install postgresql"
		if os.Getenv("CI") == "true" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	dir, err := os.MkdirTemp("", "egret") // of a short name, which a socket's must be
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })

	script := []string{"sh", "-c", run, "sh", programs, dir}
	if os.Getuid() == 0 { // as which the server would not start
		u, err := user.Lookup("postgres")
		require.NoError(t, err)
		uid, err := strconv.Atoi(u.Uid)
		require.NoError(t, err)
		require.NoError(t, os.Chown(dir, uid, -1))
		script = slices.Concat([]string{"runuser", "-u", "postgres", "--"}, script)
	}
	server := exec.Command(script[0], script[1:]...)
	server.Dir = dir
	server.Stderr = os.Stderr
	hold, err := server.StdinPipe()
	require.NoError(t, err)
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		hold.Close()
		_ = server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err, "the server does not start: %s", log)
	}
	require.Equal(t, "ready\n", line)
	return "postgres:///postgres?user=egret&host=" + url.QueryEscape(dir)
}

// run starts a server and stops it at the end of its input, which is that of the test's
// process at the latest.
const run = `
{ "$1/initdb" -D "$2/data" -A trust -U egret -E UTF8 --locale=C -N &&
  "$1/pg_ctl" -D "$2/data" -w -o "-F -k '$2' -c listen_addresses=''" start; } >"$2/log" 2>&1 </dev/null || exit
echo ready
cat >/dev/null
"$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null
`

// installed returns the directory of the server's programs, or "".
func installed() string {
	if name, err := exec.LookPath("initdb"); err == nil {
		if name, err = filepath.EvalSymlinks(name); err == nil {
			return filepath.Dir(name)
		}
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's, by version
	if len(all) == 0 {
		return ""
	}
	return filepath.Dir(all[len(all)-1])
}
