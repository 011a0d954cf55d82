package method

import (
	"fmt"
	"slices"
)

// Pipeline lists the choices that the activities build today. It is the one place that says so: a
// choice enters with the code that builds it, and until then no run takes it.
func Pipeline() []Pick {
	return []Pick{
		{"layout", Trajectory},
		{"advantage.name", "grpo"},
		{"loss.name", "ppo_clip"},
		{"loss.aggregation", "token-mean"},
		{"loss.aggregation", "seq-mean-token-mean"},
		{"loss.aggregation", "seq-mean-token-sum"},
		{"loss.aggregation", "seq-mean-token-sum-norm"},
		{"loss.aggregation", "norm_legacy"},
		{"loss.aggregation", "token-sum"},
		{"loss.old_log_probs", "rollout"},
		{"loss.old_log_probs", "recompute"},
		{"loss.tis", On},
		{"loss.entropy", On},
		{"loss.kl.in", "loss"},
		{"loss.kl.controller", "fixed"},
		{"loss.reference", On},
		{"resample.dynamic", On},
		{"resample.vspo", On},
		{"resample.roc", On},
		{"replay.recalibrate", "p50"},
		{"replay.recalibrate", "decay"},
		{"replay.order", "sequential"},
		{"schedule.gamma_horizon", On},
		{"reward.name", "rstar2_outcome"},
		{"reward.name", "math_answer"},
		{"reward.name", "reference"},
	}
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
