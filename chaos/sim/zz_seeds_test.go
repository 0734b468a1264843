package sim

import (
	gocontext "context"
	"os"
	"strconv"
	"testing"
)

func TestZZ(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SEEDS"))
	first := uint64(1)
	if s := os.Getenv("FIRST"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	o := Options{Peaceful: os.Getenv("PEACE") != "", Once: os.Getenv("ONCE") != ""}
	if os.Getenv("V") != "" {
		o.Log = os.Stdout
	}
	most := 3
	if s := os.Getenv("MOST"); s != "" {
		most, _ = strconv.Atoi(s)
	}
	ctx, stop := gocontext.WithCancel(t.Context())
	maxEv := 0
	var last int64
	s := Seeds(ctx, first, n, o, func(s *Summary) {
		if ev := int(s.Events - last); ev > maxEv {
			maxEv = ev
			t.Logf("seed %d: %d events", first+uint64(s.Seeds)-1, ev)
		}
		last = s.Events
		if len(s.Failures) >= most {
			stop()
		}
	})
	for _, f := range s.Failures {
		t.Error(f)
	}
	t.Logf("%d %v", s.Seeds, s.Faults)
}
