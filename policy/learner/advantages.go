package learner

import (
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// describeAdvantages fills in what the rows of one optimiser step multiply their ratios with: the batch's
// advantages, weights included, over the loss tokens, each once (verl's critic/advantages, which are over
// the same tokens of its batch). Copies count once, unlike in the means of the loss: no copy has an
// advantage of its own.
func describeAdvantages(out *schema.UpdateRow, rows []row, chosen []int) {
	var values []float64
	zero, positive := 0, 0
	for _, i := range chosen {
		r := &rows[i].loss
		for t, m := range r.Mask {
			if m == 0 {
				continue
			}
			a := float64(r.Advantages[t])
			values = append(values, a)
			switch {
			case a == 0:
				zero++
			case a > 0:
				positive++
			}
		}
	}
	if len(values) == 0 {
		return
	}
	n := float64(len(values))
	out.AdvantageMean, out.AdvantageStd = new(mean(values)), new(math.Sqrt(variance(values)))
	out.AdvantageMin, out.AdvantageMax = new(slices.Min(values)), new(slices.Max(values))
	out.AdvantageZero, out.AdvantagePositive = new(float64(zero)/n), new(float64(positive)/n)
}

// mean is that of values, exactly theirs where they are equal; 0 of none.
func mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	offset := 0.0
	for _, v := range x {
		offset += v - x[0]
	}
	return x[0] + offset/float64(len(x))
}
