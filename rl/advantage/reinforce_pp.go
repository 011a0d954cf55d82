package advantage

import "fmt"

// REINFORCE++ (Hu 2025): the discounted return of each token, whitened over the batch. With a running
// value g, backward over a row from g = 0,
//
//	carry  valid token:  g ← r_t + γ g, ret_t = g;  masked token: ret_t = 0, g as it was
//	reset  ret_t = r_t + γ g;  g ← ret_t·m_t
//
// carry is the default: reset, which older released code runs, forgets the return at every
// observation inside a response, so that all before the last tool call learn nothing. It is kept
// to compare with that code, reads rewards under mask 0 and returns values there.
//
// REINFORCE++-baseline: x = R − μ_group (a group of one: μ = 0) on every token, whitened.

// Gap says what a masked token inside a response does to the return before it.
type Gap string

// The two forms.
const (
	GapCarry Gap = "carry"
	GapReset Gap = "reset"
)

// ReinforcePP is REINFORCE++.
type ReinforcePP struct {
	Gamma float64 // discount per token, in [0, 1]
	Gap   Gap     // GapCarry when empty
}

// DefaultReinforcePP does not discount.
var DefaultReinforcePP = ReinforcePP{Gamma: 1, Gap: GapCarry}

// Validate reports the first bad field.
func (r ReinforcePP) Validate() error {
	if !(r.Gamma >= 0 && r.Gamma <= 1) {
		return fmt.Errorf("gamma must be in [0, 1], got %g", r.Gamma)
	}
	switch r.Gap {
	case "", GapCarry, GapReset:
		return nil
	}
	return fmt.Errorf("gap must be %s or %s, got %q", GapCarry, GapReset, r.Gap)
}

// Estimate returns each token's return and its whitened advantage. rewards and mask have the same
// shape; the result has it too.
func (r ReinforcePP) Estimate(rewards [][]float64, mask [][]int32) (returns, advantages [][]float64, err error) {
	if err := r.Validate(); err != nil {
		return nil, nil, err
	}
	if err := checkMask(mask); err != nil {
		return nil, nil, fmt.Errorf("estimate returns: %w", err)
	}
	if err := checkTokens("rewards", rewards, mask, r.Gap == GapReset); err != nil {
		return nil, nil, fmt.Errorf("estimate returns: %w", err)
	}
	returns = newRows(mask)
	for i := range mask {
		r.row(returns[i], rewards[i], mask[i])
	}
	return returns, whiten(returns, mask), nil
}

// row writes one row's returns.
func (r ReinforcePP) row(out, rewards []float64, mask []int32) {
	running := 0.0
	for t := len(mask) - 1; t >= 0; t-- {
		switch {
		case mask[t] == 1:
			running = rewards[t] + r.Gamma*running
			out[t] = running
		case r.Gap == GapReset:
			out[t], running = rewards[t]+r.Gamma*running, 0
		}
	}
}

// ReinforcePPBaseline is REINFORCE++ with the group's mean as baseline; it has no settings.
type ReinforcePPBaseline struct{}

// Estimate returns the advantage of each token from its row's score and group. A row without
// valid tokens still counts in its group's mean.
func (ReinforcePPBaseline) Estimate(scores []float64, groups []string, mask [][]int32) ([][]float64, error) {
	centred, err := Group{}.Estimate(scores, groups)
	if err != nil {
		return nil, err
	}
	tiled, err := Broadcast(centred, mask)
	if err != nil {
		return nil, err
	}
	return whiten(tiled, mask), nil
}
