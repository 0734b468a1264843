package delays

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// asProgram makes the test's program the example itself.
const asProgram = "EGRET_FLIGHTS_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		egret.Main(Topology())
	}
	os.Exit(m.Run())
}

// run runs the program.
func run(t *testing.T, stdin io.Reader, args ...string) (out, errs string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = stdin, &stdout, &stderr
	if err := c.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		require.True(t, ok, "%v", err)
		code = exit.ExitCode()
	}
	require.NotContains(t, stderr.String(), "goroutine ", "no panic")
	return stdout.String(), stderr.String(), code
}

// plainTable makes the table without any of the program's code.
func plainTable(t *testing.T, text string, airports int) string {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	flights, minutes := map[[2]string]int{}, map[[2]string]int{} // by airport and hour; "" is all
	for _, r := range records[1:] {                              // scheduled,delay_min,distance,origin,destination
		hour := strings.Split(r[0], "T")[1][:2]
		delay, err := strconv.Atoi(r[1])
		require.NoError(t, err)
		for _, key := range [][2]string{{r[3], hour}, {r[3], ""}, {"", hour}, {"", ""}} {
			flights[key]++
			minutes[key] += delay
		}
	}
	var names []string
	for key := range flights {
		if key[0] != "" && key[1] == "" {
			names = append(names, key[0])
		}
	}
	sort.Slice(names, func(i, k int) bool {
		a, b := flights[[2]string{names[i], ""}], flights[[2]string{names[k], ""}]
		return a > b || a == b && names[i] < names[k]
	})
	names = append(names[:min(len(names), airports)], "")
	var s strings.Builder
	fmt.Fprintf(&s, "average delay in minutes of %d flights, by hour of departure\nhour  ", len(records)-1)
	for _, name := range names {
		if name == "" {
			name = "all"
		}
		fmt.Fprintf(&s, "%7s", name)
	}
	line := func(head, hour string) {
		fmt.Fprintf(&s, "\n%-6s", head)
		for _, name := range names {
			n := flights[[2]string{name, hour}]
			mean := fmt.Sprintf("%.1f", float64(minutes[[2]string{name, hour}])/float64(n))
			switch {
			case n == 0:
				mean = "."
			case mean == "-0.0":
				mean = "0.0"
			}
			fmt.Fprintf(&s, "%7s", mean)
		}
	}
	for h := range 24 {
		if hour := fmt.Sprintf("%02d", h); flights[[2]string{"", hour}] > 0 {
			line(hour+":00", hour)
		}
	}
	line("day", "")
	return s.String() + "\n"
}

func bundled(t *testing.T) string {
	f, err := january.Open("flights.csv.gz")
	require.NoError(t, err)
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

func TestFlights(t *testing.T) {
	text := bundled(t)
	want := plainTable(t, text, 8)
	require.Contains(t, want, "of 50000 flights")
	out, errs, code := run(t, nil, "--every", "1h")
	require.Zero(t, code, "%s", errs)
	require.Equal(t, want, out)
	require.Contains(t, errs, "flights: 50,000 messages in ")
}

func TestFlags(t *testing.T) {
	text := bundled(t)
	text = text[:strings.Index(text, "2001-01-02")]
	dir := t.TempDir()
	plain := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(plain, []byte(text), 0o600))
	want := plainTable(t, text, 3)
	for _, args := range []string{
		"--file " + plain,
		"--file " + plain + " --delays 5 --parallel flights=2",
		"--file -",
		"run --file " + plain + " --guarantee at-most-once",
	} {
		t.Run(args, func(t *testing.T) {
			out, errs, code := run(t, strings.NewReader(text), append(strings.Fields(args), "--airports", "3", "--every", "1h")...)
			require.Zero(t, code, "%s", errs)
			require.Equal(t, want, out)
		})
	}
	t.Run("standings", func(t *testing.T) {
		out, errs, code := run(t, nil, "--file", plain, "--airports", "3", "--every", "1ms", "--rate", "100000")
		require.Zero(t, code, "%s", errs)
		table := strings.Index(out, "average delay")
		require.Equal(t, want, out[table:], "whatever was said before")
		for line := range strings.Lines(out[:table]) {
			require.Regexp(t, `^\d+ flights so far, -?\d+\.\d minutes late on average\n$`, line)
		}
	})
	t.Run("bad file", func(t *testing.T) {
		bad := filepath.Join(dir, "bad.csv")
		require.NoError(t, os.WriteFile(bad, []byte("scheduled,delay_min,origin\n2001-01-01T10:00,late,ORD\n"), 0o600))
		_, errs, code := run(t, nil, "--file", bad)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "spout flights, split "+bad+`: line 2, at byte 27: column "delay_min" is "late", not a whole number`)
	})
	t.Run("no airports", func(t *testing.T) {
		_, errs, code := run(t, nil, "--airports", "-1")
		require.Equal(t, 2, code)
		require.Contains(t, errs, "--airports is -1: it must be at least 0")
	})
}
