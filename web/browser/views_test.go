package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

const live = `document.querySelector("#connection").dataset.state === "live"`

// words is the address of a view of the count of words.
func words(url, rest string) string { return url + "/#/t/wordcount" + rest }

func TestOverview(t *testing.T) {
	w := newWorld()
	p := open(t, serve(t, w, "", ""), desk)
	p.until(live + ` && document.querySelector("#leave").hidden`) // nobody has logged in
	p.until(`document.querySelectorAll(".overview table")[0].querySelectorAll("tbody tr").length === 5`)
	p.until(`document.querySelectorAll(".overview table")[1].querySelectorAll("tbody tr").length === 3`)
	p.until(`[...document.querySelectorAll(".sparkline path")].some((x) => x.getAttribute("d")?.length > 200)`)
	p.shot("overview")
	p.click(`a[href="#/t/wordcount"]`)
	p.until(`document.querySelector("h1").textContent === "wordcount" && document.title.startsWith("wordcount")`)
	p.clean()
}

// Which tasks a node has is one key away, on a phone too.
func TestTasksOfNodes(t *testing.T) {
	for name, l := range map[string]look{"desk": desk, "phone": {390, 844, false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			p := open(t, serve(t, w, "", ""), l)
			p.until(live + ` && document.querySelector("td.has details")`)
			tabTo(p, `document.activeElement.matches("tr:nth-child(3) td.has summary")`)
			p.keys(kb.Enter)
			node := `document.querySelector("tr:nth-child(3) td.has details")`
			p.until(node + `.open && ` + node + `.checkVisibility()`)
			have := js[map[string]string](p, `Object.fromEntries([...`+node+`.querySelectorAll("li")].map((x) => [x.firstChild.textContent, x.lastChild.textContent.trim()]))`)
			n, want := 0, map[string]string{}
			s, _ := w.Sample(t.Context())
			for i := range s.Runs {
				for _, x := range s.Runs[i].Tasks {
					if x.Node == "10.0.0.3:7070" {
						n, want[s.Runs[i].Topology] = n+1, strings.TrimPrefix(want[s.Runs[i].Topology]+", "+x.Task, ", ")
					}
				}
			}
			require.Equal(t, want, have)
			require.Equal(t, "split/1, count/2, complaints/0", want["wordcount"])
			require.Equal(t, fmt.Sprintf("%d tasks", n), p.text("tr:nth-child(3) td.has summary"))
			require.LessOrEqual(t, js[int64](p, `document.documentElement.scrollWidth`), l.width)
			p.shot("tasks-of-nodes-" + name)
			p.clean()
		})
	}
}

func TestGraph(t *testing.T) {
	w := newWorld()
	p := open(t, words(serve(t, w, "", ""), ""), desk)
	p.until(live + ` && document.querySelectorAll(".graph .box").length === 5`)
	require.Equal(t, []string{"lines", "split", "count", "top", "complaints"}, js[[]string](p, `[...document.querySelectorAll(".graph .box")].map((b) => b.dataset.component)`))
	require.Equal(t, []string{"lines.default>split", "split.default>count", "count.default>top", "split.rejects>complaints"},
		js[[]string](p, `[...document.querySelectorAll(".graph .edge")].map((e) => e.dataset.from + "." + e.dataset.stream + ">" + e.dataset.to)`))

	// Who waits for whom, in colours and in words.
	p.until(`document.querySelector(".box[data-component=split] .note").textContent === "waits for count"`)
	p.until(`document.querySelector(".verdict").textContent.startsWith("lines and split wait for count")`)
	require.Equal(t, "warn", js[string](p, `document.querySelector(".edge[data-from=split][data-to=count]").dataset.tone`))
	require.NotEqual(t, "warn", js[string](p, `document.querySelector(".edge[data-to=complaints]").dataset.tone`))

	// Wider is more; a rate has its unit, and is exact where one points at it.
	wide := `(to) => Number(document.querySelector(".edge[data-to=" + to + "] .line").getAttribute("stroke-width"))`
	require.True(t, js[bool](p, fmt.Sprintf(`(%s)("count") > (%s)("complaints") + 1`, wide, wide)))
	p.until(`/^\d[\d.]*\u00a0k\/s$/.test(document.querySelector(".edge[data-to=count] .rate").textContent)`)
	require.Contains(t, p.text(".edge[data-to=count] title"), "a second")
	require.Contains(t, p.text(".head"), "rates and latencies of the last")
	require.Regexp(t, `: \d[\d.]*.k/s, `, js[string](p, `document.querySelector(".edge[data-to=count]").getAttribute("aria-label")`)) // as it is written

	// Charts are of the same window as the figures above.
	p.until(`document.querySelector("figcaption output").textContent === document.querySelector(".figures .big").textContent && document.querySelector("figcaption output").title === document.querySelector(".figures .big").title`)

	// Numbers move in the elements that are there.
	before := js[string](p, `(window.node = document.querySelector(".figures dd.big")).textContent`)
	p.until(fmt.Sprintf(`window.node.isConnected && window.node.textContent !== %q`, before))

	nothingOverlaps(p)
	p.shot("topology")
	p.click(`.choices .button:nth-child(2)`)
	p.shot("topology-hour")
	p.clean()
}

