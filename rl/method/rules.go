package method

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
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

// refuse returns the rule that refuses a combination. The text may hold paths in braces, which stand for values.
func refuse(at, reads, doc, text string, broken func(Method) bool) Rule {
	return Rule{At: at, Reads: strings.Fields(reads), Doc: doc, Fault: func(m Method) string {
		if !broken(m) {
			return ""
		}
		return inBraces.ReplaceAllStringFunc(text, func(path string) string { return m.shown(path[1 : len(path)-1]) })
	}}
}

// inBraces matches a path in a text.
var inBraces = regexp.MustCompile(`\{[a-z0-9_.]+\}`)

// shown returns the value at a path of the method.
func (m Method) shown(path string) string {
	if path == "layout" {
		return m.layout()
	}
	return fmt.Sprint(at(reflect.ValueOf(m), strings.Split(path, ".")))
}

func isOneOf(name string, names ...string) bool { return slices.Contains(names, name) }

func advantageRules() []Rule {
	byTurn := estimators(func(d advantage.Declaration) bool { return d.Turns })
	perToken := estimators(func(d advantage.Declaration) bool { return d.PerToken })
	byEntropy := estimators(func(d advantage.Declaration) bool { return d.ByEntropy })
	made := func(m Method) (string, choice.Params) { return m.Advantage.Name, m.Advantage.Params }
	return append([]Rule{
		refuse("advantage.name", "layout", inWords(byTurn)+" only with layout turns",
			"{advantage.name} compares turns, so it needs layout: turns, got {layout}",
			func(m Method) bool { return isOneOf(m.Advantage.Name, byTurn...) && m.Layout != Turns }),
		refuse("advantage.name", "loss.value", "gae only with a critic (loss.value)",
			"gae needs a critic's values; add loss.value",
			func(m Method) bool { return m.Advantage.Name == "gae" && m.Loss.Value() == nil }),
		refuse("advantage.stats", "layout", "per_trajectory only with layout turns",
			"per_trajectory chooses among a trajectory's turns, and layout {layout} has one row for each trajectory",
			func(m Method) bool { return m.Advantage.perTrajectory() && m.Layout != Turns }),
		refuse("advantage.invalid_penalty", "layout", "0 without layout turns",
			"is taken from the row of an invalid turn, so it needs layout: turns, got {layout}",
			func(m Method) bool { return m.Advantage.InvalidPenalty() > 0 && m.Layout != Turns }),
		refuse("advantage.entropy_aware", "advantage.name", "off with "+inWords(perToken),
			"scales one advantage for a whole row, and {advantage.name} gives each token its own (advantage.name)",
			func(m Method) bool { return m.Advantage.EntropyAware != nil && isOneOf(m.Advantage.Name, perToken...) }),
		refuse("advantage.entropy_aware", "advantage.name", "off with "+inWords(byEntropy),
			"would weigh by entropy twice, for {advantage.name} does so already (advantage.name)",
			func(m Method) bool { return m.Advantage.EntropyAware != nil && isOneOf(m.Advantage.Name, byEntropy...) }),
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
	byRow := rowLosses(func(d loss.Declaration) bool { return d.RowAdvantage })
	const differ = "they differ by token; use gspo_token"
	return append(parameterRules(
		"loss", lossChoices(), func(m Method) (string, choice.Params) { return m.Loss.Name, m.Loss.Params },
	), []Rule{
		refuse("loss.name", "advantage.name",
			"gspo_token in the place of gspo where advantages differ by token ("+strings.Join(perToken, ", ")+")",
			"{loss.name} has one advantage for a row, and with advantage.name {advantage.name} "+differ,
			func(m Method) bool { return isOneOf(m.Loss.Name, byRow...) && isOneOf(m.Advantage.Name, perToken...) }),
		refuse("loss.name", "advantage.entropy_aware", "gspo_token in the place of gspo with entropy_aware",
			"{loss.name} has one advantage for a row, and with advantage.entropy_aware "+differ,
			func(m Method) bool { return isOneOf(m.Loss.Name, byRow...) && m.Advantage.EntropyAware != nil }),
		refuse("loss.sequence_mask", "loss.name", "off with "+inWords(sequence),
			"would leave out rows that {loss.name}'s own clip (loss.name) already takes the gradient of",
			func(m Method) bool { return m.Loss.SequenceMask() != nil && isOneOf(m.Loss.Name, sequence...) }),
		refuse("loss.tis", "loss.old_log_probs", "only with old_log_probs: recompute",
			"weighs by recomputed over reported log-probabilities, and with loss.old_log_probs: {loss.old_log_probs} "+
				"they are the same; use recompute",
			func(m Method) bool { return m.Loss.TIS() != nil && !m.Loss.Recomputes() }),
		refuse("loss.value", "advantage.name", "only with gae",
			"trains a critic that advantage.name {advantage.name} does not read; it belongs to gae",
			func(m Method) bool { return m.Loss.Value() != nil && m.Advantage.Name != "gae" }),
	}...)
}

func klRules() []Rule {
	byToken := estimators(func(d advantage.Declaration) bool { return d.TokenRewards })
	either := strings.Join(byToken, " or ")
	return []Rule{
		refuse("loss.kl.in", "advantage.name", "reward only with "+either,
			"reward changes the rewards of tokens, and advantage.name {advantage.name} reads one reward for a "+
				"trajectory; use loss, or "+either,
			func(m Method) bool {
				kl := m.Loss.KL()
				return kl != nil && kl.In == loss.KLInReward && !isOneOf(m.Advantage.Name, byToken...)
			}),
		refuse("loss.reference", "loss.kl", "only with loss.kl",
			"refreshes a reference that nothing reads; add loss.kl",
			func(m Method) bool { return m.Loss.Reference() != nil && m.Loss.KL() == nil }),
	}
}

// resampleRules refuse resampling rules that exclude one another.
func resampleRules() []Rule {
	var out []Rule
	for _, rule := range resample.Rules() {
		for _, excluded := range rule.Excludes {
			other := "resample." + excluded.Rule
			out = append(out, refuse("resample."+rule.Name, other, "not with "+other,
				"cannot be combined with "+other+": "+excluded.Why,
				func(m Method) bool { return m.Resample.has(rule.Name) && m.Resample.has(excluded.Rule) }))
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
		refuse("replay", "advantage.name", "only with an estimator of group means: "+strings.Join(means, ", "),
			"recalibrates by the means of groups, which advantage.name {advantage.name} does not form",
			func(m Method) bool { return m.Replay != nil && !isOneOf(m.Advantage.Name, means...) }),
		refuse("replay.cov_low", "replay.cov_high", "below cov_high",
			"must be below replay.cov_high ({replay.cov_high}), or no token lies between, got {replay.cov_low}",
			func(m Method) bool {
				return m.Replay != nil && m.Replay.CovRatio > 0 && m.Replay.CovLow >= m.Replay.CovHigh
			}),
		refuse("schedule.gamma_horizon", "replay", "0 without replay",
			"schedules the weight of a replay loss, and there is no replay; add replay",
			func(m Method) bool { return m.Schedule.GammaHorizon() > 0 && m.Replay == nil }),
		refuse("schedule.mu_horizon", "reward.name",
			"0 without a reward with a tool term ("+strings.Join(tooled, ", ")+")",
			"schedules the weight of a tool term, and reward.name {reward.name} has none",
			func(m Method) bool { return m.Schedule.MuHorizon() > 0 && !isOneOf(m.Reward.Name, tooled...) }),
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
