package browser

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page shows the numbers of its world where they belong. Those that do not move are known;
// those that do are held against others that are shown at the same moment.
func TestNumbersAreThoseOfTheWorld(t *testing.T) {
	w := newWorld()
	url := serve(t, w, "", "")
	p := open(t, url, desk)
	tasks := map[string]int{}
	s, err := w.Sample(t.Context())
	require.NoError(t, err)
	for i := range s.Runs {
		for _, x := range s.Runs[i].Tasks {
			tasks[x.Node]++
		}
	}
	require.Len(t, tasks, 3)

	p.until(live + ` && /\d/.test(document.querySelector("td[data-name=CPU]").textContent) && /\d/.test(document.querySelector("td[data-name=p50]").textContent)`)
	want := map[string]string{`row("wordcount", "p50")`: "3.06 ms", `row("wordcount", "p99")`: "20.4 ms"}
	for i, is := range []struct{ cpu, memory string }{{"70", "1.3 GB"}, {"50", "1.1 GB"}, {"30", "900 MB"}} {
		node := fmt.Sprintf("10.0.0.%d:7070", i+1)
		want[fmt.Sprintf("row(%q, 'CPU')", node)] = is.cpu + " %"
		want[fmt.Sprintf("cell(%q, 'CPU').querySelector('.full').getAttribute('width')", node)] = is.cpu
		want[fmt.Sprintf("row(%q, 'Memory')", node)] = is.memory
		want[fmt.Sprintf("text(cell(%q, 'Tasks').querySelector('summary'))", node)] = fmt.Sprintf("%d tasks", tasks[node])
	}
	equal(p, "main", want)

	p.do(navigate(words(url, "/tasks")))
	p.until(`document.querySelector(".verdict").textContent.startsWith("lines and split wait for count")`)
	equal(p, ".sheet", map[string]string{
		`fact("Latency, p50")`:       "3.06 ms | p99 20.4 ms",
		`row("lines/0", "p50")`:      "3.06 ms",
		`row("lines/0", "p99")`:      "20.4 ms",
		`row("count/2", "p50")`:      "15.4 µs",
		`row("count/2", "p99")`:      "30.7 µs",
		`row("count/2", "Restarts")`: "2",
	})
	// How high a box is filled is how busy it is, and the bar at its left is its queue.
	for component, n := range map[string]int{"split": 2, "count": 4} {
		equal(p, fmt.Sprintf(".box[data-component=%s]", component), map[string]string{
			`near(high(".level"), number(/busy (\d+)/) / 100, 0.006)`: "true",
			`high(".level") > 0.2`: "true",
			fmt.Sprintf(`near(high(".queue"), Math.log2(1 + number(/([\d,]+) tuples queued/) / %d) / 13, 0.001)`, n): "true",
			`high(".queue") > 0.2`: "true",
		})
	}
	equal(p, ".box[data-component=top]", map[string]string{`high(".queue")`: "0"})

	p.do(navigate(words(url, "/c/lines")))
	p.until(`document.querySelector(".panel h2").textContent === "lines" && document.querySelectorAll(".panel tbody tr").length === 1`)
	equal(p, ".panel", map[string]string{`fact("Done after, p50")`: "3.06 ms", `fact("p99")`: "20.4 ms", `fact("Longest")`: "51 ms", `row("lines/0", "p99")`: "20.4 ms"})
	p.do(navigate(words(url, "/c/count")))
	p.until(`document.querySelector(".panel h2").textContent === "count" && document.querySelectorAll(".panel tbody tr").length === 4`)
	equal(p, ".panel", map[string]string{
		`row("count/2", "p99")`:  "30.7 µs",
		`fact("Restarts")`:       "3",
		`fact("Stuck")`:          "2",
		`fact("distinct_words")`: "4,000",
		`fact("hits") === fact("Executed", -1) && /^\d+ M$/.test(fact("hits"))`: "true",
	})
	p.clean()
}

// equal requires expressions about what is in an element, all at the same moment, to be what
// they should.
func equal(p *page, selector string, want map[string]string) {
	p.t.Helper()
	names := slices.Sorted(maps.Keys(want))
	got := js[[]string](p, fmt.Sprintf(`(() => {
		const all = document.querySelector(%q), text = (x) => x.textContent.replaceAll("\u00a0", " ");
		const cell = (name, column) => [...all.querySelectorAll("tbody tr")].find((tr) => tr.querySelector("td.name :first-child").textContent === name).querySelector("td[data-name='" + column + "']");
		const row = (name, column) => text(cell(name, column).querySelector(".number") ?? cell(name, column));
		const fact = (name, at = 0) => { const [dt] = [...all.querySelectorAll("dt")].filter((x) => x.textContent === name).slice(at); return [...dt.parentNode.children].slice(1).map(text).join(" | "); };
		const number = (pattern) => Number((pattern.exec(text(all)) ?? pattern.exec(all.getAttribute("aria-label")))[1].replaceAll(",", ""));
		const high = (part) => { const of = (x) => Number(all.querySelector(x).getAttribute("height")); return of(part) / of(".frame"); };
		const near = (a, b, by) => Math.abs(a - b) <= by || a + " is not " + b;
		return [%s].map(String);
	})()`, selector, strings.Join(names, ",")))
	have := map[string]string{}
	for i, name := range names {
		have[name] = got[i]
	}
	require.Equal(p.t, want, have)
}
