package resample

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

var roc = Rule{Brief: func(s any) string { return fmt.Sprintf("RoC %d", s.(RoC).Keep) }, Choice: choice.Choice{
	Name: "roc", Doc: "cleaner positives and some negatives of each group", Source: "rStar2 §2.2.3, GRPO-RoC",
	Field:     "Resample-on-Correct: keep cleaner positives and some negatives of each group; null or absent = off",
	Dimension: choice.DynamicFiltering,
	Settings:  RoC{Counts: CountsPaper, Choice: ChooseWeighted, MinPositive: 2, MinNegative: 2},
}}

// Counts chooses how many of each sign RoC keeps.
type Counts string

// Paper keeps ⌊|neg|/2⌋ negatives and fills up with positives. Release rounds both halves to even.
const (
	CountsPaper   Counts = "paper"
	CountsRelease Counts = "release"
)

// Choice chooses which trajectories RoC keeps.
type Choice string

// Weighted (the paper) draws positives without replacement with weight 1/(p_total + 1e-6) and
// negatives uniformly. Lowest (the release) takes positives by rising p_total, stable, and the
// first negatives in canonical order; it draws nothing. Uniform draws positives like negatives: the
// ablation without their quality.
const (
	ChooseWeighted Choice = "weighted"
	ChooseLowest   Choice = "lowest"
	ChooseUniform  Choice = "uniform"
)

// PenaltyEpsilon keeps the weight of a clean trajectory finite.
const PenaltyEpsilon = 1e-6

// RoC holds the settings of resample-on-correct. Of the samples of a group it keeps Keep rows:
//
//	negatives: ⌊|neg|·Keep/total⌋, uniform;  positives: the rest, weight 1/(p_err + p_format + ε)
//
// Source: rStar2-Agent section 2.2.3 and its release, whose counts and choice are options. Departures: the paper writes
// ⌊|neg|/2⌋, which is the same where the group is twice Keep. A group of exactly Keep trajectories is kept whole and a
// smaller one is dropped.
type RoC struct {
	Keep        int    `json:"keep" required:"true" min:"1" max:"1024" doc:"trajectories kept of each group"`
	Counts      Counts `json:"counts" enum:"paper|release" doc:"how many negatives: half of them (paper), or in proportion (release)"`
	Choice      Choice `json:"select" enum:"weighted|lowest|uniform" doc:"positives: drawn with weight 1/penalty (weighted), the lowest penalties first (lowest), or all alike (uniform)"`
	MinPositive int    `json:"min_positive" min:"0" max:"1024" doc:"positives kept at least, where there are so many"`
	MinNegative int    `json:"min_negative" min:"0" max:"1024" doc:"negatives kept at least, where there are so many"`
	// KeepEqual keeps groups whose rewards are all equal, as dynamic sampling fills up with; they are
	// dropped without it.
	KeepEqual bool
}

// Link keeps groups of equal rewards after dynamic sampling. Dynamic sampling has dropped those that it does not want.
// The remaining ones fill up its last try, or belong to a step that takes every group.
func (r RoC) Link(s Sampling) Link {
	r.KeepEqual = s.Rounds
	return r
}

// Validate reports the first bad field.
func (r RoC) Validate() error {
	if max(r.MinPositive, r.MinNegative) > r.Keep && r.Keep > 0 {
		return fmt.Errorf("roc.min_positive and roc.min_negative must be ≤ keep (%d), got %d and %d", r.Keep,
			r.MinPositive, r.MinNegative)
	}
	return choice.Check("roc.", r)
}

func (RoC) name() string { return "RoC" }

func (r RoC) draws() bool { return r.Choice != ChooseLowest }

// apply drops equal groups, where they are to be rejected, and the surplus of the others. What VSPO
// before it found without variance counts as equal.
func (r RoC) apply(s *step) {
	groups, rewards := s.groupsWithRows()
	for i, g := range groups {
		switch {
		case !r.KeepEqual && (g.flat || allEqual(rewards[i])):
			s.out.dropAll(*g, ZeroVariance)
		case len(rewards[i]) < r.Keep:
			s.out.dropAll(*g, SmallGroup)
		case len(rewards[i]) > r.Keep:
			r.dropSurplus(s, *g)
		}
	}
}

// dropSurplus drops the rows of one group that are more than it may keep.
func (r RoC) dropSurplus(s *step, g group) {
	positives, negatives := make([]candidate, 0, g.to-g.from), make([]candidate, 0, g.to-g.from)
	for i := g.from; i < g.to; i++ {
		row := &s.out.Rows[i]
		if !row.Kept {
			continue
		}
		c := candidate{index: i, penalty: row.Penalties.Total()}
		if row.Reward > 0 {
			positives = append(positives, c)
		} else {
			negatives = append(negatives, c)
		}
	}
	var stream *rand.Rand
	if r.draws() {
		stream = s.source(LabelRoC, g.id)
	}
	keepPositive, keepNegative := r.Quota(len(positives), len(negatives))
	s.keepOnly(positives, r.pickPositives(positives, keepPositive, stream), RoCPositiveSurplus)
	s.keepOnly(negatives, r.pickNegatives(negatives, keepNegative, stream), RoCNegativeSurplus)
}

