package egret_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compiled are the files that the Go code in README.md is taken from.
var compiled = []string{"example_test.go", "example_orders_test.go", "example_join_test.go", "example_trident_test.go", "example_testing_test.go", "process_test.go"}

// What README.md shows is code that the compiler has seen: each declaration
// stands word for word in a file that is built and run.
func TestReadmeShowsWhatCompiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var have []string
	for _, name := range compiled {
		b, err := os.ReadFile(filepath.FromSlash(name))
		require.NoError(t, err)
		have = append(have, declarations(t, string(b))...)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 6)
	for _, b := range blocks {
		all := declarations(t, b[1])
		require.NotEmpty(t, all)
		for _, d := range all {
			require.Contains(t, have, d, "README.md shows code that is in none of %v", compiled)
		}
		if strings.HasPrefix(b[1], "package main") {
			require.Empty(t, importFaults(t, b[1]), "README.md")
		}
	}
	require.Equal(t, []string{`"fmt" is not used`, "os is not imported"}, importFaults(t, `package main; import "fmt"; var _ = os.Args`))
}

// declarations returns the declarations of a file, or of some lines of one,
// without the imports, as gofmt and the author write them.
func declarations(t *testing.T, text string) (all []string) {
	t.Helper()
	if !strings.HasPrefix(text, "package ") && !strings.Contains(text, "\npackage ") {
		text = "package p\n\n" + text
	}
	formatted, err := format.Source([]byte(text))
	require.NoError(t, err)
	require.Equal(t, text, string(formatted), "not as gofmt writes it")
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", text, parser.ParseComments)
	require.NoError(t, err)
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		end := fset.Position(d.End()).Offset
		if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
			end += n // a comment behind it
		}
		all = append(all, text[fset.Position(d.Pos()).Offset:end])
	}
	return all
}

// importFaults compares what a program imports with the packages it names.
func importFaults(t *testing.T, text string) (faults []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
	require.NoError(t, err)
	imported := map[string]bool{} // and used
	for _, s := range file.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		imported[path.Base(p)] = false
	}
	for _, x := range file.Unresolved {
		if _, ok := imported[x.Name]; ok {
			imported[x.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Obj == nil {
				if _, ok := imported[x.Name]; !ok {
					faults = append(faults, x.Name+" is not imported")
				}
			}
		}
		return true
	})
	for name, used := range imported {
		if !used {
			faults = append(faults, strconv.Quote(name)+" is not used")
		}
	}
	slices.Sort(faults)
	return faults
}

// Links between the documents lead somewhere.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	files, err := filepath.Glob("*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	records, err := filepath.Glob("docs/decisions/*.md")
	require.NoError(t, err)
	links := 0
	for _, name := range slices.Concat(files, more, records) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(text), -1) {
			to, part, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			links++
			if to == "" {
				require.Contains(t, headings(string(text)), part, "%s links to a part that is not there", name)
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(to)))
			require.NoError(t, err, "%s links to %s", name, to)
		}
	}
	require.Greater(t, links, 5)
}

// headings returns the headings of a text as links name them.
func headings(text string) (all []string) {
	for line := range strings.Lines(text) {
		if h, ok := strings.CutPrefix(line, "#"); ok {
			h = strings.ToLower(strings.TrimSpace(strings.TrimLeft(h, "#")))
			all = append(all, strings.ReplaceAll(h, " ", "-"))
		}
	}
	return all
}

// Decision records are numbered without a gap, and the number is in the title.
func TestDecisionsAreNumbered(t *testing.T) {
	records, err := filepath.Glob("docs/decisions/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, records)
	for i, name := range records {
		require.Regexp(t, `^0*`+strconv.Itoa(i+1)+`-[a-z0-9-]+\.md$`, filepath.Base(name))
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Regexp(t, `^# `+strconv.Itoa(i+1)+`\. `, string(text), name)
		require.Subset(t, headings(string(text)), []string{"context", "decision", "consequences", "not-chosen"}, name)
	}
}
