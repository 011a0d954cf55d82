package loss

import (
	"fmt"
	"math"
	"slices"
)

// The covariances behind Clip-Cov and KL-Cov (Cui et al. 2025, eq. 10; SPEAR eq. 16),
//
//	c_t = (A_t − Ā)(logp_t − mean logp)
//
// with plain means over the tokens of a scope. They need the current log-probabilities of the whole
// scope before any of its rows can be evaluated, so a separate step selects the tokens: Prepare. A row
// counts once, whatever its Count is, because its advantage carries the weight of its copies.

// CovarianceScope says over which tokens the means are taken.
type CovarianceScope string

// The scopes.
const (
	ScopeMinibatch CovarianceScope = "minibatch"
	// ScopeMicrobatch is what released code does: each micro-batch is prepared separately, only for its
	// marks. The result then depends on how the mini-batch was cut.
	ScopeMicrobatch CovarianceScope = "microbatch"
	// ScopeGroup takes the tokens at the same position of the rows of one group (SPEAR eq. 16). Positions count from
	// the row's first token on the mask. Rows that are turns are compared with rows of the same turn.
	ScopeGroup CovarianceScope = "group"
)

// CovarianceRule says which tokens are selected.
type CovarianceRule struct {
	Scope        CovarianceScope // "" is ScopeMinibatch
	Ratio        float64         // λ: the budget is max(1, ⌊λ·tokens⌋)
	Lower, Upper float64         // bounds on c; of Clip-Cov alone
	// PerRow gives each row its own budget ⌊λ·T_i⌋, as in SPEAR's eq. 15, instead of one budget for the
	// whole scope. Its bounds belong to the range then, which are strict otherwise, as released.
	PerRow bool
}

// within reports whether a covariance lies between the bounds.
func (c CovarianceRule) within(cov float64) bool {
	return cov > c.Lower && cov < c.Upper || c.PerRow && (cov == c.Lower || cov == c.Upper)
}

func (c CovarianceRule) validate() error {
	switch {
	case c.Scope != "" && c.Scope != ScopeMinibatch && c.Scope != ScopeMicrobatch && c.Scope != ScopeGroup:
		return fmt.Errorf(
			"cov_scope must be %s, %s or %s, got %q", ScopeMinibatch, ScopeMicrobatch, ScopeGroup, c.Scope,
		)
	case !(c.Ratio > 0 && c.Ratio <= 1):
		return fmt.Errorf("cov_ratio must be of (0, 1], got %g", c.Ratio)
	case math.IsNaN(c.Lower) || math.IsNaN(c.Upper):
		return fmt.Errorf("cov bounds must be numbers, got %g and %g", c.Lower, c.Upper)
	}
	return nil
}

// Budget returns how many of the given number of tokens the rule may select.
func (c CovarianceRule) Budget(tokens int) int { return max(1, int(c.Ratio*float64(tokens))) }

// Covariances returns c of every token, by row and token; 0 for tokens off the mask.
func Covariances[T Float](rows []Row[T], scope CovarianceScope) [][]float64 {
	out := make([][]float64, len(rows))
	for i, r := range rows {
		out[i] = make([]float64, len(r.Mask))
	}
	if scope == ScopeGroup {
		groupCovariances(rows, out)
		return out
	}
	meanA, meanL := scopeMeans(rows)
	for i, r := range rows {
		for t, m := range r.Mask {
			if m != 0 {
				out[i][t] = (float64(r.Advantages[t]) - meanA) * (float64(r.LogProbs[t]) - meanL)
			}
		}
	}
	return out
}

// scopeMeans are the means of advantage and log-probability over all tokens. Rows' sums are added in
// sorted order: the order of rows changes no bit.
func scopeMeans[T Float](rows []Row[T]) (advantage, logp float64) {
	var as, ls []float64
	tokens := 0
	for _, r := range rows {
		a, l := 0.0, 0.0
		for t, m := range r.Mask {
			if m != 0 {
				a, l, tokens = a+float64(r.Advantages[t]), l+float64(r.LogProbs[t]), tokens+1
			}
		}
		as, ls = append(as, a), append(ls, l)
	}
	if tokens == 0 {
		return 0, 0
	}
	return sortedSum(as) / float64(tokens), sortedSum(ls) / float64(tokens)
}

func sortedSum(x []float64) float64 {
	slices.Sort(x)
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

// groupCovariances centres each position over the rows of its group that have a token there.
func groupCovariances[T Float](rows []Row[T], out [][]float64) {
	type turn struct {
		group  string
		number int32
	}
	groups := map[turn][]int{}
	first, length := make([]int, len(rows)), 0
	for i, r := range rows {
		key := turn{r.Group, r.Turn}
		groups[key] = append(groups[key], i)
		first[i] = max(0, slices.Index(r.Mask, 1))
		length = max(length, len(r.Mask)-first[i])
	}
	for _, members := range groups {
		for position := range length {
			var at []tokenRef
			for _, i := range members {
				if t := first[i] + position; t < len(rows[i].Mask) && rows[i].Mask[t] != 0 {
					at = append(at, tokenRef{i, t})
				}
			}
			centre(rows, at, out)
		}
	}
}

// centre computes the covariances of the tokens at one position.
func centre[T Float](rows []Row[T], at []tokenRef, out [][]float64) {
	as, ls := make([]float64, len(at)), make([]float64, len(at))
	for k, p := range at {
		as[k], ls[k] = float64(rows[p.row].Advantages[p.token]), float64(rows[p.row].LogProbs[p.token])
	}
	n := float64(len(at))
	meanA, meanL := sortedSum(slices.Clone(as))/n, sortedSum(slices.Clone(ls))/n
	for k, p := range at {
		out[p.row][p.token] = (as[k] - meanA) * (ls[k] - meanL)
	}
}
