package diagnose

// Where the policy hesitates (rStar2-Agent section 5.4, figures 10 and 11): the tokens of a step
// with the top 20% of entropies are either "forking" tokens inside reasoning or "reflection"
// tokens that follow a tool's response. The threshold is the ⌈0.2·n⌉-th largest entropy, and tokens
// that tie with it belong to the top. Departures: the paper shows examples and gives no measure;
// reflection is taken as the first Window policy tokens after a stretch of tokens that the policy
// did not produce, and reasoning as every other policy token.

import "slices"

// Hesitation gathers the entropies of a step's tokens by their place, reasoning or reflection.
type Hesitation struct {
	Window int // tokens after a tool's response that count as reflection; DefaultWindow when 0

	reasoning, reflection []float64
}

// The paper's share of the tokens, and a window of about a sentence.
const (
	DefaultTop    = 0.2
	DefaultWindow = 32
)

// HesitationReport compares the two places.
type HesitationReport struct {
	Tokens     int
	Threshold  float64 // nats
	Forking    float64 // share of the high tokens inside reasoning
	Reflection float64 // share of the high tokens after tool responses
	// The share of a place's own tokens that are in the top: the policy hesitates more in the place with the greater
	// density.
	ReasoningDensity, ReflectionDensity float64
}

// Add adds rows of whole trajectories, tool output included, by Mask and Entropy. If one is
// refused, none is added. A row begins at its response, so its first tokens follow no tool.
func (h *Hesitation) Add(rows ...Row) error {
	for i, r := range rows {
		if err := r.check(i, r.entropy()); err != nil {
			return err
		}
	}
	for _, r := range rows {
		h.add(r)
	}
	return nil
}

func (h *Hesitation) add(r Row) {
	left, started := 0, false // tokens left of the window; whether the policy has spoken
	for t, m := range r.Mask {
		switch {
		case m == 0 && started:
			left = h.window()
		case m == 0:
		case left > 0:
			left--
			h.reflection = append(h.reflection, r.Entropy[t])
		default:
			started = true
			h.reasoning = append(h.reasoning, r.Entropy[t])
		}
	}
}

func (h *Hesitation) window() int {
	if h.Window == 0 {
		return DefaultWindow
	}
	return h.Window
}

// Report returns the comparison, 0 throughout without tokens.
func (h *Hesitation) Report() HesitationReport {
	all := slices.Concat(h.reasoning, h.reflection)
	if len(all) == 0 {
		return HesitationReport{}
	}
	slices.Sort(all)
	threshold := all[len(all)-max(1, roundedShare(DefaultTop, len(all)))]
	forking, reflection := atLeast(h.reasoning, threshold), atLeast(h.reflection, threshold)
	high := forking + reflection
	return HesitationReport{
		Tokens: len(all), Threshold: threshold,
		Forking: share(forking, high), Reflection: share(reflection, high),
		ReasoningDensity: share(forking, len(h.reasoning)), ReflectionDensity: share(reflection, len(h.reflection)),
	}
}

// atLeast counts values ≥ threshold.
func atLeast(values []float64, threshold float64) int {
	n := 0
	for _, v := range values {
		if v >= threshold {
			n++
		}
	}
	return n
}
