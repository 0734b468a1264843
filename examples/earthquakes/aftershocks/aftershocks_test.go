package aftershocks

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// asProgram makes the test's program the example itself.
const asProgram = "EGRET_EARTHQUAKES_TEST"

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

// bundled returns the lines of the file.
func bundled(t *testing.T) []string {
	f, err := week.Open("earthquakes.ndjson.gz")
	require.NoError(t, err)
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// A plain quake is one as the tests read it.
type plain struct {
	ID, Place     string
	Time          int64
	Mag, Lat, Lon float64
}

func decode(t *testing.T, lines []string) (all []plain) {
	for _, line := range lines {
		var q plain
		require.NoError(t, json.Unmarshal([]byte(line), &q))
		all = append(all, q)
	}
	return all
}

// arc is the distance of two quakes in km, by the angle between two vectors.
func arc(a, b plain) float64 {
	vector := func(q plain) [3]float64 {
		lat, lon := q.Lat/180*math.Pi, q.Lon/180*math.Pi
		return [3]float64{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat)}
	}
	u, v := vector(a), vector(b)
	x, y, z := u[1]*v[2]-u[2]*v[1], u[2]*v[0]-u[0]*v[2], u[0]*v[1]-u[1]*v[0]
	return 6371 * math.Atan2(math.Sqrt(x*x+y*y+z*z), u[0]*v[0]+u[1]*v[1]+u[2]*v[2])
}

// plainTable makes the table without any of the program's code.
func plainTable(all []plain, strong, within, hours float64) string {
	var rows []plain
	for _, q := range all {
		if q.Mag >= strong {
			rows = append(rows, q)
		}
	}
	sort.Slice(rows, func(i, k int) bool {
		a, b := rows[i], rows[k]
		return a.Mag > b.Mag || a.Mag == b.Mag && (a.Time < b.Time || a.Time == b.Time && a.ID < b.ID)
	})
	var s strings.Builder
	fmt.Fprintf(&s, "%d quakes of magnitude %v and more, and their aftershocks: within %v km and %v hours\n", len(rows), strong, within, hours)
	for _, r := range rows {
		n, largest := 0, math.Inf(-1)
		for _, q := range all {
			if q.Time > r.Time && q.Time <= r.Time+int64(hours*3.6e6) && arc(q, r) <= within {
				n, largest = n+1, math.Max(largest, q.Mag)
			}
		}
		text := "none"
		if n > 0 {
			text = fmt.Sprintf("%d, up to %.1f", n, largest)
		}
		fmt.Fprintf(&s, "%4.1f  %s  %-12s  %s\n", r.Mag, utc(r.Time), text, r.Place)
	}
	return s.String()
}

func TestEarthquakes(t *testing.T) {
	all := decode(t, bundled(t))
	want := plainTable(all, 4.5, 100, 24)
	require.Contains(t, want, "85 quakes of")
	require.Contains(t, want, " 6.4  2018-02-06 15:50  8, up to 5.4  22km NNE of Hualian, Taiwan\n")
	for _, args := range []string{
		"",
		"--joins 7",
		"--parallel grid=3 --parallel join=4 --parallel quakes=2",
		"--guarantee at-most-once",
		"--rate 5000",
	} {
		t.Run(args, func(t *testing.T) {
			out, errs, code := run(t, nil, strings.Fields(args)...)
			require.Zero(t, code, "%s", errs)
			require.Equal(t, want, out)
			require.Contains(t, errs, "earthquakes: 1,707 messages in ")
		})
	}
	for _, r := range []rule{
		{strong: 3, within: 250, window: 48 * hour},
		{strong: 2.5, within: 1, window: hour / 2},
		{strong: 6, within: 7000, window: 6 * hour},
		{strong: 5.5, within: halfway, window: 400 * hour},
		{strong: 20, within: 30, window: hour},
	} {
		args := []string{"--strong", fmt.Sprint(r.strong), "--within", fmt.Sprint(r.within), "--window", r.window.String()}
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			out, errs, code := run(t, nil, args...)
			require.Zero(t, code, "%s", errs)
			require.Equal(t, plainTable(all, r.strong, r.within, r.window.Hours()), out)
		})
	}
}

func TestInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const shock = `{"id":"a","time":1000,"mag":5,"place":null,"lat":89.9,"lon":0}`
	const after = `{"id":"b","time":2000,"mag":1,"place":"P","lat":89.9,"lon":180}`
	const want = "1 quakes of magnitude 4.5 and more, and their aftershocks: within 100 km and 24 hours\n" +
		" 5.0  1970-01-01 00:00  1, up to 1.0  \n"
	t.Run("several files, a place that is null, one not measured, the same one twice", func(t *testing.T) {
		one := file("one", after+"\n"+after+"\n"+`{"id":"c","time":1500,"mag":null,"lat":89.9,"lon":180}`+"\n")
		out, errs, code := run(t, strings.NewReader(shock+"\n"+shock), "--file", one, "--file", "-")
		require.Zero(t, code, "%s", errs)
		require.Equal(t, want, out)
	})
	t.Run("impossible", func(t *testing.T) {
		bad := file("bad", shock+"\n"+`{"id":"d","time":1500,"mag":6,"place":"P","lat":95,"lon":180}`+"\n"+
			`{"id":"e","time":1500,"mag":"NaN","place":"P","lat":5,"lon":180}`+"\n"+after)
		out, errs, code := run(t, nil, "--file", bad)
		require.Equal(t, 3, code, "done, and messages are dead")
		require.Equal(t, want, out)
		require.Contains(t, errs, "quake d of magnitude 6 at latitude 95, longitude 180 cannot be")
		require.Contains(t, errs, "quake e of magnitude NaN")
	})
	t.Run("no number", func(t *testing.T) {
		bad := file("text", `{"id":"d","time":"today"}`)
		_, errs, code := run(t, nil, "--file", bad)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "spout quakes, split "+bad+`:0-4194304: line 1, at byte 0: field "time" is "today", not a whole number`)
	})
	t.Run("none", func(t *testing.T) {
		out, errs, code := run(t, nil, "--file", file("none", ""))
		require.Zero(t, code, "%s", errs)
		require.Equal(t, strings.Replace(want[:strings.Index(want, "\n")+1], "1 quakes", "0 quakes", 1), out)
	})
	for args, want := range map[string]string{
		"--within 0":       "--within is 0: it must be more than 0 and at most 20015 km",
		"--within 20016":   "--within is 20016: it must be",
		"--within NaN":     "--within is NaN: it must be",
		"--strong NaN":     "--strong is NaN: it must be a magnitude",
		"--window 0":       "--window is 0s: it must be more than 0",
		"--window 900000h": "--window is 900000h0m0s: it must be more than 0 and at most 876000h0m0s",
		"--lateness -1s":   "--lateness is -1s: it must be at least 0",
	} {
		t.Run(args, func(t *testing.T) {
			_, errs, code := run(t, nil, strings.Fields(args)...)
			require.Equal(t, 2, code)
			require.Contains(t, errs, want)
		})
	}
}
