package method

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// Rule refuses a combination that makes no sense.
type Rule struct {
	At    string   // the field to blame
	Reads []string // the other fields that it reads
	Doc   string   // what must hold, in words
	// Fault says why the method breaks the rule, and names the other field; "" = it does not.
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

// refuse returns the reason if a combination is bad, otherwise "".
func refuse(bad bool, format string, args ...any) string {
	if !bad {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func isOneOf(name string, names ...string) bool { return slices.Contains(names, name) }

func advantageRules() []Rule {
	byTurn := estimators(func(d advantage.Declaration) bool { return d.Turns })
	perToken := estimators(func(d advantage.Declaration) bool { return d.PerToken })
	byEntropy := estimators(func(d advantage.Declaration) bool { return d.ByEntropy })
	made := func(m Method) (string, choice.Params) { return m.Advantage.Name, m.Advantage.Params }
	return append([]Rule{
		{
			At: "advantage.name", Reads: []string{"layout"}, Doc: inWords(byTurn) + " only with layout turns",
			Fault: func(m Method) string {
				return refuse(isOneOf(m.Advantage.Name, byTurn...) && m.Layout != Turns,
					"%s compares turns, so it needs layout: turns, got %s", m.Advantage.Name, m.layout())
			},
		},
		{
			At: "advantage.name", Reads: []string{"loss.value"}, Doc: "gae only with a critic (loss.value)",
			Fault: func(m Method) string {
				return refuse(
					m.Advantage.Name == "gae" && m.Loss.Value() == nil, "gae needs a critic's values; add loss.value",
				)
			},
		},
		{
			At: "advantage.stats", Reads: []string{"layout"}, Doc: "per_trajectory only with layout turns",
			Fault: func(m Method) string {
				return refuse(
					m.Advantage.perTrajectory() && m.Layout != Turns,
					"per_trajectory chooses among a trajectory's turns, and layout %s has one row for each trajectory",
					m.layout(),
				)
			},
		},
		{
			At: "advantage.invalid_penalty", Reads: []string{"layout"}, Doc: "0 without layout turns",
			Fault: func(m Method) string {
				return refuse(m.Advantage.InvalidPenalty() > 0 && m.Layout != Turns,
					"is taken from the row of an invalid turn, so it needs layout: turns, got %s", m.layout())
			},
		},
		{
			At: "advantage.entropy_aware", Reads: []string{"advantage.name"}, Doc: "off with " + inWords(
				slices.Concat(perToken, byEntropy),
			),
			Fault: func(m Method) string {
				name := m.Advantage.Name
				switch {
				case m.Advantage.EntropyAware == nil:
					return ""
				case isOneOf(name, perToken...):
					return fmt.Sprintf(
						"scales one advantage for a whole row, and %s gives each token its own (advantage.name)", name,
					)
				case isOneOf(name, byEntropy...):
					return fmt.Sprintf("would weigh by entropy twice, for %s does so already (advantage.name)", name)
				}
				return ""
			},
		},
	}, parameterRules("advantage", estimatorChoices(), made)...)
}

// inWords lists names: a, b and c.
func inWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// parameterRules are the rules that the choices of a section declare about their own parameters. Rules with the same
// field and the same words are one rule of several choices.
func parameterRules(section string, choices []choice.Choice, made func(Method) (string, choice.Params)) []Rule {
	var out []Rule
	for _, c := range choices {
		for _, r := range c.Rules {
			at := section + "." + r.Param
			if slices.ContainsFunc(out, func(o Rule) bool { return o.At == at && o.Doc == r.Doc }) {
				continue
			}
			var reads []string
			for _, name := range r.Reads {
				reads = append(reads, section+"."+name)
			}
			out = append(out, Rule{At: at, Reads: reads, Doc: r.Doc, Fault: func(m Method) string {
				name, params := made(m)
				i := slices.IndexFunc(choices, func(c choice.Choice) bool { return c.Name == name })
				if i < 0 {
					return ""
				}
				return choices[i].Fault(r.Param, r.Doc, params)
			}})
		}
	}
	return out
}

// rowLosses names the losses that read one advantage for each row, and those whose ratio belongs to the row.
func rowLosses(has func(loss.Declaration) bool) []string {
	var names []string
	for _, d := range loss.Declarations() {
		if has(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

func lossRules() []Rule {
	perToken := estimators(func(d advantage.Declaration) bool { return d.PerToken })
	sequence := rowLosses(func(d loss.Declaration) bool { return d.RatioOfRow() })
	return append(parameterRules(
		"loss", lossChoices(), func(m Method) (string, choice.Params) { return m.Loss.Name, m.Loss.Params },
	), []Rule{
		{
			At: "loss.name", Reads: []string{"advantage.name", "advantage.entropy_aware"},
			Doc: "gspo_token in the place of gspo where advantages differ by token (" + strings.Join(perToken, ", ") +
				", entropy_aware)",
			Fault: func(m Method) string {
				by := ""
				if isOneOf(m.Advantage.Name, perToken...) {
					by = "advantage.name " + m.Advantage.Name
				} else if m.Advantage.EntropyAware != nil {
					by = "advantage.entropy_aware"
				}
				d, _ := loss.Declared(m.Loss.Name)
				return refuse(
					d.RowAdvantage && by != "",
					"%s has one advantage for a row, and with %s they differ by token; use gspo_token", d.Name, by,
				)
			},
		},
		{
			At: "loss.sequence_mask", Reads: []string{"loss.name"}, Doc: "off with " + inWords(sequence),
			Fault: func(m Method) string {
				return refuse(m.Loss.SequenceMask() != nil && isOneOf(m.Loss.Name, sequence...),
					"would leave out rows that %s's own clip (loss.name) already takes the gradient of", m.Loss.Name)
			},
		},
		{
			At: "loss.tis", Reads: []string{"loss.old_log_probs"}, Doc: "only with old_log_probs: recompute",
			Fault: func(m Method) string {
				return refuse(
					m.Loss.TIS() != nil && m.Loss.OldLogProbs != loss.OldRecomputed,
					"weighs by recomputed over reported log-probabilities, and with loss.old_log_probs: %s they are "+
						"the same; use recompute",
					m.Loss.OldLogProbs,
				)
			},
		},
		{
			At: "loss.value", Reads: []string{"advantage.name"}, Doc: "only with gae",
			Fault: func(m Method) string {
				return refuse(
					m.Loss.Value() != nil && m.Advantage.Name != "gae",
					"trains a critic that advantage.name %s does not read; it belongs to gae", m.Advantage.Name,
				)
			},
		},
	}...)
}

func klRules() []Rule {
	byToken := estimators(func(d advantage.Declaration) bool { return d.TokenRewards })
	either := strings.Join(byToken, " or ")
	return []Rule{
		{
			At: "loss.kl.in", Reads: []string{"advantage.name"}, Doc: "reward only with " + either,
			Fault: func(m Method) string {
				return refuse(
					valueOrZero(m.Loss.KL()).In == loss.KLInReward && !isOneOf(m.Advantage.Name, byToken...),
					"reward changes the rewards of tokens, and advantage.name %s reads one reward for a trajectory; "+
						"use loss, or %s",
					m.Advantage.Name, either,
				)
			},
		},
		{
			At: "loss.reference", Reads: []string{"loss.kl"}, Doc: "only with loss.kl",
			Fault: func(m Method) string {
				return refuse(
					m.Loss.Reference() != nil && m.Loss.KL() == nil,
					"refreshes a reference that nothing reads; add loss.kl",
				)
			},
		},
	}
}

// resampleRules refuse resampling rules that exclude one another.
func resampleRules() []Rule {
	var out []Rule
	for _, rule := range resample.Rules() {
		for _, excluded := range rule.Excludes {
			other := "resample." + excluded.Rule
			out = append(out, Rule{
				At: "resample." + rule.Name, Reads: []string{other}, Doc: "not with " + other,
				Fault: func(m Method) string {
					both := m.Resample.has(rule.Name) && m.Resample.has(excluded.Rule)
					return refuse(both, "cannot be combined with %s: %s", other, excluded.Why)
				},
			})
		}
	}
	return out
}

func stepRules() []Rule {
	means := estimators(func(d advantage.Declaration) bool { return d.GroupMeans })
	var tooled []string
	for _, d := range reward.Declarations() {
		if d.ToolTerm {
			tooled = append(tooled, d.Name)
		}
	}
	return append([]Rule{
		{
			At: "replay", Reads: []string{"advantage.name"},
			Doc: "only with an estimator of group means: " + strings.Join(means, ", "),
			Fault: func(m Method) string {
				return refuse(m.Replay != nil && !isOneOf(m.Advantage.Name, means...),
					"recalibrates by the means of groups, which advantage.name %s does not form", m.Advantage.Name)
			},
		},
		{
			At: "replay.cov_low", Reads: []string{"replay.cov_high"}, Doc: "below cov_high",
			Fault: func(m Method) string {
				r := m.Replay
				return refuse(
					r != nil && r.CovRatio > 0 && r.CovLow >= r.CovHigh,
					"must be below replay.cov_high (%.9g), or no token lies between, got %.9g", valueOrZero(r).CovHigh,
					valueOrZero(r).CovLow,
				)
			},
		},
		{
			At: "schedule.gamma_horizon", Reads: []string{"replay"}, Doc: "0 without replay",
			Fault: func(m Method) string {
				return refuse(
					m.Schedule.GammaHorizon() > 0 && m.Replay == nil,
					"schedules the weight of a replay loss, and there is no replay; add replay",
				)
			},
		},
		{
			At: "schedule.mu_horizon", Reads: []string{"reward.name"},
			Doc: "0 without a reward with a tool term (" + strings.Join(tooled, ", ") + ")",
			Fault: func(m Method) string {
				return refuse(m.Schedule.MuHorizon() > 0 && !isOneOf(m.Reward.Name, tooled...),
					"schedules the weight of a tool term, and reward.name %s has none", m.Reward.Name)
			},
		},
	}, switchRules("schedule", schedule.Declarations(), scheduleParams)...)
}

func scheduleParams(m Method) choice.Params {
	if m.Schedule == nil {
		return nil
	}
	return m.Schedule.Params
}

// switchRules are the rules that the switches of a section declare about their own values.
func switchRules(section string, switches []choice.Choice, set func(Method) choice.Params) []Rule {
	var out []Rule
	for _, c := range switches {
		for _, r := range c.Rules {
			out = append(out, Rule{At: section + "." + r.Param, Doc: r.Doc, Fault: func(m Method) string {
				return r.Fault(set(m))
			}})
		}
	}
	return out
}

// valueOrZero is the section, or its zero value where it is absent.
func valueOrZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
