package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// goal is a bound on a figure, for two cores.
type goal struct {
	What     string   `json:"what"`
	Measured *float64 `json:"measured,omitempty"`
	AtLeast  *float64 `json:"at_least,omitempty"`
	AtMost   *float64 `json:"at_most,omitempty"`
	Met      bool     `json:"met"` // false if it was not measured
}

func goals(r *result) []goal {
	var all []goal
	least := func(what string, measured *float64, bound float64) {
		all = append(all, goal{What: what, Measured: measured, AtLeast: &bound, Met: measured != nil &&
			*measured >= bound})
	}
	most := func(what string, measured *float64, bound float64) {
		all = append(all, goal{What: what, Measured: measured, AtMost: &bound, Met: measured != nil &&
			*measured <= bound})
	}
	least("stateless calls/s over the limit's", r.LimitRatio, 0.85)
	least("stateless calls/s over the best isolated peer's", r.PeerRatio, 4.5)
	most("latency p50 at 2 in flight, ms", of(r.Latency2, func(l latency) float64 { return l.P50 }), 1.5)
	most("latency p99 at 2 in flight, ms", of(r.Latency2, func(l latency) float64 { return l.P99 }), 5)
	most("latency p99 at 64 in flight, ms", of(r.Latency64, func(l latency) float64 { return l.P99 }), 110)
	least(fmt.Sprintf("cells/s of %d sessions", manySessions), r.Sessions, 20000)
	least("burst: share of calls that got their own verdict",
		of(r.Burst, func(b burst) float64 { return float64(b.Answered) / float64(b.Calls) }), 1)
	most("recovery, ms", r.Recovery, 2000)
	most("cold start, ms", r.Cold, 1500)
	most("good calls' loss to endless loops", r.StuckLoss, 0.15)
	return all
}

// of returns a number from a figure, if the figure was measured.
func of[T any](figure *T, take func(T) float64) *float64 {
	if figure == nil {
		return nil
	}
	return pointer(take(*figure))
}

func show(r *result) {
	fmt.Printf("\nsandbox: tier %s, packages %s, Python %s, %d workers on %d cores\n", r.Tier, r.Packages,
		r.Versions["python"], r.Workers, r.Cores)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	rate := func(name string, x *float64) {
		if x != nil {
			fmt.Fprintf(w, "%s\t%.0f calls/s\n", name, *x)
		}
	}
	rate("this sandbox", r.Stateless)
	rate("limit", r.Limit)
	for _, name := range sorted(r.Peers) {
		x := r.Peers[name]
		rate("peer "+name, &x)
	}
	if r.LimitMean2 != nil {
		fmt.Fprintf(w, "at the limit, 2 in flight\t%.2f ms a call\n", *r.LimitMean2)
	}
	if b := r.Burst; b != nil {
		fmt.Fprintf(w,
			"burst\t%d of %d answered, %d mixed up, p50 %.0f ms, p99 %.0f ms, %.0f calls/s, at most %.0f MiB\n",
			b.Answered, b.Calls, b.Mixed, b.P50, b.P99, b.CallsPerS, b.PeakMB)
	}
	w.Flush()
	fmt.Println()
	fmt.Fprintln(w, "figure\tmeasured\tgoal\t")
	for _, g := range r.Goals {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g.What, g.figure(), g.bound(), g.outcome())
	}
	w.Flush()
	for _, key := range sorted(r.Absent) {
		fmt.Printf("no %s: %s\n", key, r.Absent[key])
	}
}

func (g goal) figure() string {
	if g.Measured == nil {
		return "–"
	}
	return fmt.Sprintf("%.4g", *g.Measured)
}

func (g goal) bound() string {
	if g.AtLeast != nil {
		return fmt.Sprintf("≥ %g", *g.AtLeast)
	}
	return fmt.Sprintf("≤ %g", *g.AtMost)
}

func (g goal) outcome() string {
	switch {
	case g.Measured == nil:
		return "not measured"
	case g.Met:
		return "met"
	default:
		return "missed"
	}
}
