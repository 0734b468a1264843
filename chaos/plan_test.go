package chaos_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/egretstream/egret/chaos"
)

func ExampleParse() {
	p, err := Parse("at 1.2s kill count/2; from 2s to 3s delay report 0..400ms")
	fmt.Println(len(p), p[0].When.From, p[0].Who, p[1].Class, p[1].Most, err)
	fmt.Println(p)
	_, err = Parse("at 1.2s kick count/2")
	fmt.Println(strings.Contains(err.Error(), `"kick" is no fault`))
	// Output:
	// 2 1.2s count/2 report 400ms <nil>
	// at 1.2s kill count/2; from 2s to 3s delay report 0..400ms
	// true
}

// Each kind in each of its forms.
var whole = []string{
	"at 1.2s kill count/2",
	"at 0s kill count again 3",
	"at message 120 crash */*",
	"at event 7 crash lines/*",
	"at end 2 kill *",
	"every 200ms kill count",
	"every 200ms from 1s kill count",
	"every 200ms from 200ms to 3s kill count",
	"at 2s stall count/0 for 300ms",
	"at 2s jump */* by 5s",
	"slow split by 4",
	"from 1s to 2s slow split/* by 0.5",
	"at 1s hold count/1 -> split/* for 2s",
	"lose limit 4%",
	"lose still-queued * -> lines 0.0001%",
	"repeat limit 100%",
	"from 2s delay report 0..400ms",
	"delay parcel split/1 -> * 1ms..2ms 12.5%",
	"from 0s to 3s reorder report 0..10ms 1%",
	"refuse count 1%",
	"reject count 1%",
	"panic count 0.5%",
	"at 1s panic count on 100",
	"every 1s panic count/3 on 1",
	"poison count 0.5%",
	"at 1s panic count in tick",
	"hang count 0.5% for 2s",
	"at 1s hang count on 20 for 2s",
	"every 1s hang count/* in prepare for 2s",
	"forget join 2%",
	"misroute join 2%",
	"from 1s to 2s pause lines",
	"at 3s break lines",
	"every 3s break lines/*",
	"at 3s break lines in open",
	"break lines 1%",
	"redeliver lines 1%",
	"at 20s drain",
	"at event 20 drain within 300ms",
	"at 20s stop",
}

func TestFaults(t *testing.T) {
	for _, text := range whole {
		f, err := ParseFault(text)
		require.NoError(t, err, text)
		require.Equal(t, text, f.String())
	}
	for _, k := range Kinds() {
		found := strings.Contains(" "+strings.Join(whole, " ")+" ", " "+string(k)+" ") || k == Stop
		require.True(t, found, "%s is in no text", k)
		require.NotEmpty(t, k.Help())
		require.True(t, strings.HasPrefix(k.Usage(), string(k)))
	}
	p, err := Parse(strings.Join(whole, "\n# and\n ; ") + " # the last one")
	require.NoError(t, err)
	require.Len(t, p, len(whole))
	require.Equal(t, strings.Join(whole, "; "), p.String())
}

func TestNoPlan(t *testing.T) {
	for _, text := range []string{"", " ; \n;", "# nothing"} {
		p, err := Parse(text)
		require.NoError(t, err)
		require.Nil(t, p)
		require.Empty(t, p.String())
	}
}

