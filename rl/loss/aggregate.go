package loss

// How token losses ℓ become one number. The modes below are token-mean (DAPO eq. 8), sequence means
// (GRPO eq. 3) and Dr.GRPO's constant norm. Departures: dead rows are not counted (older code counts
// them or gives NaN). The horizon is a setting and never a batch's padded width. Denominators are counted
// over the whole mini-batch, not over each micro-batch.

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Mode names how token losses become one number.
type Mode string

// The modes; ℓ is the token loss, N the number of live rows, T_max the horizon.
const (
	TokenMean           Mode = "token-mean"              // Σℓm / ΣT_i
	SeqMeanTokenMean    Mode = "seq-mean-token-mean"     // (1/N) Σ_i (Σ_t ℓm)/T_i
	SeqMeanTokenSum     Mode = "seq-mean-token-sum"      // (1/N) ΣΣ ℓm
	SeqMeanTokenSumNorm Mode = "seq-mean-token-sum-norm" // (1/(N·T_max)) ΣΣ ℓm
	NormLegacy          Mode = "norm_legacy"             // (1/T_max) ΣΣ ℓm
	TokenSum            Mode = "token-sum"               // ΣΣ ℓm
)

// Aggregations lists the modes as recipes name them.
func Aggregations() []choice.Choice { return slices.Clone(aggregations) }

var aggregations = []choice.Choice{
	{Name: string(TokenMean), Doc: "Σℓm / ΣT: every token weighs alike", Source: "DAPO; ARLArena Table 1"},
	{
		Name: string(SeqMeanTokenMean), Doc: "the mean over rows of each row's mean",
		Source: "GRPO; ARLArena's GRPO_ST",
	},
	{Name: string(SeqMeanTokenSum), Doc: "the mean over rows of each row's sum", Source: "verl"},
	{
		Name: string(SeqMeanTokenSumNorm), Doc: "seq-mean-token-sum over the greatest length allowed",
		Source: "Dr.GRPO; ARLArena S5",
	},
	{
		Name: string(NormLegacy), Doc: "seq-mean-token-sum-norm without the mean over rows",
		Source: "releases of verl until January 2026; SPEAR's",
	},
	{Name: string(TokenSum), Doc: "ΣΣℓm", Source: "REINFORCE"},
}

// Modes lists every mode.
func Modes() []Mode {
	out := make([]Mode, len(aggregations))
	for i, a := range aggregations {
		out[i] = Mode(a.Name)
	}
	return out
}

// Aggregation is a mode and, for the modes that divide by it, the horizon.
type Aggregation struct {
	Mode Mode
	// Horizon is T_max, the greatest response length that the run allows, in tokens: a constant,
	// never the width of a batch.
	Horizon int
}

// Validate reports the first bad field.
func (a Aggregation) Validate() error {
	if !slices.Contains(Modes(), a.Mode) {
		return fmt.Errorf("aggregation must be one of %v, got %q", Modes(), a.Mode)
	}
	if (a.Mode == SeqMeanTokenSumNorm || a.Mode == NormLegacy) && a.Horizon < 1 {
		return fmt.Errorf("aggregation %s needs a horizon ≥ 1, got %d", a.Mode, a.Horizon)
	}
	return nil
}

// Denominator is what a mini-batch's sums are divided by. Count it once over the whole mini-batch
// and give it to every micro-batch. The zero value counts no row.
type Denominator struct {
	aggregation Aggregation
	tokens      float64 // Σ N_i·T_i
	rows        float64 // Σ N_i over live rows
}

// Add adds another part of the same mini-batch, such as another rank's rows.
func (d *Denominator) Add(o Denominator) {
	d.tokens += o.tokens
	d.rows += o.rows
}

// Denominator counts the live rows and their tokens; counts may be nil for one copy of each.
func (a Aggregation) Denominator(masks [][]int32, counts []int32) (Denominator, error) {
	if err := a.Validate(); err != nil {
		return Denominator{}, err
	}
	if counts != nil && len(counts) != len(masks) {
		return Denominator{}, fmt.Errorf("count denominator: %d counts for %d masks", len(counts), len(masks))
	}
	d := Denominator{aggregation: a}
	for i, mask := range masks {
		copies := 1.0
		if counts != nil {
			copies = float64(counts[i])
		}
		if tokens := countMask(mask); tokens > 0 {
			d.tokens += copies * float64(tokens)
			d.rows += copies
		}
	}
	return d, nil
}

// Weight returns the factor of each token loss of a row with the given number of tokens; 0 for a dead row.
func (d Denominator) Weight(tokens int) float64 {
	if tokens == 0 || d.rows == 0 {
		return 0
	}
	switch d.aggregation.Mode {
	case TokenMean:
		return 1 / d.tokens
	case SeqMeanTokenMean:
		return 1 / (d.rows * float64(tokens))
	case SeqMeanTokenSum:
		return 1 / d.rows
	case SeqMeanTokenSumNorm:
		return 1 / (d.rows * float64(d.aggregation.Horizon))
	case NormLegacy:
		return 1 / float64(d.aggregation.Horizon)
	}
	return 1
}

// Aggregate sums values without an advantage (entropies, penalties) into this micro-batch's share
// of their aggregate: rows of count N enter N times. counts may be nil.
func (d Denominator) Aggregate(values [][]float64, masks [][]int32, counts []int32) (float64, error) {
	if len(values) != len(masks) || (counts != nil && len(counts) != len(masks)) {
		return 0, fmt.Errorf("aggregate: %d rows of values, %d masks, %d counts", len(values), len(masks), len(counts))
	}
	total := 0.0
	for i, mask := range masks {
		if len(values[i]) != len(mask) {
			return 0, fmt.Errorf("aggregate: row %d has %d values for %d mask entries", i, len(values[i]), len(mask))
		}
		sum := 0.0
		for t, m := range mask {
			if m != 0 {
				sum += values[i][t]
			}
		}
		copies := 1.0
		if counts != nil {
			copies = float64(counts[i])
		}
		total += sum * copies * d.Weight(countMask(mask))
	}
	return total, nil
}
