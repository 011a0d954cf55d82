package advantage

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Generalised advantage estimation (Schulman et al. 2016, eq 16), as PPO over tokens uses it.
// Backward over a row from V' = 0 and A' = 0,
//
//	δ_t = r_t + γ V' − V_t
//	A_t = δ_t + γ λ A';   V' ← V_t, A' ← A_t
//
// Departure: a masked token (an observation inside the response) is skipped and leaves V' and A' as they
// are, so an action's next state is that of the next action and not a tool output. The masked token itself
// gets the current A'. NoSkip is what older released code does: it treats every token alike and so reads
// rewards and values under mask 0.

var gae = Declaration{
	Choice: choice.Choice{
		Name: "gae", Doc: "generalised advantage estimation over a critic's values, whitened",
		Source:   "PPO (Schulman et al. 2016, 2017)",
		Settings: gaeSettings{Gamma: 1, Lambda: 0.95, Returns: GapCarry},
		Needs:    []choice.Need{choice.NeedValues},
		Rules: []choice.Rule{{
			Param: "returns", Reads: []string{"name"}, Doc: "carry with gae",
			Fault: func(p choice.Params) string {
				if p["returns"] != string(GapReset) {
					return ""
				}
				return "reset reads the critic's values at observation tokens with gae (advantage.name), " +
					"and a step keeps those of the policy's tokens alone; use carry"
			},
		}},
	},
	PerToken: true, TokenRewards: true,
}

// gaeSettings are the parameters of GAE in a recipe.
type gaeSettings struct {
	Gamma   float64 `json:"gamma"`
	Lambda  float64 `json:"lambda" min:"0" max:"1" doc:"decay of the temporal-difference errors"`
	Returns Gap     `json:"returns"`
}

// Estimate is GAE over the rewards of tokens and the critic's values.
func (g gaeSettings) Estimate(b Batch) (Estimates, error) {
	rewards, err := b.TokenRewards()
	if err != nil {
		return Estimates{}, err
	}
	estimator := GAE{Gamma: g.Gamma, Lambda: g.Lambda, NoSkip: g.Returns == GapReset}
	out, err := estimator.Estimate(rewards, b.Values(), b.Masks())
	return Estimates{Tokens: out.Whitened, Returns: out.Returns}, err
}

// GAE is generalised advantage estimation.
type GAE struct {
	Gamma  float64 `min:"0" max:"1"` // discount per token, in [0, 1]
	Lambda float64 `min:"0" max:"1"` // in [0, 1]
	NoSkip bool    // treat masked tokens like any other
}

// Validate reports the first bad field.
func (g GAE) Validate() error { return choice.Check("", g) }

// GAEResult holds one value per token.
type GAEResult struct {
	Raw      [][]float64 // A_t, unmasked
	Returns  [][]float64 // A_t + V_t, what the value function learns; meaningless under mask 0
	Whitened [][]float64 // Raw whitened over the batch, what the policy learns from
}

// Estimate returns the advantages of tokens. rewards and values have the shape of the mask. Values under
// mask 0 are read too, for Returns.
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
