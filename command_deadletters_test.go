package egret

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^"\s]*`)

func TestCommandDeadLetters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	top := []*topology.Topology{greet(io.Discard)}
	other := topology.New("other", func(b *topology.Builder) {
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), b.Spout("in", spout.Slice(1)).Emits("n").All())
	})
	for _, tt := range []struct {
		line       string
		code       int
		out, errIs string // all of it; a part of it
	}{
		{"deadletters list --state " + dir, ExitFailed, "", "there is nothing of the topology greet in " + dir},
		{"--state " + dir + " --name a --name b,\tc --times 1 --fail reject", ExitDead, "", "messages are dead: 2"},
		{"--state " + dir + " --name a --name b --times 1", ExitDone, "", "nothing to do: all input was done before; --reset starts over"},
		{"deadletters list --state " + dir, ExitDone, "ID   WHEN  COMPONENT  STREAM   FAILURES  ERROR\n1-1  TIME  in         default  1         bolt out: it was to fail\n1-2  TIME  in         default  1         bolt out: it was to fail\n", ""},
		{"deadletters list greet --component in --state " + dir, ExitDone, "ID   WHEN  COMPONENT  STREAM   FAILURES  ERROR\n1-1  TIME  in         default  1         bolt out: it was to fail\n1-2  TIME  in         default  1         bolt out: it was to fail\n", ""},
		{"deadletters list --component out --state " + dir, ExitDone, "no dead letters\n", ""},
		{"deadletters list --component kys --state " + dir, ExitUsage, "", "there is no component kys (have in, out)"},
		{"deadletters show 1-2 --state " + dir, ExitDone, `id         1-2 (dead)
when       TIME
message    of in, stream default, emitted by in/0
error      bolt out: it was to fail
attempts   1 failed, 0 were lost or timed out; replayed 0 times
history    rejected: bolt out: it was to fail
values     name (string) = "b,\tc"
`, ""},
		{"deadletters show 1-2 9-9 --json --state " + dir, ExitFailed, `[{"topology":"greet","id":"1-2","waiting":false,"time":"TIME","component":"in","task":"in/0","stream":"default","error":"bolt out: it was to fail","failures":1,"losses":0,"replayed":0,"history":["rejected: bolt out: it was to fail"],"fields":["name"],"kinds":["string"],"values":{"name":"b,\tc"}}]` + "\n", "there is no dead letter 9-9"},
		{"deadletters replay --state " + dir, ExitUsage, "", "name the letters by their IDs, or give --all"},
		{"deadletters replay 1-1 --all --state " + dir, ExitUsage, "", "not both"},
		{"deadletters replay 1-1 --state " + dir, ExitDone, "1 dead letter will be replayed when greet runs next with this state directory\n", ""},
		{"deadletters show 1-1 --json --state " + dir, ExitDone, `[{"topology":"greet","id":"1-1","waiting":true,"time":"TIME","component":"in","task":"in/0","stream":"default","error":"bolt out: it was to fail","failures":1,"losses":0,"replayed":0,"history":["rejected: bolt out: it was to fail"],"fields":["name"],"kinds":["string"],"values":{"name":"a"}}]` + "\n", ""},
		{"--state " + dir + " --name a --name b --times 1 --fail reject", ExitDead, "", "messages are dead: 1"},
		{"deadletters list --state " + dir, ExitDone, "ID   WHEN  COMPONENT  STREAM   FAILURES  ERROR\n1-1  TIME  in         default  2         bolt out: it was to fail\n1-2  TIME  in         default  1         bolt out: it was to fail\n", ""},
		{"deadletters drop 1-7 --state " + dir, ExitFailed, "0 dead letters dropped\n", "there is no dead letter 1-7"},
		{"deadletters drop 1-2 --state " + dir, ExitDone, "1 dead letter dropped\n", ""},
		{"deadletters replay --all --state " + dir, ExitDone, "1 dead letter will be replayed when greet runs next with this state directory\n", ""},
		{"--state " + dir + " --name a --name b --times 1", ExitDone, "", "greet: 0 messages"},
		{"deadletters list --json --state " + dir, ExitDone, "[]\n", ""},
		{"deadletters replay --all --state " + dir, ExitDone, "nothing to replay\n", ""},
		{"--reset --state " + dir + " --times 2", ExitDone, "", "greet: 2 messages"},
		{"deadletters list", ExitUsage, "", "name the state directory with --state or EGRET_STATE"},
		{"deadletters", ExitUsage, "", "use deadletters list, show, replay or drop"},
		{"deadletters burn", ExitUsage, "", `unknown command "burn"`},
		{"deadletters show --state " + dir, ExitUsage, "", "name the letters by their IDs"},
		{"deadletters list 1-1 --state " + dir, ExitUsage, "", "list takes no IDs"},
		{"deadletters show gret 1-1 --state " + dir, ExitUsage, "", `"gret" is neither the topology greet nor the ID of a dead letter, such as 7-42`},
		{"--reset", ExitUsage, "", "name it with --state"},
	} {
		code, out, errs := runLine(top, strings.Split(tt.line, " ")...)
		require.Equal(t, tt.code, code, "%s: %s", tt.line, errs)
		if strings.HasPrefix(tt.line, "deadletters") {
			require.Equal(t, tt.out, spaced.ReplaceAllString(clock.ReplaceAllString(out, "TIME"), "$1  "), tt.line)
		}
		require.Contains(t, errs, tt.errIs, tt.line)
	}
	code, _, errs := runLine(append(top, other), "deadletters", "show", "1-1", "--state", dir)
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "name one of the topologies greet or other")

	s, err := disk.Open(dir, "greet", disk.Options{})
	require.NoError(t, err)
	defer s.Close()
	code, _, errs = runLine(top, "--state", dir)
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "stop that one, or use another directory")
	// The variable is the default of both.
	t.Setenv(stateVariable, dir)
	code, out, errs := runLine(top, "deadletters", "list", "--json")
	require.Equal(t, ExitDone, code, errs)
	var letters []letterJSON
	require.NoError(t, json.Unmarshal([]byte(out), &letters))
	require.Empty(t, letters)

	path := filepath.Join(dir, "greet", "dead", "1-9.letters")
	require.NoError(t, os.WriteFile(path, []byte("?"), 0o600))
	code, out, errs = runLine(top, "deadletters", "list")
	require.Equal(t, ExitFailed, code)
	require.Equal(t, "no dead letters\n", out)
	require.Contains(t, errs, path+": corrupt file")
}

