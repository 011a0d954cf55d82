package main

import (
	"bytes"
	"fmt"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// difference is what a method's success is above the baseline's, in points, over the seeds.
type difference struct {
	Method string `json:"method"`
	// Steps compares after equally many steps, Calls after equally many tool calls.
	Steps bench.Interval `json:"at_equal_steps"`
	Calls bench.Interval `json:"at_equal_calls"`
}

// differences pairs the trials of each method with those of the baseline of the same seed.
func differences(all []trial) (out []difference) {
	base := map[int]trial{}
	for _, t := range all {
		if t.Method == baseline {
			base[t.Seed] = t
		}
	}
	for _, m := range methods {
		var steps, calls []float64
		for _, t := range all {
			if b, ok := base[t.Seed]; ok && t.Method == m.name && m.name != baseline {
				steps = append(steps, 100*(t.last().Success-b.last().Success))
				calls = append(calls, 100*(t.AtCommon-b.AtCommon))
			}
		}
		if len(steps) > 0 {
			out = append(out, difference{m.name, bench.IntervalOf(steps), bench.IntervalOf(calls)})
		}
	}
	return out
}

// table shows every trial, and every method against the baseline.
func table(all []trial) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "method\tseed\tclone\ttrained\tcalls\tat equal calls\tgenerated of the leaves' tokens\tRL")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%d\t%.1f%%\t%.1f%%\t%.0f\t%.1f%%\t%.0f%%\t%.0f s\n", t.Method, t.Seed,
			100*t.Curve[0].Success, 100*t.last().Success, t.last().Calls, 100*t.AtCommon, 100*t.Generated/t.InLeaves,
			t.RLSeconds)
	}
	fmt.Fprintln(w, "\t\t\t\t\t\t\t")
	fmt.Fprintf(w, "method\tagainst %s in points\tat equal steps\tat equal calls\t\t\t\t\n", baseline)
	for _, d := range differences(all) {
		fmt.Fprintf(w, "%s\t\t%s\t%s\t\t\t\t\n", d.Method, d.Steps, d.Calls)
	}
	_ = w.Flush() // a bytes.Buffer returns no error
	return b.String()
}