// nothingOverlaps looks where the texts of the graph are.
func nothingOverlaps(p *page) {
	p.t.Helper()
	require.Empty(p.t, js[[]string](p, `(() => {
		const all = [...document.querySelectorAll(".graph text")].filter((x) => x.textContent).map((x) => [x.textContent, x.getBoundingClientRect()]);
		const bad = [];
		all.forEach(([a, r], i) => all.slice(i + 1).forEach(([b, s]) => {
			if (r.left < s.right - 1 && s.left < r.right - 1 && r.top < s.bottom - 3 && s.top < r.bottom - 3) bad.push(a + " | " + b);
		}));
		return bad;
	})()`), "texts that overlap")
	require.Empty(p.t, js[[]string](p, `[...document.querySelectorAll(".graph .box")].flatMap((b) => {
		const f = b.querySelector(".frame").getBoundingClientRect();
		return [...b.querySelectorAll("text")].filter((x) => { const r = x.getBoundingClientRect(); return x.textContent && (r.left < f.left || r.right > f.right || r.bottom > f.bottom + 1); }).map((x) => x.textContent);
	})`), "texts that leave their box")
}

func TestTabs(t *testing.T) {
	w := newWorld()
	p := open(t, words(serve(t, w, "", ""), "/tasks"), desk)
	p.until(`document.querySelectorAll(".tab tbody tr").length === 9`)
	p.click(`.tabs a[data-tab=errors]`)
	p.until(`document.querySelectorAll(".errors li").length === 4`)
	p.click(`.errors li:nth-child(3) summary`)
	p.until(has(`counting.(*counts).Execute`) + ` && ` + has(`{"word": "whale"}`))
	p.shot("errors")

	// One that happens now appears by itself, and what is open stays open.
	w.mu.Lock()
	w.err("top", "died", "a new one", "main.go:1", "", 1)
	w.mu.Unlock()
	p.until(has("a new one") + ` && document.querySelector(".errors li:nth-child(4) details").open`)

	p.click(`.tabs a[data-tab=open]`)
	p.until(`document.querySelectorAll(".tab tbody tr").length === 4`)
	p.until(`/count\/2 on 10\.0\.0\.3:7070: in Execute for 1.m \d+.s/.test(document.querySelector(".places li").textContent)`)
	p.until(`document.querySelector(".tab td").title.includes("tree 9223372036854775813 ")`) // all its digits
	p.until(`/^The oldest 52 of 2,\d+, and where they are\.$/.test(document.querySelector(".tab .soft").textContent)`)
	p.shot("open")
	p.click(`.tab .more:not([hidden])`) // replays that are like each other are one row, until they are asked for
	p.until(`document.querySelectorAll(".tab tbody tr").length === 38`)
	p.click(`.tab .more:not([hidden])`)
	p.until(`document.querySelectorAll(".tab tbody tr").length === 4`)
	p.click(`.tabs a[data-tab=settings]`)
	p.until(has("moby_dick.txt.gz"))
	p.shot("settings")
	p.do(navigate(words(js[string](p, `location.origin`), "/constructor"))) // a word that every object of a browser knows
	p.until(`document.querySelector(".tabs a[data-tab=tasks]").getAttribute("aria-current") === "page" && document.querySelectorAll(".tab tbody tr").length === 9`)
	require.Regexp(t, `^attempts, 47\d\Wlost, 3\Wtimed\Wout$`, p.text(".tab td[data-name=Failed] small"))
	require.Equal(t, "executions", p.text(".tab tr:nth-child(2) td[data-name=Failed] small"))
	p.clean()
}

