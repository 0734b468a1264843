package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/view"
)

const asked = `document.querySelector("dialog")?.open`

// A button asks, and does nothing before that is confirmed.
func TestKill(t *testing.T) {
	w := newWorld()
	p := open(t, words(serve(t, w, "", ""), ""), desk)
	p.click(`.actions button[data-word=kill]`)
	p.until(asked + ` && ` + has("All 9 tasks of wordcount end at once. 2,841 messages are open"))
	p.shot("kill")
	p.click(`dialog .actions button:first-child`) // Cancel
	p.until(`!document.querySelector("dialog")`)
	change(w, func() {
		require.Equal(t, []view.Action{{Do: "kill", Topology: "wordcount", Preview: true}}, w.asked)
		require.Empty(t, w.acted)
	})

	p.click(`.actions button[data-word=kill]`)
	p.until(`!document.querySelector("dialog .danger").disabled`)
	p.keys(kb.Escape)
	p.until(`!document.querySelector("dialog")`)
	change(w, func() { require.Empty(t, w.acted) })

	p.click(`.actions button[data-word=kill]`)
	p.until(`!document.querySelector("dialog .danger").disabled`)
	p.click(`dialog .danger`)
	p.until(`document.querySelector("dialog .actions").textContent === "Close"`)
	change(w, func() { require.Equal(t, []view.Action{{Do: "kill", Topology: "wordcount"}}, w.acted) })
	require.Equal(t, "wordcount is killed", p.text("dialog h2"))
	p.until(has("Its last numbers stay here until this page is closed."))
	p.shot("killed")
	p.keys(kb.Enter)
	p.until(`[...document.querySelectorAll(".actions button[data-word]")].every((b) => b.disabled && b.title === "It is ending already") && ` + has("It is ending."))
	p.shot("ending")
	p.clean()
}

// A topology of a cluster is stopped, and says then that it can go on.
func TestStop(t *testing.T) {
	for name, l := range map[string]look{"desk": desk, "phone": {390, 844, false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			url := serve(t, w, "", "")
			p := open(t, words(url, ""), l)
			p.click(`.actions button[data-word=stop]`)
			p.until(asked + ` && ` + has("Stop wordcount?") + ` && !document.querySelector("dialog .main").disabled`)
			p.shot("stop-" + name)
			change(w, func() {
				require.Equal(t, []view.Action{{Do: "stop", Topology: "wordcount", Preview: true}}, w.asked)
				require.Empty(t, w.acted)
			})
			p.click(`dialog .main`)
			p.until(`document.querySelector("dialog .actions").textContent === "Close" && document.querySelector("dialog h2").textContent === "wordcount stops" && ` + has("it goes on where it was when it is submitted again"))
			change(w, func() { require.Equal(t, []view.Action{{Do: "stop", Topology: "wordcount"}}, w.acted) })
			p.keys(kb.Escape)
			p.until(`document.querySelector(".status").textContent === "stopping" && document.querySelector(".status").dataset.tone === "warn"`)
			buttons := `Object.fromEntries([...document.querySelectorAll(".actions button[data-word]")].map((b) => [b.textContent, b.title]))`
			require.Equal(t, map[string]string{"Deactivate": "It is stopping already", "Rebalance": "It is stopping already", "Stop": "It is stopping already", "Kill": ""}, js[map[string]string](p, buttons))
			require.Equal(t, 1, js[int](p, `new Set([...document.querySelectorAll(".actions button[data-word]")].map((x) => x.getBoundingClientRect().top)).size`), "they are in one row")
			require.LessOrEqual(t, js[int64](p, `document.documentElement.scrollWidth`), l.width)
			p.shot("stopping-" + name)

			change(w, func() { w.stopped = true })
			p.until(`document.querySelector(".status").textContent === "stopped" && document.querySelector("#connection").dataset.state === "ended"`)
			require.Equal(t, []string{"", "It has been stopped: submit it, and it goes on. These are its last numbers."}, js[[]string](p, `[document.querySelector(".status").dataset.tone, document.querySelector(".verdict").textContent]`))
			require.Equal(t, map[string]string{"Kill": ""}, js[map[string]string](p, buttons), "it can be forgotten")
			p.shot("stopped-" + name)
			p.click(`.actions button[data-word=kill]`)
			p.until(asked + ` && ` + has("Kill wordcount?") + ` && !document.querySelector("dialog .main").disabled`)
			change(w, func() {
				require.Equal(t, view.Action{Do: "kill", Topology: "wordcount", Preview: true}, w.asked[len(w.asked)-1])
			})
			p.keys(kb.Escape)
			p.do(navigate(url + "/#/"))
			p.until(`document.querySelector("td .status")?.textContent === "stopped" && document.querySelector("td .status").dataset.tone === ""`)
			p.clean()
		})
	}
}

