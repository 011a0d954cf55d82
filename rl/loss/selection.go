package loss

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Which tokens a covariance rule selects: Clip-Cov draws among candidates, KL-Cov takes the greatest.
// Rows are put into canonical order first.

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

// tokenRef is one token of the scope.
type tokenRef struct{ row, token int }

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

// candidates lists, in canonical order, the tokens that Clip-Cov may draw: within the
// rule's bounds and not clipped by PPO.
func (p ClipCov) candidates(cov [][]float64, rows []selectable) []tokenRef {
	var out []tokenRef
	ppo := clipped(p.Low, p.High, 0)
	for _, r := range rows {
		for t, m := range r.mask {
			if m == 0 || !p.Rule.within(cov[r.index][t]) {
				continue
			}
			ratio, a := math.Exp(clamp(r.logRatio(t), LogRatioClamp)), r.advantage(t)
			if a > 0 && ratio > ppo.positive.hi || a < 0 && ratio < ppo.negative.lo {
				continue
			}
			out = append(out, tokenRef{r.index, t})
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

// selectTokens returns the marks of every row. It draws from rng once for each token that Clip-Cov selects.
func selectTokens[T Float](s Surrogate, rows []Row[T], rng *rand.Rand) [][]int32 {
	r, clip, draws, _ := rule(s)
	cov := Covariances(rows, r.Scope)
	ordered, tokens := inOrder(rows)
	marks := make([][]int32, len(rows))
	for i, row := range rows {
		marks[i] = make([]int32, len(row.Mask))
	}
	pick := func(part []selectable, budget int) {
		var chosen []tokenRef
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

// draw takes min(budget, number of candidates) candidates, uniformly and without replacement.
func draw(candidates []tokenRef, budget int, rng *rand.Rand) []tokenRef {
	if budget >= len(candidates) {
		return candidates
	}
	for k := range budget {
		j := k + rng.IntN(len(candidates)-k)
		candidates[k], candidates[j] = candidates[j], candidates[k]
	}
	return candidates[:budget]
}

// greatest takes the tokens with the greatest covariance, as many as the budget allows.
func greatest(cov [][]float64, rows []selectable, budget int) []tokenRef {
	var all []tokenRef
	for _, r := range rows {
		for t, m := range r.mask {
			if m != 0 {
				all = append(all, tokenRef{r.index, t})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b tokenRef) int { return cmp.Compare(cov[b.row][b.token], cov[a.row][a.token]) })
	return all[:min(budget, len(all))]
}
