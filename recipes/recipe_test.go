package recipes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// small is the shortest calc recipe. The tests below replace parts of its text, so line numbers matter.
const small = `version: 1
name: small
steps: 10
environment: {name: calc}
warm_start: {optimizer: {lr: 0.002}}
rollout:
  prompts: 16
  oversample: 16
reward: {name: rstar2_outcome}
resample:
  roc:
    keep: 8
advantage: {name: grpo}
loss: {name: ppo_clip}
optimizer: {lr: 0.001}
`

// talk is the shortest openai recipe.
const talk = `version: 1
name: talk
environment: {name: openai}
reward: {name: reference}
advantage: {name: grpo}
`

// bad is one faulty recipe. change holds pairs of old and new text for the base.
type bad struct {
	name     string
	base     string // small if empty
	change   []string
	want     string
	yamlOnly bool // JSON has no such fault
}

func (c bad) recipe() string {
	base := c.base
	if base == "" {
		base = small
	}
	return strings.NewReplacer(c.change...).Replace(base)
}

// badFields holds faults of single fields. The JSON schema rejects them too.
var badFields = []bad{
	{name: "typo", change: []string{"keep: 8", "kep: 8"}, want: `f:11: resample.roc.keep: is required
f:12: resample.roc.kep: no such field; did you mean resample.roc.keep?`},
	{
		name:   "typo of a section",
		change: []string{"optimizer: {lr: 0.001}", "optimiser: {lr: 0.001}"},
		want: `f:1: optimizer: is required
f:15: optimiser: no such field; did you mean optimizer?`,
	},
	{name: "name of another section", change: []string{"  roc:\n    keep: 8", "  clip_low: 0.1"},
		want: `f:11: resample.clip_low: no such field; did you mean loss.clip_low?`},
	{name: "far from every name", change: []string{"    keep: 8", "    keep: 8\n    quux: 1"},
		want: `f:13: resample.roc.quux: no such field; there are keep, counts, select, min_positive, min_negative`},
	{name: "text for a number", change: []string{"prompts: 16", "prompts: many"},
		want: `f:7: rollout.prompts: must be a whole number, got "many"`},
	{name: "fraction for a whole number", change: []string{"prompts: 16", "prompts: 16.5"},
		want: `f:7: rollout.prompts: must be a whole number, got 16.5`},
	{name: "number in quotes", change: []string{"prompts: 16", "prompts: '16'"},
		want: `f:7: rollout.prompts: must be a whole number, got "16"`},
	{name: "list for a number", change: []string{"lr: 0.001", "lr: [1]"},
		want: `f:15: optimizer.lr: must be a number, got a list`},
	{name: "number for text", change: []string{"name: small", "name: 7"}, want: `f:2: name: must be text, got 7`},
	{name: "nothing for a number", change: []string{"steps: 10", "steps:"},
		want: `f:3: steps: must be a whole number, got nothing`},
	{name: "nothing for a section", change: []string{"rollout:\n  prompts: 16\n  oversample: 16", "rollout:"},
		want: `f:6: rollout: must be a mapping, got nothing`},
	{name: "text for a switch", change: []string{"{name: grpo}", "{name: grpo, std: 'yes'}"},
		want: `f:13: advantage.std: must be true or false, got "yes"`},
	{name: "mapping for a list", change: []string{"{optimizer: {lr: 0.002}}",
		"{levels: {a: 1}, optimizer: {lr: 0.002}}"},
		want: `f:5: warm_start.levels: must be a list of whole numbers, got a mapping`},
	{name: "list for a mapping", change: []string{"{name: calc}", "{name: calc, level_shares: [1]}"},
		want: `f:4: environment.level_shares: must be a mapping of numbers, got a list`},
	{name: "too small", change: []string{"steps: 10", "steps: 0"}, want: `f:3: steps: must be ≥ 1, got 0`},
	{name: "too large", change: []string{"prompts: 16", "prompts: 100000"},
		want: `f:7: rollout.prompts: must be ≤ 10000, got 100000`},
	{name: "not above", change: []string{"lr: 0.001", "lr: 0"}, want: `f:15: optimizer.lr: must be > 0, got 0`},
	{name: "infinite", change: []string{"lr: 0.001", "lr: .inf"},
		want: `f:15: optimizer.lr: must be a finite number, got .inf`, yamlOnly: true},
	{name: "not a number", change: []string{"lr: 0.001", "lr: .nan"},
		want: `f:15: optimizer.lr: must be a finite number, got .nan`, yamlOnly: true},
	{name: "negative seed", change: []string{"steps: 10", "steps: 10\nseed: -1"},
		want: `f:4: seed: must be ≥ 0, got -1`},
	{name: "seed of 65 bits", change: []string{"steps: 10", "steps: 10\nseed: 18446744073709551616"},
		want: `f:4: seed: must be a whole number, got 18446744073709551616`, yamlOnly: true},
	{name: "version from the future", change: []string{"version: 1", "version: 2"},
		want: `f:1: version: must be 1, got 2`},
	{name: "parameter of another estimator", change: []string{"{name: grpo}", "{name: grpo, lambda: 0.9}"},
		want: `f:13: advantage.lambda: cannot be combined with advantage grpo; it belongs to gae`},
	{name: "parameter of another loss", change: []string{"{name: ppo_clip}", "{name: gspo, dual_clip: 3}"},
		want: `f:14: loss.dual_clip: cannot be combined with loss gspo; it belongs to ppo_clip, aepo_clip`},
	{name: "parameter of another reward",
		change: []string{"{name: rstar2_outcome}", "{name: exact_match, fallback: true}"},
		want:   `f:9: reward.fallback: cannot be combined with reward exact_match; it belongs to rstar2_outcome`},
	{name: "parameter of a choice in another choice",
		change: []string{"advantage: {name: grpo}", "layout: turns\nadvantage: {name: gigpo, similarity: 0.9}"},
		want:   `f:14: advantage.similarity: cannot be combined with advantage.anchors exact; it belongs to similar`},
	{name: "fixed in the loss, with a target",
		change: []string{"{name: ppo_clip}", "{name: ppo_clip, kl: {coefficient: 0.1, target: 0.1}}"},
		want:   "f:14: loss.kl.target: cannot be combined with loss.kl.controller fixed; it belongs to adaptive"},
	{name: "adaptive without a target", change: []string{"{name: grpo}", "{name: reinforce_pp}", "{name: ppo_clip}",
		"{name: ppo_clip, kl: {coefficient: 0.1, in: reward, controller: adaptive}}"},
		want: `f:14: loss.kl.target: is required`},
	{name: "a factor without its choice", change: []string{"loss:", "replay: {decay: 0.5}\nloss:"},
		want: `f:14: replay.decay: cannot be combined with replay.recalibrate p50; it belongs to decay`},
	{name: "a choice without its factor", change: []string{"loss:", "replay: {recalibrate: decay}\nloss:"},
		want: `f:14: replay.decay: is required`},
	{name: "stage without a step", change: []string{"loss:", "schedule: {stages: [{lr: 0.1}]}\nloss:"},
		want: `f:14: schedule.stages[0].from_step: is required`},
	{name: "typo in a stage",
		change: []string{"loss:", "schedule: {stages: [{from_step: 2}, {from_step: 3, lrr: 1}]}\nloss:"},
		want:   `f:14: schedule.stages[1].lrr: no such field; did you mean schedule.stages[1].lr?`},
	{name: "mapping for a list of mappings", change: []string{"loss:", "schedule: {stages: {from_step: 2}}\nloss:"},
		want: `f:14: schedule.stages: must be a list of mappings, got a mapping`},
	{name: "number in a list of mappings", change: []string{"loss:", "schedule: {stages: [2]}\nloss:"},
		want: `f:14: schedule.stages[0]: must be a mapping, got 2`},
	{name: "a shape with a published model",
		change: []string{"warm_start:", "policy: {checkpoint: Qwen3-4B, layers: 3}\nwarm_start:"},
		want:   `f:5: policy.layers: cannot be combined with policy.checkpoint, which brings it`},
	{name: "AEPO's setting in ARPO's tree",
		change: []string{"  oversample: 16",
			"  oversample: 16\n  mode: tree\n  tree: {rule: arpo, roots: 8, slope: 0.1}"},
		want: `f:10: rollout.tree.slope: cannot be combined with rollout.tree.rule arpo; it belongs to aepo`},
	{name: "an adapter in the CPU engine",
		change: []string{"warm_start:", "engine: {kind: cpu, lora: {}}\nwarm_start:"},
		want:   `f:5: engine.lora: cannot be combined with engine.kind cpu; it belongs to torch, tinker`},
	{name: "an adapter in whatever engine", change: []string{"warm_start:", "engine: {lora: {}}\nwarm_start:"},
		want: `f:5: engine.lora: cannot be combined with engine.kind auto; it belongs to torch, tinker`},
	{name: "an adapter of no rank",
		change: []string{"warm_start:", "engine: {kind: torch, lora: {rank: 0, alpha: 0}}\nwarm_start:"},
		want: `f:5: engine.lora.rank: must be ≥ 1, got 0
f:5: engine.lora.alpha: must be > 0, got 0`},
	{name: "an adapter of something else",
		change: []string{"warm_start:", "engine: {kind: torch, lora: {targets: [q_proj, v_prj]}}\nwarm_start:"},
		want: `f:5: engine.lora.targets[1]: must be one of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, ` +
			`down_proj (did you mean v_proj?), got "v_prj"`},
	{name: "a name for a list of names",
		change: []string{"warm_start:", "engine: {kind: torch, lora: {targets: q_proj}}\nwarm_start:"},
		want:   `f:5: engine.lora.targets: must be a list of names, got "q_proj"`},
	{name: "not among the names", change: []string{"{name: ppo_clip}", "{name: ppo_clip, aggregation: token_mean}"},
		want: `f:14: loss.aggregation: must be one of token-mean, seq-mean-token-mean, seq-mean-token-sum, ` +
			`seq-mean-token-sum-norm, norm_legacy, token-sum (did you mean token-mean?), got "token_mean"`},
	{name: "unknown environment", change: []string{"{name: calc}", "{name: chess}"},
		want: `f:4: environment.name: must be one of calc, openai, alfworld, webshop, sokoban, ` +
			`dapo_math, tir_math, rstar2_math, search_qa, deep_research, math, chat, qa, functions, code, python, ` +
			`mix, openenv, ` +
			`sums, ` +
			`got "chess"`},
	{name: "name with a slash", change: []string{"name: small", "name: a/b"},
		want: `f:2: name: must match ^[a-z0-9][a-z0-9._-]{0,62}$, got "a/b"`},
	{name: "level outside", change: []string{"{optimizer: {lr: 0.002}}", "{levels: [2, 5], optimizer: {lr: 0.002}}"},
		want: `f:5: warm_start.levels[1]: must be ≤ 4, got 5`},
	{name: "share of an unknown level",
		change: []string{"{name: calc}", "{name: calc, level_shares: {2: 0.5, 7: 0.5}}"},
		want:   `f:4: environment.level_shares.7: no such key; there are 2, 3, 4`},
	{name: "share below 0", change: []string{"{name: calc}", "{name: calc, level_shares: {2: -0.5, 3: 1}}"},
		want: `f:4: environment.level_shares.2: must be ≥ 0, got -0.5`},
	{name: "several at once, by line", change: []string{"steps: 10", "steps: x", "prompts: 16", "prompts: 0",
		"name: ppo_clip", "nam: ppo_clip"},
		want: `f:3: steps: must be a whole number, got "x"
f:7: rollout.prompts: must be ≥ 1, got 0
f:14: loss.name: is required
f:14: loss.nam: no such field; did you mean loss.name?`},
	{name: "everything is missing", base: "description: x\n", want: `f:1: advantage: is required
f:1: environment: is required
f:1: loss: is required
f:1: name: is required
f:1: optimizer: is required
f:1: reward: is required
f:1: rollout: is required
f:1: steps: is required
f:1: version: is required
f:1: warm_start: is required`},
	{
		name:   "trained sections in an imported recipe",
		base:   talk,
		change: []string{"advantage:", "steps: 3\npolicy: {layers: 1}\nadvantage:"},
		want: `f:5: steps: has no place in a recipe of openai: its trajectories are imported, so nothing is sampled, run, trained or evaluated
f:6: policy: has no place in a recipe of openai: its trajectories are imported, so nothing is sampled, run, trained or evaluated`,
	},
	{name: "a sandbox where nothing runs", base: talk,
		change: []string{"advantage:", "sandbox: {cpu_seconds: 2}\nadvantage:"},
		want: `f:5: sandbox: has no place in a recipe of openai: its trajectories are imported, so nothing is ` +
			`sampled, run, trained or evaluated`},
	{name: "trained fields in an imported recipe", base: talk,
		change: []string{"openai}", "openai, level_shares: {2: 1}}"},
		want: `f:3: environment.level_shares: has no place in a recipe of openai: its trajectories are ` +
			`imported, so nothing is sampled, run, trained or evaluated`},
}

