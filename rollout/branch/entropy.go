package branch

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// EntropyMode chooses how an entropy is computed from the top-k log-probabilities of a distribution.
type EntropyMode string

// Released sums −p ln p over the top tokens and over positions: no renormalisation, no mass for the
// rest, so longer segments have more of it. MeanRenorm renormalises the top tokens, MeanTail adds the
// rest as one outcome; both take the mean over positions.
const (
	Released   EntropyMode = "released"
	MeanRenorm EntropyMode = "mean_renorm"
	MeanTail   EntropyMode = "mean_tail"
)

// EntropyScale chooses what entropies are divided by before rules compare them.
type EntropyScale string

// LnV is the entropy of the uniform distribution (the releases; also if empty), V the size of the vocabulary (AEPO's
// text on ΔH) and Nats is 1 (AEPO eq 5 as it is printed).
const (
	ScaleLnV  EntropyScale = "ln_v"
	ScaleV    EntropyScale = "v"
	ScaleNats EntropyScale = "nats"
)

// TopK estimates the entropy of a segment's start from what an inference engine reports:
//
//	H = Σ_{t < Positions} Σ_{v in top Width} −p ln p / ln V
//
// Source: the releases of ARPO and AEPO. The papers write the Shannon entropy over the vocabulary, and
// "dividing by the vocabulary size" where the release divides by ln V. Departures: the other two
// modes, which do not grow with the segment, and the other scales. Thresholds are made for the released scale.
type TopK struct {
	Mode       EntropyMode  `enum:"released|mean_renorm|mean_tail"` // Released when empty
	Scale      EntropyScale `enum:"ln_v|v|nats"`
	Positions  int          `min:"0"` // first tokens that are looked at; 20 when 0
	Width      int          `min:"0"` // most likely tokens a position; 10 when 0
	Vocabulary int          `min:"2"` // V
}

// The first tokens of a segment that are looked at, and the likeliest tokens at each of them, if nothing else is said.
const (
	DefaultPositions = 20
	DefaultWidth     = 10
)

// logprobSlack is how far above 0 an engine may round a log-probability.
const logprobSlack = 1e-4

// Validate reports the first bad field.
func (k TopK) Validate() error { return choice.Check("entropy.", k) }

// Segment returns the entropy of a segment, in nats and not normalised, from the log-probabilities
// of the likeliest tokens at each position, in any order. A segment of no tokens has 0.
func (k TopK) Segment(top [][]float64) (float64, error) {
	if err := k.Validate(); err != nil {
		return 0, err
	}
	top = top[:min(len(top), cmp.Or(k.Positions, DefaultPositions))]
	sum := 0.0
	for t, logprobs := range top {
		h, err := k.Position(logprobs)
		if err != nil {
			return 0, fmt.Errorf("entropy of token %d: %w", t, err)
		}
		sum += h
	}
	if k.Mode == MeanRenorm || k.Mode == MeanTail {
		return sum / float64(max(len(top), 1)), nil
	}
	return sum, nil
}

// Normalise divides an entropy as the scale says.
func (k TopK) Normalise(h float64) float64 {
	switch k.Scale {
	case ScaleNats:
		return h
	case ScaleV:
		return h / float64(k.Vocabulary)
	}
	return h / math.Log(float64(k.Vocabulary))
}

// Position returns the entropy of one token in nats, by the mode. No log-probabilities give 0.
func (k TopK) Position(logprobs []float64) (float64, error) {
	for v, l := range logprobs {
		if math.IsNaN(l) || l > logprobSlack {
			return 0, fmt.Errorf("log-probability %d of %d is %g", v, len(logprobs), l)
		}
	}
	// The likeliest first: a bit must depend on neither the engine's order nor on surplus tokens.
	sorted := slices.SortedFunc(slices.Values(logprobs), func(a, b float64) int { return cmp.Compare(b, a) })
	sorted = sorted[:min(len(sorted), cmp.Or(k.Width, DefaultWidth))]
	mass, h := 0.0, 0.0
	for _, l := range sorted {
		p := math.Exp(l)
		mass += p
		h -= plogp(p, l)
	}
	switch {
	case mass == 0:
		return 0, nil
	case k.Mode == MeanRenorm: // −Σ (p/M) ln(p/M)
		return math.Max(h/mass+math.Log(mass), 0), nil
	case k.Mode == MeanTail:
		if rest := 1 - mass; rest > 0 {
			h -= plogp(rest, math.Log(rest))
		}
	}
	return h, nil
}

// plogp is p ln p, 0 where p is 0.
func plogp(p, logp float64) float64 {
	if p == 0 {
		return 0
	}
	return p * logp
}

// Change is ΔH: the normalised entropy after a tool result less the normalised entropy at the root.
// Departure: the release keeps the root's entropy in a table that it never clears between batches.
func (k TopK) Change(h, root float64) float64 { return k.Normalise(h - root) }
