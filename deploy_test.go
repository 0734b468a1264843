package egret

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/topology"
)

var (
	flagName = regexp.MustCompile("(?:^|[\\s`\"(\\[])--([a-z][a-z-]+)")
	// A line with a command of Egret: its name, and what stands behind.
	commandLine = regexp.MustCompile("(?:^|[\\s`/])(?:egret|prog) ([a-z]+)([^`|#]*)")
	ofOthers    = []string{"system", "no-create-home", "now", "time", "from", "chown"} // flags of tools that are not Egret's
)

// What deploy/ and docs/operations.md tell people to type exists: each flag is one of the
// command that it is shown with, or of some command if it stands alone.
func TestDeploymentNamesFlagsThatExist(t *testing.T) {
	root, err := command([]*topology.Topology{greet(io.Discard), topology.New("other", func(*topology.Builder) {})})
	require.NoError(t, err)
	known := map[string]bool{"help": true}
	of := map[string]map[string]bool{} // by command, with those below it
	for walk := root.Commands(); len(walk) > 0; walk = walk[1:] {
		c := walk[0]
		walk = append(walk, c.Commands()...)
		for _, name := range flagsIn(c.Flags().FlagUsages() + c.PersistentFlags().FlagUsages() + c.InheritedFlags().FlagUsages()) {
			known[name] = true
			for above := c; above != root; above = above.Parent() {
				if of[above.Name()] == nil {
					of[above.Name()] = map[string]bool{"help": true}
				}
				of[above.Name()][name] = true
			}
		}
	}
	require.True(t, of["node"]["listen"] && of["deadletters"]["state"] && !of["drain"]["listen"])
	shown := 0
	for _, file := range []string{"deploy/egret.service", "deploy/Dockerfile", "docs/operations.md"} {
		for _, line := range logicalLines(t, file) {
			for _, name := range flagsIn(line) {
				require.True(t, known[name] || slices.Contains(ofOthers, name), "%s: no command has --%s:\n%s", file, name, line)
			}
			for _, m := range commandLine.FindAllStringSubmatch(line, -1) {
				for _, name := range flagsIn(m[2]) {
					require.True(t, of[m[1]][name], "%s: %s has no --%s:\n%s", file, m[1], name, line)
					shown++
				}
			}
		}
	}
	require.Greater(t, shown, 20)
}

// flagsIn returns the names of flags in a text.
func flagsIn(text string) (all []string) {
	for _, m := range flagName.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// logicalLines returns the lines of a file, those that go on in the next one put together.
func logicalLines(t *testing.T, file string) []string {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	text := regexp.MustCompile(`\\\n[# ]*`).ReplaceAllString(string(b), "")
	return strings.Split(text, "\n")
}

// The port, and how long a node may take to leave, are what the program says.
func TestDeploymentAgreesWithDefaults(t *testing.T) {
	service, err := os.ReadFile("deploy/egret.service")
	require.NoError(t, err)
	image, err := os.ReadFile("deploy/Dockerfile")
	require.NoError(t, err)
	_, port, _ := strings.Cut(defaultNode, ":")
	require.Contains(t, string(image), "EXPOSE "+port+"/tcp "+port+"/udp")
	for _, text := range []string{string(service), string(image)} {
		for _, m := range regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:(\d+)`).FindAllStringSubmatch(text, -1) {
			require.Equal(t, port, m[1], m[0])
		}
	}
	stop := regexp.MustCompile(`--stop-timeout (\S+)`).FindStringSubmatch(string(service))
	killed := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(string(service))
	require.NotNil(t, stop)
	require.NotNil(t, killed)
	leaving, err := time.ParseDuration(stop[1])
	require.NoError(t, err)
	require.Equal(t, stopTimeout, leaving)
	end, err := time.ParseDuration(killed[1] + "s")
	require.NoError(t, err)
	require.GreaterOrEqual(t, end, leaving+10*time.Second, "it would be killed while it leaves")
}
