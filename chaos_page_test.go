package egret_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

// docs/chaos.md tells of every fault, class and checker in the words of the program.
// UPDATE=1 writes its tables.
func TestChaosPage(t *testing.T) {
	const at = "docs/chaos.md"
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	page := string(text)
	faults := "| fault | what happens | live |\n|---|---|---|\n"
	for _, k := range chaos.Kinds() {
		live := ""
		if k.Live() {
			live = "yes"
		}
		faults += "| `" + strings.ReplaceAll(k.Usage(), "|", `\|`) + "` | " + k.Help() + " | " + live + " |\n"
	}
	checkers := "| checker | what must hold | its twin |\n|---|---|---|\n"
	for _, c := range chaos.Checkers() {
		checkers += "| " + string(c) + " | " + c.Claim() + " | " + c.Twin() + " |\n"
	}
	if os.Getenv("UPDATE") != "" {
		page = withTable(t, withTable(t, page, faults), checkers)
		require.NoError(t, os.WriteFile(at, []byte(page), 0o644))
	}
	require.Contains(t, page, faults+"\n", "write it with UPDATE=1")
	require.Contains(t, page, checkers+"\n", "write it with UPDATE=1")
	for _, c := range chaos.Classes() {
		require.Contains(t, page, "`"+string(c)+"`")
	}
}

// withTable puts a table in the place of the one with the same head.
func withTable(t *testing.T, page, table string) string {
	head, _, _ := strings.Cut(table, "\n")
	before, rest, found := strings.Cut(page, head+"\n")
	require.True(t, found, head)
	_, after, found := strings.Cut(rest, "\n\n")
	require.True(t, found, head)
	return before + table + "\n" + after
}
