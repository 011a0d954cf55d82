package bench

import (
	"fmt"
	"math"
)

// Interval is a mean with its 95% interval by Student's t; the bounds are null for one value.
type Interval struct {
	Mean float64  `json:"mean_points"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// student are the 97.5% quantiles of Student's t by degrees of freedom, from 1.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// IntervalOf returns the mean of values, such as paired differences, and its interval if there are 2 to 10 of them.
func IntervalOf(x []float64) (out Interval) {
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

// String writes the mean with its interval.
func (i Interval) String() string {
	if i.Low == nil {
		return fmt.Sprintf("%+.1f", i.Mean)
	}
	return fmt.Sprintf("%+.1f [%+.1f, %+.1f]", i.Mean, *i.Low, *i.High)
}
