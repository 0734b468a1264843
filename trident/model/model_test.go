package model

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	seed = flag.Uint64("seed", 1, "of TestStory")
	left = flag.String("off", "", "rules that TestStory leaves out, with commas between them")
)

func TestModel(t *testing.T) {
	n := uint64(2000)
	if os.Getenv("EGRET_LONG") != "" {
		n = 100_000
	}
	count := map[string]int{}
	steps := 0
	for s := range n {
		r := newWorld(draw(s+1, 0), nil).run()
		count[r.outcome]++
		steps += r.steps
		if !r.good() && count[r.outcome] < 10 {
			t.Errorf("seed %d: %s, %s", s+1, r.outcome, r.detail)
		}
	}
	t.Log(count, steps)
}

func TestStory(t *testing.T) {
	var off set
	for _, name := range strings.FieldsFunc(*left, func(r rune) bool { return r == ',' }) {
		i := slices.Index(ruleNames, name)
		require.GreaterOrEqual(t, i, 0, "no rule is called %s", name)
		off |= without(rule(i))
	}
	c := draw(*seed, off)
	t.Logf("%+v", c)
	newWorld(c, t.Output()).run()
}
