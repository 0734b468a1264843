package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

// openapi.json is made of the types that are sent, and of what is said of routes here:
//
//	UPDATE=1 go test ./web -run OpenAPI
//
// The tests hold it against the handlers: their routes, and each of their answers.

// A described is what is said of a route.
type described struct {
	does    string
	query   []parameter
	body    any // of which type
	answer  any
	streams string // events, in words; "": it answers once
	free    bool   // it takes no token
}

type parameter struct {
	name, about, kind string
	required          bool
}

var nParameter = parameter{name: "n", about: "How many at most.", kind: "integer"}

var descriptions = map[string]described{
	"GET /api/v1/me":       {does: "What the one who asks may do.", answer: Me{}, free: true},
	"POST /api/v1/login":   {does: "Takes a token and gives a cookie, for browsers. Programs send the token with each request.", body: loginBody{}, answer: Me{}, free: true},
	"POST /api/v1/logout":  {does: "Forgets the cookie of the one who asks, and ends what still listens by it. There is no body.", answer: Me{}, free: true},
	"GET /api/v1/overview": {does: "Topologies and nodes, at a glance.", answer: view.Overview{}},
	"GET /api/v1/live": {does: "What the overview says, and what is to be said of one topology, once a second.", query: []parameter{
		{name: "topology", about: "Of which there are detail and point too.", kind: "string"},
	}, streams: "Server-sent events. missed (Missed): moments were left out since the last event, for the client is slow or was away. overview (Overview)." +
		" detail (Detail) and point (Point), of the topology. broken (ErrorAnswer): there is no sample of this moment. ended (Detail): the topology has ended, and so has the stream." +
		" At most 100 may look at a time."},
	"GET /api/v1/topologies/{topology}": {does: "A topology, looked at closely.", answer: view.Detail{}},
	"GET /api/v1/topologies/{topology}/history": {does: "How a topology was in the last hour, second by second, each time as of the window before it.", query: []parameter{
		{name: "since", about: "Only what is younger: a moment of RFC 3339.", kind: "string"},
	}, answer: []view.Point{}},
	"GET /api/v1/topologies/{topology}/errors": {does: "What went wrong, the latest first.", answer: []view.Error{}},
	"GET /api/v1/topologies/{topology}/open":   {does: "Messages that are open, the oldest first, and where they are.", query: []parameter{nParameter}, answer: []view.Tree{}},
	"GET /api/v1/topologies/{topology}/letters": {does: "Dead letters, the latest first.", query: []parameter{
		{name: "component", about: "Of which; default: of all.", kind: "string"}, nParameter,
	}, answer: []view.Letter{}},
	"POST /api/v1/topologies/{topology}/letters": {does: "Replays or drops dead letters.", body: settling{}, answer: view.Effect{}},
	"GET /api/v1/topologies/{topology}/tap": {does: "A sample of the tuples of a stream, as they are emitted.", query: []parameter{
		{name: "component", about: "That emits them.", kind: "string", required: true},
		{name: "stream", about: "Default: the component's own.", kind: "string"},
		{name: "where", about: `An expression on the fields, such as word == "whale" && count > 10. Default: all tuples.`, kind: "string"},
		{name: "most", about: "Tuples a second, up to 1000. Default: 10.", kind: "number"},
	}, streams: "Lines of JSON (Tapped); or, if asked for text/event-stream, server-sent events. tapped (Tapped). broken (ErrorAnswer): it has ended with an error. ended (null): the run has ended."},
	"POST /api/v1/actions":     {does: "Does something to a topology or a node, or says what that would do. A run without a cluster knows stop and kill alone; in a cluster stop keeps the positions, and kill forgets them.", body: view.Action{}, answer: view.Effect{}},
	"GET /api/v1/openapi.json": {does: "This document.", answer: map[string]any{}},
}

// loginBody is what login takes.
type loginBody struct {
	Token string `json:"token"`
}

// A document is openapi.json while it is made.
type document struct {
	schemas  map[string]any
	comments map[string]string // of "package.Type", and of "package.Type.Field"
}

// tagOf returns the name of a field in JSON, and whether it may be missing.
func tagOf(f reflect.StructField) (name string, optional bool) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, strings.Contains(rest, "omitempty")
}

