package recipes

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
)

// trained is the class of environments that trajectories are sampled in.
const trained = "trained"

// ofMethod takes in the rules of the package that defines the slots.
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
	fit := environmentNamed(r.Environment.Name).rewards
	want := strings.Join(fit, ", ")
	if len(fit) > 1 {
		want = "one of " + want
	}
	why := ""
	if r.Reward.Name == "deep_research" {
		why = ", which looks for searches and their results; " + r.Environment.Name + " records none"
	}
	return unless(slices.Contains(fit, r.Reward.Name), "must be %s in a recipe of %s, got %s%s", want, r.Environment.Name, r.Reward.Name, why)
}

// rewardsInWords lists which rewards each environment's trajectories can be scored by.
func rewardsInWords() string {
	parts := make([]string, len(environments))
	for i, e := range environments {
		parts[i] = e.name + ": " + strings.Join(e.rewards, ", ")
	}
	return strings.Join(parts, "; ")
}
