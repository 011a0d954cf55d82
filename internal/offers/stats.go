package offers

import "github.com/ropewalk/ropewalk/rl/diagnose"

// figure is a number of the report and its name among the statistics of a manifest.
type figure struct {
	name  string
	value func(r *diagnose.PropertyReport) *float64 // a share or a mean; nil: it is a count
	count func(r *diagnose.PropertyReport) *int
	// known is nil if the figure is always known; else its name among the statistics is missing where it is not.
	known func(r *diagnose.PropertyReport) *bool
}

// figures are all of them. Records hold the names.
var figures = []figure{
	{name: "before_trajectories", count: func(r *diagnose.PropertyReport) *int { return &r.Trajectories }},
	{name: "before_groups", count: func(r *diagnose.PropertyReport) *int { return &r.Groups }},
	{name: "before_turns", count: func(r *diagnose.PropertyReport) *int { return &r.Turns }},
	{name: "before_calls", count: func(r *diagnose.PropertyReport) *int { return &r.Calls }},
	{name: "before_positive_calls", count: func(r *diagnose.PropertyReport) *int { return &r.PositiveCalls }},
	{name: "before_zero_variance", value: func(r *diagnose.PropertyReport) *float64 { return &r.ZeroVariance }},
	{name: "before_failed_in_positive",
		value: func(r *diagnose.PropertyReport) *float64 { return &r.FailedInPositive }},
	{name: "before_success", value: func(r *diagnose.PropertyReport) *float64 { return &r.Success }},
	{name: "before_compared", value: func(r *diagnose.PropertyReport) *float64 { return &r.Compared },
		known: func(r *diagnose.PropertyReport) *bool { return &r.AnchorsKnown }},
	{name: "before_invalid", value: func(r *diagnose.PropertyReport) *float64 { return &r.Invalid }},
	{name: "before_calls_per_trajectory",
		value: func(r *diagnose.PropertyReport) *float64 { return &r.CallsPerTrajectory }},
	{name: "before_consecutive_high", value: func(r *diagnose.PropertyReport) *float64 { return &r.ConsecutiveHigh },
		known: func(r *diagnose.PropertyReport) *bool { return &r.EntropiesKnown }},
}

// Stats returns the report as statistics of a manifest.
func Stats(r diagnose.PropertyReport) map[string]float64 {
	out := map[string]float64{}
	for _, f := range figures {
		switch {
		case f.known != nil && !*f.known(&r):
		case f.count != nil:
			out[f.name] = float64(*f.count(&r))
		default:
			out[f.name] = *f.value(&r)
		}
	}
	return out
}

// Read is the inverse of Stats. found is false if the statistics hold no report.
func Read(stats map[string]float64) (r diagnose.PropertyReport, found bool) {
	for _, f := range figures {
		x, there := stats[f.name]
		if f.known != nil {
			*f.known(&r) = there
		} else if !there {
			return diagnose.PropertyReport{}, false
		}
		if f.count != nil {
			*f.count(&r) = int(x)
		} else {
			*f.value(&r) = x
		}
	}
	return r, true
}