// schema returns the schema of a type, and puts those of structs among the others.
func (d *document) schema(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "integer", "format": "int64", "description": "Nanoseconds."}
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{"description": "A value, as JSON has it."}
	case reflect.TypeFor[view.Number]():
		return map[string]any{"type": []string{"number", "null"}, "description": "null is a number that is none, or infinite."}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return map[string]any{"type": "object"}
		}
		return map[string]any{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if t == reflect.TypeFor[Error]() {
			name = "Refusal" // an Error is one of the topology
		}
		if d.schemas[name] == nil {
			s := map[string]any{"type": "object", "additionalProperties": false}
			d.schemas[name] = s
			properties, required := map[string]any{}, []string{}
			d.fields(t, properties, &required)
			s["properties"] = properties
			if len(required) > 0 {
				s["required"] = required
			}
			if text := d.comments[commented(t)]; text != "" {
				s["description"] = text
			}
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	panic("no schema for " + t.String())
}

// commented is what comments calls a type.
func commented(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

func (d *document) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous && f.Tag == "" {
			d.fields(f.Type, properties, required)
			continue
		}
		name, optional := tagOf(f)
		s := d.schema(f.Type)
		if text := d.comments[commented(t)+"."+f.Name]; text != "" {
			if was, ok := s["description"].(string); ok {
				text += "; " + was
			}
			s["description"] = text
		}
		properties[name] = s
		if !optional {
			*required = append(*required, name)
		}
	}
}

// comments returns what the sources of packages say of their types and fields.
func comments(t *testing.T, dirs ...string) map[string]string {
	all := map[string]string{}
	for _, dir := range dirs {
		put := func(name string, text string) {
			if text = strings.Join(strings.Fields(text), " "); text != "" {
				all[dir+"."+name] = text
			}
		}
		names, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				g, ok := n.(*ast.GenDecl)
				if !ok {
					return true
				}
				for _, spec := range g.Specs {
					ts, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					put(ts.Name.Name, g.Doc.Text())
					if st, ok := ts.Type.(*ast.StructType); ok {
						for _, f := range st.Fields.List {
							for _, id := range f.Names {
								put(ts.Name.Name+"."+id.Name, f.Doc.Text()+f.Comment.Text())
							}
						}
					}
				}
				return true
			})
		}
	}
	return all
}

func content(kind string, schema any) map[string]any {
	return map[string]any{kind: map[string]any{"schema": schema}}
}

func generate(t *testing.T) []byte {
	d := &document{schemas: map[string]any{}, comments: comments(t, "web", "view", "graph", "metrics")}
	paths := map[string]any{}
	wrong := map[string]any{"description": "An error.", "content": content("application/json", d.schema(reflect.TypeFor[errorAnswer]()))}
	for _, x := range []any{view.Point{}, Missed{}, view.Tapped{}} {
		d.schema(reflect.TypeOf(x)) // of events
	}
	for pattern, of := range descriptions {
		method, route, _ := strings.Cut(pattern, " ")
		op := map[string]any{"summary": of.does}
		var parameters []any
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(route, -1) {
			parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		for _, p := range of.query {
			parameters = append(parameters, map[string]any{"name": p.name, "in": "query", "required": p.required, "description": p.about, "schema": map[string]any{"type": p.kind}})
		}
		if parameters != nil {
			op["parameters"] = parameters
		}
		if of.body != nil {
			op["requestBody"] = map[string]any{"required": true, "content": content("application/json", d.schema(reflect.TypeOf(of.body)))}
		}
		good := map[string]any{"description": "The answer."}
		switch {
		case of.streams == "":
			good["content"] = content("application/json", d.schema(reflect.TypeOf(of.answer)))
		case strings.HasPrefix(of.streams, "Lines"):
			good["description"] = of.streams
			good["content"] = map[string]any{"application/x-ndjson": map[string]any{}, "text/event-stream": map[string]any{}}
		default:
			good["description"] = of.streams
			good["content"] = map[string]any{"text/event-stream": map[string]any{}}
		}
		op["responses"] = map[string]any{"200": good, "default": wrong}
		if of.free {
			op["security"] = []any{}
		}
		at, _ := paths[route].(map[string]any)
		if at == nil {
			at = map[string]any{}
			paths[route] = at
		}
		at[strings.ToLower(method)] = op
	}
	text, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Egret", "version": "1", "license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "What runs, and what can be done to it. Names that end in _ns are nanoseconds, rates are a second, sizes are bytes. A rate is that of the window that stands beside it." +
				" Beside this there are /metrics for Prometheus, /healthz, /readyz (is the last sample fresh?) and /debug/pprof/.",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas": d.schemas,
			"securitySchemes": map[string]any{
				"token": map[string]any{"type": "http", "scheme": "bearer", "description": "One of two: for everything, or for looking. Without any, who reaches a port of this machine may do everything."},
			},
		},
		"security": []any{map[string]any{"token": []any{}}, map[string]any{}},
	}, "", "\t")
	require.NoError(t, err)
	return append(text, '\n')
}

func TestOpenAPIIsWhatIsSent(t *testing.T) {
	text := generate(t)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("openapi.json", text, 0o644))
		openapi = text
	}
	require.Equal(t, string(text), string(openapi), "with UPDATE=1 it is written anew")
}

