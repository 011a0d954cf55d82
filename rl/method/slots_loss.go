package method

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// lossChoices are the policy losses that rl/loss declares. Every loss also reads loss.aggregation.
func lossChoices() []choice.Choice {
	declared := loss.Declarations()
	out := make([]choice.Choice, len(declared))
	for i, d := range declared {
		out[i] = d.Choice
		aggregation := choice.Param{Name: "aggregation", Default: string(d.Aggregation)}
		out[i].Reads = append(slices.Clone(d.Reads), aggregation)
	}
	return out
}

// lossSlots are the policy losses, how their tokens become one number, and the other terms of the loss.
func lossSlots() []Slot {
	out := []Slot{
		declaredSlot("loss.name", "the policy loss", ImportanceClip, lossChoices()),
		declaredSlot(
			"loss.aggregation", "how per-token losses become one number", LossAggregation, loss.Aggregations(),
		),
		declaredSlot("loss.old_log_probs", "where the ratio's denominator comes from", "", loss.OldLogProbs()),
	}
	for _, t := range loss.Terms() {
		for _, in := range t.Inner {
			out = append(out, declaredSlot("loss."+t.Name+"."+in.Name, in.Doc, t.Dimension, in.Choices))
		}
		if len(t.Inner) == 0 {
			out = append(out, switchSlots("loss", []choice.Choice{t.Choice})...)
		}
	}
	return out
}

// termChoices are the terms of the loss that rl/loss declares.
func termChoices() []choice.Choice { return choices(loss.Terms()) }
