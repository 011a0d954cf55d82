package advantage

import (
	"fmt"
	"math"
)

// EMPG, entropy-modulated policy gradients (Wang et al. 2025; ARLArena eqs S20–S23). With h the mean
// token entropy of a turn row under the old policy, over all rows of the batch
//
//	h̃ = (h − min)/(max − min + 1e-8)
//	g = exp(−k h̃) / (mean exp(−k h̃) + 1e-8),   f = exp(−k′ h̃)
//	A′ = g·A + ζ·f(next turn of the same trajectory, if there is one)
//	A  = A′ − mean A′
//
// so that certain turns learn more, and a turn that leads to a certain one is worth more.
// Departures: eq S22 as printed sums the trajectories' means without dividing, though its text
// calls the result an average; the default is the flat mean over rows, as in the released code, and
// Mean selects the others. The turn is a field of the row, not parsed out of its prompt.

// EntropyMean says what the denominator of g is.
type EntropyMean string

// The readings of eq S22.
const (
	MeanRows         EntropyMean = "rows"         // mean over rows
	MeanTrajectories EntropyMean = "trajectories" // mean over trajectories of the mean over their rows
	SumTrajectories  EntropyMean = "sum"          // as printed: the sum of those means
)

// EMPG is the entropy modulation of another estimator's advantages.
type EMPG struct {
	K      float64     // k ≥ 0, sharpness of g
	KPrime float64     // k′ ≥ 0, sharpness of f
	Zeta   float64     // ζ ≥ 0, weight of the next turn's f
	Mean   EntropyMean // MeanRows when empty
}

// DefaultEMPG holds ARLArena's constants.
var DefaultEMPG = EMPG{K: 1, KPrime: 1, Zeta: 0.05, Mean: MeanRows}

// Validate reports the first bad field.
func (e EMPG) Validate() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"k", e.K}, {"k_prime", e.KPrime}, {"zeta", e.Zeta}} {
		if !(f.value >= 0) || !finite(f.value) {
			return fmt.Errorf("%s must be finite and ≥ 0, got %g", f.name, f.value)
		}
	}
	switch e.Mean {
	case "", MeanRows, MeanTrajectories, SumTrajectories:
		return nil
	}
	return fmt.Errorf("mean must be %s, %s or %s, got %q", MeanRows, MeanTrajectories, SumTrajectories, e.Mean)
}

// EMPGRow is one turn row.
type EMPGRow struct {
	Row
	Entropy   float64 // h in nats, see TurnEntropy
	Advantage float64 // of the estimator that is modulated, GRPO in the papers
	// Dead: no token of the row is valid. It takes no part, not even as a next turn, and gets 0.
	Dead bool
}

// EMPGResult holds one value per row; all are 0 for dead rows.
type EMPGResult struct {
	Normalised []float64 // h̃ in [0, 1]
	Gain       []float64 // g
	Future     []float64 // f
	Advantage  []float64
}

// TurnEntropy is h, the mean entropy over a row's valid tokens; 0 of none.
func TurnEntropy(entropy []float64, mask []int32) (float64, error) {
	if err := checkMask([][]int32{mask}); err != nil {
		return 0, fmt.Errorf("average entropy: %w", err)
	}
	if err := checkTokens("entropy", [][]float64{entropy}, [][]int32{mask}, false); err != nil {
		return 0, fmt.Errorf("average entropy: %w", err)
	}
	sum := sumTokens([][]float64{entropy}, [][]int32{mask}, []int{0}, nil, func(v float64) float64 { return v })
	return sum / math.Max(float64(countTokens(mask)), 1), nil
}

// Estimate modulates the advantages of a whole batch. Rows of equal entropy have h̃ = 0, g and f 1.
func (e EMPG) Estimate(rows []EMPGRow) (EMPGResult, error) {
	if err := e.Validate(); err != nil {
		return EMPGResult{}, err
	}
	n := len(rows)
	for i, r := range rows {
		if !r.Dead && (!finite(r.Entropy) || !finite(r.Advantage)) {
			return EMPGResult{}, fmt.Errorf("modulate advantages: row %d (%v) has entropy %g, advantage %g", i, r.Row, r.Entropy, r.Advantage)
		}
	}
	o, err := canonical(n, func(i int) Row { return rows[i].Row })
	if err != nil {
		return EMPGResult{}, fmt.Errorf("modulate advantages: %w", err)
	}
	o = o.without(func(i int) bool { return rows[i].Dead })
	out := EMPGResult{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	if len(o.rows) == 0 {
		return out, nil
	}
	e.weigh(out, rows, o)
	e.modulate(out.Advantage, out, rows, o)
	return out, nil
}

// weigh writes h̃, g and f.
func (e EMPG) weigh(out EMPGResult, rows []EMPGRow, o order) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, i := range o.rows {
		least, most = math.Min(least, rows[i].Entropy), math.Max(most, rows[i].Entropy)
	}
	for _, i := range o.rows {
		h := (rows[i].Entropy - least) / (most - least + 1e-8)
		out.Normalised[i], out.Gain[i], out.Future[i] = h, math.Exp(-e.K*h), math.Exp(-e.KPrime*h)
	}
	scale := e.average(out.Gain, o) + 1e-8
	for _, i := range o.rows {
		out.Gain[i] /= scale
	}
}

// average is the denominator of g.
func (e EMPG) average(gain []float64, o order) float64 {
	if e.Mean != MeanTrajectories && e.Mean != SumTrajectories {
		mean, _ := sortedMoments(gather(nil, gain, o.rows))
		return mean
	}
	var means, scratch []float64
	for k := range len(o.trajectories) - 1 {
		scratch = gather(scratch, gain, o.trajectory(k))
		mean, _ := sortedMoments(scratch)
		means = append(means, mean)
	}
	mean, _ := sortedMoments(means)
	if e.Mean == SumTrajectories {
		return mean * float64(len(means))
	}
	return mean
}

// modulate writes the advantages.
func (e EMPG) modulate(out []float64, w EMPGResult, rows []EMPGRow, o order) {
	for k := range len(o.trajectories) - 1 {
		turns := o.trajectory(k)
		for at, i := range turns {
			out[i] = w.Gain[i] * rows[i].Advantage
			if at+1 < len(turns) && rows[turns[at+1]].Turn == rows[i].Turn+1 {
				out[i] += e.Zeta * w.Future[turns[at+1]]
			}
		}
	}
	mean, _ := sortedMoments(gather(nil, out, o.rows))
	for _, i := range o.rows {
		out[i] -= mean
	}
}
