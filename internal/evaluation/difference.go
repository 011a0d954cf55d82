package evaluation

import (
	"math"

	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// Difference is the difference of success between two evaluations of the same problems, with its 95% interval.
type Difference struct {
	Problems int     `json:"problems"` // that both evaluations have
	Before   float64 `json:"before"`   // success on them
	After    float64 `json:"after"`
	Mean     float64 `json:"difference"`
	Low      float64 `json:"ci_low"`
	High     float64 `json:"ci_high"`
}

// Differ compares the sampled episodes of two evaluations. It is paired: a unit of the bootstrap is a problem, with the
// difference of its two means. So the interval leaves out how much harder one problem is than another, and is narrower
// than the intervals of the two rates suggest. Problems that only one evaluation has do not count. level selects
// problems of one level; a negative one selects all. Without common problems ok is false.
func Differ(before, after []schema.EvaluationRow, level int, runSeed uint64) (out Difference, ok bool) {
	chosen := func(r schema.EvaluationRow) (float64, bool) {
		return number(r.Success), level < 0 || int(r.Level) == level
	}
	second := map[string]*tally{}
	for _, b := range byProblem(Sampled(after), chosen) {
		second[b.first.ProblemID] = b
	}
	var units []float64
	for _, a := range byProblem(Sampled(before), chosen) {
		if b := second[a.first.ProblemID]; b != nil {
			out.Before, out.After = out.Before+a.sum/a.n, out.After+b.sum/b.n
			units = append(units, b.sum/b.n-a.sum/a.n)
		}
	}
	if len(units) == 0 {
		return out, false
	}
	n := float64(len(units))
	out.Problems, out.Before, out.After = len(units), out.Before/n, out.After/n
	out.Mean, out.Low, out.High = diagnose.Bootstrap(units, Resamples, seed.Rand("bootstrap/difference", runSeed))
	if math.Abs(out.Mean) < tiny { // sums of thirds need not cancel
		out.Mean = 0
	}
	return out, true
}

// tiny is less than any difference of success that samples can make.
const tiny = 1e-12
