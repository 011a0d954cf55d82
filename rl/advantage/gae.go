package advantage

import "fmt"

// Generalised advantage estimation (Schulman et al. 2016, eq 16), as PPO over tokens uses it.
// Backward over a row from V' = 0 and A' = 0,
//
//	δ_t = r_t + γ V' − V_t
//	A_t = δ_t + γ λ A';   V' ← V_t, A' ← A_t
//
// Departure: a masked token (an observation inside the response) is skipped, V' and A' stand, so an
// action's next state is the next action's and not a tool output's; it shows the A' it was skipped
// with. NoSkip is older released code, which treats every token alike and so reads rewards and
// values under mask 0.

// GAE is generalised advantage estimation.
type GAE struct {
	Gamma  float64 // discount per token, in [0, 1]
	Lambda float64 // in [0, 1]
	NoSkip bool    // treat masked tokens like any other
}

// DefaultGAE neither discounts nor shortens: a token's advantage is the return less its value.
var DefaultGAE = GAE{Gamma: 1, Lambda: 1}

// Validate reports the first bad field.
func (g GAE) Validate() error {
	if !(g.Gamma >= 0 && g.Gamma <= 1) {
		return fmt.Errorf("gamma must be in [0, 1], got %g", g.Gamma)
	}
	if !(g.Lambda >= 0 && g.Lambda <= 1) {
		return fmt.Errorf("lambda must be in [0, 1], got %g", g.Lambda)
	}
	return nil
}

// GAEResult holds one value per token.
type GAEResult struct {
	Raw      [][]float64 // A_t, unmasked
	Returns  [][]float64 // A_t + V_t, what the value function learns; of no meaning under mask 0
	Whitened [][]float64 // Raw whitened over the batch, what the policy learns from
}

// Estimate returns the advantages of tokens with rewards and values of the mask's shape. Values are
// read under mask 0 too, into Returns there.
func (g GAE) Estimate(rewards, values [][]float64, mask [][]int32) (GAEResult, error) {
	if err := g.Validate(); err != nil {
		return GAEResult{}, err
	}
	if err := checkMask(mask); err != nil {
		return GAEResult{}, fmt.Errorf("estimate advantages: %w", err)
	}
	if err := checkTokens("rewards", rewards, mask, g.NoSkip); err != nil {
		return GAEResult{}, fmt.Errorf("estimate advantages: %w", err)
	}
	if err := checkTokens("values", values, mask, true); err != nil {
		return GAEResult{}, fmt.Errorf("estimate advantages: %w", err)
	}
	out := GAEResult{Raw: newRows(mask), Returns: newRows(mask)}
	for i := range mask {
		g.row(out.Raw[i], out.Returns[i], rewards[i], values[i], mask[i])
	}
	out.Whitened = whiten(out.Raw, mask)
	return out, nil
}

// row writes one row's advantages and returns.
func (g GAE) row(raw, returns, rewards, values []float64, mask []int32) {
	next, last := 0.0, 0.0
	for t := len(mask) - 1; t >= 0; t-- {
		if mask[t] == 1 || g.NoSkip {
			delta := rewards[t] + g.Gamma*next - values[t]
			last = delta + g.Gamma*g.Lambda*last
			next = values[t]
		}
		raw[t], returns[t] = last, last+values[t]
	}
}
