package egret_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
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

const module = "github.com/egretstream/egret"

// A room is a package and what it may import of the others.
type room struct {
	floor   floor
	public  bool   // for users; the others say that they are not
	imports string // own packages, "." is the root
}

type floor int

const (
	// The lower floors decide and never act: no goroutine, channel, lock, clock,
	// chance, file, socket or log. So the simulator can run them.
	ground floor = iota
	contracts
	plans
	machines
	behaviours
	// From here on they may.
	hosts
	roof
	guests
)

// The house. A new package gets a line here, on the lowest floor that will do.
var house = map[string]room{
	"amount":   {ground, false, ""},
	"tuple":    {ground, true, "amount mutation"},
	"proto":    {ground, false, ""}, // generated; alone down here, it may use sync, once for each message type
	"metrics":  {ground, true, ""},  // alone down here, it may use sync/atomic
	"mutation": {ground, false, ""}, // bugs on purpose, for tests: imported where there is one

	"trident/model": {ground, false, ""}, // the rules, played without Egret: all of it is tests

	"actor": {contracts, false, ""},
	"spout": {contracts, true, "tuple mutation"},
	"state": {contracts, true, "tuple mutation"},
	"bolt":  {contracts, true, "amount tuple metrics mutation"},

	"topology": {plans, true, "amount tuple spout bolt"},
	"trident":  {plans, true, "tuple spout bolt topology state mutation"},
	"graph":    {plans, false, "topology"},
	"view":     {plans, false, "amount tuple metrics topology graph"},

	"view/where": {plans, false, "tuple"},

	"batch":   {machines, false, "tuple mutation"},
	"acker":   {machines, false, "tuple mutation"},
	"broker":  {machines, false, "tuple mutation cluster"},
	"chaos":   {machines, true, ""},
	"cluster": {machines, false, "batch mutation tuple"},

	"task": {behaviours, false, "amount mutation tuple metrics actor spout bolt topology acker broker batch proto"},
	"node": {behaviours, false, "mutation tuple actor acker batch broker cluster task metrics topology view"},

	"actor/host":     {hosts, false, "actor"},
	"spout/from":     {hosts, true, "amount tuple spout"},
	"bolt/to":        {hosts, true, "tuple bolt"},
	"broker/wire":    {hosts, false, "cluster"},
	"metrics/scrape": {hosts, false, "tuple metrics topology web/underway"},
	"web":            {hosts, false, "view metrics/scrape web/page web/underway"},
	"web/page":       {hosts, false, ""},
	"web/underway":   {hosts, false, ""}, // what all three HTTP servers wait for when they close
	"state/file":     {hosts, false, ""},
	"state/disk":     {hosts, false, "batch tuple task state/file"},
	"node/process":   {hosts, false, "actor actor/host broker broker/wire cluster cluster/consensus cluster/gossip node state/file web/underway"},
	"chaos/sim":      {hosts, true, "mutation chaos amount tuple metrics actor spout bolt state topology acker batch broker cluster task node"},

	// Places for states, and the tests that they all pass.
	"state/memory":    {hosts, true, "tuple state mutation"},
	"state/pebble":    {hosts, true, "tuple state"},
	"state/postgres":  {hosts, true, "tuple state"},
	"state/statetest": {hosts, true, "tuple state"},

	"state/postgres/postgrestest": {hosts, false, ""},

	// live is given what runs a topology, as bench is.
	"chaos/live": {hosts, false, "amount tuple actor spout bolt topology acker task chaos"},

	"chaos/live/fleet": {hosts, false, "amount tuple spout bolt topology task broker/wire cluster node node/process"},

	"cluster/consensus": {hosts, false, "cluster state/file"},
	"cluster/gossip":    {hosts, false, "cluster"},

	// bench is given what runs a topology, so that the root can have it as a command.
	"bench":      {roof, false, "amount tuple metrics spout spout/from bolt bolt/to topology state state/memory trident"},
	"bench/pair": {hosts, false, "tuple metrics actor actor/host broker broker/wire cluster node task topology"},
	".":          {roof, true, "amount batch tuple acker metrics actor spout bolt state topology trident graph task node node/process broker/wire cluster actor/host metrics/scrape state/disk view view/where web web/page chaos chaos/live chaos/live/fleet chaos/sim bench bench/pair"},
	// The test kit is for users' tests, and runs what ships.
	"egrettest":     {roof, true, ". amount tuple spout bolt topology acker task"},
	"bolt/bolttest": {roof, true, ". spout bolt topology egrettest"},

	"cmd/egret": {guests, false, ". bench topology state/pebble" +
		" examples/earthquakes/aftershocks examples/flights/delays examples/speeches/portraits examples/wordcount/counting examples/wordcount/exact"},
	"examples/earthquakes":             {guests, true, ". examples/earthquakes/aftershocks"},
	"examples/earthquakes/aftershocks": {guests, true, "tuple spout spout/from bolt bolt/to topology"},
	"examples/flights":                 {guests, true, ". examples/flights/delays"},
	"examples/flights/delays":          {guests, true, "tuple spout spout/from bolt bolt/to topology"},
	"examples/speeches":                {guests, true, ". examples/speeches/portraits"},
	"examples/speeches/portraits":      {guests, true, "tuple spout/from bolt bolt/to topology"},
	"examples/trident-wordcount":       {guests, true, ". spout spout/from state state/memory state/pebble trident examples/wordcount/counting"},
	"examples/wordcount":               {guests, true, ". examples/wordcount/counting"},
	"examples/wordcount/exact":         {guests, true, "spout spout/from state state/memory state/pebble topology trident examples/wordcount/counting"},
	"examples/wordcount/counting":      {guests, true, "tuple spout spout/from bolt bolt/to topology"},
}