// keepOnly drops the candidates that were not chosen.
func (s *step) keepOnly(from []candidate, chosen []int, why Reason) {
	for _, i := range chosen {
		s.chosen[i] = true
	}
	for _, c := range from {
		if !s.chosen[c.index] {
			s.out.drop(c.index, why)
		}
		s.chosen[c.index] = false
	}
}

// Quota returns how many positives and negatives of a group are kept, of more than Keep rows.
func (r RoC) Quota(positives, negatives int) (keepPositive, keepNegative int) {
	share := float64(r.Keep) / float64(positives+negatives)
	if r.Counts == CountsRelease {
		keepPositive = int(math.RoundToEven(float64(positives) * share))
		// If a group has more than 2·Keep rows, the two roundings may miss Keep; negatives take the rest.
		keepNegative = r.Keep - keepPositive
	} else {
		keepNegative = negatives * r.Keep / (positives + negatives)
		keepPositive = r.Keep - keepNegative
	}
	return r.leastOfEachSign(positives, negatives, keepPositive, keepNegative)
}

// leastOfEachSign is the release's rule for the least number of each sign.
func (r RoC) leastOfEachSign(positives, negatives, keepPositive, keepNegative int) (int, int) {
	leastPositive, leastNegative := min(r.MinPositive, positives), min(r.MinNegative, negatives)
	if keepNegative < r.MinNegative && keepPositive < r.MinPositive {
		return positives, negatives
	}
	if keepNegative <= leastNegative {
		keepNegative = leastNegative
		keepPositive = r.Keep - keepNegative
	}
	if keepPositive <= leastPositive {
		keepPositive = leastPositive
		keepNegative = r.Keep - keepPositive
	}
	return keepPositive, keepNegative
}

// candidate is one trajectory of a group: its place in canonical order and its penalty.
type candidate struct {
	index   int
	penalty float64
}

// pickPositives returns the indexes of n candidates.
func (r RoC) pickPositives(from []candidate, n int, source *rand.Rand) []int {
	switch r.Choice {
	case ChooseLowest:
		return lowest(from, n)
	case ChooseUniform:
		return draw(from, n, source, alike)
	}
	return draw(from, n, source, func(c candidate) float64 { return PenaltyWeight(c.penalty) })
}

// pickNegatives returns the indexes of n candidates.
func (r RoC) pickNegatives(from []candidate, n int, source *rand.Rand) []int {
	if r.Choice == ChooseLowest {
		return indexes(from[:n])
	}
	return draw(from, n, source, alike)
}

// alike gives every candidate the same weight.
func alike(candidate) float64 { return 1 }

// PenaltyWeight is the sampling weight of a positive with a total penalty.
func PenaltyWeight(penalty float64) float64 { return 1 / (penalty + PenaltyEpsilon) }

// LowestPenalty returns the indexes of the n least of total penalties, by rising penalty; ties keep
// their order. It returns all of fewer than n.
func LowestPenalty(penalties []float64, n int) []int {
	from := make([]candidate, len(penalties))
	for i, p := range penalties {
		from[i] = candidate{index: i, penalty: p}
	}
	return lowest(from, min(n, len(from)))
}

// lowest takes the n candidates of least penalty; ties keep canonical order.
func lowest(from []candidate, n int) []int {
	sorted := slices.Clone(from)
	slices.SortStableFunc(sorted, func(a, b candidate) int { return cmp.Compare(a.penalty, b.penalty) })
	return indexes(sorted[:n])
}

// draw takes n candidates one by one without replacement, in proportion to their weights.
func draw(from []candidate, n int, source *rand.Rand, weight func(candidate) float64) []int {
	rest, weights := indexes(from), make([]float64, len(from))
	for k, c := range from {
		weights[k] = weight(c)
	}
	out := make([]int, 0, n)
	for range n {
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		k := pickWeighted(weights, source.Float64()*sum)
		out = append(out, rest[k])
		rest, weights = slices.Delete(rest, k, k+1), slices.Delete(weights, k, k+1)
	}
	return out
}

// pickWeighted returns where the running sum of weights passes u; rounding at the top end falls to the last.
func pickWeighted(weights []float64, u float64) int {
	sum := 0.0
	for k, w := range weights {
		if sum += w; u < sum {
			return k
		}
	}
	return len(weights) - 1
}

func indexes(from []candidate) []int {
	out := make([]int, len(from))
	for i, c := range from {
		out[i] = c.index
	}
	return out
}
