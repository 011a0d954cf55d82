package recipes

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/rl/method"
)

// trained is the class of environments in which trajectories are sampled.
const trained = "trained"

// ofMethod returns the rules that package method declares, as combinations.
func ofMethod() []combination {
	var all []combination
	for _, rule := range method.Rules() {
		all = append(all, combination{
			at: rule.At, reads: rule.Reads, doc: rule.Doc,
			check: func(r *Recipe) string { return rule.Fault(r.Method()) },
		})
	}
	return all
}

func rewardFits(r *Recipe) string {
	fit := r.Environment.Declaration().Rewards
	want := strings.Join(fit, ", ")
	if len(fit) > 1 {
		want = "one of " + want
	}
	why := ""
	if r.Reward.Name == "deep_research" {
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
	}
	return strings.Join(parts, "; ")
}
