package experiment

import "math"

// summary is an outcome of an arm over its seeds.
type summary struct {
	Arm     string `json:"arm"`
	Outcome string `json:"outcome"`
	sample
}

// Contrast is the difference of an outcome between two arms, paired by seed: that of Arm less that of Against.
type Contrast struct {
	Arm     string `json:"arm"`
	Against string `json:"against"`
	Outcome string `json:"outcome"`
	sample         // of the differences
	// Corrected is P for the number of all contrasts of the experiment (Holm); nil without P.
	Corrected *float64 `json:"p_corrected"`
	Pairs     []pair   `json:"pairs"`
}

// pair is what two trials with one seed are compared by.
type pair struct {
	Seed    uint64  `json:"seed"`
	Arm     float64 `json:"arm"`
	Against float64 `json:"against"`
}

// Name names the contrast.
func (c Contrast) Name() string { return c.Arm + " − " + c.Against }

// Verdict says in a word what a contrast shows: higher, lower, or not resolved.
func (c Contrast) Verdict() string {
	switch {
	case c.Corrected == nil || *c.Corrected >= level:
		return "not resolved"
	case c.Mean > 0:
		return "higher"
	}
	return "lower"
}

// summarise sums up the outcomes of finished trials by arm, in the order of the arms and outcomes.
func (f *File) summarise(trials []Observed) (out []summary) {
	for _, p := range f.Points {
		for _, a := range f.Arms {
			arm := p.label(a.Name)
			for _, o := range f.Outcomes {
				var values []float64
				for _, t := range trials {
					if t.Arm != arm || !t.finished() {
						continue
					}
					if v, ok := f.value(t.Result, o, f.Budget.Amount); ok {
						values = append(values, v)
					}
				}
				out = append(out, summary{Arm: arm, Outcome: o.Name, sample: sampleOf(values)})
			}
		}
	}
	return out
}

// compare makes the contrasts that the file asks for from the finished trials. A seed counts where both arms have
// finished.
func (f *File) compare(trials []Observed) (out []Contrast) {
	var p []*float64
	for _, point := range f.Points {
		for _, c := range f.Comparisons {
			for _, name := range c.Outcomes {
				o, _ := f.outcome(name)
				one := Contrast{Arm: point.label(c.Arm), Against: point.label(c.Against), Outcome: name}
				one.Pairs = f.pairs(trials, one, o)
				differences := make([]float64, len(one.Pairs))
				for i, pair := range one.Pairs {
					differences[i] = pair.Arm - pair.Against
				}
				one.sample = sampleOf(differences)
				out, p = append(out, one), append(p, one.P)
			}
		}
	}
	for i, corrected := range holm(p) {
		out[i].Corrected = corrected
	}
	return out
}

// pairs pairs the trials of two arms by seed. Without an amount in the budget, both are read up to what both have
// spent.
func (f *File) pairs(trials []Observed, c Contrast, o Outcome) (out []pair) {
	for _, seed := range f.Seeds {
		a, b := find(trials, c.Arm, seed), find(trials, c.Against, seed)
		if a == nil || b == nil {
			continue
		}
		end := f.Budget.Amount
		if end == 0 && f.Budget.Axis != AxisSteps {
			end = min(a.End(f.Budget.Axis), b.End(f.Budget.Axis))
		}
		x, known := f.value(a, o, end)
		y, both := f.value(b, o, end)
		if known && both {
			out = append(out, pair{seed, x, y})
		}
	}
	return out
}

// value is an outcome of a trial up to an end on the budget's axis; 0: its own.
func (f *File) value(r *Result, o Outcome, end float64) (float64, bool) {
	if end == 0 {
		end = math.Inf(1)
	}
	return o.value(r.over(o, f.Budget.Axis), end)
}

// find returns the result of a finished trial; nil if there is none.
func find(trials []Observed, arm string, seed uint64) *Result {
	for _, t := range trials {
		if t.Arm == arm && t.Seed == seed && t.finished() {
			return t.Result
		}
	}
	return nil
}

func (t Observed) finished() bool { return t.Result != nil && t.Result.Done }

// Mean is the mean curve of an arm's trials over an axis, with the 95% t interval of the seeds at each of its points.
// The bounds of a point that one trial has are its value, and the bounds of a share are shares.
type Mean struct {
	Arm          string
	X, Y         []float64
	Low, High    []float64
	Trials, Done int
}

// Means are the mean curves of an outcome, an arm each. Trials that run count as far as they have come.
func (f *File) Means(trials []Observed, o Outcome) (out []Mean) {
	for _, p := range f.Points {
		for _, a := range f.Arms {
			m := Mean{Arm: p.label(a.Name)}
			var curves []Curve
			for _, t := range trials {
				if t.Arm != m.Arm {
					continue
				}
				m.Trials++
				m.Done += int(number(t.finished()))
				if t.Result != nil {
					curves = append(curves, t.Result.over(o, f.Budget.Axis))
				}
			}
			m.average(curves, o.Share)
			out = append(out, m)
		}
	}
	return out
}

// average averages curves point by point: the steps of trials of one arm are the same, and the amounts that they have
// spent by then are averaged too.
func (m *Mean) average(curves []Curve, share bool) {
	longest := 0
	for _, c := range curves {
		longest = max(longest, len(c))
	}
	for i := range longest {
		var xs, ys []float64
		for _, c := range curves {
			if i < len(c) {
				xs, ys = append(xs, c[i].X), append(ys, c[i].Y)
			}
		}
		x, y := student(xs), student(ys)
		bounds := interval{y.Mean, y.Mean}
		if y.T != nil {
			bounds = *y.T
		}
		if share {
			bounds = interval{max(0, bounds.Low), min(1, bounds.High)}
		}
		m.X, m.Y = append(m.X, x.Mean), append(m.Y, y.Mean)
		m.Low, m.High = append(m.Low, bounds.Low), append(m.High, bounds.High)
	}
}