// A rebalance that waits says for what, and can be called off.
func TestCancel(t *testing.T) {
	w := newWorld()
	w.changes = true
	p := open(t, words(serve(t, w, "", ""), ""), desk)
	p.until(has("It is changing: rebalance waits until nothing is open (6 tasks)."))
	p.shot("changing")
	p.click(`.actions button[data-word=cancel]`)
	p.until(asked + ` && ` + has("its tasks stay where they are"))
	p.click(`dialog .main`)
	p.until(`document.querySelector("dialog h2").textContent === "The rebalance of wordcount is cancelled"`)
	change(w, func() { require.Equal(t, []view.Action{{Do: "cancel", Topology: "wordcount"}}, w.acted) })
	p.keys(kb.Escape)
	p.until(`document.querySelector(".actions button[data-word=rebalance]")`)
	p.clean()
}

func TestRebalanceSaysWhatMoves(t *testing.T) {
	w := newWorld()
	p := open(t, words(serve(t, w, "", ""), ""), desk)
	p.click(`.actions button[data-word=rebalance]`)
	p.until(asked + ` && document.activeElement === document.querySelector("#tasks-0")`)
	p.shot("rebalance-numbers")
	p.do(setValue(`#tasks-2`, "6"))
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".moves li").length === 3 && ` + has("count/3 from 10.0.0.1:7070 to 10.0.0.3:7070"))
	p.shot("rebalance")
	change(w, func() { require.Empty(t, w.acted) })
	p.click(`dialog .main`)
	p.until(`document.querySelector("dialog .actions").textContent === "Close"`)
	change(w, func() {
		require.Equal(t, []view.Action{{Do: "rebalance", Topology: "wordcount", Parallel: map[string]int{"count": 6}}}, w.acted)
	})
	p.clean()
}

// A refusal is said where it was asked for, and nothing can be confirmed.
func TestRefused(t *testing.T) {
	w := newWorld()
	p := open(t, serve(t, w, "", ""), desk)
	p.click(`button[data-word=drain]`)
	p.until(has("node 10.0.0.1:7070 cannot be drained: no other node has room") + ` && document.querySelector("dialog .main").disabled`)
	p.shot("refused")
	p.clean("409")
}

// A run without a cluster has other buttons.
func TestLocal(t *testing.T) {
	w := newWorld()
	w.local = true
	p := open(t, words(serve(t, w, "", ""), ""), desk)
	p.until(`document.querySelectorAll(".actions button[data-word]").length === 2`)
	p.click(`.actions button[data-word=stop]`)
	p.until(has("stop of wordcount"))
	p.clean()
}

func TestLetters(t *testing.T) {
	w := newWorld()
	p := open(t, words(serve(t, w, "", ""), "/letters"), desk)
	p.until(`document.querySelectorAll(".tab tbody tr").length === 3 && ` + has("9007199254740993")) // all its digits
	require.True(t, js[bool](p, `document.querySelector(".bar-of-actions button").disabled`))
	p.click(`.tab tbody tr:nth-child(2) input`)
	p.click(`.bar-of-actions button:first-child`)
	p.until(asked + ` && ` + has("Replay 1 dead letter?"))
	change(w, func() { require.Empty(t, w.settled) })
	p.click(`dialog .main`)
	p.until(has("1 dead letters are settled, replayed: true."))
	change(w, func() { require.Equal(t, []string{"lines/0-18"}, w.settled) })
	p.click(`dialog .actions button`)
	p.until(has("There are no dead letters."))
	p.clean()
}

// How the attempts at a dead letter have ended can be read without a mouse, on a phone too.
func TestHistoryOfLetters(t *testing.T) {
	for name, l := range map[string]look{"desk": desk, "phone": {390, 844, false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			p := open(t, words(serve(t, w, "", ""), "/letters"), l)
			p.until(`document.querySelectorAll(".tab tbody tr").length === 3`)
			tabTo(p, `document.activeElement.matches(".tab tr:nth-child(2) .attempts summary")`)
			p.keys(kb.Enter)
			history := `document.querySelector(".tab tr:nth-child(2) .attempts")`
			p.until(history + `.open && ` + history + `.checkVisibility()`)
			require.Equal(t, "4 failed, 1 lost, replayed once", p.text(".tab tr:nth-child(2) .attempts summary"))
			require.Equal(t, w.letters[1].History, js[[]string](p, `[...`+history+`.querySelectorAll("li")].map((x) => x.textContent)`))
			require.Equal(t, "5", p.text(".tab tr:nth-child(2) td[data-name=Attempts]"))
			require.LessOrEqual(t, js[int64](p, `document.documentElement.scrollWidth`), l.width)
			p.shot("letters-history-" + name)
			p.clean()
		})
	}
}

func TestTap(t *testing.T) {
	w := newWorld()
	p := open(t, words(serve(t, w, "", ""), ""), desk)
	p.until(live)
	p.click(`.edge[data-from=split][data-to=count] .label`)
	p.until(`document.querySelector(".panel h2").textContent === "split" && ` + has("to count:"))
	require.Zero(t, taps(w), "nothing is looked at before that is asked for")

	p.click(`.tap .main`)
	p.until(`document.querySelectorAll(".scroll tbody tr").length >= 7`)
	p.until(`/Looked at [\d,.]+.?k? of [\d.]+.[kM] tuples, \d+ shown/.test(document.querySelector(".panel .note").textContent)`)
	p.until(has("9007199254740993"))
	require.Equal(t, 1, taps(w))
	p.shot("tap")

	p.click(`.tap button[aria-pressed]`) // Pause
	p.until(`document.querySelector(".tap button[aria-pressed=true]")`)
	held := `document.querySelectorAll(".scroll tbody tr").length`
	n := js[int](p, held)
	note := p.text(".panel .note")
	p.until(fmt.Sprintf(`document.querySelector(".panel .note").textContent !== %q`, note)) // it goes on meanwhile
	require.Equal(t, n, js[int](p, held))
	p.click(`.tap button[aria-pressed]`)
	p.until(fmt.Sprintf(`%s > %d`, held, n))

	p.click(`.tap .line button`) // Stop
	p.until(`document.querySelector(".tap .line button").textContent === "Look"`)
	require.Eventually(t, func() bool { return taps(w) == 0 }, patience, patience/1000)

	p.do(setValue("#where", `word == "whale"`))
	p.click(`.tap .main`)
	p.until(has(" match, ") + ` && [...document.querySelectorAll(".scroll td.mono")].every((x) => x.textContent === "whale")`)
	p.click(`.panel .close`)
	p.until(`document.querySelector(".panel").hidden`)
	require.Eventually(t, func() bool { return taps(w) == 0 }, patience, patience/1000)
	p.clean()

	p.click(`.edge[data-from=split][data-to=count] .label`)
	p.do(setValue("#where", `nosuch == 1`))
	p.click(`.tap .main`)
	p.until(has(`where: column 1: the stream split.default has no field "nosuch", only: word`))
	require.Equal(t, "Look", p.text(".tap .line button"))
}

func taps(w *world) (n int) {
	change(w, func() { n = w.taps })
	return n
}

func TestNoTaps(t *testing.T) {
	p := open(t, serve(t, newWorld(), "", "")+"/#/t/idle/s/in/default", desk)
	p.until(has("idle does not let anybody look at its tuples.") + ` && document.querySelector(".tap").hidden`)
	p.do(navigate(js[string](p, `location.origin`) + "/#/t/wordcount/s/lines/default"))
	p.until(has("number (masked)"))
	p.clean()
}

// Whatever a topology says anywhere stays text.
func TestNothingBecomesHTML(t *testing.T) {
	w := newWorld()
	url := serve(t, w, "", "")
	p := open(t, url, desk)
	for _, at := range []string{"/#/", "/#/t/wordcount/errors", "/#/t/wordcount/letters", "/#/t/wordcount/open", "/#/t/wordcount/s/split/default", "/#/t/" + escaped, "/#/t/" + escaped + "/c/" + escaped, "/#/t/" + escaped + "/s/in/default", "/#/t/%3Cimg%20src%3Dx%20onerror%3Dalert(3)%3E"} {
		p.do(navigate(url + at))
		p.until(`["live", "none"].includes(document.querySelector("#connection").dataset.state)`)
		if at == "/#/t/wordcount/s/split/default" {
			p.click(`.tap .main`)
		}
		if at == "/#/t/wordcount/errors" {
			p.click(`.errors summary`)
		}
		p.until(`document.body.textContent.includes("onerror=alert")`)
		require.Zero(t, js[int](p, `document.querySelectorAll("main script, main img, header script, header img:not([src='egret.svg']), main iframe").length`), at)
	}
	p.clean("404")
}

// Everything can be done without a mouse.
func TestKeyboard(t *testing.T) {
	w := newWorld()
	p := open(t, serve(t, w, "", ""), desk)
	p.until(live + ` && document.querySelector("td a")`)
	tabTo(p, `document.activeElement.textContent === "wordcount"`)
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".graph .box").length === 5`)
	tabTo(p, `document.activeElement.dataset.component === "count"`)
	require.NotEqual(t, "1.5px", js[string](p, `getComputedStyle(document.activeElement.querySelector(".frame")).strokeWidth`), "where the focus is can be seen")
	p.keys(kb.Enter)
	p.until(`document.querySelector(".panel h2").textContent === "count" && document.querySelector(".panel").contains(document.activeElement)`)
	p.keys(kb.Escape)
	p.until(`document.querySelector(".panel").hidden && document.activeElement.dataset.component === "count"`)

	tabTo(p, `document.activeElement.dataset.tab === "errors"`)
	p.keys(kb.Enter)
	p.until(`document.querySelector(".errors summary")`)
	tabTo(p, `document.activeElement.matches(".errors summary")`)
	p.keys(kb.Enter)
	p.until(`document.querySelector(".errors details").open`)

	tabTo(p, `document.activeElement.dataset.word === "kill"`)
	p.keys(kb.Enter)
	p.until(`document.querySelector("dialog") && !document.querySelector("dialog .danger").disabled`)
	for range 6 { // it cannot be left by Tab, but for the browser's own bars
		p.keys(kb.Tab)
		require.True(t, js[bool](p, `document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)`))
	}
	p.keys(kb.Escape)
	p.until(`!document.querySelector("dialog") && document.activeElement.dataset.word === "kill"`)
	change(w, func() { require.Empty(t, w.acted) })
	p.clean()
}

