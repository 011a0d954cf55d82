package advantage

// RLOO (Kool et al. 2019; Ahmadian et al. 2024): a row's score against the mean of the others
// of its group,
//
//	A_i = R_i − (Σ_{j≠i} R_j)/(n−1) = n/(n−1)·(R_i − μ)
//
// Departures: none for n ≥ 2. A group of one has no others: released code keeps the raw score in
// its loop form and gives 0 in its vectorised form; both are there.

// RLOO is the leave-one-out estimator.
type RLOO struct {
	SingleGroup SingleGroup // SingleRaw when empty
}

// Validate reports the first bad field.
func (r RLOO) Validate() error { return r.SingleGroup.validate() }

// Estimate returns the advantage of each row from its score and the name of its group.
func (r RLOO) Estimate(scores []float64, groups []string) ([]float64, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	var scratch []float64
	return againstOthers(scores, groups, r.SingleGroup, func(out []float64, rows []int) {
		scratch = gather(scratch, scores, rows)
		mean, _ := sortedMoments(scratch)
		n := float64(len(rows))
		for _, i := range rows {
			out[i] = n / (n - 1) * (scores[i] - mean)
		}
	})
}
