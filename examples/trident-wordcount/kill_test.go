package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/pebble"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
)

// asProgram makes the test's program the example itself.
const asProgram = "EGRET_TRIDENT_WORDCOUNT_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// plainCount counts the words of a text without any of the program's code.
func plainCount(text string) map[string]int64 {
	counts, word := map[string]int64{}, []byte{}
	for _, b := range append([]byte(text), ' ') {
		switch {
		case 'a' <= b && b <= 'z':
			word = append(word, b)
		case 'A' <= b && b <= 'Z':
			word = append(word, b+'a'-'A')
		case len(word) > 0:
			counts[string(word)]++
			word = word[:0]
		}
	}
	return counts
}

// printed is how the program prints counts.
func printed(counts map[string]int64) string {
	var words []string
	for w := range counts {
		words = append(words, w)
	}
	sort.Slice(words, func(i, k int) bool {
		if a, b := counts[words[i]], counts[words[k]]; a != b {
			return a > b
		}
		return words[i] < words[k]
	})
	var s strings.Builder
	for _, w := range words {
		fmt.Fprintln(&s, w, counts[w])
	}
	return s.String()
}

// A killing is a word count that is killed again and again.
type killing struct {
	t    *testing.T
	text string
	file string // of the text
	dir  string // of the state

	cmd       *exec.Cmd
	out, errs bytes.Buffer
	ended     chan struct{} // closed when the process has
}

