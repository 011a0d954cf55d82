package resample

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

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
// first negatives in canonical order; it draws nothing.
const (
	ChooseWeighted Choice = "weighted"
	ChooseLowest   Choice = "lowest"
)

// penaltyEpsilon keeps the weight of a clean trajectory finite.
const penaltyEpsilon = 1e-6

// RoC holds the settings of resample-on-correct. A group of exactly Keep trajectories is kept
// whole and a smaller one is dropped.
type RoC struct {
	Keep        int    // G: trajectories kept per group
	Counts      Counts // CountsPaper when empty
	Choice      Choice // ChooseWeighted when empty
	MinPositive int    // at least so many of a sign, where there are
	MinNegative int
	// KeepEqual keeps groups whose rewards are all equal; they are dropped without it.
	KeepEqual bool
}

// Validate reports the first bad field.
func (r RoC) Validate() error {
	switch {
	case r.Keep < 1:
		return fmt.Errorf("roc.keep must be ≥ 1, got %d", r.Keep)
	case r.MinPositive < 0 || r.MinNegative < 0:
		return fmt.Errorf("roc.min_positive and roc.min_negative must be ≥ 0, got %d and %d", r.MinPositive, r.MinNegative)
	case max(r.MinPositive, r.MinNegative) > r.Keep:
		return fmt.Errorf("roc.min_positive and roc.min_negative must be ≤ keep (%d), got %d and %d", r.Keep, r.MinPositive, r.MinNegative)
	case !slices.Contains([]Counts{"", CountsPaper, CountsRelease}, r.Counts):
		return fmt.Errorf("roc.counts must be %s or %s, got %q", CountsPaper, CountsRelease, r.Counts)
	case !slices.Contains([]Choice{"", ChooseWeighted, ChooseLowest}, r.Choice):
		return fmt.Errorf("roc.select must be %s or %s, got %q", ChooseWeighted, ChooseLowest, r.Choice)
	}
	return nil
}

// Quota returns how many positives and negatives of a group are kept, of more than Keep rows.
func (r RoC) Quota(positives, negatives int) (keepPositive, keepNegative int) {
	share := float64(r.Keep) / float64(positives+negatives)
	if r.Counts == CountsRelease {
		keepPositive = int(math.RoundToEven(float64(positives) * share))
		// Beyond 2:1 oversampling the two roundings may miss Keep; negatives take the rest.
		keepNegative = r.Keep - keepPositive
	} else {
		keepNegative = negatives * r.Keep / (positives + negatives)
		keepPositive = r.Keep - keepNegative
	}
	return r.minimums(positives, negatives, keepPositive, keepNegative)
}

// minimums is the release's rule for the least number of each sign.
func (r RoC) minimums(positives, negatives, keepPositive, keepNegative int) (int, int) {
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
	if r.Choice == ChooseLowest {
		return lowest(from, n)
	}
	return draw(from, n, source, func(c candidate) float64 { return penaltyWeight(c.penalty) })
}

// pickNegatives returns the indexes of n candidates.
func (r RoC) pickNegatives(from []candidate, n int, source *rand.Rand) []int {
	if r.Choice == ChooseLowest {
		return indexes(from[:n])
	}
	return draw(from, n, source, func(candidate) float64 { return 1 })
}

// penaltyWeight is the sampling weight of a positive.
func penaltyWeight(penalty float64) float64 { return 1 / (penalty + penaltyEpsilon) }

// lowest takes the n candidates of least penalty; ties keep canonical order.
func lowest(from []candidate, n int) []int {
	sorted := slices.Clone(from)
	slices.SortStableFunc(sorted, func(a, b candidate) int { return cmp.Compare(a.penalty, b.penalty) })
	return indexes(sorted[:n])
}

// draw takes n candidates one by one without replacement, in proportion to their weights.
func draw(from []candidate, n int, source *rand.Rand, weight func(candidate) float64) []int {
	rest := slices.Clone(from)
	out := make([]int, 0, n)
	for range n {
		sum := 0.0
		for _, c := range rest {
			sum += weight(c)
		}
		k := pick(rest, source.Float64()*sum, weight)
		out = append(out, rest[k].index)
		rest = slices.Delete(rest, k, k+1)
	}
	return out
}

// pick returns where the running sum of weights passes u; rounding at the top end falls to the last.
func pick(from []candidate, u float64, weight func(candidate) float64) int {
	sum := 0.0
	for k, c := range from {
		if sum += weight(c); u < sum {
			return k
		}
	}
	return len(from) - 1
}

func indexes(from []candidate) []int {
	out := make([]int, len(from))
	for i, c := range from {
		out[i] = c.index
	}
	return out
}
