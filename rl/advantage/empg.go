package advantage

import (
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// EMPG, entropy-modulated policy gradients (Wang et al. 2025; ARLArena eqs S20–S23). With h the mean
// token entropy of a turn row under the old policy, over all rows of the batch
//
//	h̃ = (h − min)/(max − min + 1e-8)
//	g = exp(−k h̃) / (mean exp(−k h̃) + 1e-8),   f = exp(−k′ h̃)
//	A′ = g·A + ζ·f(next turn of the same trajectory, if there is one)
//	A  = A′ − mean A′
//
// so that turns with low entropy learn more, and a turn before such a turn gets a bonus.
// Departures: eq S22 as printed sums the trajectories' means without dividing, though its text
// calls the result an average. The default is the flat mean over rows, as in the released code; Mean
// selects the other readings. The turn is a field of the row; released code parses it out of the prompt.

var empg = Declaration{
	Choice: choice.Choice{
		Name: "empg", Doc: "grpo, weighed by a turn's entropy, plus a bonus for clarity of the next turn",
		Source:   "EMPG (Wang et al. 2025); ARLArena S20–S22",
		Settings: empgSettings{Std: true, SingleGroup: SingleRaw, Stats: StatsTurnRows, K: 1, KPrime: 1, Zeta: 0.05},
		Needs:    []choice.Need{choice.NeedEntropies},
	},
	Turns: true, GroupMeans: true, ByEntropy: true,
}

// empgSettings are the parameters of EMPG in a recipe.
type empgSettings struct {
	Std            bool        `json:"std"`
	SingleGroup    SingleGroup `json:"single_group"`
	Stats          Stats       `json:"stats"`
	InvalidPenalty float64     `json:"invalid_penalty"`
	K              float64     `json:"k" min:"0" max:"1000" doc:"how strongly a turn's entropy lowers the weight of its own advantage"`
	KPrime         float64     `json:"k_prime" min:"0" max:"1000" doc:"how strongly the next turn's entropy lowers the bonus for future clarity"`
	Zeta           float64     `json:"zeta" min:"0" max:"1000" doc:"weight of the bonus for future clarity"`
}

// Estimate modulates GRPO's advantages. Rows without a token in the loss take no part.
func (e empgSettings) Estimate(b Batch) (Estimates, error) {
	base, err := grpoSettings{Std: e.Std, SingleGroup: e.SingleGroup, Stats: e.Stats}.Estimate(b)
	if err != nil {
		return Estimates{}, err
	}
	rows, entropies := make([]EMPGRow, len(b.Rows)), b.Entropies()
	for i, s := range b.Rows {
		rows[i] = EMPGRow{Row: s.Row, Advantage: base.Rows[i], Dead: !slices.Contains(s.Mask, 1)}
		if rows[i].Entropy, err = TurnEntropy(entropies[i], s.Mask); err != nil {
			return Estimates{}, err
		}
	}
	out, err := EMPG{K: e.K, KPrime: e.KPrime, Zeta: e.Zeta}.Estimate(rows)
	return Estimates{Rows: out.Advantage}, err
}

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
	K      float64     `min:"0"`                      // k ≥ 0, sharpness of g
	KPrime float64     `min:"0"`                      // k′ ≥ 0, sharpness of f
	Zeta   float64     `min:"0"`                      // ζ ≥ 0, weight of the next turn's f
	Mean   EntropyMean `enum:"rows|trajectories|sum"` // MeanRows when empty
}

// Validate reports the first bad field.
func (e EMPG) Validate() error { return choice.Check("", e) }

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

// TurnEntropy returns h, the mean entropy over a row's valid tokens, or 0 if it has none.
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

// Estimate modulates the advantages of a whole batch. If all rows have the same entropy, h̃ = 0 and g and f are 1.
func (e EMPG) Estimate(rows []EMPGRow) (EMPGResult, error) {
	if err := e.Validate(); err != nil {
		return EMPGResult{}, err
	}
	n := len(rows)
	for i, r := range rows {
		if !r.Dead && (!finite(r.Entropy) || !finite(r.Advantage)) {
			return EMPGResult{}, fmt.Errorf(
				"modulate advantages: row %d (%v) has entropy %g, advantage %g", i, r.Row, r.Entropy, r.Advantage,
			)
		}
	}
	o, err := canonical(n, func(i int) Row { return rows[i].Row })
	if err != nil {
		return EMPGResult{}, fmt.Errorf("modulate advantages: %w", err)
	}
	o = o.skipRows(func(i int) bool { return rows[i].Dead })
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
