package loss

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// The selection behind Clip-Cov and KL-Cov. It needs the current log-probabilities of a whole scope
// before any of its rows can be evaluated, so it is a step of its own: Prepare. A row counts once,
// whatever its Count: its advantage carries the weight of its copies.

// CovarianceScope says over which tokens the means are taken.
type CovarianceScope string

// The scopes.
const (
	// ScopeMinibatch takes every row given to Prepare: a mini-batch by default, or a micro-batch where
	// the trainer prepares each by itself, as released code does.
	ScopeMinibatch CovarianceScope = "minibatch"
	// ScopeGroup takes the tokens at the same index of the rows of one group (SPEAR eq. 16).
	ScopeGroup CovarianceScope = "group"
)

// CovarianceRule says which tokens are selected.
type CovarianceRule struct {
	Scope        CovarianceScope // "" is ScopeMinibatch
	Ratio        float64         // λ: the budget is max(1, ⌊λ·tokens⌋)
	Lower, Upper float64         // strict bounds on c; of Clip-Cov alone
	// PerRow gives each row a budget ⌊λ·T_i⌋ of its own, as SPEAR's paper has it, instead of one for
	// the scope.
	PerRow bool
}

func (c CovarianceRule) validate() error {
	switch {
	case c.Scope != "" && c.Scope != ScopeMinibatch && c.Scope != ScopeGroup:
		return fmt.Errorf("cov_scope must be %s or %s, got %q", ScopeMinibatch, ScopeGroup, c.Scope)
	case !(c.Ratio > 0 && c.Ratio <= 1):
		return fmt.Errorf("cov_ratio must be of (0, 1], got %g", c.Ratio)
	case math.IsNaN(c.Lower) || math.IsNaN(c.Upper):
		return fmt.Errorf("cov bounds must be numbers, got %g and %g", c.Lower, c.Upper)
	}
	return nil
}

// Budget is how many of the given number of tokens the rule may select.
func (c CovarianceRule) Budget(tokens int) int { return max(1, int(c.Ratio*float64(tokens))) }

// rule returns the covariance rule of a surrogate that has one, and whether it draws among
// candidates (Clip-Cov) or takes the greatest (KL-Cov).
func rule(s Surrogate) (r CovarianceRule, clip PPOClip, draws, ok bool) {
	switch s := s.(type) {
	case ClipCov:
		return s.Rule, PPOClip{Low: s.Low, High: s.High}, true, true
	case KLCov:
		return s.Rule, PPOClip{}, false, true
	case SelfImitation:
		return rule(s.Policy)
	}
	return CovarianceRule{}, PPOClip{}, false, false
}

// Covariances gives c of every token, 0 off the mask.
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

// groupCovariances centres each index over the rows of its group that have a token there.
func groupCovariances[T Float](rows []Row[T], out [][]float64) {
	groups := map[string][]int{}
	for i, r := range rows {
		groups[r.Group] = append(groups[r.Group], i)
	}
	for _, members := range groups {
		length := 0
		for _, i := range members {
			length = max(length, len(rows[i].Mask))
		}
		for t := range length {
			column(rows, members, t, out)
		}
	}
}

func column[T Float](rows []Row[T], members []int, t int, out [][]float64) {
	var as, ls []float64
	for _, i := range members {
		if r := rows[i]; t < len(r.Mask) && r.Mask[t] != 0 {
			as, ls = append(as, float64(r.Advantages[t])), append(ls, float64(r.LogProbs[t]))
		}
	}
	if len(as) == 0 {
		return
	}
	n := float64(len(as))
	meanA, meanL := sortedSum(as)/n, sortedSum(ls)/n
	for _, i := range members {
		if r := rows[i]; t < len(r.Mask) && r.Mask[t] != 0 {
			out[i][t] = (float64(r.Advantages[t]) - meanA) * (float64(r.LogProbs[t]) - meanL)
		}
	}
}

// place is one token of the scope.
type place struct{ row, token int }

// canonical orders rows by group, sample and turn.
func canonical[T Float](rows []Row[T]) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &rows[a], &rows[b]
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Sample, y.Sample), cmp.Compare(x.Turn, y.Turn))
	})
	return order
}

// Candidates lists, in canonical order, the tokens (row, token) that Clip-Cov may draw: within the
// rule's bounds and not clipped by PPO.
func (p ClipCov) candidates(cov [][]float64, rows []selectable) []place {
	var out []place
	ppo := clipped(p.Low, p.High, 0)
	for _, r := range rows {
		for t, m := range r.mask {
			if m == 0 || !(cov[r.index][t] > p.Rule.Lower && cov[r.index][t] < p.Rule.Upper) {
				continue
			}
			ratio, a := math.Exp(clamp(r.logRatio(t), LogRatioClamp)), r.advantage(t)
			if a > 0 && ratio > ppo.positive.hi || a < 0 && ratio < ppo.negative.lo {
				continue
			}
			out = append(out, place{r.index, t})
		}
	}
	return out
}

// selectable is a row in canonical order without its element type.
type selectable struct {
	index               int
	mask                []int32
	logRatio, advantage func(t int) float64
}

func inOrder[T Float](rows []Row[T]) (out []selectable, tokens int) {
	for _, i := range canonical(rows) {
		r := rows[i]
		out = append(out, selectable{
			index: i, mask: r.Mask,
			logRatio:  func(t int) float64 { return float64(r.LogProbs[t]) - float64(r.Old[t]) },
			advantage: func(t int) float64 { return float64(r.Advantages[t]) },
		})
		tokens += r.Tokens()
	}
	return out, tokens
}

// selectTokens gives the marks of every row. rng is drawn from once per selected token of Clip-Cov.
func selectTokens[T Float](s Surrogate, rows []Row[T], rng *rand.Rand) [][]int32 {
	r, clip, draws, _ := rule(s)
	cov := Covariances(rows, r.Scope)
	ordered, tokens := inOrder(rows)
	marks := make([][]int32, len(rows))
	for i, row := range rows {
		marks[i] = make([]int32, len(row.Mask))
	}
	pick := func(part []selectable, budget int) {
		var chosen []place
		if draws {
			chosen = draw(ClipCov{Low: clip.Low, High: clip.High, Rule: r}.candidates(cov, part), budget, rng)
		} else {
			chosen = greatest(cov, part, budget)
		}
		for _, p := range chosen {
			marks[p.row][p.token] = 1
		}
	}
	switch {
	case tokens == 0:
	case r.PerRow:
		for k, row := range ordered {
			pick(ordered[k:k+1], int(r.Ratio*float64(countMask(row.mask))))
		}
	default:
		pick(ordered, r.Budget(tokens))
	}
	return marks
}

// draw takes min(budget, all) of the candidates uniformly without replacement.
func draw(candidates []place, budget int, rng *rand.Rand) []place {
	if budget >= len(candidates) {
		return candidates
	}
	for k := range budget {
		j := k + rng.IntN(len(candidates)-k)
		candidates[k], candidates[j] = candidates[j], candidates[k]
	}
	return candidates[:budget]
}

// greatest takes the budget's worth of tokens of greatest covariance.
func greatest(cov [][]float64, rows []selectable, budget int) []place {
	var all []place
	for _, r := range rows {
		for t, m := range r.mask {
			if m != 0 {
				all = append(all, place{r.index, t})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(cov[b.row][b.token], cov[a.row][a.token]) })
	return all[:min(budget, len(all))]
}
