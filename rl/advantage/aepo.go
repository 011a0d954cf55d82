package advantage

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// AEPO's entropy-aware advantage (Dong et al. 2025, eqs 10–11): tokens with high entropy under the old
// policy learn more. Over the valid tokens in scope,
//
//	z_t = (H_t − mean)/std                (sample std)
//	A_t = A·(1 + a·z_t)                   linear, eq 11
//	A_t = A·max(1 + z_t, 0)^a             power, Algorithm 2
//
// Departures: one sentence of the paper takes the statistics over the group, the next one over the
// trajectory, and the code over the micro-batch. The default here is the group. The power form is
// undefined for z < −1 as printed, hence the max. If std < 1e-8, or for a single token, z is 0. The
// entropies are computed once, before the update; the code computes the current policy's entropies in
// every micro-batch.

// Scope says which tokens the statistics of the entropy are taken over.
type Scope string

// The scopes.
const (
	ScopeGroup      Scope = "group"
	ScopeTrajectory Scope = "trajectory"
	ScopeBatch      Scope = "batch"
)

// Form says how the entropy enters the advantage.
type Form string

// The forms.
const (
	FormLinear Form = "linear"
	FormPower  Form = "power"
)

// AEPO is the entropy-aware form of another estimator's advantages.
type AEPO struct {
	Weight float64 `min:"0"`                       // a ≥ 0
	Scope  Scope   `enum:"group|trajectory|batch"` // ScopeGroup when empty
	Form   Form    `enum:"linear|power"`           // FormLinear when empty
}

// minDeviation is the least standard deviation of entropy that counts as one.
const minDeviation = 1e-8

// Validate reports the first bad field.
func (a AEPO) Validate() error { return choice.Check("", a) }

// Estimate returns z and the advantage of each token (both 0 under mask 0) from its row's advantage
// and its own entropy in nats.
func (a AEPO) Estimate(
	rows []Row, advantages []float64, entropy [][]float64, mask [][]int32,
) (z, out [][]float64, err error) {
	if err := a.Validate(); err != nil {
		return nil, nil, err
	}
	if len(rows) != len(mask) {
		return nil, nil, fmt.Errorf("weigh by entropy: %d rows for %d rows of mask", len(rows), len(mask))
	}
	out, err = Broadcast(advantages, mask) // checks the mask
	if err != nil {
		return nil, nil, fmt.Errorf("weigh by entropy: %w", err)
	}
	if err := checkTokens("entropy", entropy, mask, false); err != nil {
		return nil, nil, fmt.Errorf("weigh by entropy: %w", err)
	}
	o, err := canonical(len(rows), func(i int) Row { return rows[i] })
	if err != nil {
		return nil, nil, fmt.Errorf("weigh by entropy: %w", err)
	}
	z = newRows(mask)
	for _, scope := range a.scopes(o) {
		standardise(z, entropy, mask, scope)
	}
	for i, row := range mask {
		for t, m := range row {
			if m == 1 {
				out[i][t] *= a.factor(z[i][t])
			}
		}
	}
	return z, out, nil
}

// scopes lists the rows of each scope.
func (a AEPO) scopes(o order) [][]int {
	var out [][]int
	switch a.Scope {
	case ScopeBatch:
		out = append(out, o.rows)
	case ScopeTrajectory:
		for k := range len(o.trajectories) - 1 {
			out = append(out, o.trajectory(k))
		}
	default:
		for g := range len(o.groups) - 1 {
			out = append(out, o.group(g))
		}
	}
	return out
}

// factor returns the number that an advantage is multiplied with.
func (a AEPO) factor(z float64) float64 {
	if a.Form == FormPower {
		return math.Pow(math.Max(1+z, 0), a.Weight)
	}
	return 1 + a.Weight*z
}

// standardise writes (x − mean)/std over the valid tokens of the given rows.
func standardise(out, x [][]float64, mask [][]int32, rows []int) {
	tokens, least := span(x, mask, rows)
	if tokens < 2 {
		return
	}
	n, scratch := float64(tokens), make([]float64, 0, len(rows))
	// Sum offsets from the least value, so that equal values leave no rounding error.
	offset := sumTokens(x, mask, rows, scratch, func(v float64) float64 { return v - least }) / n
	square := sumTokens(
		x, mask, rows, scratch, func(v float64) float64 { return (v - least - offset) * (v - least - offset) },
	)
	deviation := math.Sqrt(square / (n - 1))
	if deviation < minDeviation {
		return
	}
	for _, i := range rows {
		for t, m := range mask[i] {
			if m == 1 {
				out[i][t] = (x[i][t] - least - offset) / deviation
			}
		}
	}
}