// badNames are names of rooms that everything ends up in.
var badNames = []string{"util", "utils", "common", "core", "base", "helpers", "shared", "types", "misc"}

// What a lower floor may not import, by the first part of the path or all of it.
var loud = map[string]string{
	"sync":                  "one goroutine owns each value, so there is nothing to lock; only metrics may use sync/atomic",
	"os":                    "files and processes belong to a host: return what is to be done, or let the actor Block",
	"net":                   "sockets belong to a host",
	"syscall":               "the operating system belongs to a host",
	"golang.org/x/sys":      "the operating system belongs to a host",
	"log":                   "return an error or an event, and let the host log it; of log/slog the types are allowed",
	"math/rand":             "take a *math/rand/v2.Rand as an argument",
	"crypto/rand":           "take a *math/rand/v2.Rand as an argument",
	"os/signal":             "signals belong to the root",
	"github.com/asynkron/":  "only actor/host may know protoactor",
	"github.com/prometheus": "tasks count into package metrics; metrics/scrape shows that to Prometheus",
}

// What a lower floor may not use of packages that it may import.
var loudNames = map[string]string{
	"time":    "Now Since Until Sleep After AfterFunc NewTimer NewTicker Tick",
	"context": "WithTimeout WithTimeoutCause WithDeadline WithDeadlineCause AfterFunc",
	"fmt":     "Print Printf Println Scan Scanf Scanln",
	"log/slog": "Debug DebugContext Info InfoContext Warn WarnContext Error ErrorContext Log LogAttrs" +
		" Default SetDefault With SetLogLoggerLevel",
	"math/rand/v2": "ExpFloat64 Float32 Float64 Int Int32 Int32N Int64 Int64N IntN N NormFloat64 Perm Shuffle" +
		" Uint Uint32 Uint32N Uint64 Uint64N",
	"runtime": "Gosched GOMAXPROCS LockOSThread",
}

// forTests may be imported by tests, and by packages that are made for tests.
var forTests = []string{"testing", "github.com/stretchr/testify", "pgregory.net/rapid", "go.uber.org/goleak"}

// A source is a parsed file that is not a test.
type source struct {
	dir, name string // dir is the package, "." for the root
	fset      *token.FileSet
	file      *ast.File
}

func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return path.Join(s.dir, s.name) + ":" + strconv.Itoa(p.Line)
}

// parse returns all sources below dir that belong to its module.
func parse(t *testing.T, dir string) (all []*source) {
	fset := token.NewFileSet()
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(dir, p, "go.mod"))
			if p != "." && (err == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, p), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, &source{path.Dir(p), name, fset, file})
		return nil
	})
	require.NoError(t, err)
	return all
}