func TestBadFaults(t *testing.T) {
	for text, want := range map[string]string{
		"kick":                             `"kick" is no fault: the faults are kill, crash, `,
		"at":                               `"" is no time: after at, from and to comes one like 200ms or 1.5s`,
		"at -1s kill a":                    `"-1s" is no time`,
		"at 1 kill a":                      `"1" is no time`,
		"at message x kill a":              `after "message" comes a number, as in message 120`,
		"every 0s kill a":                  "every 0s would never end",
		"from 2s to 1s slow a by 2":        "it is to end at 1s, and begins at 2s only",
		"from 2s to 0s slow a by 2":        "it is to end at 0s",
		"from message 2 slow a by 2":       "a count can only be said with at",
		"kill a":                           "kill happens at a time: say at 2s or every 2s",
		"at 1s slow a by 2":                "slow lasts: say from and to, or no time at all",
		"at 1s kill":                       `"" names nobody: say count/2 for a task`,
		"at 1s kill a*":                    `"a*" names nobody`,
		"at 1s kill a/x":                   `"a/x": the task of a is a number from 0 on, or *`,
		"at 1s kill a/-1":                  "is a number from 0 on",
		"at 1s kill */1":                   "is a task of no component: say * for any task",
		"at 1s kill a again":               `"" is no number from 1 on (kill WHO [again 3])`,
		"at 1s kill a again 0":             `"0" is no number from 1 on`,
		"at 1s kill a now":                 `nothing was to follow, and there is "now" (kill WHO [again 3])`,
		"at 1s stall a 2s":                 "say for how long, as in for 2s",
		"at 1s stall a for 0s":             "0s is no time: it would do nothing",
		"at 1s hold a for 2s":              "a link is written count/1 -> split",
		"at 1s jump a for 2s":              "say by how much, as in by 2s",
		"slow a by x":                      `"x" is no number of times`,
		"slow a by 0":                      "by 0: say a factor above 0 and up to a million",
		"slow a by NaN":                    "say a factor above 0",
		"lose letter 1%":                   `"letter" is no class of messages: the classes are parcel, `,
		"lose limit":                       `"" is no rate: say one above 0% and up to 100%`,
		"lose limit 101%":                  `"101%" is no rate`,
		"lose limit 0.00001%":              `is no rate`,
		"lose limit 5":                     `"5" is no rate`,
		"delay report 400ms":               "say the least and the most, as in 0..400ms",
		"delay report 2s..1s":              "2s..1s: the most is less than the least",
		"delay report 0..0":                "0s is no time",
		"at 1s panic a":                    "say on which tuple, as in on 100, or in which call, as in in tick",
		"at 1s panic a in bed":             `"bed" is no call: the calls are prepare, `,
		"break a 1% in open":               "in open is for at and every",
		"hang a in next for 1s":            `"in" is no rate`,
		"at 1s break a 1%":                 "break errs once, at a time, or for a rate of all calls",
		"break a":                          "break errs once",
		"at 1s panic a on 99999999999999":  "is no number from 1 on",
		"at 99999999999999999999s kill a":  "is no time",
		"at 1s kill a; at 2s kill":         `line 1, "at 2s kill": `,
		"at 1s kill a\n\nat 2s kill # now": `line 3, "at 2s kill": `,
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "line ", text)
	}
}

