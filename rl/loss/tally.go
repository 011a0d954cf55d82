package loss

import "math"

// Tally accumulates the statistics of a policy loss over micro-batches. Means are over the tokens
// under the mask, each counted as often as its row's count; extremes are over the rows at hand.
type Tally struct {
	Rows   int   // live rows, each once
	Tokens int64 // tokens under the mask, each once

	weight, lower, drift             float64 // token sums, rows counted N times
	clippedPositive, clippedNegative float64 // … by the sign of the advantage
	logMax, logMin, absMax           float64 // of logp − old
}

// count adds a row's size.
func (t *Tally) count(row Row) {
	if n := row.Tokens(); n > 0 {
		t.Rows++
		t.Tokens += int64(n)
		t.weight += float64(n) * float64(row.Count)
	}
}

// add adds a row's size and statistics.
func (t *Tally) add(row Row, points []Point) {
	one := Tally{logMax: math.Inf(-1), logMin: math.Inf(1)}
	one.count(row)
	n := float64(row.Count)
	for i, m := range row.Mask {
		if m == 0 {
			continue
		}
		l := row.LogProbs[i] - row.Old[i]
		one.logMax, one.logMin = math.Max(one.logMax, l), math.Min(one.logMin, l)
		one.absMax = math.Max(one.absMax, math.Abs(l))
		one.drift -= n * l
		switch {
		case points[i].Clipped && row.Advantages[i] > 0:
			one.clippedPositive += n
		case points[i].Clipped:
			one.clippedNegative += n
		}
		if points[i].Lower {
			one.lower += n
		}
	}
	t.Merge(one)
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
	t.weight += o.weight
	t.clippedPositive += o.clippedPositive
	t.clippedNegative += o.clippedNegative
	t.lower += o.lower
	t.drift += o.drift
	t.logMax, t.logMin = math.Max(t.logMax, o.logMax), math.Min(t.logMin, o.logMin)
	t.absMax = math.Max(t.absMax, o.absMax)
}

// ClipFraction is the share of tokens whose ratio was clipped.
func (t Tally) ClipFraction() float64 { return t.mean(t.clippedPositive + t.clippedNegative) }

// ClipFractionPositive is the share of tokens whose advantage was positive and whose ratio was
// clipped above. With ClipFractionNegative it adds up to ClipFraction.
func (t Tally) ClipFractionPositive() float64 { return t.mean(t.clippedPositive) }

// ClipFractionNegative is the share of tokens whose advantage was negative and whose ratio was
// clipped below.
func (t Tally) ClipFractionNegative() float64 { return t.mean(t.clippedNegative) }

// LowerClipFraction is the share of tokens on which the dual clip was active.
func (t Tally) LowerClipFraction() float64 { return t.mean(t.lower) }

// KL is mean(old − new), the k1 estimate of KL(old ‖ new).
func (t Tally) KL() float64 { return t.mean(t.drift) }

// RatioMax is the greatest importance ratio, clamped like the loss's; 0 of no token.
func (t Tally) RatioMax() float64 { return t.ratio(t.logMax) }

// RatioMin is the least importance ratio, clamped like the loss's; 0 of no token.
func (t Tally) RatioMin() float64 { return t.ratio(t.logMin) }

// Drift is the greatest |logp − old|; 0 of no token.
func (t Tally) Drift() float64 { return t.absMax }

func (t Tally) ratio(l float64) float64 {
	if t.weight == 0 {
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