// badDocuments holds faults of the YAML itself and of combinations of valid fields.
var badDocuments = []bad{
	{name: "a tree with a base that is no number to start from",
		change: []string{"  oversample: 16", "  oversample: 16\n  tree: {rule: aepo, roots: 8, base: -0.5}"},
		want:   `f:9: rollout.tree.base: must be -1 or a number in [0, 1]`},
	{name: "a mean over leaves without a tree",
		change: []string{"advantage: {name: grpo", "advantage: {prefixes: mean_once, name: grpo"},
		want:   `f:13: advantage.prefixes: needs rollout.tree: without it no trajectories share a prefix`},
	{name: "empty", base: "# nothing\n", want: `f:1: holds no recipe`},
	{name: "null", base: "~\n", want: `f:1: holds no recipe`},
	{name: "list", base: "- 1\n", want: `f:1: must be a mapping, got a list`},
	{name: "text", base: "recipe\n", want: `f:1: must be a mapping, got "recipe"`},
	{name: "not YAML", change: []string{"  prompts: 16", "  prompts: [16"},
		want: `f:7: is not YAML: did not find expected ',' or ']': a bracket is not closed, or a comma is missing`},
	{name: "two documents", base: small + "---\nversion: 1\n", want: `f:16: a second document; a recipe is one`},
	{name: "duplicate key", change: []string{"steps: 10", "steps: 10\nname: other"},
		want: `f:4: name: is there twice; first on line 2`},
	{name: "duplicate section", change: []string{"loss: {", "rollout: {prompts: 1}\nloss: {"},
		want: `f:14: rollout: is there twice; first on line 6`},
	{name: "anchor and alias", change: []string{"prompts: 16", "prompts: &n 16", "oversample: 16", "oversample: *n"},
		want: `f:8: rollout.samples_per_prompt: anchors and aliases are not part of the format`},
	{name: "merge key", change: []string{"  prompts: 16", "  <<: {prompts: 16}\n  prompts: 16"},
		want: `f:7: rollout: merge keys are not part of the format`},
	{name: "list as key", change: []string{"  prompts: 16", "  [1]: 2\n  prompts: 16"},
		want: `f:7: rollout: a key must be a plain name`},
	{name: "keep more than there are", change: []string{"keep: 8", "keep: 32"},
		want: `f:12: resample.roc.keep: must be ≤ rollout.samples_per_prompt (16), got 32`},
	{name: "minimums above keep", change: []string{"keep: 8", "keep: 3"},
		want: `f:11: resample.roc.min_positive: min_positive + min_negative must be ≤ keep (3), got 4`},
	{name: "teacher above 1",
		change: []string{"{optimizer: {lr: 0.002}}", "{teacher: {no_tool: 0.9}, optimizer: {lr: 0.002}}"},
		want:   `f:5: warm_start.teacher: probabilities must add up to at most 1, got 1.5`},
	{name: "level twice", change: []string{"{optimizer: {lr: 0.002}}", "{levels: [2, 2], optimizer: {lr: 0.002}}"},
		want: `f:5: warm_start.levels: must name each level once, got 2 twice`},
	{name: "no level", change: []string{"{optimizer: {lr: 0.002}}", "{levels: [], optimizer: {lr: 0.002}}"},
		want: `f:5: warm_start.levels: must name at least one level`},
	{name: "cloning in minibatches",
		change: []string{"{lr: 0.002}", "{lr: 0.002, minibatches: 2, epochs: 3, warmup_steps: 301}"},
		want: `f:5: warm_start.optimizer.minibatches: must be 1, got 2: each cloning step draws its own batch
f:5: warm_start.optimizer.epochs: must be 1, got 3: each cloning step draws its own batch
f:5: warm_start.optimizer.warmup_steps: must be ≤ warm_start.steps (300), got 301`},
	{name: "odd heads", change: []string{"warm_start:", "policy: {heads: 3, head_dim: 9}\nwarm_start:"},
		want: `f:5: policy.kv_heads: must divide heads (3), got 2
f:5: policy.head_dim: must be even, got 9`},
	{name: "shares", change: []string{"{name: calc}", "{name: calc, level_shares: {2: 0.5, 3: 0.4}}"},
		want: `f:4: environment.level_shares: must add up to 1, got 0.9`},
	{name: "trajectory longer than the model",
		change: []string{"prompts: 16", "prompts: 16\n  max_tokens: 300\n  max_turn_tokens: 301"},
		want: `f:8: rollout.max_tokens: must be ≤ policy.max_positions (256), got 300
f:9: rollout.max_turn_tokens: must be ≤ rollout.max_tokens (300), got 301`},
	{name: "reward of another import", base: talk, change: []string{"reference", "rstar2_outcome"},
		want: `f:4: reward.name: must be reference in a recipe of openai, got rstar2_outcome`},
	{name: "wall near CPU", base: small + "sandbox: {cpu_seconds: 2, wall_seconds: 19.5}\n",
		want: `f:16: sandbox.wall_seconds: must be ≥ 10 × cpu_seconds (20), got 19.5`},
	{name: "dual clip inside", change: []string{"{name: ppo_clip}", "{name: ppo_clip, dual_clip: 0.5}"},
		want: `f:14: loss.dual_clip: must be 0 (off) or > 1, got 0.5`},
	{name: "more minibatches than rows", change: []string{"lr: 0.001", "lr: 0.001, minibatches: 129"},
		want: `f:15: optimizer.minibatches: must be ≤ the rows of a full batch (128), got 129`},
	{name: "rules of the method", change: []string{"{name: grpo}", "{name: gae}", "{name: ppo_clip}",
		"{name: ppo_clip, tis: {}}"},
		want: `f:13: advantage.name: gae needs a critic's values; add loss.value
f:14: loss.tis: weighs by recomputed over reported log-probabilities, and with loss.old_log_probs: rollout they are the same; use recompute`},
	{name: "turns' history in trajectories", change: []string{"  oversample: 16", "  oversample: 16\n  history: 2"},
		want: `f:9: rollout.history: cuts the prompts of turns' rows, and layout trajectory has none`},
	{name: "a bound of turns' history in trajectories",
		change: []string{"  oversample: 16", "  oversample: 16\n  history_tokens: 90"},
		want:   `f:9: rollout.history_tokens: cuts the prompts of turns' rows, and layout trajectory has none`},
	{name: "a bound of turns' history where a turn goes on after a call",
		change: []string{"  oversample: 16", "  oversample: 16\n  history_tokens: 90\n  protocol: tir",
			"loss:", "layout: turns\nloss:"},
		want: `f:9: rollout.history_tokens: leaves earlier turns out, and a turn of rollout.protocol tir goes on ` +
			`after a call`},
	{name: "summaries in trajectories",
		change: []string{"  oversample: 16", "  oversample: 16\n  summary: {every: 1}"},
		want:   `f:9: rollout.summary: cuts the prompts of turns' rows, and layout trajectory has none`},
	{name: "summaries with a history",
		change: []string{"  oversample: 16", "  oversample: 16\n  summary: {every: 1}\n  history: 2", "loss:",
			"layout: turns\nloss:"},
		want: `f:9: rollout.summary: a prompt holds the latest summary and all turns after it, and rollout.history ` +
			`and rollout.history_tokens leave turns out; use one of the three`},
	{name: "summaries after the last turn",
		change: []string{"  oversample: 16", "  oversample: 16\n  summary: {every: 3}", "loss:",
			"layout: turns\nloss:"},
		want: `f:9: rollout.summary.every: no trajectory has a turn after so many: rollout.max_turns is 3`},
	{name: "summaries without a number", change: []string{"  oversample: 16", "  oversample: 16\n  summary: {}"},
		want: `f:9: rollout.summary.every: is required`},
	{name: "a summary longer than a row",
		change: []string{"  oversample: 16", "  oversample: 16\n  summary: {every: 1, max_tokens: 193}", "loss:",
			"layout: turns\nloss:"},
		want: `f:9: rollout.summary.max_tokens: must be ≤ rollout.max_tokens (192), got 193`},
	{name: "summaries in a chat",
		change: []string{"  oversample: 16", "  oversample: 16\n  protocol: boxed\n  summary: {every: 1}", "loss:",
			"layout: turns\nloss:"},
		want: `f:10: rollout.summary: needs a protocol that asks for summaries, and boxed does not; these do: ` +
			`rstar2, rstar2_prompt, think_action, hermes, tir, search, aepo, prs`},
	{name: "a truncated rollout's log-probabilities",
		change: []string{"  oversample: 16", "  oversample: 16\n  top_k: 20"},
		want: "f:9: rollout.top_k: the sampler's log-probabilities are then those of the tokens that are left, and " +
			"updates compare with those of all tokens; use loss.old_log_probs: recompute"},
	{name: "a tree without its settings", change: []string{"  oversample: 16", "  oversample: 16\n  mode: tree"},
		want: `f:6: rollout.tree: is required for rollout.mode tree`},
	{name: "more roots than trajectories",
		change: []string{"  oversample: 16", "  oversample: 16\n  mode: tree\n  tree: {rule: arpo, roots: 17}"},
		want:   `f:10: rollout.tree.roots: must be ≤ rollout.samples_per_prompt (16), got 17`},
	{name: "mini-batches by number and by rows",
		change: []string{"lr: 0.001", "lr: 0.001, minibatches: 2, minibatch_rows: 64"},
		want: `f:15: optimizer.minibatch_rows: must be 0 with optimizer.minibatches 2: the batch is cut by the ` +
			`number of mini-batches or by their rows`},
	{name: "mini-batches by rows and by prompts",
		change: []string{"lr: 0.001", "lr: 0.001, minibatch_rows: 64, minibatch_prompts: 8"},
		want: `f:15: optimizer.minibatch_prompts: must be 0 with optimizer.minibatches 1 and minibatch_rows 64: the ` +
			`batch is cut by the number of mini-batches, by their rows or by their prompts`},
	{name: "turns by prompts", change: []string{"lr: 0.001", "lr: 0.001, minibatch_prompts: 8", "loss:",
		"layout: turns\nloss:"},
		want: `f:16: optimizer.minibatch_prompts: must be 0 in layout turns, where a prompt has as many rows as ` +
			`turns; use minibatch_rows`},
	{name: "cloning by rows", change: []string{"{lr: 0.002}", "{lr: 0.002, minibatch_rows: 8}"},
		want: `f:5: warm_start.optimizer.minibatch_rows: must be 0, got 8: each cloning step draws its own batch`},
	{name: "a stage after the end", change: []string{"loss:", "schedule: {stages: [{from_step: 11}]}\nloss:"},
		want: `f:14: schedule.stages: must be ≤ steps (10), got 11`},
	{name: "a stage longer than the model",
		change: []string{"loss:", "schedule: {stages: [{from_step: 2, max_tokens: 300}]}\nloss:"},
		want:   `f:14: schedule.stages: max_tokens from step 2 on must be ≤ policy.max_positions (256), got 300`},
	{name: "a stage shorter than a turn",
		change: []string{"loss:", "schedule: {stages: [{from_step: 2, max_tokens: 63}]}\nloss:"},
		want:   `f:14: schedule.stages: max_tokens from step 2 on must be ≥ max_turn_tokens (64), got 63`},
	{name: "nothing to compare", change: []string{"oversample: 16", "oversample: 1", "  roc:\n    keep: 8",
		"  low_variance: {}"},
		want: `f:10: resample: compares the rewards of a group, and rollout.samples_per_prompt 1 leaves nothing to ` +
			`compare`},
	{name: "a reward of another task", change: []string{"rstar2_outcome", "deep_research"},
		want: `f:9: reward.name: must be one of rstar2_outcome, spear, spear_math, spear_math_qwen3, retool, ` +
			`dapo_strict, prs_short, prs_long, prs_general, exact_match, f1, arlarena, spear_agent, last_number, ` +
			`python in a recipe of calc, got deep_research, which looks for searches and their results; calc ` +
			`records none`},
	{name: "an adapter of nothing",
		change: []string{"warm_start:", "engine: {kind: torch, lora: {targets: []}}\nwarm_start:"},
		want:   `f:5: engine.lora.targets: must name at least one projection`},
	{name: "an adapter twice",
		change: []string{"warm_start:", "engine: {kind: torch, lora: {targets: [q_proj, q_proj]}}\nwarm_start:"},
		want:   `f:5: engine.lora.targets: must name each projection once, got q_proj twice`},
	{name: "an adapter larger than its base",
		change: []string{"warm_start:", "engine: {kind: torch, lora: {rank: 65}}\nwarm_start:"},
		want:   `f:5: engine.lora.rank: must be ≤ the smaller side of k_proj (64), got 65`},
	{name: "thirds", change: []string{"loss:", "evaluation: {problems: 512}\nloss:"},
		want: `f:14: evaluation.problems: must be divisible by 3 (a third of each level), got 512`},
	{name: "combination of a faulty field is not judged", change: []string{"keep: 8", "keep: 32", "oversample: 16",
		"oversample: lots"},
		want: `f:8: rollout.samples_per_prompt: must be a whole number, got "lots"`},
}

