package loss

// outside counts the ratios out of bounds, by the sign of the advantage and by side, and those on which the dual
// clip acts. Tokens with A = 0 are not counted.
type outside struct{ positiveAbove, positiveBelow, negativeAbove, negativeBelow, dual float64 }

func (o *outside) add(p outside, n float64) {
	o.positiveAbove += n * p.positiveAbove
	o.positiveBelow += n * p.positiveBelow
	o.negativeAbove += n * p.negativeAbove
	o.negativeBelow += n * p.negativeBelow
	o.dual += n * p.dual
}

// outsideLoop counts.
func outsideLoop(ratio, advantages []float64, b Bounds) (o outside) {
	if wide != nil {
		return wide.outside(ratio, advantages, b)
	}
	for t, r := range ratio {
		if r >= b.Low && r <= b.High {
			continue // nearly all tokens
		}
		o.add(b.classify(r, advantages[t]), 1)
	}
	return o
}

// classify returns on which side of the bounds a ratio lies, as counts.
func (b Bounds) classify(r, advantage float64) (o outside) {
	switch {
	case advantage > 0 && r > b.High:
		o.positiveAbove = 1
	case advantage > 0 && r < b.Low:
		o.positiveBelow = 1
	case advantage < 0 && r > b.High:
		o.negativeAbove = 1
	case advantage < 0 && r < b.Low:
		o.negativeBelow = 1
	}
	if b.Dual > 0 && advantage < 0 && r > b.Dual {
		o.dual = 1
	}
	return o
}