// tabTo presses Tab until it is where it should be.
func tabTo(p *page, there string) {
	p.t.Helper()
	for range 150 {
		p.keys(kb.Tab)
		if js[bool](p, "Boolean("+there+")") {
			return
		}
	}
	p.t.Fatalf("Tab does not lead to %s", there)
}

// With tokens there is a login, and who may only look has no buttons.
func TestLogin(t *testing.T) {
	w := newWorld()
	const all, eyes = "everything-is-allowed", "only-looking-is-allowed"
	url := serve(t, w, all, eyes)
	p := open(t, words(url, ""), desk)
	p.until(`document.activeElement === document.querySelector("#token") && document.querySelector("#connection").textContent === "Not logged in" && document.querySelector("#eyes").hidden`)
	p.shot("login")
	p.do(setValue("#token", "wrong"))
	p.keys(kb.Enter)
	p.until(`document.querySelector(".login .wrong").textContent`)
	p.do(setValue("#token", eyes))
	p.keys(kb.Enter)
	p.until(live + ` && document.querySelectorAll(".graph .box").length === 5`)
	p.until(has("You may look only") + ` && !document.querySelector("#eyes").hidden`)
	require.Zero(t, js[int](p, `document.querySelectorAll(".actions button[data-word]").length`))
	require.Equal(t, 403, js[int](p, `fetch("/api/v1/actions", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"do": "kill", "topology": "wordcount"}'}).then((r) => r.status)`))
	require.NotContains(t, js[string](p, `document.cookie`), "egret")

	// Who leaves is asked again, and what he saw is gone.
	p.click(`#leave`)
	p.until(`document.querySelector("#token") && document.querySelector("#leave").hidden && !document.querySelector(".graph")`)
	require.Equal(t, 401, js[int](p, `fetch("/api/v1/overview").then((r) => r.status)`))
	p.clean("401", "403")

	q := open(t, words(url, ""), desk)
	q.until(`document.querySelector("#token")`)
	q.do(setValue("#token", all))
	q.keys(kb.Enter)
	q.until(`document.querySelectorAll(".actions button[data-word]").length === 4 && !document.querySelector("#leave").hidden`)
	q.clean("401")
}

