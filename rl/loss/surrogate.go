package loss

import "math"

// LogRatioClamp bounds the log-ratio before exp; outside it the coefficient is 0.
const LogRatioClamp = 20

// Surrogate is a policy loss per token. It is a value without state: several goroutines may use it at once.
// Evaluate gets a row's tokens under the mask in blocks, in order. It writes Loss and Coef of every token of
// the block and does not keep the block.
type Surrogate interface {
	Name() string // as recipes spell it
	// Validate reports the first bad parameter.
	Validate() error
	// Inputs says which parts of a block the loss reads.
	Inputs() Inputs
	// Bounds are those outside which a ratio counts as clipped; the zero value has none.
	Bounds() Bounds
	// Evaluate writes the block's losses and their derivatives.
	Evaluate(b *Block)
}

// Inputs says which parts of a block a surrogate reads in addition to LogProbs. Parts that it does not ask for
// are not computed and may be missing from the rows.
type Inputs uint8

// The inputs.
const (
	Behaviour Inputs = 1 << iota // Old, Advantages and LogRatio
	Ratios                       // Ratio; implies Behaviour
	Sequence                     // the means over the row; implies Behaviour
	Marked                       // Marks, made by Prepare over a mini-batch
	values                       // LogProbs are a critic's values: no ratio, any sign
)

func (i Inputs) has(bit Inputs) bool { return i&bit != 0 }

// Bounds are the ratios beyond which statistics count a token as out of bounds. High = 0 means that
// the loss has no bounds. Dual is the dual clip's C, or 0.
type Bounds struct{ Low, High, Dual float64 }

// BlockSize is the greatest number of tokens of a block: its buffers stay in the first-level cache.
const BlockSize = 256

// Block holds consecutive tokens of a row that are under the mask, without gaps. All slices are equally long.
// Slices that the surrogate did not ask for hold old values.
type Block struct {
	LogProbs   []float64
	Old        []float64
	Advantages []float64
	LogRatio   []float64 // l = logp − old, not clamped
	Ratio      []float64 // exp(clamp(l, ±LogRatioClamp))
	Marks      []int32

	Loss []float64 // out: the token's loss before aggregation
	Coef []float64 // out: d(Loss)/d(logp), with stop-gradients as the loss's paper has them

	// Of the whole row, over its tokens under the mask.
	Tokens        int
	MeanLogRatio  float64
	MeanAdvantage float64

	least, greatest float64 // of LogRatio over the block
	scratch         []float64
}

// dropClamped sets the coefficient of tokens whose log-ratio the clamp cut to 0.
func (b *Block) dropClamped() {
	if b.greatest <= LogRatioClamp && b.least >= -LogRatioClamp {
		return
	}
	for t, l := range b.LogRatio {
		if math.Abs(l) > LogRatioClamp {
			b.Coef[t] = 0
		}
	}
}

// clamp bounds v to ±limit.
func clamp(v, limit float64) float64 { return math.Max(-limit, math.Min(limit, v)) }
