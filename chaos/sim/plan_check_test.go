package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
)

func TestPlansThatFit(t *testing.T) {
	all := []target{
		{name: "s0", tasks: 2, reads: true, prompt: true},
		{name: "q", tasks: 1, reads: true, queue: true},
		{name: "b1a", tasks: 3, chooses: true},
		{name: "b1b", tasks: 1, retains: true},
	}
	for text, want := range map[string]string{
		"":                                     "",
		"at 1s kill b1a/2":                     "",
		"at 1s kill b1a/3":                     `"at 1s kill b1a/3": b1a has 3 tasks, which are counted from 0`,
		"at 1s kill b2":                        `there is no component "b2": the components are s0, q, b1a, b1b`,
		"at 1s hold b1a -> b9 for 1s":          `there is no component "b9"`,
		"lose limit b9 -> b1a 1%":              `there is no component "b9"`,
		"lose limit b1a/1 -> s0 1%":            "",
		"lose parcel 1%":                       `"lose parcel 1%": parcels between living tasks are never lost: crash a task`,
		"lose peers 1%":                        "who is not told where a task lives can never send to it: delay or reorder peers",
		"lose end 1%":                          "an end is said once",
		"lose dry 1%":                          "it is said once",
		"lose control 1%":                      "everything comes once and in order: delay it",
		"lose verdict 1%":                      "a verdict does not travel",
		"delay verdict 0..1s":                  "a verdict does not travel",
		"lose tick 1%":                         "a timer comes once",
		"reorder timer 0..1s":                  "a timer comes once",
		"delay timer s0 -> s0 0..1s 1%":        "",
		"repeat parcel 1%":                     "nothing comes twice: crash a task, and its messages are read again",
		"repeat report 1%":                     "an entry that did would count twice",
		"repeat end 1%; repeat dry 1%":         "",
		"reorder parcel 0..1s":                 "it keeps its order with what was sent before and after: delay it",
		"reorder end 0..1s":                    "it keeps its order",
		"reorder control 0..1s":                "everything comes once and in order",
		"delay control 0..1s":                  "",
		"repeat save 1%":                       "the store is called once at a time: lose its calls or delay them",
		"lose save 1%; delay save 0..1s":       "",
		"lose save s0 -> q 1%":                 "goes over no link",
		"refuse b1a 1%; refuse * 1%":           "",
		"refuse s0 1%":                         "s0 is a spout, which executes no tuples",
		"forget b1a 1%":                        "b1a retains no tuples",
		"forget * 1%":                          "",
		"misroute b1b 1%":                      "b1b gets no tuples by a custom grouping",
		"pause b1a":                            "b1a is a bolt, which reads nothing",
		"redeliver q 1%":                       "",
		"break b1a 1%":                         "b1a is a bolt: refuse its tuples, or have it panic",
		"at 1s break s0 in ack":                "s0 has no ack",
		"at 1s break q in commit":              "q has no commit",
		"at 1s break q in tick":                "q is a spout, which has no tick",
		"at 1s panic b1a in next":              "b1a has no next",
		"at 1s panic s0 in commit":             "s0 does not end by a panic in commit: break it",
		"at 1s hang q in next for 1s":          "q does not wait for next: pause it",
		"at 1s hang s0 in next for 1s":         "",
		"hang s0 1% for 1s":                    "s0 is a spout: say in which call",
		"at 51m drain":                         "a simulated run takes an hour at most: say a time up to 50m0s",
		"at 50m stop":                          "",
		"at 30s kill s0":                       "everything is healed after 30s, and nothing is done any more: say an earlier time",
		"from 1s to 1h pause s0":               "",
		"every 10us kill s0":                   "every 10µs is too often: say every 100µs or more",
		"at 1s stall s0 for 11m":               "11m0s is too long for a simulated run: say up to 10m0s",
		"slow s0 by 2000":                      "by 2000 is too slow",
		"at 1s drain within 1s; at 2s stop":    "",
		"at message 99999999 kill b1a":         "",
		"at 1s panic * in prepare; at 1s stop": "",
	} {
		err := checkPlan(planOf(text), all, true)
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
	require.ErrorContains(t, checkPlan(planOf("lose save 1%"), all, false), "this run has no store")
	require.ErrorContains(t, checkPlan(planOf("forget * 1%"), all[:2], false), "there is none that does not: each retains no tuples")
}

// Whatever is refused is refused with a sentence, and what is not is done somewhere.
func TestEveryClassIsRuledOn(t *testing.T) {
	for _, k := range chaos.Kinds() {
		for _, c := range chaos.Classes() {
			if !onLinks(k) {
				continue
			}
			err := checkClass(chaos.Fault{Kind: k, Class: c}, nil, true)
			require.True(t, err == nil || len(err.Error()) > 20, "%s %s: %v", k, c, err)
			require.Equal(t, c == chaos.Verdict, k == chaos.Delay && err != nil || c == chaos.Verdict, "all can be late")
		}
	}
}

// What a drawn scene's parts can be told is what its topology shows, or less.
func TestTargets(t *testing.T) {
	for seed := range uint64(200) {
		s := draw(seed, &Options{})
		require.NoError(t, s.check(), "what a seed draws fits")
		rec := newRecord(New(Config{}), s)
		plan, err := s.topology(rec).Build(topology.Options{Epoch: 1})
		require.NoError(t, err)
		shown := targetsOf(plan)
		for i, x := range s.targets() {
			y := shown[i]
			require.False(t, x.prompt && !y.prompt || x.retains && !y.retains)
			x.prompt, x.retains, y.prompt, y.retains = false, false, false, false
			require.Equal(t, x, y)
		}
	}
}

func TestPlanThatDoesNotFit(t *testing.T) {
	plan := planOf("at 1s kill nobody")
	require.ErrorContains(t, Options{Plan: &plan}.Check(7), `the plan does not fit seed 7: "at 1s kill nobody": there is no component "nobody"`)
	_, err := Seed(7, Options{Plan: &plan})
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.EqualValues(t, "plan", f.Invariant)
}

// Another plan is played in the same scene, and the log begins with both.
func TestSceneAndPlan(t *testing.T) {
	s, plan := draw(7, &Options{}), planOf("at 1s kill *")
	other := draw(7, &Options{Plan: &plan})
	require.NotEqual(t, s.plan, other.plan)
	s.plan = plan
	require.Equal(t, s.String(), other.String())
	none := chaos.Plan{}
	r, err := Seed(7, Options{Plan: &none})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, "peaceful", r.Mood)
}
