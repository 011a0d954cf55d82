package advantage

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// REINFORCE++ (Hu 2025): the discounted return of each token, whitened over the batch. With a running
// value g, backward over a row from g = 0,
//
//	carry  valid token:  g ← r_t + γ g, ret_t = g;  masked token: ret_t = 0, g as it was
//	reset  ret_t = r_t + γ g;  g ← ret_t·m_t
//
// carry is the default. Older released code runs reset, which forgets the return at every observation
// inside a response, so that the tokens before the last tool call learn nothing. reset exists to compare
// with that code; it reads rewards and writes returns under mask 0 too.
//
// REINFORCE++-baseline: x = R − μ_group (a group of one: μ = 0) on every token, whitened.

// Gap says how a masked token inside a response changes the return of the tokens before it.
type Gap string

// The two forms.
const (
	GapCarry Gap = "carry"
	GapReset Gap = "reset"
)

var reinforcePP = Declaration{
	Choice: choice.Choice{
		Name: "reinforce_pp", Doc: "discounted token returns, whitened over the batch", Source: "REINFORCE++ (Hu 2025)",
		Settings: reinforcePPSettings{Gamma: 1, Returns: GapCarry},
	},
	PerToken: true, TokenRewards: true,
}

// reinforcePPSettings are the parameters of REINFORCE++ in a recipe.
type reinforcePPSettings struct {
	Gamma   float64 `json:"gamma" min:"0" max:"1" doc:"discount: of one token (reinforce_pp, gae), of one turn (gigpo)"`
	Returns Gap     `json:"returns" enum:"carry|reset" doc:"at observation tokens the return passes unchanged (carry), or starts again as older releases have it (reset; for gae: they count as the policy's)"`
}

// Estimate is REINFORCE++ over the rewards of tokens.
func (r reinforcePPSettings) Estimate(b Batch) (out Estimates, err error) {
	rewards, err := b.TokenRewards()
	if err != nil {
		return Estimates{}, err
	}
	_, out.Tokens, err = ReinforcePP{Gamma: r.Gamma, Gap: r.Returns}.Estimate(rewards, b.Masks())
	return out, err
}

var reinforcePPBaseline = Declaration{
	Choice: choice.Choice{
		Name: "reinforce_pp_baseline", Doc: "reward minus the group's mean, whitened over the batch's tokens",
		Source: "REINFORCE++ (Hu 2025), with baseline", Settings: reinforcePPBaselineSettings{},
	},
	GroupMeans: true,
}

// reinforcePPBaselineSettings has no parameters.
type reinforcePPBaselineSettings struct{}

// Estimate is REINFORCE++ with baseline over rows of either layout.
func (reinforcePPBaselineSettings) Estimate(b Batch) (out Estimates, err error) {
	out.Tokens, err = ReinforcePPBaseline{}.Estimate(b.Scores(), b.Groups(), b.Masks())
	return out, err
}

// ReinforcePP is REINFORCE++.
type ReinforcePP struct {
	Gamma float64 `min:"0" max:"1"`    // discount per token, in [0, 1]
	Gap   Gap     `enum:"carry|reset"` // GapCarry when empty
}

// Validate reports the first bad field.
func (r ReinforcePP) Validate() error { return choice.Check("", r) }

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