func TestLivePlans(t *testing.T) {
	for text, want := range map[string]string{
		"every 1s kill a; from 1s slow a by 2; at 1s break s": "",
		"lose limit 1%":            `"lose limit 1%" can only be simulated: a running topology can be told to kill, stall, slow, panic, pause and break`,
		"break s 1%":               "can only be simulated",
		"at 1s break s in open":    "can only be simulated",
		"at 1s hang s on 1 for 1s": "can only be simulated",
		"at message 100 kill a":    `only a simulation counts messages: say at 2s`,
		"at 1s kill a; at 2s stop": `"at 2s stop" can only be simulated`,
	} {
		p, err := Parse(text)
		require.NoError(t, err)
		if err = p.Live(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestPlanInJSON(t *testing.T) {
	was, err := Parse("at 1s kill a; lose limit 1%")
	require.NoError(t, err)
	text, err := json.Marshal(struct{ Plan Plan }{was})
	require.NoError(t, err)
	require.JSONEq(t, `{"Plan": "at 1s kill a; lose limit 1%"}`, string(text))
	var is struct{ Plan Plan }
	require.NoError(t, json.Unmarshal(text, &is))
	require.Equal(t, was, is.Plan)
	require.Error(t, json.Unmarshal([]byte(`{"Plan": "kick"}`), &is))
}

func TestWho(t *testing.T) {
	require.True(t, Task("a", 2).Is("a", 2))
	require.False(t, Task("a", 2).Is("a", 1))
	require.False(t, Task("a", 2).Is("b", 2))
	require.True(t, Who{"a", One}.Is("a", 7))
	require.False(t, Who{"a", All}.Is("b", 7))
	require.True(t, Anyone.Is("a", 7))
	require.True(t, Everyone.Is("b", 0))
}

func TestWhenHolds(t *testing.T) {
	w := Between(time.Second, 3*time.Second)
	require.False(t, w.Holds(time.Second-1))
	require.True(t, w.Holds(time.Second))
	require.True(t, w.Holds(3*time.Second-1))
	require.False(t, w.Holds(3*time.Second))
	require.True(t, When{}.Holds(0))
	require.True(t, When{}.Holds(time.Hour))
}

func TestCheckers(t *testing.T) {
	for _, c := range Checkers() {
		require.NotEmpty(t, c.Claim(), c)
		require.NotEmpty(t, c.Twin(), c)
		all, err := ParseCheckers("acks, " + string(c))
		require.NoError(t, err)
		require.Equal(t, []Checker{Acks, c}, all)
	}
	_, err := ParseCheckers("acks, hacks")
	require.ErrorContains(t, err, `"hacks" is no checker: the checkers are acks, one end, `)
}

// A fault that is put together, not read, is read back from its text.
func TestDrawnFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Plan
		for range rapid.IntRange(0, 5).Draw(t, "faults") {
			d := func(name string) time.Duration {
				return time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, name))
			}
			n := func(name string) int { return rapid.IntRange(1, 1000).Draw(t, name) }
			who := rapid.SampledFrom([]Who{Anyone, Everyone, Task("a-b.c", 3), {"b", One}, {"b", All}})
			f := Fault{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind")}
			use := f.Kind.Usage()
			lasts := f.Kind == Slow || f.Kind == Lose || f.Kind == Delay || f.Kind == Reorder || f.Kind == Repeat || f.Kind == Pause || f.Kind == Hang
			switch from := d("from"); {
			case lasts:
				f.When = Between(from, from+d("to"))
			case strings.Contains(use, "%") && f.Kind != Panic && f.Kind != Break && f.Kind != Hang:
			case rapid.Bool().Draw(t, "every"):
				f.When = Every(from)
			default:
				f.When = AtCount(rapid.SampledFrom([]Clock{Time, Messages, Events, Ends}).Draw(t, "clock"), int64(from))
			}
			if strings.Contains(use, "WHO") && !strings.Contains(use, "[WHO") {
				f.Who = who.Draw(t, "who")
			}
			if strings.Contains(use, "-> WHO") && (f.Kind == Hold || rapid.Bool().Draw(t, "link")) {
				f.Who, f.To = who.Draw(t, "from"), who.Draw(t, "to")
			}
			if strings.Contains(use, "CLASS") {
				f.Class = rapid.SampledFrom(Classes()).Draw(t, "class")
			}
			if strings.Contains(use, "%") && f.Kind != Panic && f.Kind != Break {
				f.Rate = Rate(rapid.Int32Range(1, 1_000_000).Draw(t, "rate"))
			}
			if strings.Contains(use, "..") {
				f.Least = d("least")
				f.Most = f.Least + d("most")
			}
			if strings.Contains(use, "2s") && f.Most == 0 {
				f.Most = d("long")
			}
			if f.Kind == Panic || f.Kind == Kill {
				f.Times = n("times")
			}
			if f.Kind == Slow {
				f.Factor = float64(n("factor")) / 10
			}
			p = append(p, f)
		}
		again, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

func FuzzParse(f *testing.F) {
	f.Add(strings.Join(whole, ";"))
	for _, text := range whole {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			require.Nil(t, p)
			return
		}
		again, err := Parse(p.String())
		require.NoError(t, err, p.String())
		require.Equal(t, p, again)
		_ = p.Live()
	})
}