// Who dies again and again is said before all else, whatever else there is to say.
func TestTroubles(t *testing.T) {
	w := newWorld()
	url := serve(t, w, "", "")
	p := open(t, words(url, ""), desk)
	p.until(live + ` && document.querySelector(".verdict").textContent.startsWith("lines and split wait for count")`)
	p.until(`document.querySelector(".box[data-component=count] .note").textContent === "bolt ×4, 3 restarts"`) // of which none is news
	require.Zero(t, js[int](p, `document.querySelectorAll(".tab td[data-name=Restarts].bad").length`))
	change(w, func() {
		w.deaths = 561
		w.changes = true
		w.troubles = []view.Trouble{{Kind: "died", Component: "top", Task: "top/0", Text: "panic in Execute: boom", At: time.Now()}, {Kind: "stuck", Component: "complaints", Task: "complaints/0", Text: "does not come back from Execute", At: time.Now()}}
	})
	p.until(`document.querySelector(".verdict").textContent === "top has died 561 times, last: panic in Execute: boom." && document.querySelector(".verdict").dataset.tone === "bad"`)
	p.until(`document.querySelectorAll(".verdict")[1].textContent === "It is changing: rebalance waits until nothing is open (6 tasks)."`)
	p.until(`document.querySelector(".box[data-component=top] .note").textContent === "died 561 times" && document.querySelector(".box[data-component=top]").dataset.tone === "bad"`)
	p.until(`[...document.querySelectorAll(".box[data-component=lines] text")].some((x) => x.textContent === "300\u00a0k lost")`)
	require.Equal(t, []string{"561"}, js[[]string](p, `[...document.querySelectorAll(".tab td[data-name=Restarts].bad")].map((x) => x.textContent)`))
	nothingOverlaps(p)
	p.shot("troubles")
	p.do(navigate(url + "/#/"))
	p.do(navigate(words(url, "")))
	p.until(`document.querySelector(".verdict").textContent.startsWith("top has died 561 times") && document.querySelector(".tab td[data-name=Restarts].bad")`) // though it has not seen it happen
	p.clean()
}

func TestBatches(t *testing.T) {
	p := open(t, serve(t, newWorld(), "", "")+"/#/t/uses/batches", desk)
	p.until(has("Attempt 3.2 is running, and waits for uses/1.") + ` && ` + has("writing") + ` && ` + has("a task died 1×"))
	p.until(`document.querySelectorAll(".tab tbody tr").length === 2`)
	p.until(has("Batches begun again\n17"))
	p.until(has("Batches under way") + ` && document.querySelectorAll(".figures > div")[3].textContent === "Batches under way2of 10\u00a0k messages"`)
	require.Equal(t, "Rounds begun anew3"+"a task died 1×, a batch failed 2×", p.text(".figures > div:nth-child(6)"))
	require.NotContains(t, p.text(".charts"), "Open messages")
	nothingOverlaps(p)
	p.shot("batches")
	p.clean()
}

func TestComponent(t *testing.T) {
	p := open(t, words(serve(t, newWorld(), "", ""), ""), desk)
	p.until(`document.querySelector(".box[data-component=count] .rate, .box[data-component=count] .number")?.textContent`)
	p.click(`.box[data-component=count]`)
	p.until(`document.querySelector(".panel h2").textContent === "count"`)
	p.until(`document.querySelectorAll(".panel tbody tr").length === 4`)
	p.until(has("count/2 gets 2.0 times the mean."))
	p.until(has("distinct_words") + ` && ` + has("index out of range"))
	require.Equal(t, 2, js[int](p, `document.querySelectorAll(".panel .errors li").length`), "only its own")
	p.until(has("3×"))
	require.Equal(t, 1, js[int](p, `new Set([...document.querySelectorAll(".figures > div")].map((x) => x.getBoundingClientRect().top)).size`), "what matters most is in one row")
	require.Empty(t, js[[]string](p, `[...document.querySelectorAll("td.task *")].filter((x) => x.textContent && x.getBoundingClientRect().height > 24).map((x) => x.textContent)`), "names of tasks and nodes that break")
	require.Zero(t, js[int](p, `document.querySelector(".panel").scrollWidth - document.querySelector(".panel").clientWidth`), "nothing is cut off")
	p.shot("component")
	p.clean()
}

