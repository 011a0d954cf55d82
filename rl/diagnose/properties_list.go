package diagnose

// Property is one property of a world, and what a method wants of it.
type Property struct {
	Key   string // for programs: "zero_variance"
	Name  string // as text: "groups without variance"
	For   string // the methods that need it
	Value float64
	Share bool // Value is a share; else a number
	Known bool // the record has the data, and the denominator is not 0
	// Bound is the least value that the methods want; with Below, the value must be less than Bound. A bound of 0 says
	// that the papers give none.
	Bound float64
	Below bool
}

// Reached reports whether the property is as its methods want it. It is false for a property without a bound.
func (p Property) Reached() bool {
	switch {
	case !p.Known || p.Bound == 0:
		return false
	case p.Below:
		return p.Value < p.Bound
	}
	return p.Value >= p.Bound
}

// List returns the properties in the order in which they are shown.
func (r PropertyReport) List() []Property {
	turns := r.Turns > 0
	return []Property{
		{Key: "zero_variance", Name: "groups without variance", For: "VSPO, PRS", Value: r.ZeroVariance, Share: true,
			Known: r.Groups > 0, Bound: 0.6},
		{Key: "failed_in_positive", Name: "failed calls in positive trajectories", For: "RoC",
			Value: r.FailedInPositive, Share: true, Known: r.PositiveCalls > 0, Bound: 0.1},
		{Key: "success", Name: "initial success", For: "SPEAR", Value: r.Success, Share: true,
			Known: r.Trajectories > 0, Bound: 0.15, Below: true},
		{Key: "compared", Name: "turns in anchor groups that compare", For: "GiGPO", Value: r.Compared, Share: true,
			Known: turns && r.AnchorsKnown, Bound: 0.5},
		{Key: "invalid", Name: "invalid turns", For: "dynamic filtering", Value: r.Invalid, Share: true, Known: turns,
			Bound: 0.2},
		{Key: "calls_per_trajectory", Name: "calls per trajectory", For: "AEPO", Value: r.CallsPerTrajectory,
			Known: r.Trajectories > 0, Bound: 3},
		{Key: "consecutive_high", Name: "consecutive high-entropy turns", For: "AEPO", Value: r.ConsecutiveHigh,
			Share: true, Known: turns && r.EntropiesKnown},
	}
}