func newKilling(t *testing.T) *killing {
	f, err := os.Open("../wordcount/counting/moby_dick.txt.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	k := &killing{t: t, text: string(text), file: filepath.Join(t.TempDir(), "book.txt"), dir: t.TempDir()}
	require.NoError(t, os.WriteFile(k.file, text, 0o600))
	return k
}

func (k *killing) start(args ...string) {
	k.out.Reset()
	k.errs.Reset()
	k.cmd = exec.Command(os.Args[0], append([]string{"--file", k.file, "--state", k.dir, "--top", "100000"}, args...)...)
	k.cmd.Env = append(os.Environ(), asProgram+"=1")
	k.cmd.Stdout, k.cmd.Stderr = &k.out, &k.errs
	require.NoError(k.t, k.cmd.Start())
	k.ended = make(chan struct{})
	go func(c *exec.Cmd, ended chan struct{}) { // ends with the process, which is waited for
		_ = c.Wait()
		close(ended)
	}(k.cmd, k.ended)
}

// pause waits, or less if the process ends.
func (k *killing) pause(d time.Duration) {
	select {
	case <-k.ended:
	case <-time.After(d):
	}
}

// commits waits until a batch behind tx is committed, or the process ends.
func (k *killing) commits(tx tuple.TxID) {
	for began := time.Now(); ; {
		select {
		case <-k.ended:
			return
		case <-time.After(time.Millisecond):
		}
		if k.record().Committed > tx {
			return
		}
		require.Less(k.t, time.Since(began), time.Minute, "nothing is committed behind batch %d: %s", tx, &k.errs)
	}
}

// kill is kill -9. It reports whether the process was there to be killed.
func (k *killing) kill() bool {
	_ = k.cmd.Process.Kill()
	<-k.ended
	code := k.cmd.ProcessState.ExitCode()
	require.Contains(k.t, []int{-1, 0}, code, "it has ended by itself: %s", &k.errs)
	require.NotContains(k.t, k.errs.String(), "goroutine ", "no panic")
	return code == -1
}

// record reads the record of batches. Each one is put into the place of the one before.
func (k *killing) record() (r batch.Record) {
	b, err := os.ReadFile(filepath.Join(k.dir, "trident-wordcount", "batches"))
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	require.NoError(k.t, err)
	lines := bytes.SplitN(b, []byte("\n"), 3)
	require.Len(k.t, lines, 3)
	require.NoError(k.t, json.Unmarshal(lines[1], &r))
	return r
}

// read returns how much of the text is behind a record.
func (k *killing) read(r *batch.Record) int {
	for _, position := range r.Positions["lines"] {
		at, _, _ := strings.Cut(position, "@")
		n, err := strconv.Atoi(at)
		require.NoError(k.t, err)
		return n
	}
	return 0
}

// counts returns what the state has for a record, and whether it has a batch more, which
// was written and is not committed. No process is there.
func (k *killing) counts(r *batch.Record) (all map[string]int64, ahead bool) {
	where := pebble.Dir(k.dir + "/counts")
	counts, err := trident.StateOf[string, int64]("counts", where, trident.Opaque).Open(k.t.Context(), "trident-wordcount", r.Committed)
	if errors.Is(err, state.ErrNone) && r.Committed == 0 {
		return map[string]int64{}, false // it had not come so far
	}
	require.NoError(k.t, err)
	all = map[string]int64{}
	require.NoError(k.t, counts.All(k.t.Context(), func(word string, n int64) bool { all[word] = n; return true }))
	require.NoError(k.t, counts.Close())

	store, err := where.Open(k.t.Context(), state.Name{Topology: "trident-wordcount", State: "counts"})
	require.NoError(k.t, err)
	groups := tuple.Groups{}
	for i := range groups {
		groups[i] = math.MaxUint64
	}
	require.NoError(k.t, store.Scan(k.t.Context(), &groups, func(_ state.Key, row state.Row) bool {
		require.LessOrEqual(k.t, row.Tx, r.Committed+1)
		ahead = ahead || row.Tx > r.Committed
		return true
	}))
	require.NoError(k.t, store.Close())
	return all, ahead
}

// What is no flag, or cannot be, is not passed over.
func TestArgument(t *testing.T) {
	k := newKilling(t)
	for _, tt := range []struct{ args, errs string }{
		{"book.txt", `unknown argument "book.txt": it takes flags only, see --help`},
		{"--top=-1", "--top is -1: it must be at least 0"},
		{"--rate=-1", "--rate is -1: it must be at least 0"},
		{"--rate=NaN", "--rate is NaN: it must be at least 0"},
	} {
		k.start(tt.args)
		<-k.ended
		require.Equal(t, 2, k.cmd.ProcessState.ExitCode(), tt.args)
		require.Equal(t, "trident-wordcount: "+tt.errs+"\n", k.errs.String())
		require.Empty(t, k.out.String())
	}
}

// A process is killed at random moments of its life, and another one goes on, again and
// again. Behind each kill the state has the words of the text up to the committed
// position, each once, and so has the end. Five times in short; with EGRET_LONG=1 fifty, of a
// run that takes 20 s, and then until one was between a write and its commit.
func TestKilled(t *testing.T) {
	kills, least, rate, most := 5, 4, "3000", 600*time.Millisecond
	long := os.Getenv("EGRET_LONG") != ""
	if long {
		kills, least, rate, most = 50, 40, "1070", 800*time.Millisecond
	}
	k := newKilling(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	moment := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	running, fresh, between, aimed := 0, 0, 0, 0
	var before batch.Record
	var found tuple.TxID // written and not committed, the last one
	kill := func(wait func()) (hit bool) {
		k.start("--rate", rate)
		wait()
		killed := k.kill()
		r := k.record()
		require.GreaterOrEqual(t, r.Committed, before.Committed)
		at := k.read(&r)
		require.GreaterOrEqual(t, at, k.read(&before))
		if hit = killed && at < len(k.text); hit && r.Committed > before.Committed {
			fresh++
		}
		counts, ahead := k.counts(&r)
		require.Equal(t, plainCount(k.text[:at]), counts, "batch %d, byte %d", r.Committed, at)
		if tx := r.Committed + 1; ahead && tx > found { // it stays so if the next one is killed soon
			between, found = between+1, tx
		}
		before = r
		return hit
	}
	for range kills {
		if kill(func() { k.pause(moment(most)) }) {
			running++
		}
	}
	for long && between == 0 && k.read(&before) < len(k.text) {
		aimed++
		kill(func() { // about when the next batch is committed
			k.commits(before.Committed)
			k.pause(75*time.Millisecond + moment(50*time.Millisecond))
		})
	}
	t.Logf("%d of %d kills hit it running; %d, with %d more, came after something was committed, %d between a write and its commit; %d batches, byte %d of %d",
		running, kills, fresh, aimed, between, before.Committed, k.read(&before), len(k.text))
	require.GreaterOrEqual(t, running, least)
	if long {
		require.Positive(t, between)
	}
	for range 2 { // the second has nothing to do
		k.start()
		k.commits(math.MaxUint64)
		require.Zero(t, k.cmd.ProcessState.ExitCode(), "%s", &k.errs)
		require.Equal(t, printed(plainCount(k.text)), k.out.String())
	}
}
