package sim

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/egretstream/egret/chaos"
)

// anyFault is a fault such as people write, not such as seeds draw it. It may not fit.
func anyFault(r *rand.Rand, s *scene) chaos.Fault {
	who := func() chaos.Who {
		p := one(r, s.parts...)
		return one(r, chaos.Anyone, chaos.Everyone, chaos.Task(p.name, r.IntN(p.parallel)), chaos.Who{Component: p.name, Task: chaos.One}, chaos.Who{Component: p.name, Task: chaos.All})
	}
	f := chaos.Fault{
		Kind: one(r, chaos.Kinds()...), Who: who(), Class: one(r, chaos.Classes()...),
		Rate: chaos.Percent(one(r, 0.1, 1, 10, 50, 100)), Most: around(r, 10*time.Microsecond, 20*time.Second),
		Factor: one(r, 0.1, 2, 20, 500), Times: 1 + r.IntN(30), Call: one(r, append(chaos.Calls(), "")...),
	}
	if chance(r, 30) {
		f.To = who()
	}
	switch at := around(r, time.Millisecond, 40*time.Second); r.IntN(4) {
	case 0:
		f.When = chaos.Every(max(around(r, time.Millisecond, 5*time.Second), time.Millisecond))
	case 1:
		f.When = chaos.Between(at, at+around(r, time.Millisecond, time.Minute))
	case 2:
		f.When = chaos.At(at)
	}
	return f
}

// Whatever plan a user may write, the engine keeps its promises, and the record knows
// what explains what: nothing is broken under any plan that fits.
func TestAnyPlan(t *testing.T) {
	n := 40
	if os.Getenv("EGRET_LONG") != "" {
		n = 600
	}
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 17))
		s := draw(seed, &Options{Peaceful: true})
		plan := chaos.Plan{}
		for tries := 0; len(plan) < 1+r.IntN(6) && tries < 200; tries++ {
			f, err := chaos.ParseFault(anyFault(r, s).String())
			if err == nil && checkFault(f, s.targets(), s.stores()) == nil {
				plan = append(plan, f)
			}
		}
		if _, err := Seed(seed, Options{Plan: &plan, Once: true}); err != nil {
			t.Error(err)
		}
	}
}
