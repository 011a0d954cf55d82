package recipes

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/rl/method"
)

// deepResearch is a reward.
const deepResearch = "deep_research"

// trained is the class of environments in which trajectories are sampled.
const trained = "trained"

// ofMethod returns the rules that package method declares, as rows of the table.
func ofMethod() []rule {
	var all []rule
	for _, of := range method.Rules() {
		all = append(all, rule{at: of.At, reads: strings.Join(of.Reads, " "), doc: of.Doc,
			check: func(r *Recipe) string { return of.Fault(r.Method()) }})
	}
	return all
}

func rewardFits(r *Recipe) string {
	if r.Environment.unfit() || r.Reward.Called() && !r.Environment.Imported() {
		return ""
	}
	fit := slices.Clone(r.Environment.Declaration().Rewards)
	if !r.Environment.Imported() {
		fit = append(fit, "python")
	}
	want := strings.Join(fit, ", ")
	if len(fit) > 1 {
		want = "one of " + want
	}
	why := ""
	if r.Reward.Name == deepResearch {
		why = ", which looks for searches and their results; " + r.Environment.Name + " records none"
	}
	return unless(slices.Contains(fit, r.Reward.Name), "must be %s in a recipe of %s, got %s%s", want,
		r.Environment.Name, r.Reward.Name, why)
}

// rewardsInWords lists, for each environment, the rewards that can score its trajectories.
func rewardsInWords() string {
	parts := make([]string, len(environments.All))
	for i, d := range environments.All {
		parts[i] = d.Name + ": " + strings.Join(d.Rewards, ", ")
		if d.Mixed {
			parts[i] = d.Name + ": those that fit every part"
		}
	}
	return strings.Join(parts, "; ") + "; python: all that are sampled"
}