// check returns what is wrong with a source, in sentences.
func check(s *source) (faults []string) {
	r, ok := house[s.dir]
	if !ok {
		return []string{"package " + s.dir + " is not in the house: add a line to the table in house_test.go," +
			" with its floor and what it may import"}
	}
	fault := func(n ast.Node, text string) { faults = append(faults, s.at(n)+": "+text) }
	if slices.Contains(badNames, path.Base(s.dir)) || slices.Contains(badNames, s.file.Name.Name) {
		fault(s.file.Name, "a package called "+s.file.Name.Name+" attracts everything: find the noun, or copy the few lines")
	}
	quiet := r.floor < hosts
	names := map[string]string{} // of imports in this file
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(strings.TrimSuffix(p, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
		if name == "." {
			fault(spec, "a dot import hides where names come from: write the package's name")
		}
		if own, ok := strings.CutPrefix(p+"/", module+"/"); ok {
			own = path.Clean(own)
			if !slices.Contains(strings.Fields(r.imports), own) {
				fault(spec, "package "+s.dir+" may not import "+own+": imports only go down; return a value and let"+
					" the caller pass it on, or change the table in house_test.go and say why")
			}
			continue
		}
		if strings.HasPrefix(p, "github.com/asynkron/") && s.dir != "actor/host" {
			fault(spec, "only actor/host may import protoactor: use package actor")
			continue
		}
		for _, f := range forTests {
			if below(p, f) && !strings.HasSuffix(s.dir, "test") {
				fault(spec, p+" belongs in _test.go files, egrettest and bolttest")
			}
		}
		if quiet && p != "math/rand/v2" && p != "log/slog" && (s.dir != "proto" || p != "sync") && (s.dir != "metrics" || p != "sync/atomic") {
			for l, why := range loud {
				if below(p, l) {
					fault(spec, s.dir+" may not import "+p+": "+why)
				}
			}
		}
	}
	if !quiet {
		return faults
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			fault(n, "a goroutine below the hosts: let the actor Block, or send itself a message")
		case *ast.ChanType:
			fault(n, "a channel below the hosts: send a message")
		case *ast.SelectStmt, *ast.SendStmt:
			fault(n, "a channel operation below the hosts: send a message")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				fault(n, "a channel operation below the hosts: send a message")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(strings.Fields(loudNames[names[x.Name]]), n.Sel.Name) {
				fault(n, x.Name+"."+n.Sel.Name+" below the hosts: time and chance are arguments, output is a return value")
			}
		}
		return true
	})
	return faults
}

func below(p, dir string) bool { return strings.HasPrefix(p+"/", strings.TrimSuffix(dir, "/")+"/") }

func TestHouse(t *testing.T) {
	all := parse(t, ".")
	require.Greater(t, len(all), 10, "sources are found")
	docs := map[string]string{}
	for _, s := range all {
		docs[s.dir] += s.file.Doc.Text()
		for _, f := range check(s) {
			t.Error(f)
		}
	}
	for dir, doc := range docs {
		r, ok := house[dir]
		if !ok {
			continue
		}
		if doc == "" {
			t.Errorf("package %s has no comment that says what it does", dir)
		}
		if warned := strings.Contains(strings.Join(strings.Fields(doc), " "), "not for use outside Egret"); warned == r.public && r.floor < guests {
			t.Errorf("package %s: public is %v in the house, but its comment and \"not for use outside Egret\" do not agree", dir, r.public)
		}
	}
}