// What asks before something is done, and who asks, by night and on a phone.
func TestLooksOfDialogs(t *testing.T) {
	w := newWorld()
	url, closed := serve(t, w, "", ""), serve(t, w, "everything-is-allowed", "")
	for name, l := range map[string]look{"dark": {1440, 1000, true, false}, "phone": {390, 844, false, true}, "phone-dark": {390, 844, true, true}} {
		t.Run(name, func(t *testing.T) {
			fits := func(p *page) {
				require.Empty(t, js[[]string](p, `[...document.querySelectorAll("dialog, dialog *, .login *")].filter((x) => { const r = x.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth || r.bottom > innerHeight; }).map((x) => x.tagName)`), "what sticks out")
			}
			p := open(t, words(url, ""), l)
			p.click(`.actions button[data-word=kill]`)
			p.until(`!document.querySelector("dialog .danger").disabled`)
			fits(p)
			p.shot(name + "-kill")
			p.keys(kb.Escape)
			p.click(`.actions button[data-word=rebalance]`)
			p.until(asked + ` && document.activeElement === document.querySelector("#tasks-0")`)
			fits(p)
			p.shot(name + "-rebalance")
			p.clean()

			p = open(t, closed, l)
			p.until(`document.querySelector("#token")`)
			fits(p)
			p.shot(name + "-login")
			p.clean("401")
		})
	}
}