func TestOpenAPIHasAllRoutes(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(openapi, &doc))
	var documented []string
	for route, operations := range doc.Paths {
		for method := range operations {
			documented = append(documented, strings.ToUpper(method)+" "+route)
		}
	}
	have := []string{"POST /api/v1/login", "POST /api/v1/logout"} // the door's
	for _, r := range routes {
		have = append(have, r.pattern)
	}
	require.ElementsMatch(t, have, documented)
}

// A judge holds answers against openapi.json.
type judge struct{ compiler *jsonschema.Compiler }

func newJudge(t *testing.T) *judge {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	return &judge{c}
}

// at says what is wrong with an answer for the schema at a place of the document.
func (j *judge) at(t *testing.T, place string, text []byte) error {
	t.Helper()
	s, err := j.compiler.Compile("openapi.json#" + place)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	return s.Validate(v)
}

func answerOf(method, route, status string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	return "/paths/" + escape.Replace(route) + "/" + strings.ToLower(method) + "/responses/" + status + "/content/application~1json/schema"
}

// Each answer of each route is as the document says, also of empty and of full samples.
func TestAnswersAreAsDocumented(t *testing.T) {
	j := newJudge(t)
	full := &view.Sample{}
	fill(reflect.ValueOf(full).Elem(), 3)
	full.Runs[0].Topology, full.Runs[0].Graph.Components[0].Component = "wordcount", full.Runs[0].Tasks[0].Component
	bare := &view.Sample{Runs: []view.Run{{Topology: "wordcount"}}}
	with := wordcount(5)
	with.Runs[0].Batches = batches()
	with.Runs[0].Tasks[1].Own[0].Value = view.Number(math.NaN())
	for name, sample := range map[string]*view.Sample{"full": full, "bare": bare, "usual": with} {
		w := &world{now: sample}
		s := serve(t, w)
		g := behind(s, Door{Token: actToken})
		for pattern, of := range descriptions {
			method, route, _ := strings.Cut(pattern, " ")
			body := map[string]string{"POST /api/v1/login": `{"token":"` + actToken + `"}`, "POST /api/v1/actions": `{"do":"kill","topology":"wordcount"}`,
				"POST /api/v1/topologies/{topology}/letters": `{"do":"drop","ids":["1"]}`}[pattern]
			target := strings.ReplaceAll(route, "{topology}", "wordcount")
			ask := func(target string) (int, []byte) {
				h := []string{"Authorization", "Bearer " + actToken, "Content-Type", "application/json"}
				got := asked(g, method, target, body, h...)
				return got.Code, got.Body.Bytes()
			}
			status, text := ask(target + "?wrong=1")
			if method == "GET" && status != 200 { // the document itself takes anything
				require.Equal(t, 400, status)
				require.NoError(t, j.at(t, answerOf(method, route, "default"), text), pattern)
			}
			if of.streams != "" {
				continue
			}
			status, text = ask(target)
			require.Equal(t, 200, status, "%s", text)
			require.NoError(t, j.at(t, answerOf(method, route, "200"), text), "%s of the %s sample: %s", pattern, name, text)
		}
		// What streams says the same.
		m, _, _ := s.watch.newest()
		overview, err := m.overview()
		require.NoError(t, err)
		detail, err := m.detail("wordcount")
		require.NoError(t, err)
		for name, text := range map[string][]byte{
			"Overview": overview, "Detail": detail, "Missed": marshal(Missed{3}), "Point": marshal(view.Point{At: time.Now()}), "Tapped": marshal(&view.Tapped{At: time.Now(), Error: "x"}),
		} {
			require.NoError(t, j.at(t, "/components/schemas/"+name, text))
		}
	}
	for _, bad := range []string{`{"look":true,"act":true}`, `{"look":true,"act":true,"login":1}`, `{"look":true,"act":true,"login":true,"x":1}`, `null`} {
		require.Error(t, j.at(t, answerOf("GET", "/api/v1/me", "200"), []byte(bad)), "the judge is awake")
	}
}

// fill gives everything below v a value that is not its zero.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1700000000, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("<text>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		panic("no value for " + v.Type().String())
	}
}

// What the codes of errors mean is said once, in statuses.
func TestCodesHaveStatuses(t *testing.T) {
	for _, code := range []string{Unknown, Invalid, Forbidden, Refused, NoQuorum, NotHere, Busy, NoToken, Broken} {
		require.NotEmpty(t, http.StatusText(statuses[code]), code)
	}
	require.Len(t, slices.Collect(maps.Keys(statuses)), 9, fmt.Sprint(statuses))
}
