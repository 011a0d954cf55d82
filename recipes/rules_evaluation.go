package recipes

import (
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
)

// evaluationRules are the rules about the measurement on held-out problems.
var evaluationRules = []rule{
	{at: "evaluation.problems", only: Calc, doc: "divisible by 3 (a third of each level)",
		ok: func(r *Recipe) bool { return r.Evaluation.Problems%3 == 0 }},
	{at: "evaluation.judged", reads: "environment.name", only: trained, set: true,
		ok: func(r *Recipe) bool {
			return !r.Environment.Declaration().Interactive && r.Environment.Name != code
		},
		doc:   "only where tasks are questions with an answer in words",
		fault: "has no place in a recipe of {environment.name}, whose tasks have no answers in words"},
	{at: "evaluation.debate.agents", only: trained, doc: "odd, so that votes cannot tie",
		ok: func(r *Recipe) bool { return r.Evaluation.Debate.Agents%2 == 1 }},
	{at: "evaluation.greedy", reads: "evaluation.debate", only: trained, set: true, doc: "false with evaluation.debate",
		ok: func(r *Recipe) bool { return r.Evaluation.Debate == nil },
		fault: "must be false with evaluation.debate: agents that take the most likely response all propose the " +
			"same"},
	{at: "evaluation.samples", reads: "evaluation.debate", only: trained,
		check: func(r *Recipe) string { return r.Evaluation.episodesFault() },
		doc:   "with evaluation.debate samples × agents × (rounds + 1) at most 1000"},
	{at: "evaluation.problems", reads: "evaluation.debate", only: trained,
		ok: func(r *Recipe) bool {
			return r.Evaluation.Debate == nil || r.Evaluation.Problems <= schema.MaxGroups
		},
		doc: "with evaluation.debate at most 10000",
		fault: fmt.Sprintf("must be ≤ %d with evaluation.debate, got {evaluation.problems}",
			schema.MaxGroups)},
}

// episodesFault checks that the episodes of a debate can be numbered.
func (e Evaluation) episodesFault() string {
	d, n := e.Debate, e.Samples
	if d == nil || n*d.Responses() <= schema.MaxSamples {
		return ""
	}
	return fmt.Sprintf("%d debates of %d agents in up to %d rounds are %d episodes of a problem, and at most %d can "+
		"be numbered", n, d.Agents, d.Rounds+1, n*d.Responses(), schema.MaxSamples)
}