// Numbers are short with units; where one points at them they are exact.
func TestFormats(t *testing.T) {
	p := open(t, serve(t, newWorld(), "", ""), desk)
	for call, want := range map[string]string{
		`count(0)`: "0 | 0", `count(9999)`: "9,999 | 9,999", `count(12345)`: "12.3 k | 12,345", `count(999999)`: "1 M | 999,999",
		`rate(0)`: "0/s | 0 a second", `rate(0.4)`: "0.4/s | 0.4 a second", `rate(12400)`: "12.4 k/s | 12,400 a second", `rate(0.001)`: "<0.01/s | 0.001 a second", `rate(undefined)`: "– | –",
		`time(0)`: "0 s | 0 µs", `time(3.2e6)`: "3.2 ms | 3,200 µs", `time(1.24e9)`: "1.24 s | 1.24 s", `time(252e9)`: "4 m 12 s | 252 s", `time(90061e9)`: "1 d 1 h | 90,061 s",
		`bytes(1.3e9)`: "1.3 GB | 1,300,000,000 bytes", `share(0.004)`: "<1 % | 0.4 %", `share(0.985)`: "99 % | 98.5 %",
		`quantile({count: 0, p50_ns: 0}, "p50_ns")`: "– | –",
		`{short: brief(count(6543)), exact: ""}`:    "6.5 k | ", `{short: brief(time(31200)), exact: ""}`: "31 µs | ",
		`{short: value(parse("[9007199254740993, 1.5, null]")), exact: value(null)}`: "[9007199254740993,1.5,null] | nil",
	} {
		got := js[string](p, fmt.Sprintf(`import("/format.js").then(({count, rate, time, bytes, share, quantile, brief, value, parse}) => { const f = %s; return (f.short + " | " + f.exact).replaceAll("\u00a0", " "); })`, call))
		require.Equal(t, want, got, call)
	}
	p.clean()
}