// Without a name list shows the letters of all topologies that have run.
func TestCommandDeadLettersOfSeveral(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	both := []*topology.Topology{greet(io.Discard), graphed("other")}
	code, _, errs := runLine(both, "deadletters", "list", "--state", dir)
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "there is nothing of the topologies greet and other in "+dir)
	code, _, _ = runLine(both, "run", "greet", "--times", "1", "--fail", "reject", "--state", dir)
	require.Equal(t, ExitDead, code)
	for _, line := range []string{"list", "list --component in", "list greet"} {
		code, out, errs := runLine(both, append([]string{"deadletters", "--state", dir}, strings.Fields(line)...)...)
		require.Equal(t, ExitDone, code, errs)
		require.Contains(t, out, "bolt out: it was to fail")
		require.Equal(t, line != "list greet", strings.Contains(out, "\ngreet     1-1"), out)
	}
	code, _, errs = runLine(both, "deadletters", "list", "other", "--state", dir)
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "there is nothing of the topology other in "+dir)
	code, out, errs := runLine(both, "deadletters", "list", "--json", "--state", dir)
	require.Equal(t, ExitDone, code, errs)
	require.Contains(t, out, `[{"topology":"greet","id":"1-1",`)
}

// A queue has no dead letters, and list says where its messages are.
func TestCommandDeadLettersOfQueues(t *testing.T) {
	dir := t.TempDir()
	top := topology.New("jobs", func(b *topology.Builder) {
		in := b.Queue("in", func() spout.Queue { return nil }).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
	})
	s, err := disk.Open(dir, "jobs", disk.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	code, out, errs := runLine([]*topology.Topology{top}, "deadletters", "list", "--state", dir)
	require.Equal(t, ExitDone, code, errs)
	require.Equal(t, "no dead letters: what fails is handed back to its queue, which keeps it or delivers it again\n", out)
}

func TestDeadLettersHelp(t *testing.T) {
	for line, want := range map[string]string{
		"list": "greet deadletters list [flags]", "show": "deadletters list shows them",
		"drop": "as in 7-42", "replay": "the next run does",
	} {
		code, out, _ := runLine([]*topology.Topology{greet(io.Discard)}, "deadletters", line, "--help")
		require.Equal(t, ExitDone, code)
		require.Contains(t, strings.ReplaceAll(out, program()+" ", "greet "), want)
	}
}

// spaced is what the width of a time makes of a table.
var spaced = regexp.MustCompile(`(TIME|WHEN) +`)

func TestOneLine(t *testing.T) {
	require.Equal(t, "a b [31mé...", oneLine("a\nb\x1b[31méx", 9))
	require.Equal(t, "", oneLine("", 9))
}
