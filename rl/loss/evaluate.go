package loss

import (
	"errors"
	"fmt"
)

// Result is one micro-batch's share of a mini-batch's loss.
type Result struct {
	Loss       float64     // shares of one mini-batch add up to its loss
	Cotangents [][]float64 // d(loss)/d(logp), shaped like the rows, 0 off the mask
	Tally      Tally
}

// Evaluate gives the policy loss of a micro-batch under its mini-batch's denominator.
func Evaluate(s Surrogate, rows []Row, d Denominator) (Result, error) {
	out := Result{Cotangents: make([][]float64, len(rows))}
	for i, row := range rows {
		if err := errors.Join(row.Validate(), row.checkLogProbs()); err != nil {
			return Result{}, fmt.Errorf("evaluate loss of row %d: %w", i, err)
		}
		points := make([]Point, len(row.Mask))
		s.Points(row, points)
		out.Loss += out.add(i, row, points, d)
		out.Tally.add(row, points)
	}
	if !finite(out.Loss) {
		return Result{}, fmt.Errorf("evaluate loss: it is %g", out.Loss)
	}
	return out, nil
}

// NegativeLogLikelihood is behaviour cloning: −logp of the tokens under the mask. A row's old
// log-probabilities and advantages are not read, and a row of count N enters N times.
func NegativeLogLikelihood(rows []Row, d Denominator) (Result, error) {
	out := Result{Cotangents: make([][]float64, len(rows))}
	for i, row := range rows {
		if err := errors.Join(row.checkMask(), row.checkLogProbs()); err != nil {
			return Result{}, fmt.Errorf("evaluate likelihood of row %d: %w", i, err)
		}
		points := make([]Point, len(row.Mask))
		for t := range points {
			points[t] = Point{Loss: -row.LogProbs[t] * float64(row.Count), Coef: -float64(row.Count)}
		}
		out.Loss += out.add(i, row, points, d)
		out.Tally.count(row)
	}
	return out, nil
}

// add writes row i's cotangents and returns its loss.
func (r *Result) add(i int, row Row, points []Point, d Denominator) float64 {
	weight, sum := d.Weight(row.Tokens()), 0.0
	r.Cotangents[i] = make([]float64, len(row.Mask))
	for t, m := range row.Mask {
		if m != 0 {
			sum += points[t].Loss
			r.Cotangents[i][t] = points[t].Coef * weight
		}
	}
	return sum * weight
}