// Before there are numbers a panel says that it waits for them, and nothing else.
func TestPanelWaits(t *testing.T) {
	for name, l := range map[string]look{"desk": desk, "phone": {390, 844, false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.held = make(chan struct{})
			p := open(t, words(serve(t, w, "", ""), "/c/count"), l)
			p.until(`document.querySelector(".panel h2")?.checkVisibility()`)
			require.Equal(t, "count\nClose\nWaiting for the first numbers …", js[string](p, `document.querySelector(".panel").innerText.replace(/\s*\n\s*/g, "\n").trim()`))
			p.shot("panel-waits-" + name)
			close(w.held)
			p.until(`document.querySelectorAll(".panel tbody tr").length === 4 && document.querySelector(".panel .errors li")?.checkVisibility()`)
			p.do(navigate(words(js[string](p, `location.origin`), "/c/nosuch")))
			p.until(`document.querySelector(".panel h2").textContent === "nosuch" && ` + has("There is no component nosuch in wordcount."))
			require.False(t, js[bool](p, `document.querySelector(".panel h3").checkVisibility()`))
			p.clean()
		})
	}
}

// A component's panel says what it was set up with: what it gets and how, and what else the
// topology says of it.
func TestSettingsOfComponents(t *testing.T) {
	url := serve(t, newWorld(), "", "")
	p := open(t, url, desk)
	for component, want := range map[string]map[string]string{
		"lines":      {"Kind": "spout", "Tasks": "1", "Masked": "number"},
		"split":      {"Kind": "bolt", "Tasks": "2", "Gets lines": "shuffle", "Masked in rejects": "line, why"},
		"count":      {"Kind": "bolt", "Tasks": "4", "Gets split": "by word"},
		"complaints": {"Kind": "bolt", "Tasks": "1", "Gets split.rejects": "shuffle", "Ticks every": "1\u00a0m 30\u00a0s", "May hold a tuple for": "5\u00a0m 0\u00a0s"},
	} {
		p.do(navigate(words(url, "/c/"+component)))
		settings := `[...document.querySelectorAll(".panel h3")].find((h) => h.textContent === "Settings").nextSibling`
		p.until(settings + `.childElementCount`)
		require.Equal(t, want, js[map[string]string](p, `Object.fromEntries([...`+settings+`.children].map((x) => [x.firstChild.textContent, x.lastChild.textContent]))`), component)
	}
	p.shot("component-settings")
	p.clean()
}

// One moment is seen, though no line leads to it.
func TestChartOfOneMoment(t *testing.T) {
	p := open(t, serve(t, newWorld(), "", ""), desk)
	p.until(live)
	blue := `import("/charts.js").then(({Charts}) => {
		const c = new Charts();
		document.getElementById("main").replaceChildren(c.root);
		c.add([{at: "2026-01-02T03:04:05Z", rate: 0, done_rate: 10, failed_rate: 0, open: 3, p50_ns: 0, p99_ns: 0}]);
		return new Promise((done) => setTimeout(() => {
			const canvas = c.root.querySelector("canvas"), {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
			let n = 0;
			for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 100 && data[i + 2] > data[i] + 60) n++;
			done(n);
		}, 100));
	})`
	require.Greater(t, js[int](p, blue), 8, "points of the colour of what is done")
	p.clean()
}

// The burst with which a run fills what is empty does not make flat what comes later, and is
// marked; a latency goes on over a short while in which nothing was done, and ends at a long one.
func TestScaleOfCharts(t *testing.T) {
	p := open(t, serve(t, newWorld(), "", ""), desk)
	p.until(live)
	got := js[map[string]string](p, `import("/charts.js").then(({Charts}) => {
		const c = new Charts(), began = Date.parse("2026-01-02T03:04:05Z");
		document.getElementById("main").replaceChildren(c.root);
		c.about({began: new Date(began).toISOString()});
		const at = (i) => ({at: new Date(began + 1000 * i).toISOString(), rate: i < 6 ? 3000 : 100, done_rate: 90, failed_rate: 0, open: 3, p50_ns: [9, 12, 40].includes(i) ? 1e6 : 0, p99_ns: 2e6});
		const points = [...Array(44).keys()].map((i) => at(i + 1));
		c.add(points.slice(0, 5));
		const first = c.charts[0].top;
		c.add(points.slice(5));
		const [, p50] = c.charts[1].data;
		c.about({began: new Date(began).toISOString(), batches: {}});
		const said = {first: String(Math.round(first)), top: String(Math.round(c.charts[0].top)), cut: c.charts[0].cut.hidden ? "" : c.charts[0].cut.textContent, short: String(p50[9]), long: String(p50[20]), third: c.charts[2].root.textContent};
		c.close();
		return said;
	})`)
	require.Equal(t, map[string]string{"first": "3300", "top": "110", "cut": "▲ at first up to 3\u00a0k/s", "short": "undefined", "long": "null", "third": "Batches under wayunder way 0"}, got)
	p.clean()
}

