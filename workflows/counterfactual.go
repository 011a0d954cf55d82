package workflows

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Counterfactual is the policy that a replay through the update has trained, next to the run's own after the same step.
type Counterfactual struct {
	Policy api.PolicyRef `json:"policy"`
	// Own is the run's own policy; nil if it is pruned. Then nothing is compared.
	Own *api.PolicyRef `json:"own,omitempty"`
	// KL estimates KL(Policy ‖ Own), in nats for each token, over the tokens of the step's rollout; nil if it is not
	// known.
	KL     *float64 `json:"kl"`
	Tokens int      `json:"tokens"`
	// Success and OwnSuccess are the policies' results on held-out problems; nil for one that was not measured.
	Success    *api.EvaluationSummary `json:"success,omitempty"`
	OwnSuccess *api.EvaluationSummary `json:"own_success,omitempty"`
}

// counterfactual is the result of a replay; nil if it has trained nothing.
func counterfactual(from *api.CounterfactualUpdate, made step.Replayed) *Counterfactual {
	if made.Updated == nil {
		return nil
	}
	c := &Counterfactual{Policy: made.Updated.Policy, Own: from.Own, Success: made.Counterfactual,
		OwnSuccess: made.Factual}
	if made.Contrast != nil {
		c.KL, c.Tokens = made.Contrast.KL, made.Contrast.Tokens
	}
	return c
}

// Lines describe the comparison for people.
func (c *Counterfactual) Lines() []string {
	out := []string{fmt.Sprintf("counterfactual policy %s", short(c.Policy.Digest))}
	switch {
	case c.Own == nil:
		out = append(out, "the run's own policy after the step is pruned: nothing to compare with")
	case c.Own.Digest == c.Policy.Digest:
		out = append(out, "it is the run's own policy after the step")
	default:
		out[0] += ", the run's own " + short(c.Own.Digest)
	}
	if c.KL != nil {
		out = append(out, fmt.Sprintf("KL(counterfactual ‖ own) %.3g nats a token, over %d tokens of the rollout",
			*c.KL, c.Tokens))
	}
	if c.Success != nil {
		line := fmt.Sprintf("held-out success %v", c.Success.Rate)
		if c.OwnSuccess != nil {
			line += fmt.Sprintf(", the run's own %v", c.OwnSuccess.Rate)
		}
		out = append(out, line)
	}
	return out
}
