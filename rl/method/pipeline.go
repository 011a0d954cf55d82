package method

import (
	"fmt"
	"slices"
)

// Pipeline lists the choices that the activities build today. It is the one place that says so: a
// choice enters with the code that builds it, and until then no run takes it.
func Pipeline() []Pick {
	return slices.Concat(
		picks("layout", Trajectory, Turns),
		picks("advantage.name", "grpo", "rloo", "opo", "gpg", "reinforce_pp", "reinforce_pp_baseline", "gae", "gigpo", "empg"),
		picks("advantage.anchors", "exact", "similar"),
		picks("loss.name", "ppo_clip", "cispo", "sapo", "gspo", "gspo_token", "gpg", "gppo", "ce_gppo", "aepo_clip", "clip_cov", "kl_cov"),
		picks("loss.aggregation", "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "norm_legacy", "token-sum"),
		picks("loss.old_log_probs", "rollout", "recompute"),
		picks("loss.kl.in", "loss", "reward"),
		picks("loss.kl.controller", "fixed", "adaptive"),
		picks("reward.name", "rstar2_outcome", "math_answer", "reference", "spear", "spear_math", "spear_math_qwen3", "spear_agent", "retool",
			"prs_short", "prs_long", "prs_general", "exact_match", "f1", "arlarena", "dapo_strict"),
		picks("reward.judge", "exact"),
		picks("replay.recalibrate", "p50", "decay"),
		picks("replay.order", "sequential", "joint"),
		switches(
			"advantage.entropy_aware", "loss.sequence_mask", "loss.tis", "loss.entropy", "loss.reference", "loss.value",
			"resample.dynamic", "resample.reject_equal", "resample.low_variance", "resample.vspo", "resample.roc",
			"filters.overlong", "filters.void_turns", "filters.repetition", "filters.unreadable",
			"reward.overlong", "schedule.gamma_horizon", "schedule.mu_horizon", "schedule.stages",
		),
	)
}

// picks are choices of one slot.
func picks(slot string, choices ...string) []Pick {
	out := make([]Pick, len(choices))
	for i, c := range choices {
		out[i] = Pick{slot, c}
	}
	return out
}

// switches are slots that are on.
func switches(slots ...string) []Pick {
	out := make([]Pick, len(slots))
	for i, s := range slots {
		out[i] = Pick{s, On}
	}
	return out
}

// Built reports whether the pipeline builds the choice.
func Built(p Pick) bool { return slices.Contains(Pipeline(), p) }

// Planned says of each choice of the method that cannot run yet what is missing, in the order of
// the slot table.
func (m Method) Planned() []string {
	var missing []string
	for _, p := range m.Picks() {
		if text := p.Missing(); text != "" {
			missing = append(missing, text)
		}
	}
	return missing
}

// Missing says why a pick cannot run yet, or "".
func (p Pick) Missing() string {
	name := p.Slot + ": " + p.Choice
	if p.Choice == On {
		name = p.Slot
	}
	if c, ok := p.choice(); ok && c.Planned != "" {
		return fmt.Sprintf("%s: %s", name, c.Planned)
	}
	if !Built(p) {
		return name + ": the pipeline does not build it yet"
	}
	return ""
}
