package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"
)

// summary is a cell over its seeds.
type summary struct {
	Cell string `json:"cell"`
	// Gain is the mean rise over the clone in points, with its 95% interval by Student's t over the seeds; the bounds
	// are null for one seed.
	Gain    float64  `json:"gain_points"`
	Low     *float64 `json:"gain_low"`
	High    *float64 `json:"gain_high"`
	Seconds float64  `json:"most_rl_seconds"`
}

// student are the 97.5% quantiles of Student's t by degrees of freedom, from 1.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

func summaries(all []trial) (out []summary) {
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(t trial) bool { return t.Cell != all[0].Cell })
		if n < 0 {
			n = len(all)
		}
		out, all = append(out, summarise(all[:n])), all[n:]
	}
	return out
}

func summarise(of []trial) summary {
	s := summary{Cell: of[0].Cell}
	for _, t := range of {
		s.Gain += t.gain() / float64(len(of))
		s.Seconds = max(s.Seconds, t.RLSeconds)
	}
	if len(of) < 2 || len(of) > len(student)+1 {
		return s
	}
	var squares float64
	for _, t := range of {
		squares += (t.gain() - s.Gain) * (t.gain() - s.Gain)
	}
	half := student[len(of)-2] * math.Sqrt(squares/float64(len(of)-1)/float64(len(of)))
	low, high := s.Gain-half, s.Gain+half
	s.Low, s.High = &low, &high
	return s
}

// table shows every trial, and every cell over its seeds.
func table(all []trial) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "cell\tseed\tclone\ttrained\tgain\tRL")
	for _, t := range all {
		over := ""
		if t.RLSeconds > limit {
			over = fmt.Sprintf(" (limit %d s: missed)", limit)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%+.1f\t%.0f s%s\n", t.Cell, t.Seed, t.Warm, t.Final, t.gain(), t.RLSeconds,
			over)
	}
	fmt.Fprintln(w, "\t\t\t\t\t")
	fmt.Fprintln(w, "cell\tseeds\tmean gain\t95%\t\t")
	for _, s := range summaries(all) {
		interval := "–"
		if s.Low != nil {
			interval = fmt.Sprintf("[%+.1f, %+.1f]", *s.Low, *s.High)
		}
		n := len(slices.DeleteFunc(slices.Clone(all), func(t trial) bool { return t.Cell != s.Cell }))
		fmt.Fprintf(w, "%s\t%d\t%+.1f\t%s\t\t\n", s.Cell, n, s.Gain, interval)
	}
	_ = w.Flush() // a bytes.Buffer returns no error
	return b.String()
}

func (r rate) String() string {
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*r.Success, 100*r.Low, 100*r.High)
}
