package fleet

import (
	"bufio"
	"compress/gzip"
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/state/postgres"
	"github.com/egretstream/egret/state/postgres/postgrestest"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

const wordsName = "fleet-words"

// book returns the lines of a book.
var book = sync.OnceValue(func() (all []string) {
	f, err := os.Open("../../../examples/wordcount/counting/moby_dick.txt.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		all = append(all, lines.Text())
	}
	if lines.Err() != nil {
		panic(lines.Err())
	}
	return all
})

// wordsOf calls emit with the words of line n of the book, which begins anew at its end.
func wordsOf(n int64, emit func(string)) {
	for word := range strings.FieldsSeq(book()[n%int64(len(book()))]) {
		emit(word)
	}
}

// A dueNumber is what numbers emits.
type dueNumber struct{ N, At int64 }

func countsIn(url string) *trident.State[string, int64] {
	return trident.StateOf[string, int64]("counts", postgres.URL(url), trident.Opaque)
}

// countedWords counts the words of the book in a database.
func countedWords() *topology.Topology {
	return trident.New(wordsName, func(b *trident.Builder) {
		source := &numbers{
			splits: b.Int("splits", 5, "of the lines"), messages: int64(b.Int("messages", 0, "how many lines")),
			rate: b.Int("rate", 1000, "lines a second"), start: b.String("start", "", "when the first is due"),
		}
		lines := trident.From[dueNumber](b, "lines", source).Parallel(3)
		words := trident.FlatMap(lines, func(d dueNumber, emit func(string)) { wordsOf(d.N, emit) }).Name("split").Parallel(3)
		trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), countsIn(b.String("url", "", "of the database")), trident.Count[string]()).Parallel(3)
	})
}

// Words are counted in PostgreSQL, once each, while for two minutes any node is killed
// every two seconds.
func TestWordsInPostgres(t *testing.T) {
	if os.Getenv("EGRET_LONG") == "" {
		return
	}
	const rate, lasts, every = 400, 2 * time.Minute, 2 * time.Second
	url := postgrestest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), lasts+3*time.Minute)
	f := newFleet(child)
	t.Cleanup(func() {
		f.close()
		cancel()
		if t.Failed() {
			t.Log(f.heard())
		}
	})
	f.launch(t, ctx, 3, 3)
	const messages = int64(rate * (lasts + 5*time.Second) / time.Second)
	want := map[string]int64{}
	for n := range messages {
		wordsOf(n, func(word string) { want[word]++ })
	}
	began := time.Now()
	params := map[string][]string{
		"url": {url}, "rate": {strconv.Itoa(rate)}, "messages": {strconv.FormatInt(messages, 10)},
		"start": {began.Format(time.RFC3339Nano)},
	}
	plan, err := countedWords().Build(topology.Options{Params: params})
	require.NoError(t, err)
	_, err = f.insist(ctx, &node.Request{Op: node.OpSubmit, Topology: wordsName, Spec: node.SpecOf(plan, params, nil, "")})
	require.NoError(t, err)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for at := began.Add(every); time.Since(began) < lasts; at = at.Add(every) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(at)):
		}
		f.kill(f.ships[random.IntN(len(f.ships))])
		kills++
		for _, s := range f.ships {
			if !s.running {
				require.NoError(t, f.start(s))
			}
		}
	}
	v, err := f.until(ctx, "the topology is done", func(v *node.View) bool {
		return len(v.Submissions) == 1 && !v.Submissions[0].Status.Runs()
	})
	require.NoError(t, err)
	require.Equal(t, cluster.Done, v.Submissions[0].Status, v.Submissions[0].Reason)
	t.Logf("%d kills, done after %.1f s: %d words of %d lines", kills, time.Since(began).Seconds(), len(want), messages)

	r, err := countsIn(url).Open(t.Context(), wordsName, trident.Latest)
	require.NoError(t, err)
	got := map[string]int64{}
	require.NoError(t, r.All(t.Context(), func(word string, n int64) bool { got[word] = n; return true }))
	require.NoError(t, r.Close())
	require.Equal(t, want, got)
}