// What is not as it should be is said in a sentence.
func TestStates(t *testing.T) {
	w := newWorld()
	url := serve(t, w, "", "")
	p := open(t, url+"/#/t/nowhere", desk)
	p.until(has("nowhere has ended or was killed, or there never was a topology of that name.") + ` && ` + has("See what there is.") + ` && document.querySelector("#connection").textContent === "Not here"`)
	p.shot("unknown")
	p.do(navigate(url + "/#/t/waiting"))
	p.until(has("It does not run yet: no node runs a program that has it"))
	p.do(navigate(url + "/#/t/idle"))
	p.until(has("It is inactive."))

	change(w, func() { w.silent, w.quorum = true, false })
	p.do(navigate(url + "/#/"))
	p.until(has("No quorum: what runs goes on") + ` && ` + has("it has not answered within 1s"))
	p.shot("no-quorum")
	p.do(navigate(words(url, "")))
	p.until(has("Nothing is known of 1 task") + ` && document.querySelector(".actions button").disabled`)
	p.shot("silent")

	change(w, func() { w.gone = true })
	p.do(navigate(url + "/#/"))
	p.until(has("it is dead. If it does not come back: egret forget 10.0.0.2:7070"))
	p.shot("dead-node")
	p.do(navigate(words(url, "")))
	change(w, func() { w.silent, w.quorum, w.ended, w.gone = false, true, true, false })
	p.until(has("It has failed: count/2 died 11 times in a minute. These are its last numbers."))
	p.until(`document.querySelector("#connection").dataset.state === "ended"`)
	p.shot("ended")
	change(w, func() { w.ended = false })
	p.until(live)

	change(w, func() { w.empty = true })
	p.do(navigate(url + "/#/"))
	p.until(has("No topology runs here."))
	p.shot("empty")
	p.clean("404")
}

func change(w *world, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// While nobody answers old numbers are grey, and say so; then the page comes back by itself.
func TestServerGoesAway(t *testing.T) {
	w := newWorld()
	url, stop := serveAt(t, w, "127.0.0.1:0")
	p := open(t, words(url, ""), desk)
	p.until(live)
	stop()
	p.until(has("No answer since") + ` && document.querySelector("main").classList.contains("stale")`)
	p.until(`/No answer since \d+.s/.test(document.querySelector("#connection").textContent)`)
	p.shot("no-answer")
	_, stop = serveAt(t, w, url[len("http://"):])
	defer stop()
	p.until(live + ` && !document.querySelector("main").classList.contains("stale")`)
	p.clean("ERR_", "Failed to load resource")
}

// A browser that is too slow for some moments says so, beside how the connection is, and asks
// for what it has missed.
func TestSlowBrowser(t *testing.T) {
	for name, l := range map[string]look{"desk": desk, "phone": {390, 844, false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			p := open(t, words(serve(t, w, "", ""), ""), l)
			p.until(live + ` && document.querySelector("#connection").textContent === "Live"`)
			change(w, func() { w.skips, w.since = 3, nil })
			p.until(`document.querySelector("#connection").textContent === "Live, but this browser is slow: 3 moments missed"`)
			change(w, func() { require.Len(t, w.since, 1) })
			change(w, func() { require.NotEmpty(t, w.since[0], "what came before is there") })
			require.LessOrEqual(t, js[int64](p, `document.documentElement.scrollWidth`), l.width)
			p.shot("slow-browser-" + name)
			p.clean()
		})
	}
}

