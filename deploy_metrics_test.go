package egret

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A shownMetrics is what a process shows Prometheus: values of labels by name and label.
type shownMetrics map[string]map[string]map[string]bool

var sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+(?: \S+)?$`)

func readMetrics(t *testing.T, text string) shownMetrics {
	t.Helper()
	all := shownMetrics{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		require.NotNil(t, m, line)
		if all[m[1]] == nil {
			all[m[1]] = map[string]map[string]bool{"job": {}, "instance": {}} // which Prometheus adds
		}
		for _, l := range regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(m[2], -1) {
			if all[m[1]][l[1]] == nil {
				all[m[1]][l[1]] = map[string]bool{}
			}
			all[m[1]][l[1]][l[2]] = true
		}
	}
	return all
}

var (
	ownMetric  = regexp.MustCompile(`\b((?:egret|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	ownMatcher = regexp.MustCompile(`^\s*([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"\s*$`)
	grouped    = regexp.MustCompile(`\bby \(([a-z_, ]*)\)`)
	functions  = regexp.MustCompile(`([a-z_]+) ?\(`)
)

// faults are what is wrong with an expression: metrics, labels or values that there are none of.
func (all shownMetrics) faults(expr string) (faults []string) {
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") || strings.Count(expr, "[") != strings.Count(expr, "]") {
		faults = append(faults, "brackets")
	}
	for _, f := range functions.FindAllStringSubmatch(expr, -1) {
		if !slices.Contains([]string{"sum", "max", "by", "rate", "increase", "histogram_quantile", "unless", "and"}, f[1]) {
			faults = append(faults, "function "+f[1])
		}
	}
	labels := map[string]bool{"job": true, "instance": true}
	for _, m := range ownMetric.FindAllStringSubmatch(expr, -1) {
		of := all[m[1]]
		if of == nil {
			faults = append(faults, "metric "+m[1])
			continue
		}
		for name := range of {
			labels[name] = true
		}
		for part := range strings.SplitSeq(m[2], ",") {
			if m[2] == "" {
				break
			}
			x := ownMatcher.FindStringSubmatch(part)
			if x == nil || of[x[1]] == nil {
				faults = append(faults, "label "+part+" of "+m[1])
				continue
			}
			if strings.HasPrefix(x[3], "$") {
				continue
			}
			for value := range strings.SplitSeq(x[3], "|") {
				if !of[x[1]][value] {
					faults = append(faults, "value "+value+" of "+m[1])
				}
			}
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(expr, -1) {
		for name := range strings.SplitSeq(g[1], ",") {
			if name = strings.TrimSpace(name); !labels[name] {
				faults = append(faults, "label "+name)
			}
		}
	}
	return faults
}

// expressions are those of deploy/grafana and deploy/prometheus, by where they are.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ X, Y, W, H int }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Datasource  struct{ UID string }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile("deploy/grafana/egret.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	ids, variables := map[int]bool{}, map[string]bool{"__rate_interval": true, "__range": true}
	for _, v := range dashboard.Templating.List {
		variables[v.Name] = true
		if v.Definition != "" {
			m := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`).FindStringSubmatch(v.Definition)
			require.NotNil(t, m, v.Definition)
			if !strings.HasPrefix(m[1], "{") {
				all["variable "+v.Name] = "sum by (" + m[2] + ") (" + m[1] + ")"
			}
		}
	}
	for _, v := range regexp.MustCompile(`\$\{?([a-z_]+)`).FindAllStringSubmatch(string(text), -1) {
		require.True(t, variables[v[1]] || strings.Contains("$"+v[1], "$__all"), "there is no variable %s", v[1])
	}
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, "%s has a unit", p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for i, target := range p.Targets {
			all[p.Title+string(rune('A'+i))] = target.Expr
			for _, label := range regexp.MustCompile(`\{\{([a-z]+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				by := grouped.FindStringSubmatch(target.Expr)
				require.True(t, label[1] == "instance" || by != nil && strings.Contains(by[1], label[1]), "%s: the legend has %s", p.Title, label[1])
			}
		}
	}
	text, err = os.ReadFile("deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	rules := regexp.MustCompile(`(?m)^      - alert: (Egret[A-Za-z]+)\n        expr: (.+)\n(?:        for: \d+m\n)?        labels:\n          severity: (?:info|warning|critical)\n        annotations:\n          summary: "(.+)"\n          description: "(.+)"\n`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, rules, strings.Count(string(text), "- alert:"), "each rule is understood")
	for _, r := range rules {
		all[r[1]] = r[2]
		for _, label := range regexp.MustCompile(`\$labels\.([a-z]+)`).FindAllStringSubmatch(r[3]+r[4], -1) {
			by := grouped.FindStringSubmatch(r[2])
			require.True(t, label[1] == "instance" && by == nil || by != nil && strings.Contains(by[1], label[1]), "%s: its text has %s", r[1], label[1])
		}
		for _, command := range regexp.MustCompile(`egret ([a-z]+)`).FindAllStringSubmatch(r[4], -1) {
			require.Contains(t, []string{"status", "errors", "list", "members", "forget", "deadletters", "top"}, command[1], r[1])
		}
	}
	return all
}

// What the dashboard and the alerts ask for is what a node shows, with its labels and their
// values; and what a node shows of a cluster is in docs/metrics.md.
func TestDashboardAndAlertsAskForWhatThereIs(t *testing.T) {
	more := make(chan struct{})
	tops := []*topology.Topology{
		topology.New("plain", func(b *topology.Builder) {
			in := b.Spout("in", waitingSource(more)).Emits("n")
			b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
		}),
		digits("batched", memory.New()),
	}
	n := startNode(t, tops, "--data", t.TempDir(), "--http", "127.0.0.1:0")
	defer close(more)
	s := &shell{t, tops, n.addr}
	for _, top := range tops {
		s.is("submit " + top.Name())
	}
	page := regexp.MustCompile(`page: (http://127\.0\.0\.1:\d+)\n`)
	soon(t, func() bool { return page.MatchString(n.screen.String()) })
	var all shownMetrics
	var plain string
	read := func() shownMetrics {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := c.Get(page.FindStringSubmatch(n.screen.String())[1] + "/metrics")
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		plain = string(text)
		return readMetrics(t, plain)
	}
	soon(t, func() bool {
		all = read()
		return all["egret_batch_last"] != nil && all["egret_up"]["topology"]["plain"] && all["egret_messages_open"]["component"]["in"] &&
			strings.Contains(plain, `egret_cluster_topologies{status="running"} 2`)
	})
	for _, line := range []string{"egret_cluster_quorum 1", `egret_cluster_nodes{state="alive"} 1`, `egret_cluster_nodes{state="dead"} 0`, `egret_cluster_topologies{status="failed"} 0`} {
		require.Contains(t, plain, "\n"+line+"\n")
	}
	asked := expressions(t)
	require.Greater(t, len(asked), 50)
	used := map[string]bool{}
	for where, expr := range asked {
		require.Empty(t, all.faults(expr), "%s: %s", where, expr)
		for _, m := range ownMetric.FindAllStringSubmatch(expr, -1) {
			used[strings.TrimSuffix(strings.TrimSuffix(m[1], "_bucket"), "_sum")] = true
		}
	}
	text, err := os.ReadFile("docs/metrics.md")
	require.NoError(t, err)
	for name := range maps.Keys(all) {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "egret_") && !strings.HasPrefix(name, "egret_own_") {
			require.Contains(t, string(text), "\n| `"+name+"` | ", "docs/metrics.md has all")
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(egret_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		require.True(t, used[m[1]] || slices.Contains(notAsked, m[1]), "%s is in no panel and in no alert", m[1])
	}
	for expr, want := range map[string]string{
		`sum(egret_nonsense)`:                           "metric egret_nonsense",
		`egret_up{component="x"}`:                       `label component="x" of egret_up`,
		`egret_messages_settled_total{outcome="wrong"}`: "value wrong of egret_messages_settled_total",
		`sum by (stream) (egret_up)`:                    "label stream",
		`sum by (topology) (egret_up`:                   "brackets",
		`summe(egret_up)`:                               "function summe",
	} {
		require.Equal(t, []string{want}, all.faults(expr), expr)
	}
}

// Metrics that say nothing on a dashboard.
var notAsked = []string{"egret_build_info", "egret_emitted_tuples_total", "egret_attempts_total", "egret_attempts_trying"}