// Each rule of the house must refuse something.
func TestHouseRefuses(t *testing.T) {
	for _, tt := range []struct{ dir, text, want string }{
		{"tuple", `package tuple; import "strings"; var _ = strings.Fields`, ""},
		{"nowhere", `package nowhere`, "not in the house"},
		{"task", `package core`, "attracts everything"},
		{"task", `package task; import _ "github.com/egretstream/egret"`, "may not import ."},
		{"tuple", `package tuple; import _ "github.com/egretstream/egret/metrics"`, "may not import metrics"},
		{"task", `package task; import _ "github.com/egretstream/egret/acker"`, ""},
		{"task", `package task; import . "fmt"`, "dot import"},
		{"task", `package task; import _ "github.com/asynkron/protoactor-go/actor"`, "only actor/host"},
		{".", `package egret; import _ "github.com/asynkron/protoactor-go/actor"`, "only actor/host"},
		{"actor/host", `package host; import _ "github.com/asynkron/protoactor-go/actor"`, ""},
		{"metrics", `package metrics; import "github.com/prometheus/client_golang/prometheus"`, "tasks count into package metrics"},
		{"bench", `package bench; import "testing"`, "belongs in _test.go"},
		{"bench", `package bench; import "github.com/stretchr/testify/require"`, "belongs in _test.go"},
		{"acker", `package acker; func f() { go f() }`, "goroutine"},
		{"bench", `package bench; func f() { go f() }`, ""},
		{"acker", `package acker; type t chan int`, "channel"},
		{"acker", `package acker; func f() { select {} }`, "channel"},
		{"acker", `package acker; func f() { c <- 1 }`, "channel"},
		{"acker", `package acker; var x = <-c`, "channel"},
		{"acker", `package acker; import "time"; var x = time.Now()`, "time.Now"},
		{"acker", `package acker; import clock "time"; var x = clock.Now()`, "clock.Now"},
		{"acker", `package acker; import "time"; var x = time.Second; var y time.Duration`, ""},
		{"acker", `package acker; import "math/rand"`, "may not import math/rand"},
		{"acker", `package acker; import "math/rand/v2"; var x = rand.IntN(7)`, "rand.IntN"},
		{"acker", `package acker; import "math/rand/v2"; var x = rand.New(rand.NewPCG(1, 2)).IntN(7)`, ""},
		{"acker", `package acker; import "crypto/rand"`, "may not import crypto/rand"},
		{"acker", `package acker; import "sync"`, "may not import sync"},
		{"acker", `package acker; import "sync/atomic"`, "may not import sync/atomic"},
		{"metrics", `package metrics; import "sync/atomic"`, ""},
		{"metrics", `package metrics; import "sync"`, "may not import sync"},
		{"acker", `package acker; import "os"`, "may not import os"},
		{"acker", `package acker; import "net/http"`, "may not import net/http"},
		{"acker", `package acker; import "log"`, "may not import log"},
		{"bolt", `package bolt; import "log/slog"; type t struct { l *slog.Logger }`, ""},
		{"bolt", `package bolt; import "log/slog"; func f() { slog.Info("") }`, "slog.Info"},
		{"bolt", `package bolt; import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{"task", `package task; import "context"; var c, _ = context.WithTimeout(nil, 1)`, "context.WithTimeout"},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", tt.text, parser.SkipObjectResolution)
		require.NoError(t, err)
		faults := check(&source{tt.dir, "x.go", fset, file})
		if tt.want == "" {
			require.Empty(t, faults, tt.text)
		} else {
			require.Len(t, faults, 1, tt.text)
			require.Contains(t, faults[0], tt.want, tt.text)
		}
	}
}

// ARCHITECTURE.md names things in backticks; they must exist. What is not a name
// (a command, a sentence) is passed over.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	for _, name := range missing(string(text), names(parse(t, "."))) {
		t.Errorf("ARCHITECTURE.md names `%s`, which does not exist", name)
	}
}

// names returns everything that is declared, and the packages, also those imported.
func names(all []*source) map[string]bool {
	known := map[string]bool{}
	for _, s := range all {
		known[s.file.Name.Name] = true
		for _, spec := range s.file.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			known[p], known[path.Base(p)] = true, true
			if !strings.HasPrefix(p, module) {
				known[path.Base(p)+".*"] = true // whatever it declares
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				known[n.Name.Name] = true
			case *ast.TypeSpec:
				known[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range n.Names {
					known[id.Name] = true
				}
			case *ast.Field:
				for _, id := range n.Names {
					known[id.Name] = true
				}
			}
			return true
		})
	}
	for _, s := range all {
		delete(known, s.file.Name.Name+".*") // ours: one of that name elsewhere does not matter
	}
	return known
}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	dotted = regexp.MustCompile(`^\(?\*?[A-Za-z_]\w*\)?(\.\(?\*?[A-Za-z_]\w*\)?)*(\(\))?$`)
)

func missing(text string, known map[string]bool) (bad []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if _, err := os.Stat(filepath.FromSlash(name)); err == nil || known[name] {
			continue
		}
		pkg, rest := path.Split(name) // "actor/host.Host"
		if !dotted.MatchString(rest) || strings.ContainsAny(pkg, " -<>{}") {
			continue
		}
		parts := strings.Split(strings.NewReplacer("(", "", ")", "", "*", "").Replace(rest), ".")
		if known[parts[0]+".*"] {
			continue
		}
		for _, part := range parts {
			if !known[part] && !token.IsKeyword(part) && types.Universe.Lookup(part) == nil {
				bad = append(bad, name)
				break
			}
		}
	}
	return bad
}

func TestMissing(t *testing.T) {
	known := names(parse(t, "."))
	text := "`tuple` `actor/host` `actor.Context` `(*Host).Close` `host.Host.Close()` `go` `go test ./...` `time.Now` `go.mod`" +
		" `Wrong` `actor.Wrong` `tuple/nowhere`"
	require.Equal(t, []string{"Wrong", "actor.Wrong", "tuple/nowhere"}, missing(text, known))
}
