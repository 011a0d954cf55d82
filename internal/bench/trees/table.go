package main

import (
	"bytes"
	"fmt"
	"math"
	"text/tabwriter"
)

// difference is what a method's success is above the baseline's, in points, over the seeds.
type difference struct {
	Method string `json:"method"`
	// Steps compares after equally many steps, Calls after equally many tool calls.
	Steps interval `json:"at_equal_steps"`
	Calls interval `json:"at_equal_calls"`
}

// interval is a mean of paired differences with its 95% interval by Student's t; the bounds are null for one seed.
type interval struct {
	Mean float64  `json:"mean_points"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// student are the 97.5% quantiles of Student's t by degrees of freedom, from 1.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

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
			out = append(out, difference{m.name, intervalOf(steps), intervalOf(calls)})
		}
	}
	return out
}

func intervalOf(x []float64) (out interval) {
	n := float64(len(x))
	for _, v := range x {
		out.Mean += v / n
	}
	if len(x) < 2 || len(x) > len(student)+1 {
		return out
	}
	squares := 0.0
	for _, v := range x {
		squares += (v - out.Mean) * (v - out.Mean)
	}
	half := student[len(x)-2] * math.Sqrt(squares/(n-1)/n)
	low, high := out.Mean-half, out.Mean+half
	out.Low, out.High = &low, &high
	return out
}

// String writes points with their interval.
func (i interval) String() string {
	if i.Low == nil {
		return fmt.Sprintf("%+.1f", i.Mean)
	}
	return fmt.Sprintf("%+.1f [%+.1f, %+.1f]", i.Mean, *i.Low, *i.High)
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
