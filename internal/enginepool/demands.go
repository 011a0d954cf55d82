package enginepool

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// demands are the capabilities that a recipe needs of its sampler, each with the field that needs it. Estimators and
// losses that read entropies get them from the trainer's forward passes, which always give those of the full
// vocabulary. A recipe of no steps only evaluates, so what its rollouts need is nothing to it.
func demands(r *recipes.Recipe) []policy.Demand {
	if r.Environment.Name != "" && r.Environment.Imported() { // nothing is sampled
		return nil
	}
	var out []policy.Demand
	need := func(when bool, field string, x policy.Capability, why string) {
		if when {
			out = append(out, policy.Demand{Field: field, Capability: x, Why: why})
		}
	}
	trains, e := r.Steps > 0, r.Evaluation
	need(trains, "rollout", policy.NeedTokenIDs, "updates train on the tokens that were sampled")
	need(trains, "loss.old_log_probs", policy.NeedLogProbs, "the record keeps that of every sampled token")
	need(trains, "steps", policy.NeedNewWeights, "each step publishes another policy")
	need(trains && r.Rollout.Tree != nil, "rollout.tree.rule", policy.NeedTopLogProbs,
		"they decide where trajectories branch")
	need(trains && r.Rollout.Temperature != 1, "rollout.temperature", policy.NeedTemperature, "it is not 1")
	rollout := r.Rollout.Truncation()
	if !trains {
		rollout = policy.Truncation{}
	}
	for _, truncated := range []struct {
		at   string
		what policy.Truncation
	}{{"rollout", rollout}, {"evaluation", e.Truncation()}} {
		need(policy.Truncation{TopP: truncated.what.TopP}.Active(), truncated.at+".top_p", policy.NeedTopP, "it is set")
		need(truncated.what.TopK != 0, truncated.at+".top_k", policy.NeedTopK, "it is set")
		need(truncated.what.MinP != 0, truncated.at+".min_p", policy.NeedMinP, "it is set")
	}
	need(e.Temperature != 1, "evaluation.temperature", policy.NeedTemperature, "it is not 1")
	need(e.Greedy, "evaluation.greedy", policy.NeedGreedy, "it is 0 there")
	if r.SummaryTokens() > 0 {
		const field, why = "environment.settings.summary_tokens", "the run's first policy sums up pages"
		need(true, field, policy.NeedReference, why)
		need(true, field, policy.NeedTokenIDs, why)
		need(true, field, policy.NeedGreedy, "summaries have temperature 0")
	}
	need(r.Engine.Deterministic, "engine.deterministic", policy.NeedRowSeeds, "equal inputs give equal bytes")
	return out
}

// check refuses a recipe that needs more than a sampler with these capabilities offers.
func check(sampler string, can policy.Capabilities, r *recipes.Recipe) error {
	all := demands(r)
	if can.Entropy == policy.EntropyTopK && r.Steps > 0 {
		all = append(all, policy.Demand{Field: "rollout", Capability: policy.NeedFullEntropy,
			Why: "the record keeps the entropies of whole distributions, or none"})
	}
	if err := can.Check(sampler, all); err != nil {
		return badinput.Of(err)
	}
	if t := r.Rollout.Tree; t != nil && r.Steps > 0 && t.EntropyTop > can.TopLogProbs {
		return badinput.Of(fmt.Errorf("rollout.tree.entropy_top: %w: %s names %d likeliest tokens, and the recipe "+
			"asks for %d", policy.ErrIncapable, sampler, can.TopLogProbs, t.EntropyTop))
	}
	return nil
}

// check refuses a recipe that needs more than this sampler offers. A pool without a sampler refuses nothing: its worker
// generates nothing.
func (s *Sampler) check(r *recipes.Recipe) error {
	if s.sampler == nil {
		return nil
	}
	return check(s.sampler.Describe().Device, s.sampler.Capabilities(), r)
}
