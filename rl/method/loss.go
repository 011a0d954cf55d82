package method

import (
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Loss chooses the policy loss and its terms.
type Loss struct {
	Name string `json:"name" required:"true" doc:"the policy loss"`
	// Params are the parameters of the loss. Each loss declares its own in rl/loss.
	Params      choice.Params `params:"loss.name"`
	Aggregation string        `json:"aggregation" default:"token-mean" doc:"how per-token losses become one number"`
	OldLogProbs string        `json:"old_log_probs" default:"rollout" quiet:"true" doc:"where the ratio's denominator comes from"`
	// Terms say by name which other terms the loss has. Each term declares itself in rl/loss.
	Terms choice.Params `params:"loss"`
}

// Recomputes reports whether the trainer computes the ratio's denominators itself.
func (l Loss) Recomputes() bool { return l.OldLogProbs == loss.OldRecomputed }

// SequenceMask returns the settings of the sequence mask, or nil.
func (l Loss) SequenceMask() *loss.SequenceMaskSettings {
	return choice.Section[loss.SequenceMaskSettings](l.Terms, "sequence_mask")
}

// TIS returns the settings of truncated importance sampling, or nil.
func (l Loss) TIS() *loss.TIS { return choice.Section[loss.TIS](l.Terms, "tis") }

// KL returns the settings of the penalty on the distance from the reference policy, or nil.
func (l Loss) KL() *loss.KLSettings { return choice.Section[loss.KLSettings](l.Terms, "kl") }

// Reference returns the settings of a reference policy other than the one that training started from, or nil.
func (l Loss) Reference() *loss.ReferenceSettings {
	return choice.Section[loss.ReferenceSettings](l.Terms, "reference")
}

// Value returns the settings of the critic, or nil.
func (l Loss) Value() *loss.ValueSettings {
	return choice.Section[loss.ValueSettings](l.Terms, "value")
}