// What was missed is asked for before what comes next is shown, so that charts have no hole.
func TestMissedMomentsAreFilledIn(t *testing.T) {
	p := open(t, serve(t, newWorld(), "", ""), desk)
	p.until(live)
	got := js[[]string](p, `Promise.all([import("/live.js"), import("/charts.js")]).then(([{Live}, {Charts}]) => new Promise((done) => {
		const at = (s) => new Date(Date.UTC(2026, 0, 2, 3, 4, s)).toISOString(), point = (s) => ({at: at(s), rate: 1, done_rate: 1, failed_rate: 0, open: 1});
		const event = (name, data) => "event: " + name + "\ndata: " + JSON.stringify(data) + "\n\n";
		const asked = [], charts = new Charts(), usual = window.fetch;
		document.getElementById("main").replaceChildren(charts.root);
		window.fetch = async (path) => {
			asked.push(path);
			if (path.includes("history")) return new Response(JSON.stringify(path.includes("since") ? [point(3), point(4), point(5)] : [point(1)]));
			return new Response(event("point", point(2)) + event("missed", {missed: 2}) + event("point", point(5)) + event("point", point(6)) + event("ended", {}));
		};
		const live = new Live("x", (event, data) => {
			if (event === "history") charts.add(data);
			if (event === "point") charts.add([data]);
			if (event !== "ended") return;
			live.close();
			charts.close();
			window.fetch = usual;
			done([...asked.map((x) => decodeURIComponent(x)), charts.points.map((x) => new Date(1000 * x.at).getUTCSeconds()).join(" ")]);
		});
	}))`)
	require.Equal(t, []string{"api/v1/topologies/x/history", "api/v1/live?topology=x", "api/v1/topologies/x/history?since=2026-01-02T03:04:02.000Z", "1 2 3 4 5 6"}, got)
	p.clean()
}

func TestLooks(t *testing.T) {
	w := newWorld()
	url := serve(t, w, "", "")
	views := map[string]string{"overview": "/#/", "topology": "/#/t/wordcount/tasks", "errors": "/#/t/wordcount/errors", "open": "/#/t/wordcount/open", "letters": "/#/t/wordcount/letters",
		"batches": "/#/t/uses/batches", "settings": "/#/t/wordcount/settings", "component": "/#/t/wordcount/c/count", "stream": "/#/t/wordcount/s/split/default", "hostile": "/#/t/" + escaped}
	for name, of := range map[string]struct {
		look
		views string
	}{
		"phone":      {look{390, 844, false, true}, "overview topology errors open letters component stream batches settings hostile"},
		"phone-dark": {look{390, 844, true, true}, "overview topology component stream"},
		"tablet":     {look{1024, 768, false, false}, "topology stream letters"},
		"dark":       {look{1440, 1000, true, false}, "overview topology component stream errors open letters batches settings"},
		"wide":       {look{2200, 1200, false, false}, "topology"},
	} {
		for view := range strings.FieldsSeq(of.views) {
			t.Run(name+"/"+view, func(t *testing.T) {
				p := open(t, url+views[view], of.look)
				p.until(live + ` && document.querySelector(".overview td, .graph text")`)
				if view != "overview" {
					p.until(`!document.querySelector(".shown").hidden && document.querySelector(".uplot")`)
					nothingOverlaps(p)
				}
				p.until(`!` + has("Asking …"))
				if (view == "component" || view == "stream") && of.width <= 1250 {
					require.True(t, js[bool](p, `document.querySelector(".panel").getBoundingClientRect().height === innerHeight`), "what lies over the page is as high")
				}
				require.LessOrEqual(t, js[int64](p, `document.documentElement.scrollWidth`), of.width, "the page scrolls to the side")
				require.Empty(t, js[[]string](p, `[...document.querySelectorAll("main *, .panel *")].filter((x) => {
					const r = x.getBoundingClientRect();
					return r.width > 0 && r.right > innerWidth + 1 && !x.closest(".graph, .scroll, .plot, thead");
				}).map((x) => x.tagName + " " + x.className + " " + x.textContent.slice(0, 40))`), "what sticks out")
				p.shot(name + "-" + view)
				p.clean()
			})
		}
	}
}

// The pictures of docs/screens, whose README.md says how they are made again.
func TestScreens(t *testing.T) {
	url := serve(t, newWorld(), "", "")
	for name, l := range map[string]look{"wordcount": {1240, 800, false, false}, "wordcount-dark": {1240, 800, true, false}, "wordcount-phone": {390, 844, false, true}} {
		p := open(t, words(url, ""), l)
		p.until(live + ` && document.querySelector(".verdict").textContent.startsWith("lines and split wait for count") && document.querySelector(".uplot")`)
		p.until(`!document.querySelector(".figures").textContent.includes("–")`)
		p.take(name, chromedp.CaptureScreenshot())
		p.clean()
	}
}
