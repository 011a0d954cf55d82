package method

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Rule refuses a combination that makes no sense.
type Rule struct {
	At    string   // the field to blame
	Reads []string // the other fields that it reads
	Doc   string   // what must hold, in words
	// Fault says why the method breaks the rule, naming the other field; "" = it does not.
	Fault func(Method) string
}

// Validate reports every rule that the method breaks.
func (m Method) Validate() error {
	var faults []error
	for _, r := range Rules() {
		if fault := r.Fault(m); fault != "" {
			faults = append(faults, fmt.Errorf("%s: %s", r.At, fault))
		}
	}
	return errors.Join(faults...)
}

// Rules returns the rules in the order of the fields that they blame.
func Rules() []Rule {
	return slices.Concat(advantageRules(), lossRules(), klRules(), resampleRules(), stepRules())
}

// refuse returns the reason where a combination is bad.
func refuse(bad bool, format string, args ...any) string {
	if !bad {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func among(name string, names ...string) bool { return slices.Contains(names, name) }

func advantageRules() []Rule {
	return []Rule{
		{
			At: "advantage.name", Reads: []string{"layout"}, Doc: "gigpo and empg only with layout turns",
			Fault: func(m Method) string {
				return refuse(among(m.Advantage.Name, "gigpo", "empg") && m.Layout != Turns,
					"%s compares turns, so it needs layout: turns, got %s", m.Advantage.Name, m.layout())
			},
		},
		{
			At: "advantage.name", Reads: []string{"loss.value"}, Doc: "gae only with a critic (loss.value)",
			Fault: func(m Method) string {
				return refuse(m.Advantage.Name == "gae" && m.Loss.Value == nil, "gae needs a critic's values; add loss.value")
			},
		},
		{
			At: "advantage.stats", Reads: []string{"layout"}, Doc: "per_trajectory only with layout turns",
			Fault: func(m Method) string {
				return refuse(m.Advantage.Stats == "per_trajectory" && m.Layout != Turns,
					"per_trajectory chooses among a trajectory's turns, and layout %s has one row for each trajectory", m.layout())
			},
		},
		{
			At: "advantage.stats", Reads: []string{"advantage.name"}, Doc: "turn_rows beside rloo",
			Fault: func(m Method) string {
				return refuse(m.Advantage.Stats == "per_trajectory" && m.Advantage.Name == "rloo",
					"per_trajectory is a choice of whose mean and deviation a row is held against, and rloo (advantage.name) holds it against the other rows")
			},
		},
		{
			At: "advantage.returns", Reads: []string{"advantage.name"}, Doc: "carry beside gae",
			Fault: func(m Method) string {
				return refuse(m.Advantage.Returns == "reset" && m.Advantage.Name == "gae",
					"reset reads the critic's values at observation tokens beside gae (advantage.name), and a step keeps those of the policy's tokens alone; use carry")
			},
		},
		{
			At: "advantage.invalid_penalty", Reads: []string{"layout"}, Doc: "0 without layout turns",
			Fault: func(m Method) string {
				return refuse(m.Advantage.InvalidPenalty > 0 && m.Layout != Turns,
					"is taken from the row of an invalid turn, so it needs layout: turns, got %s", m.layout())
			},
		},
		{
			At: "advantage.entropy_aware", Reads: []string{"advantage.name"}, Doc: "off beside gae, reinforce_pp and empg",
			Fault: func(m Method) string {
				return refuse(m.Advantage.EntropyAware != nil && among(m.Advantage.Name, "gae", "reinforce_pp", "empg"), "%s", map[string]string{
					"gae":          "scales one advantage for a whole row, and gae gives each token its own (advantage.name)",
					"reinforce_pp": "scales one advantage for a whole row, and reinforce_pp gives each token its own (advantage.name)",
					"empg":         "would weigh by entropy twice, for empg does so already (advantage.name)",
				}[m.Advantage.Name])
			},
		},
	}
}

func lossRules() []Rule {
	return []Rule{
		{
			At: "loss.dual_clip", Doc: "0 (off) or > 1",
			Fault: func(m Method) string {
				c := m.Loss.DualClip
				return refuse(c != 0 && c <= 1, "must be 0 (off) or > 1, got %.9g", c)
			},
		},
		{
			At: "loss.name", Reads: []string{"advantage.name", "advantage.entropy_aware"}, Doc: "gspo_token in the place of gspo where advantages differ by token (gae, reinforce_pp, entropy_aware)",
			Fault: func(m Method) string {
				by := ""
				if among(m.Advantage.Name, "gae", "reinforce_pp") {
					by = "advantage.name " + m.Advantage.Name
				} else if m.Advantage.EntropyAware != nil {
					by = "advantage.entropy_aware"
				}
				return refuse(m.Loss.Name == "gspo" && by != "", "gspo has one advantage for a row, and with %s they differ by token; use gspo_token", by)
			},
		},
		{
			At: "loss.clip_high", Reads: []string{"loss.name"}, Doc: "below 1 for gspo and gspo_token",
			Fault: func(m Method) string {
				return refuse(among(m.Loss.Name, "gspo", "gspo_token") && m.Loss.ClipHigh >= 1,
					"must be below 1 beside loss.name %s, whose ratio is a geometric mean (of the order of 1 ± 0.001), got %.9g", m.Loss.Name, m.Loss.ClipHigh)
			},
		},
		{
			At: "loss.cov_low", Reads: []string{"loss.cov_high"}, Doc: "below cov_high",
			Fault: func(m Method) string {
				return refuse(m.Loss.Name == "clip_cov" && m.Loss.CovLow >= m.Loss.CovHigh,
					"must be below loss.cov_high (%.9g), or no token lies between, got %.9g", m.Loss.CovHigh, m.Loss.CovLow)
			},
		},
		{
			At: "loss.sequence_mask", Reads: []string{"loss.name"}, Doc: "off beside gspo and gspo_token",
			Fault: func(m Method) string {
				return refuse(m.Loss.SequenceMask != nil && among(m.Loss.Name, "gspo", "gspo_token"),
					"would leave out rows that %s's own clip (loss.name) already takes the gradient of", m.Loss.Name)
			},
		},
		{
			At: "loss.tis", Reads: []string{"loss.old_log_probs"}, Doc: "only with old_log_probs: recompute",
			Fault: func(m Method) string {
				return refuse(m.Loss.TIS != nil && m.Loss.OldLogProbs != "recompute",
					"weighs by recomputed over reported log-probabilities, and with loss.old_log_probs: %s they are the same; use recompute", m.Loss.OldLogProbs)
			},
		},
		{
			At: "loss.value", Reads: []string{"advantage.name"}, Doc: "only with gae",
			Fault: func(m Method) string {
				return refuse(m.Loss.Value != nil && m.Advantage.Name != "gae", "trains a critic that advantage.name %s does not read; it belongs to gae", m.Advantage.Name)
			},
		},
	}
}

func klRules() []Rule {
	return []Rule{
		{
			At: "loss.kl.in", Reads: []string{"advantage.name"}, Doc: "reward only with reinforce_pp or gae",
			Fault: func(m Method) string {
				return refuse(m.Loss.KL != nil && m.Loss.KL.In == "reward" && !among(m.Advantage.Name, "reinforce_pp", "gae"),
					"reward changes the rewards of tokens, and advantage.name %s reads one reward for a trajectory; use loss, or reinforce_pp or gae", m.Advantage.Name)
			},
		},
		{
			At: "loss.reference", Reads: []string{"loss.kl"}, Doc: "only with loss.kl",
			Fault: func(m Method) string {
				return refuse(m.Loss.Reference != nil && m.Loss.KL == nil, "refreshes a reference that nothing reads; add loss.kl")
			},
		},
	}
}

func resampleRules() []Rule {
	both := func(at, other, why string, bad func(Resample) bool) Rule {
		return Rule{At: at, Reads: []string{other}, Doc: "not beside " + other, Fault: func(m Method) string {
			return refuse(bad(m.Resample), "has no place beside %s: %s", other, why)
		}}
	}
	return []Rule{
		both("resample.dynamic", "resample.vspo", "both replace groups of equal rewards, and after dynamic sampling there are none left",
			func(r Resample) bool { return r.Dynamic != nil && r.VSPO != nil }),
		both("resample.reject_equal", "resample.vspo", "VSPO gives the places of such groups to others, and they would be gone already",
			func(r Resample) bool { return r.RejectEqual && r.VSPO != nil }),
		both("resample.reject_equal", "resample.dynamic", "dynamic sampling keeps such groups only to fill up the last try, and they would be dropped again",
			func(r Resample) bool { return r.RejectEqual && r.Dynamic != nil }),
		both("resample.low_variance", "resample.vspo", "both choose groups by their variance, and VSPO would refill what this drops",
			func(r Resample) bool { return r.LowVariance != nil && r.VSPO != nil }),
	}
}

func stepRules() []Rule {
	return []Rule{
		{
			At: "replay", Reads: []string{"advantage.name"}, Doc: "only with an estimator of group means: grpo, rloo, opo, gpg, gigpo, empg, reinforce_pp_baseline",
			Fault: func(m Method) string {
				return refuse(m.Replay != nil && among(m.Advantage.Name, "gae", "reinforce_pp"),
					"recalibrates by the means of groups, which advantage.name %s does not form", m.Advantage.Name)
			},
		},
		{
			At: "replay.cov_low", Reads: []string{"replay.cov_high"}, Doc: "below cov_high",
			Fault: func(m Method) string {
				r := m.Replay
				return refuse(r != nil && r.CovRatio > 0 && r.CovLow >= r.CovHigh, "must be below replay.cov_high (%.9g), or no token lies between, got %.9g", value(r).CovHigh, value(r).CovLow)
			},
		},
		{
			At: "schedule.gamma_horizon", Reads: []string{"replay"}, Doc: "0 without replay",
			Fault: func(m Method) string {
				return refuse(m.Schedule != nil && m.Schedule.GammaHorizon > 0 && m.Replay == nil, "schedules the weight of a replay loss that there is none of; add replay")
			},
		},
		{
			At: "schedule.mu_horizon", Reads: []string{"reward.name"}, Doc: "0 without a reward with a tool term (spear, spear_math, spear_math_qwen3, spear_agent)",
			Fault: func(m Method) string {
				return refuse(m.Schedule != nil && m.Schedule.MuHorizon > 0 && !strings.HasPrefix(m.Reward.Name, "spear"),
					"schedules the weight of a tool term, and reward.name %s has none", m.Reward.Name)
			},
		},
		{At: "schedule.stages", Doc: "from_step rises from stage to stage", Fault: stagesRise},
	}
}

func stagesRise(m Method) string {
	if m.Schedule == nil {
		return ""
	}
	for i, s := range m.Schedule.Stages[min(1, len(m.Schedule.Stages)):] {
		if before := m.Schedule.Stages[i].FromStep; s.FromStep <= before {
			return fmt.Sprintf("from_step must rise from stage to stage, got %d after %d", s.FromStep, before)
		}
	}
	return ""
}

// value is the section, or its zero value where it is absent.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
