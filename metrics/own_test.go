package metrics

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOwnNames(t *testing.T) {
	const letters = "a name is made of a-z"
	for _, tt := range []struct {
		kind Kind
		name string
		unit Unit
		want string // "": it is taken
	}{
		{CounterKind, "orders_total", None, ""},
		{CounterKind, "s3_requests_total", None, ""},
		{CounterKind, "waited_seconds_total", None, ""},
		{GaugeKind, "cache_bytes", None, ""},
		{GaugeKind, "age_seconds", None, ""},
		{GaugeKind, "x", None, ""},
		{HistogramKind, "lookup_seconds", Seconds, ""},
		{HistogramKind, "page_bytes", Bytes, ""},
		{HistogramKind, "page_orders", None, ""},
		{CounterKind, strings.Repeat("a", 94) + "_total", None, ""},

		{CounterKind, strings.Repeat("a", 95) + "_total", None, letters},
		{CounterKind, "", None, letters},
		{CounterKind, "Orders_total", None, letters},
		{CounterKind, "orders-total", None, letters},
		{CounterKind, "3_total", None, letters},
		{CounterKind, "_total", None, letters},
		{CounterKind, "orders__total", None, letters},
		{CounterKind, "orders:total", None, letters},
		{CounterKind, "örders_total", None, letters},
		{GaugeKind, "orders_", None, letters},
		{CounterKind, "orders", None, "ends in _total"},
		{GaugeKind, "orders_total", None, "must not end in _total"},
		{GaugeKind, "orders_count", None, "must not end in _count"},
		{HistogramKind, "orders_sum", None, "must not end in _sum"},
		{HistogramKind, "orders_bucket", None, "must not end in _bucket"},
		{HistogramKind, "lookup", Seconds, "ends in _seconds"},
		{HistogramKind, "lookup_ms", Seconds, "ends in _seconds"},
		{HistogramKind, "page", Bytes, "ends in _bytes"},
		{HistogramKind, "page_bytes", None, "give the histogram that unit"},
		{HistogramKind, "page_things", Unit(9), "no such unit"},
	} {
		d := Definition{Name: tt.name, Help: "Help.", Kind: tt.kind, Unit: tt.unit}
		if err := d.check(); tt.want == "" {
			require.NoError(t, err, tt.name)
		} else {
			require.ErrorContains(t, err, tt.want, tt.name)
			require.ErrorContains(t, err, fmt.Sprintf("%s %q", tt.kind, tt.name))
		}
	}
	require.ErrorContains(t, (&Definition{Name: "x_total", Help: " "}).check(), "say in a sentence")
}

// The same name is the same metric in one task, and the same thing in all.
func TestOwnNameMeansOneThing(t *testing.T) {
	var names Names
	a, b := Own{Names: &names}, Own{Names: &names}
	x, err := a.Counter("orders_total", "Orders.")
	require.NoError(t, err)
	again, err := a.Counter("orders_total", "Orders.")
	require.NoError(t, err)
	require.Same(t, x, again)
	other, err := b.Counter("orders_total", "Orders.")
	require.NoError(t, err)
	require.NotSame(t, x, other, "each task has its own")
	require.Len(t, a.All(), 1)

	for _, o := range []*Own{&a, &b} {
		_, err = o.Counter("orders_total", "Other orders.")
		require.ErrorContains(t, err, `another help text, "Orders."`)
		_, err = o.Gauge("orders", "Orders.")
		require.ErrorContains(t, err, `gauge "orders": there is a counter "orders_total" already`)
		_, err = o.Histogram("orders", "Orders.", None)
		require.ErrorContains(t, err, "choose another name")
	}
	_, err = a.Histogram("page_seconds", "Pages.", Seconds)
	require.NoError(t, err)
	_, err = a.Histogram("page_seconds", "Pages.", None)
	require.ErrorContains(t, err, "another unit")
	_, err = a.Gauge("page_seconds", "Pages.")
	require.ErrorContains(t, err, "there is a histogram")
	require.Len(t, a.All(), 2)
	require.Len(t, b.All(), 1)
}

