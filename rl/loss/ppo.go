package loss

import (
	"fmt"
	"math"
)

// LogRatioClamp bounds the log-ratio before exp; outside it the coefficient is 0.
const LogRatioClamp = 20

// Point is the loss of one token before aggregation.
type Point struct {
	Loss float64
	Coef float64 // d(Loss)/d(logp)
	// Clipped: the ratio was clipped against the advantage. Lower: the dual clip was active.
	Clipped, Lower bool
}

// Surrogate is a policy loss. Points writes one Point per token under the mask of a valid row;
// points is as long as the row, and entries off the mask stay untouched. A surrogate is a value
// without state: it may be used from several goroutines.
type Surrogate interface {
	Validate() error
	Points(row Row, points []Point)
}

// PPOClip is max(−A·r, −A·clip(r, 1−Low, 1+High)), bounded by −A·Dual where A < 0.
type PPOClip struct {
	Low, High float64 // ε of each side; clip-higher is High > Low
	Dual      float64 // C > 1, or 0 for none
}

// Validate reports the first bad field.
func (p PPOClip) Validate() error {
	switch {
	case !(p.Low >= 0 && p.Low <= 1):
		return fmt.Errorf("clip_low must be of [0, 1], got %g", p.Low)
	case !(p.High >= 0) || math.IsInf(p.High, 0):
		return fmt.Errorf("clip_high must be finite and ≥ 0, got %g", p.High)
	case p.Dual != 0 && (!(p.Dual > 1) || math.IsInf(p.Dual, 0)):
		return fmt.Errorf("dual_clip must be 0 (off) or > 1, got %g", p.Dual)
	}
	return nil
}

// Points applies Token to every token under the mask.
func (p PPOClip) Points(row Row, points []Point) {
	for t, m := range row.Mask {
		if m != 0 {
			points[t] = p.Token(row.LogProbs[t]-row.Old[t], row.Advantages[t])
		}
	}
}

// Token returns the loss of one token from its log-ratio and advantage.
func (p PPOClip) Token(logRatio, advantage float64) Point {
	if advantage == 0 {
		return Point{}
	}
	r := math.Exp(clamp(logRatio, LogRatioClamp))
	point := p.region(r, advantage)
	if math.Abs(logRatio) > LogRatioClamp {
		point.Coef = 0
	}
	return point
}

// region is the table of cases in r and the sign of the advantage a ≠ 0.
func (p PPOClip) region(r, a float64) Point {
	switch {
	case a > 0 && r > 1+p.High:
		return Point{Loss: -a * (1 + p.High), Clipped: true}
	case a < 0 && r < 1-p.Low:
		return Point{Loss: -a * (1 - p.Low), Clipped: true}
	case a < 0 && p.Dual > 0 && r > p.Dual:
		return Point{Loss: -a * p.Dual, Lower: true}
	}
	return Point{Loss: -a * r, Coef: -a * r}
}

// clamp bounds v to ±limit.
func clamp(v, limit float64) float64 { return math.Max(-limit, math.Min(limit, v)) }
