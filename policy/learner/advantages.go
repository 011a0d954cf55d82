package learner

import (
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// describeAdvantages records the advantages, including weights, of one optimiser step. The statistics cover the loss
// tokens of the chosen rows and count each token once, like verl's critic/advantages. A copy of a row is not counted
// again, although the means of the loss do count it, because a copy has no advantage of its own.
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

// mean returns the mean of values, or 0 for an empty list. The mean of equal values is exactly that value.
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