// Parse reads a recipe without overrides.
func Parse(file string, data []byte) (*Recipe, error) { return parse(file, data, nil) }

// ParseWith reads a recipe with overrides.
func ParseWith(file string, data []byte, set []string) (*Recipe, error) {
	return parse(file, data, pairs(set, nil, nil))
}

func TestBadRecipes(t *testing.T) {
	for _, c := range append(append([]bad{}, badFields...), badDocuments...) {
		t.Run(c.name, func(t *testing.T) {
			r, err := Parse("f", []byte(c.recipe()))
			require.Error(t, err)
			require.Nil(t, r)
			require.IsType(t, Problems{}, err)
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The most common error message names the file, line and path in the built-in recipe.
func TestMessageNamesFileLineAndPath(t *testing.T) {
	text, _ := Source("quickstart")
	broken := strings.Replace(string(text), "keep: 4\n", "keep: 32\n", 1)
	_, err := Parse("recipes/quickstart.yaml", []byte(broken))
	require.Error(t, err)
	line := 1 + strings.Count(broken[:strings.Index(broken, "keep: 32")], "\n")
	require.Equal(t, Problems{{
		File: "recipes/quickstart.yaml", Line: line, Column: 5, Path: "resample.roc.keep",
		Message: "must be ≤ rollout.samples_per_prompt (8), got 32",
	}}, err)
}

func TestDefaults(t *testing.T) {
	r, err := Parse("f", []byte(small))
	require.NoError(t, err)
	require.Equal(t,
		resample.RoC{Keep: 8, Counts: "paper", Choice: "weighted", MinPositive: 2, MinNegative: 2}, *r.Resample.RoC())
	require.Nil(t, r.Resample.VSPO())
	clip := choice.Params{"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 0.0}
	require.Equal(t, Loss{Name: "ppo_clip", Params: clip, Aggregation: "token-mean", OldLogProbs: "rollout",
		Terms: choice.Params{"entropy": 0.0}}, r.Loss)
	require.Equal(t, map[string]float64{"2": 0.3, "3": 0.4, "4": 0.3}, r.Environment.LevelShares)
	require.Equal(t, []int{2, 3}, r.WarmStart.Levels)
	require.Equal(t, uint64(1), r.Seed)
	require.Equal(t, true, r.Advantage.Params["std"])

	r, err = Parse("f", []byte(talk))
	require.NoError(t, err)
	require.Equal(t, Policy{}, r.Policy)
	require.Equal(t, Rollout{}, r.Rollout)
}

// null turns off a section that is on. A mapping in the recipe replaces the whole default.
func TestNullAndReplace(t *testing.T) {
	r, err := Parse("f", []byte(strings.Replace(small, "  roc:\n    keep: 8\n", "  roc: ~\n  vspo: {}\n", 1)))
	require.NoError(t, err)
	require.Nil(t, r.Resample.RoC())
	require.Equal(t, resample.VSPO{Alpha: 2, Temperature: 0.1, MinVariance: 1e-6, Draws: "value", Weights: "smoothed"},
		*r.Resample.VSPO())
	r, err = ParseWith("f", []byte(small), []string{"environment.level_shares={2: 1}"})
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"2": 1}, r.Environment.LevelShares)
}

// Every field has a documentation, and either has a default or is required. If a choice decides whether the field is
// read, this holds for each choice that reads the field.
func TestTableIsWhole(t *testing.T) {
	for _, f := range Fields() {
		require.NotEmpty(t, f.Doc, f.Path)
		require.NotEmpty(t, f.Name, f.Path)
		if f.IsSection() || f.IsList() || f.Optional || f.isSettings() {
			continue
		}
		if len(f.Governors) == 0 {
			require.NotEqual(t, f.Required, f.Default != "", "%s: required or a default, not both", f.Path)
			continue
		}
		require.False(t, f.Required, "%s: what only some choices read cannot be required", f.Path)
	}
}