func TestOwnHasABound(t *testing.T) {
	var o Own
	for i := range mostOwn {
		_, err := o.Gauge(fmt.Sprintf("g%d", i), "A gauge.")
		require.NoError(t, err)
	}
	_, err := o.Gauge("g256", "A gauge.")
	require.ErrorContains(t, err, "is a name made of data?")
	_, err = o.Gauge("g255", "A gauge.")
	require.NoError(t, err, "those that are there are still given")
}

// Tasks that make their metrics at the same time agree on what they mean, and a
// reader sees only whole ones.
func TestOwnAtTheSameTime(t *testing.T) {
	var names Names
	const n = 50
	all := make([]Own, 4)
	var tasks sync.WaitGroup
	refused := make([]int, len(all))
	for i := range all {
		o := &all[i]
		o.Names = &names
		tasks.Go(func() {
			for k := range n {
				c, err := o.Counter(fmt.Sprintf("c%d_total", k), "Help.")
				if err != nil {
					t.Error(err)
					return
				}
				c.Add(1)
				if _, err := o.Gauge(fmt.Sprintf("g%d_%d", i, k), "Help."); err != nil {
					t.Error(err)
				}
				if _, err := o.Gauge("disputed", fmt.Sprintf("Help %d.", i)); err != nil {
					refused[i]++
				}
			}
		})
		tasks.Go(func() {
			for len(o.All()) < n {
				for _, m := range o.All() {
					if m.Name == "" || m.Counter.Load() > 1 {
						t.Error("half a metric")
					}
				}
			}
		})
	}
	tasks.Wait()
	require.Len(t, *names.all.Load(), n+len(all)*n+1, "no name is lost")
	winners := 0
	for _, r := range refused {
		require.True(t, r == 0 || r == n, "%v", refused)
		if r == 0 {
			winners++
		}
	}
	require.Equal(t, 1, winners, "one of them was the first")
}

func TestGauge(t *testing.T) {
	var g Gauge
	require.Zero(t, g.Load())
	g.Set(-2.5)
	require.Equal(t, -2.5, g.Load())
}

// Whoever reads while messages are counted sees none that is done before it is
// there.
func TestOpenIsNeverNegative(t *testing.T) {
	m := NewTask("in/0", 0, 0)
	var ended atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !ended.Load() {
			if n := m.Open(); n < 0 {
				t.Error("open: ", n)
				return
			}
		}
	})
	for range 300_000 {
		m.Messages.Add(1)
		m.Acked.Add(1)
	}
	ended.Store(true)
	reader.Wait()
}

func TestReading(t *testing.T) {
	var h Histogram
	h.Observe(5)
	h.Observe(-5)
	h.Record(1000*time.Nanosecond, 4)
	var r Reading
	r.Add(&h)
	r.Add(&h)
	require.EqualValues(t, 12, r.Count)
	require.InDelta(t, 2*(5+4000), r.Sum, 0)
	var got []string
	for v, n := range r.Buckets() {
		got = append(got, fmt.Sprint(v, "x", n))
	}
	require.Equal(t, []string{"0x2", "5x2", "1023x8"}, got)
	for v := range r.Buckets() {
		require.Zero(t, v)
		break
	}
}

func BenchmarkCounterAdd(b *testing.B) {
	var o Own
	c, err := o.Counter("x_total", "Help.")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		c.Add(1)
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	d := time.Duration(1)
	for b.Loop() {
		h.Record(d, 1)
		d = d*7%1_000_003 + 1
	}
}

// A life that was replaced while it did not come back may make its metrics beside the next one.
func TestOwnOfTwoLives(t *testing.T) {
	for range 100 {
		var o Own
		var lives sync.WaitGroup
		begin := make(chan struct{})
		for range 2 {
			lives.Go(func() {
				<-begin
				if _, err := o.Counter("orders_total", "Orders."); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		lives.Wait()
		require.Len(t, o.All(), 1)
	}
}
