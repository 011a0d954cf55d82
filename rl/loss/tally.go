package loss

import "math"

// Tally accumulates the statistics of a loss over micro-batches. Means run over the tokens under the mask, each
// counted as often as its row's count says. Extremes run over the rows that were seen.
type Tally struct {
	Rows    int   // live rows, each once
	Tokens  int64 // tokens under the mask, each once
	Dropped int   // live rows that the sequence mask dropped, each once

	weight, ratios          float64 // Σ N·T; Σ N over the tokens or rows whose ratios are counted
	outside                 outside
	drift, kl, entropy, tis float64 // token sums, rows counted N times
	capped, marked          float64
	logMax, logMin, absMax  float64 // of logp − old
}

// Merge adds another micro-batch's tally.
func (t *Tally) Merge(o Tally) {
	if o.weight == 0 {
		return
	}
	if t.weight == 0 {
		*t = o
		return
	}
	t.Rows += o.Rows
	t.Tokens += o.Tokens
	t.Dropped += o.Dropped
	t.weight += o.weight
	t.ratios += o.ratios
	t.outside.add(o.outside, 1)
	t.drift += o.drift
	t.kl += o.kl
	t.entropy += o.entropy
	t.tis += o.tis
	t.capped += o.capped
	t.marked += o.marked
	t.logMax, t.logMin = math.Max(t.logMax, o.logMax), math.Min(t.logMin, o.logMin)
	t.absMax = math.Max(t.absMax, o.absMax)
}

// OutOfBounds holds the shares of ratios beyond the loss's bounds, by the sign of the advantage and by side. For
// sequence losses they are shares of rows.
type OutOfBounds struct {
	PositiveAbove, PositiveBelow, NegativeAbove, NegativeBelow float64
}

// OutOfBounds returns the four shares.
func (t Tally) OutOfBounds() OutOfBounds {
	o := t.outside
	return OutOfBounds{
		t.share(o.positiveAbove), t.share(o.positiveBelow), t.share(o.negativeAbove), t.share(o.negativeBelow),
	}
}

// ClipFraction is the share of ratios that were clipped: those out of bounds on the side towards which the
// advantage pushes.
func (t Tally) ClipFraction() float64 {
	return t.share(t.outside.positiveAbove + t.outside.negativeBelow)
}

// ClipFractionPositive is the share whose advantage was positive and whose ratio was clipped above.
// With ClipFractionNegative it adds up to ClipFraction.
func (t Tally) ClipFractionPositive() float64 { return t.share(t.outside.positiveAbove) }

// ClipFractionNegative is the share whose advantage was negative and whose ratio was clipped below.
func (t Tally) ClipFractionNegative() float64 { return t.share(t.outside.negativeBelow) }

// LowerClipFraction is the share on which the dual clip was active.
func (t Tally) LowerClipFraction() float64 { return t.share(t.outside.dual) }

// KL is mean(old − new), the k1 estimate of KL(old ‖ new).
func (t Tally) KL() float64 { return -t.mean(t.drift) }

// RefKL is the mean KL estimate against the reference; 0 without one.
func (t Tally) RefKL() float64 { return t.mean(t.kl) }

// Entropy is the mean entropy; 0 if the rows have no entropies.
func (t Tally) Entropy() float64 { return t.mean(t.entropy) }

// Marked is the share of tokens that a covariance rule selected.
func (t Tally) Marked() float64 { return t.mean(t.marked) }

// RatioMax is the greatest importance ratio, clamped as in the loss; 0 without tokens.
func (t Tally) RatioMax() float64 { return t.ratio(t.logMax) }

// RatioMin is the least importance ratio, clamped as in the loss; 0 without tokens.
func (t Tally) RatioMin() float64 { return t.ratio(t.logMin) }

// Drift is the greatest |logp − old|; 0 without tokens.
func (t Tally) Drift() float64 { return t.absMax }

// ratio returns 0 if the loss read no ratios, for the extremes are then still infinite.
func (t Tally) ratio(l float64) float64 {
	if t.weight == 0 || math.IsInf(l, 0) {
		return 0
	}
	return math.Exp(clamp(l, LogRatioClamp))
}

func (t Tally) mean(sum float64) float64 {
	if t.weight == 0 {
		return 0
	}
	return sum / t.weight
}

func (t Tally) share(sum float64) float64 {
	if t.ratios == 0 {
		return 0
	}
	return sum / t.ratios
}
