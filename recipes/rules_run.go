package recipes

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
)

// runRules are the rules about the engine, the policy, how it samples and how it learns.
var runRules = []rule{
	{at: "policy.kv_heads", reads: "policy.heads", only: trained, doc: "divides heads",
		ok:    func(r *Recipe) bool { return r.Policy.Heads%r.Policy.KVHeads == 0 },
		fault: "must divide heads ({policy.heads}), got {policy.kv_heads}"},
	{at: "policy.head_dim", only: trained, doc: "even",
		ok: func(r *Recipe) bool { return r.Policy.HeadDim%2 == 0 }},
	{at: "engine.lora.targets", only: trained, doc: "names at least one projection, each once",
		check: func(r *Recipe) string { return distinct("projection", r.Engine.LoRA.Targets) }},
	{at: "engine.lora.rank", reads: "engine.lora.targets policy", only: trained,
		check: func(r *Recipe) string { return r.Engine.LoRA.fault(r.Policy) },
		doc:   "at most the smaller side of each target"},
	{at: "engine.lora", reads: "engine.hosts", only: trained, set: true, doc: "on one host alone",
		ok:    func(r *Recipe) bool { return r.Engine.Hosts <= 1 },
		fault: "trains on one host alone, and engine.hosts is {engine.hosts}"},
	{at: "engine.servers", only: trained, check: func(r *Recipe) string { return serversFault(r.Engine.Servers) },
		doc: "each once, with an address that begins with http:// or https://, a reference as token, and absolute " +
			"paths"},
	{at: "engine.max_mismatch", reads: "engine.servers", only: trained, set: true, doc: "0 without engine.servers",
		ok:    func(r *Recipe) bool { return len(r.Engine.Servers) > 0 },
		fault: "compares engine.servers with the trainer, and the recipe names none"},
	{at: "engine.max_mismatch", reads: cutRead, only: trained, set: true,
		ok:  uncut,
		doc: "0 with rollout.top_p, top_k or min_p",
		fault: "compares equal distributions alone, and with rollout.top_p, top_k or min_p the servers' " +
			"log-probabilities are those of the tokens that are left"},
	{at: "loss.old_log_probs", reads: "engine.servers", only: trained, doc: "recompute with engine.servers",
		ok: func(r *Recipe) bool { return len(r.Engine.Servers) == 0 || recomputes(r) },
		fault: "must be recompute with engine.servers: the log-probabilities of another program differ from the " +
			"trainer's, and every importance ratio would be off from the start; recompute has the stage logprobs " +
			"compute the trainer's own"},
	{at: "loss.tis", reads: cutRead, only: trained, set: true, ok: uncut, doc: "off with rollout.top_p, top_k or min_p",
		fault: "weighs by equal distributions alone, and with rollout.top_p, top_k or min_p the sampler's " +
			"log-probabilities are of the tokens that are left: each weight would be smaller by their share of the " +
			"whole; use one of the two"},
	{at: "pipeline.max_staleness", reads: "loss.old_log_probs schedule.stages", only: trained, set: true,
		check: pipelineTrains,
		doc: "above 0 only with loss.old_log_probs: recompute, and without a stage of the schedule whose problems " +
			"are unsolved"},
	{at: "pipeline.in_flight", reads: "pipeline.max_staleness rollout.mode rollout.tree engine.servers", only: trained,
		set: true, check: inFlightSamples,
		doc: "true only with max_staleness above 0 and rollout.mode: interleaved, and without rollout.tree and " +
			"engine.servers"},
	{at: "pipeline.mixed_groups", reads: "pipeline.in_flight", only: trained, doc: "drop only with in_flight",
		ok:    func(r *Recipe) bool { return !r.DropsMixed() || r.InFlight() },
		fault: "drop wants pipeline.in_flight: true; without it, all turns of a step are of one version"},
	{at: "rollout.max_turn_tokens", only: trained, atMost: "rollout.max_tokens"},
	{at: "rollout.max_tokens", only: trained, atMost: "policy.max_positions"},
	{at: "rollout.top_p", reads: "loss.old_log_probs", only: trained, set: true, doc: onlyRecomputed, fault: cutSamples,
		ok: func(r *Recipe) bool { return r.Rollout.TopP == 1 || recomputes(r) }},
	{at: "rollout.top_k", reads: "loss.old_log_probs", only: trained, set: true, doc: onlyRecomputed, fault: cutSamples,
		ok: recomputes},
	{at: "rollout.min_p", reads: "loss.old_log_probs", only: trained, set: true, doc: onlyRecomputed, fault: cutSamples,
		ok: recomputes},
	{at: "rollout.tree", reads: "rollout.mode", only: trained, doc: "there for mode tree",
		ok:    func(r *Recipe) bool { return r.Rollout.Mode != modeTree || r.Rollout.Tree != nil },
		fault: "is required for rollout.mode tree"},
	{at: "rollout.tree", reads: "rollout.samples_per_prompt", only: trained, set: true,
		ok:  func(r *Recipe) bool { return r.Rollout.SamplesPerPrompt <= mostLeaves },
		doc: fmt.Sprintf("absent with more than %d samples_per_prompt", mostLeaves),
		fault: fmt.Sprintf("has at most %d leaves, and rollout.samples_per_prompt is {rollout.samples_per_prompt}",
			mostLeaves)},
	{at: "rollout.tree.roots", only: trained, atMost: "rollout.samples_per_prompt"},
	{at: "rollout.tree.base", reads: "rollout.tree.rule", only: trained, doc: "-1, or at least 0",
		ok:    func(r *Recipe) bool { return r.Rollout.Tree.Base == -1 || r.Rollout.Tree.Base >= 0 },
		fault: "must be -1 or a number in [0, 1]"},
	{at: "rollout.history", reads: "layout", only: trained, set: true, ok: inTurns, doc: "0 without layout turns",
		fault: cutsTurns},
	{at: "rollout.history", reads: "rollout.protocol", only: trained, set: true, ok: endsTurns,
		doc: "0 with a protocol whose turns go on after a call", fault: leavesTurnsOut},
	{at: "rollout.history", reads: "reward.overlong", only: trained, doc: "0 with reward.overlong",
		ok:    func(r *Recipe) bool { return r.Rollout.History == 0 && !r.Whole() || r.Reward.Overlong == nil },
		fault: longTrajectories},
	{at: "rollout.history_tokens", reads: "layout", only: trained, set: true, ok: inTurns,
		doc: "0 without layout turns", fault: cutsTurns},
	{at: "rollout.history_tokens", reads: "layout rollout.protocol environment.name", only: trained, set: true,
		ok:  func(r *Recipe) bool { return !inTurns(r) || !r.Whole() },
		doc: "0 with a protocol whose contexts are whole prompts",
		fault: "cuts earlier turns, and each context of rollout.protocol {rollout.protocol} is a whole prompt; " +
			"rollout.history bounds its turns"},
	{at: "rollout.history_tokens", reads: "rollout.protocol", only: trained, set: true, ok: endsTurns,
		doc: "0 with a protocol whose turns go on after a call", fault: leavesTurnsOut},
	{at: "rollout.history_tokens", reads: "reward.overlong", only: trained, set: true, ok: measuresTurns,
		doc: "0 with reward.overlong", fault: longTrajectories},
	{at: "rollout.summary", reads: "layout", only: trained, set: true, ok: inTurns, doc: "absent without layout turns",
		fault: cutsTurns},
	{at: "rollout.summary", reads: "rollout.protocol environment.name rollout.history rollout.history_tokens",
		only: trained, set: true, check: summaryFits,
		doc: "absent with a protocol that cannot ask for one, and with rollout.history or rollout.history_tokens, " +
			"except where contexts are whole prompts"},
	{at: "rollout.summary", reads: "reward.overlong", only: trained, set: true, ok: measuresTurns,
		doc: "absent with reward.overlong", fault: longTrajectories},
	{at: "rollout.summary", reads: "evaluation.debate", only: trained, set: true,
		ok:  func(r *Recipe) bool { return r.Evaluation.Debate == nil },
		doc: "absent with evaluation.debate",
		fault: "agents debate the policy's responses (evaluation.debate), and a summary has no right answer to agree " +
			"on"},
	{at: "rollout.summary.max_tokens", only: trained, atMost: "rollout.max_tokens"},
	{at: "rollout.summary.every", reads: "rollout.max_turns", only: trained, doc: "below rollout.max_turns",
		ok:    func(r *Recipe) bool { return r.Rollout.Summary.Every < r.Rollout.MaxTurns },
		fault: "no trajectory has a turn after so many: rollout.max_turns is {rollout.max_turns}"},
	{at: "resample.roc.keep", atMost: "rollout.samples_per_prompt"},
	{at: "resample.roc.min_positive", reads: "resample.roc.min_negative resample.roc.keep",
		check: func(r *Recipe) string { return minimumsFault(r.Resample) },
		doc:   "min_positive + min_negative is at most keep"},
	{at: "resample.dynamic.tries", reads: "rollout.prompts", only: trained,
		ok:    func(r *Recipe) bool { return r.Resample.Dynamic().Tries*r.Rollout.Prompts <= schema.MaxGroups },
		doc:   fmt.Sprintf("times rollout.prompts at most %d groups", schema.MaxGroups),
		fault: fmt.Sprintf("times rollout.prompts must be ≤ %d, the groups that a step can name", schema.MaxGroups)},
	{at: "resample", reads: "rollout.samples_per_prompt", only: trained,
		ok:    func(r *Recipe) bool { return r.Rollout.SamplesPerPrompt > 1 || !compares(r.Resample) },
		doc:   "low_variance, dynamic and reject_equal only with rollout.samples_per_prompt > 1",
		fault: "compares the rewards of a group, and rollout.samples_per_prompt 1 leaves nothing to compare"},
	{at: "advantage.anchor", reads: "environment.name advantage.anchors", only: trained,
		ok: func(r *Recipe) bool { // the states that GiGPO compares must be recorded
			return r.Advantage.Params["anchor"] != "state" ||
				r.Environment.Declaration().Interactive && r.Advantage.Params["anchors"] == "exact"
		},
		doc:   "observation outside interactive environments, and with anchors similar",
		fault: "state wants an interactive environment, whose states are recorded, and anchors: exact"},
	{at: "advantage.prefixes", reads: "rollout.tree", only: trained, doc: "per_leaf without rollout.tree",
		ok:    func(r *Recipe) bool { return r.Rollout.Tree != nil || !r.Advantage.SharesPrefixes() },
		fault: "needs rollout.tree: without it no trajectories share a prefix"},
	{at: "optimizer.minibatches", reads: "rollout.prompts rollout.samples_per_prompt resample.roc.keep", only: trained,
		check: minibatchesFit,
		doc:   "at most the rows of a full batch: prompts × keep, or × samples_per_prompt without RoC"},
	{at: "optimizer.minibatch_rows", reads: "optimizer.minibatches", only: trained, set: true,
		ok:  func(r *Recipe) bool { return r.Optimizer.Minibatches == 1 },
		doc: "0, or minibatches is 1",
		fault: "must be 0 with optimizer.minibatches {optimizer.minibatches}: the batch is cut by the number of " +
			"mini-batches or by their rows"},
	{at: "optimizer.minibatch_prompts", reads: "optimizer.minibatches optimizer.minibatch_rows", only: trained,
		set: true, ok: func(r *Recipe) bool { return r.Optimizer.Minibatches == 1 && r.Optimizer.MinibatchRows == 0 },
		doc: "0, or minibatches is 1 and minibatch_rows 0",
		fault: "must be 0 with optimizer.minibatches {optimizer.minibatches} and minibatch_rows " +
			"{optimizer.minibatch_rows}: the batch is cut by the number of mini-batches, by their rows or " +
			"by their prompts"},
	{at: "optimizer.minibatch_prompts", reads: "layout", only: trained, set: true, doc: "0 in layout turns",
		ok:    func(r *Recipe) bool { return !inTurns(r) },
		fault: "must be 0 in layout turns, where a prompt has as many rows as turns; use minibatch_rows"},
	{at: "schedule.stages", reads: "steps", only: trained, set: true,
		check: func(r *Recipe) string { return stagesBegin(r.Schedule, r.Steps) },
		doc:   "begin at most at the last step"},
	{at: "schedule.stages", reads: "rollout.max_tokens rollout.max_turn_tokens policy.max_positions", only: trained,
		check: stagesFit, doc: "max_tokens from rollout.max_turn_tokens to policy.max_positions"},
}

const (
	cutRead        = "rollout.top_p rollout.top_k rollout.min_p"
	onlyRecomputed = "only with loss.old_log_probs: recompute"
	cutSamples     = "the sampler's log-probabilities are then those of the tokens that are left, and updates " +
		"compare with those of all tokens; use loss.old_log_probs: recompute"
	cutsTurns      = "cuts the prompts of turns' rows, and layout {layout} has none"
	leavesTurnsOut = "leaves earlier turns out, and a turn of rollout.protocol {rollout.protocol} goes on after a " +
		"call"
	longTrajectories = "lets a trajectory be longer than rollout.max_tokens, which is then a turn's, and " +
		"reward.overlong holds whole trajectories against it"
)

func uncut(r *Recipe) bool         { return !r.Rollout.Truncation().Active() }
func recomputes(r *Recipe) bool    { return r.Loss.Recomputes() }
func inTurns(r *Recipe) bool       { return r.Layout == method.Turns }
func endsTurns(r *Recipe) bool     { return len(r.protocolSpec().Stops) == 0 }
func measuresTurns(r *Recipe) bool { return r.Reward.Overlong == nil }
