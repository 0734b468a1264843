package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/egretstream/egret/amount"
)

func (c *Comparison) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s of %.1f s, %s, %s\n\n", amount.Of(c.Rounds, "round"), c.Seconds, amount.Of(c.Cores, "core"), c.Go)
	wire, loads := len(c.WirePerMessage) > 0, len(c.AtTenth) > 0
	fmt.Fprintf(t, "rate, median\tM/s\tCPU ns a message\tallocations a tuple")
	if wire {
		fmt.Fprintf(t, "\tbytes a message on the wire")
	}
	fmt.Fprintln(t)
	for _, v := range c.of.variants {
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%.4f", v.name, c.Medians[v.name]/1e6, c.CPUPerMessage[v.name], c.AllocsPerTuple[v.name])
		if wire {
			fmt.Fprintf(t, "\t%.1f", c.WirePerMessage[v.name])
		}
		fmt.Fprintln(t)
	}
	if m, ok := c.Medians[modelName]; ok {
		fmt.Fprintf(t, "%s\t%.2f\t\n", modelName, m/1e6)
	}
	fmt.Fprintf(t, "\nratio\tmedian\tmin\tmax\twanted on 2 cores\n")
	for _, q := range c.of.ratios {
		if r, ok := c.Ratios[q.name]; ok {
			wanted := ""
			if q.floor > 0 {
				wanted = fmt.Sprintf("%.2f", q.floor)
			}
			if r < q.floor {
				wanted += ", not reached"
			}
			fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%s\n", q.name, r, c.Ranges[q.name].Min, c.Ranges[q.name].Max, wanted)
		}
	}
	if loads {
		fmt.Fprintf(t, "\nfrom when it was due, at a tenth of the rate\tp50 ms\tp99 ms\tmin\tmax\twanted on 2 cores\tp99.9 ms\n")
		for _, v := range c.of.variants {
			if l, ok := c.AtTenth[v.name]; ok {
				wanted := ""
				if v.p99 > 0 {
					wanted = fmt.Sprintf("%.2f", v.p99/1e3)
					if l.P99 > v.p99 {
						wanted += ", not reached"
					}
				}
				fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%.2f\n", v.name, l.P50/1e3, l.P99/1e3, l.P99Range.Min/1e3, l.P99Range.Max/1e3, wanted, l.P999/1e3)
			}
		}
	}
	fmt.Fprintf(t, "\n%s failed; the counts of all word counts are equal (%s)\n", amount.Of(c.Failed, "message"), c.Digest)
	return t.Flush()
}
