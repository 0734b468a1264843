package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page of a run as everybody starts it.
func TestRealRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "slow")
	out, err := exec.Command("go", "build", "-o", program, "./slow").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := exec.CommandContext(t.Context(), program, "run", "--http", "127.0.0.1:0", "--max-pending", "500")
	dies := filepath.Join(t.TempDir(), "dies")
	run.Env = append(os.Environ(), "SLOW_DIES="+dies)
	errs, err := run.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	lines, url := bufio.NewScanner(errs), ""
	for url == "" && lines.Scan() {
		url, _ = strings.CutPrefix(lines.Text(), "page: ")
		if !strings.HasPrefix(url, "http") {
			url = ""
		}
	}
	require.NotEmpty(t, url, "it says where its page is")
	said := make(chan string)
	go func() { // it must not wait for somebody who reads
		var rest strings.Builder
		for lines.Scan() {
			rest.WriteString(lines.Text() + "\n")
		}
		said <- rest.String()
	}()

	p := open(t, url, desk)
	p.until(live + ` && document.querySelector("td a")?.textContent === "slow"`)
	p.click(`td a`)
	p.until(`document.querySelectorAll(".graph .box").length === 4 && document.querySelectorAll(".graph .edge").length === 3`)
	p.until(`document.querySelector(".box[data-component=split] .note").textContent === "waits for count"`)
	p.until(`document.querySelector(".edge[data-from=split]").dataset.tone === "warn" && document.querySelector(".verdict").textContent.includes("for count")`)
	nothingOverlaps(p)
	p.click(`.tabs a[data-tab=errors]`)
	p.until(has("a leviathan is too large"))
	p.click(`.box[data-component=count]`)
	p.until(`document.querySelectorAll(".panel tbody tr").length === 2 && document.querySelector(".panel .errors li")`)
	p.shot("real")
	p.click(`.edge[data-from=split] .label`)
	p.do(setValue("#where", `word == "whale"`))
	p.click(`.tap .main`)
	p.until(`document.querySelectorAll(".scroll tbody tr").length > 3 && /^Looked at .* match, /.test(document.querySelector(".panel .note").textContent)`)
	require.Equal(t, []string{"whale"}, js[[]string](p, `[...new Set([...document.querySelectorAll(".scroll td.mono")].map((x) => x.textContent))]`))
	p.shot("real-tap")

	// A task that dies is an error, with the stack and the tuple that it had in hand.
	require.NoError(t, os.WriteFile(dies, nil, 0o600))
	p.click(`.tabs a[data-tab=errors]`)
	died := `[...document.querySelectorAll(".tab .errors li")].find((x) => x.querySelector(".kind").textContent === "top died")`
	p.until(died)
	js[any](p, died+`.querySelector("summary").click()`)
	p.until(died + `.querySelector("details").open && ` + died + `.checkVisibility()`)
	require.Contains(t, js[string](p, died+`.querySelector(".said").textContent`), "call me nobody")
	require.Equal(t, "1×", js[string](p, died+`.querySelector(".number").textContent`))
	pre := js[[]string](p, `[...`+died+`.querySelectorAll("pre:not([hidden])")].map((x) => x.textContent)`)
	require.Len(t, pre, 2, "the tuple and the stack")
	require.Contains(t, pre[0], `"ishmael"`)
	require.Regexp(t, `main\.top\S*\(.*\)\n\s.*slow/main\.go:\d+`, pre[1])
	p.until(`document.querySelector(".verdict").textContent.startsWith("top has died once, last: ") && document.querySelector(".verdict").dataset.tone === "bad"`)
	p.until(`document.querySelector(".box[data-component=top]").dataset.tone === "bad"`)
	p.shot("real-died")
	p.clean()

	p.click(`.actions button[data-word=stop]`)
	p.until(`document.querySelector("dialog") && !document.querySelector("dialog .main").disabled`)
	p.shot("real-stop")
	p.click(`dialog .main`)
	rest := <-said
	require.Error(t, run.Wait(), "some messages are dead")
	require.Contains(t, rest, "0 open;")
	require.Contains(t, rest, "messages are dead:")
	p.until(`["ended", "lost"].includes(document.querySelector("#connection").dataset.state)`)
	p.shot("real-ended")
}
