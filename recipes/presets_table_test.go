package recipes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// presetTable lists every preset.
func presetTable(t *testing.T) []preset {
	t.Helper()
	calc := quickstartSections(t)
	return slices.Concat(spearPresets(), rstarPresets(), arlarenaPresets(), searchPresets(), prsPresets(), baselinePresets(calc), mixtures(calc))
}

const (
	grpo      = "name: grpo\nstd: true"
	noStd     = "name: grpo\nstd: false # Dr.GRPO"
	recompute = "\nold_log_probs: recompute"
	k3        = "\nkl: {coefficient: 0.01, in: loss, estimator: k3}"
)

func clip(low, high, aggregation string) string {
	return fmt.Sprintf("name: ppo_clip\nclip_low: %s\nclip_high: %s\naggregation: %s", low, high, aggregation)
}

// SPEAR, Table 8: a column a task.
func spearPresets() []preset {
	type column struct {
		env, file, model, minibatch, warm, bounds string
		prompts, n, steps, prompt, response       int
		turns                                     int
		math                                      bool
	}
	columns := []column{
		{"alfworld", "alfworld", "Qwen2.5-1.5B-Instruct", "1024", "100", "cov_low: 2\ncov_high: 60", 32, 8, 200, 2048, 512, 50, false},
		{"webshop", "webshop", "Qwen2.5-1.5B-Instruct", "256", "200", "cov_low: 2\ncov_high: 60", 32, 8, 350, 4096, 1024, 15, false},
		{"dapo_math", "dapo-math", "Qwen2.5-32B-Instruct", "64", "300", "cov_low: 1\ncov_high: 40", 128, 16, 300, 2048, 16384, 8, true},
		{"sokoban", "sokoban", "Qwen2.5-VL-3B-Instruct", "64", "100", "cov_low: 2\ncov_high: 60", 32, 8, 200, 1024, 1024, 15, false},
	}
	both := []string{
		"Training samples at temperature 1; the 0.4 of the table is validation's (SPEAR-14).",
		"Void turns are those without a call and without an answer (SPEAR-9).",
		"Aggregation has its mean over rows; the release's is norm_legacy (SPEAR-16).",
		"The covariance clip is on the replayed rows alone, and dual clip on the others (SPEAR-6).",
	}
	var all []preset
	for _, c := range columns {
		base := sections{
			"environment": "name: " + c.env,
			"engine":      "kind: torch", "policy": "checkpoint: " + c.model,
			"rollout": fmt.Sprintf("mode: staged\nprompts: %d\noversample: %d\ntemperature: 1\nmax_turns: %d\nmax_turn_tokens: %d\nmax_tokens: %d # %d of the prompt\nmax_tool_text_bytes: 16384",
				c.prompts, c.n, c.turns, c.response, c.prompt+c.response, c.prompt),
			"filters":    "overlong: true\nvoid_turns: true",
			"resample":   "low_variance: {keep: 0.75, std: sample}",
			"advantage":  noStd,
			"loss":       clip("0.2", "0.28", "seq-mean-token-sum-norm") + "\ndual_clip: 10" + recompute,
			"optimizer":  "lr: 1.0e-6\nminibatch_rows: " + c.minibatch,
			"evaluation": "problems: 128\nsamples: 1\ntemperature: 0.4\ngreedy: false",
		}
		if c.math {
			base["evaluation"] = "problems: 60 # AIME 2024 and 2025\nsamples: 30\ntemperature: 1\ntop_p: 0.6\ngreedy: false"
		} else {
			base["layout"] = "turns"
			base["rollout"] += "\nhistory: 2"
		}
		spear := base.with(sections{
			"reward":   "name: spear\ntool_step: 0.1\nformat_bonus: 0.1",
			"replay":   "size: 2048\nbaselines: 10240\nrecalibrate: p50\nfull_rule: size\norder: sequential\nclip_low: 0.2\nclip_high: 0.28\ncov_ratio: 0.02\n" + c.bounds,
			"schedule": "gamma_horizon: " + c.warm + "\nmu_horizon: 200",
		})
		drbot := base.with(sections{"reward": "name: spear # its outcome and format alone\ntool_step: 0\nformat_bonus: 0.1"})
		name := strings.ReplaceAll(c.file, "_", "-")
		all = append(all,
			preset{"spear-" + name, "SPEAR: self-imitation with a recalibrated advantage and a fading tool reward, on " + c.env, "SPEAR Table 8 and Algorithm 1",
				append(slices.Clone(both), "The buffer is in the paper's order: baselines pushed first, full at size rows, the step's positives dropped when it is consumed (SPEAR-2, SPEAR-3, SPEAR-4).",
					"Replay's optimiser steps follow the step's own (SPEAR-5); the reward is the paper's (SPEAR-10); horizons are the paper's (SPEAR-11)."), c.steps, spear},
			preset{"drbot-" + name, "Dr.BoT, the bag of tricks under SPEAR: no replay, no tool reward, on " + c.env, "SPEAR §4.3, Table 8", both, c.steps, drbot})
	}
	return all
}

// rStar2-Agent: three stages, each by itself and all in one schedule.
func rstarPresets() []preset {
	rollout := func(response int) string {
		return fmt.Sprintf("mode: staged\nprompts: 512\noversample: 32 # … of which RoC keeps 16\ntemperature: 1\nmax_turns: 5\nmax_turn_tokens: %d\nmax_tokens: %d # 2048 of the prompt\nmax_tool_text_bytes: 4096\nshard_groups: 16", response, response+2048)
	}
	base := sections{
		"environment": "name: rstar2_math",
		"engine":      "kind: torch", "policy": "checkpoint: Qwen3-14B-Base-SFT # after rStar2's non-reasoning fine-tuning",
		"rollout":    rollout(8192),
		"sandbox":    "cpu_seconds: 10\nwall_seconds: 100\nmemory_mb: 384\noutput_kb: 64\nmin_tier: landlock",
		"reward":     "name: rstar2_outcome",
		"resample":   "roc:\n  keep: 16\n  counts: paper\n  select: weighted\n  min_positive: 2\n  min_negative: 2",
		"advantage":  grpo,
		"loss":       clip("0.2", "0.28", "token-mean") + recompute,
		"optimizer":  "lr: 1.0e-6\nminibatches: 1",
		"evaluation": "problems: 60 # AIME 2024 and 2025\nsamples: 16\ntemperature: 1\ngreedy: false",
	}
	notes := []string{
		"Positives are drawn by their penalties and negatives uniformly, with the release's least two of each (RSTAR-1, RSTAR-2); failing calls are told by their status (RSTAR-3).",
		"Token-mean, for the paper's own formula is lost (RSTAR-10); at most five turns, as released; truncated rows stay with reward 0 (RSTAR-11).",
	}
	stage := func(n, steps int, about string, s ...sections) preset {
		return preset{fmt.Sprintf("rstar2-stage%d", n), "rStar2-Agent, GRPO-RoC, stage " + about, "rStar2 §4.2", notes, steps, base.with(s...)}
	}
	second := sections{"engine": "kind: torch", "policy": "checkpoint: rstar2-stage1 # its last policy", "rollout": rollout(12288)}
	third := sections{"engine": "kind: torch", "policy": "checkpoint: rstar2-stage2 # its last policy", "rollout": rollout(12288),
		"schedule": "stages:\n  - {from_step: 1, problems: unsolved, samples: 8}"}
	whole := sections{"schedule": "stages:\n  - {from_step: 301, max_tokens: 14336}\n  - {from_step: 386, problems: unsolved, samples: 8, reset_optimizer: true, refresh_reference: true}"}
	return []preset{
		stage(1, 300, "1: responses of 8K tokens"), stage(2, 85, "2: responses of 12K tokens", second),
		stage(3, 125, "3: 12K, without problems that all of eight samples solve", third),
		{"rstar2", "rStar2-Agent, GRPO-RoC, all three stages in one schedule", "rStar2 §4.2", notes, 510, base.with(whole)},
	}
}

// arlarenaTask is a column of Table S1.
type arlarenaTask struct {
	env, file, model, minibatch, temperature string
	prompts, n, turns, prompt, response      int
	steps, cold, sampoSteps, sampoCold       int
	math                                     bool
}

var arlarenaTasks = []arlarenaTask{
	{"alfworld", "alfworld", "Qwen3-4B-RFT", "256", "0.6", 16, 8, 50, 2048, 512, 200, 15, 200, 15, false},
	{"webshop", "webshop", "Qwen3-4B-RFT", "128", "0.6", 16, 8, 15, 4096, 512, 200, 0, 250, 5, false},
	{"sokoban", "sokoban", "Qwen3-4B-VL-Instruct-RFT", "64", "0.7", 32, 8, 15, 1024, 512, 200, 0, 200, 0, false},
	{"tir_math", "tir-math", "Qwen3-4B-Base", "128", "0.6", 512, 5, 5, 8196, 4096, 30, 0, 0, 0, true},
}

func (c arlarenaTask) base() sections {
	s := sections{
		"environment": "name: " + c.env,
		"engine":      "kind: torch", "policy": "checkpoint: " + c.model,
		"rollout": fmt.Sprintf("mode: staged\nprompts: %d\noversample: %d\ntemperature: 1\nmax_turns: %d\nmax_turn_tokens: %d\nmax_tokens: %d # %d of the prompt\nmax_tool_text_bytes: 16384",
			c.prompts, c.n, c.turns, c.response, c.prompt+c.response, c.prompt),
		"reward":     "name: arlarena",
		"optimizer":  "lr: 1.0e-6\nminibatch_rows: " + c.minibatch,
		"evaluation": "problems: 128\nsamples: 1\ntemperature: " + c.temperature + "\ntop_p: 0.95\ntop_k: 20\ngreedy: false",
	}
	if c.math {
		s["filters"] = "void_turns: true"
		s["rollout"] = strings.Replace(s["rollout"], "max_tool_text_bytes: 16384", "max_tool_text_bytes: 1024", 1)
	} else {
		s["layout"] = "turns"
		s["rollout"] += "\nhistory: 2"
	}
	return s
}

// arlarenaPresets are ARLArena's methods on the tasks that they are defined on: gigpo, empg and
// sampo compare turns, and a solution of TIR Math is one row.
func arlarenaPresets() []preset {
	var all []preset
	for _, c := range arlarenaTasks {
		high, term, turnwise := "0.2", recompute+k3, "\nstats: turn_rows\ninvalid_penalty: 0.1"
		notes := []string{"A turn's invalid action costs that turn's row, and groups' statistics run over rows, without random duplicates (ARLA-2, ARLA-3)."}
		if c.math {
			high, term, turnwise = "0.28", recompute, ""
			notes = []string{"The paper counts 30 epochs; an epoch is one step here. Rows are whole trajectories, so the format costs nothing beyond the outcome."}
		}
		base := c.base().with(sections{"advantage": grpo + turnwise})
		ppo := clip("0.2", high, "token-mean") + term
		mask := "\nsequence_mask: {delta: 0.003, denominator: fixed}"
		masked := "δ is that of the released scripts, and rows left out stay in the denominator (ARLA-4, ARLA-5)."
		sapo := "name: sapo\ntau_positive: 1\ntau_negative: 1.05\naggregation: token-mean" + term
		cispo := "name: cispo\nclip_low: 1 # no lower bound\nclip_high: " + high + "\naggregation: token-mean" + term
		gspoClip := "clip_low: 0.003\nclip_high: 0.004"
		gspo := "name: gspo\n" + map[bool]string{true: "clip_low: 0.03\nclip_high: 0.04", false: gspoClip}[c.env == "webshop"] + "\naggregation: seq-mean-token-mean" + term
		tries := map[bool]int{true: 2, false: 3}[c.math]
		dynamic := func(cold int) string {
			return fmt.Sprintf("dynamic:\n  tries: %d\n  cold_start_steps: %d\n  refill: new", tries, cold)
		}
		gigpo := "name: gigpo\nstd: true # mean_std_norm\ngamma: 0.95\nomega: 1\nanchors: exact" + turnwise
		add := func(method, title string, departures []string, s sections) {
			all = append(all, preset{method + "-" + c.file, title + ", on " + c.env, "ARLArena Table 1 and Table S1", slices.Concat(notes, departures), c.steps, base.with(s)})
		}
		add("grpo", "GRPO", nil, sections{"loss": ppo})
		add("grpo-st", "GRPO_ST: GRPO with the sequence-mean of token-means", nil, sections{"loss": clip("0.2", high, "seq-mean-token-mean") + term})
		add("grpo-sm", "GRPO_SM: GRPO with sequence masking", []string{masked}, sections{"loss": ppo + mask})
		add("sapo", "SAPO: a soft gate in the place of the clip", []string{"τ are the table's (ARLA-10)."}, sections{"loss": sapo})
		add("sapo-sm", "SAPO_SM: SAPO with sequence masking", []string{"τ are the table's (ARLA-10).", masked}, sections{"loss": sapo + mask})
		add("cispo", "CISPO: the clipped ratio as a constant weight", []string{"Two-sided with a lower bound of 0, which no ratio reaches (ARLA-6)."}, sections{"loss": cispo})
		add("cispo-sm", "CISPO_SM: CISPO with sequence masking", []string{"Two-sided with a lower bound of 0, which no ratio reaches (ARLA-6).", masked}, sections{"loss": cispo + mask})
		add("gspo", "GSPO: one ratio for a row", []string{"Bounds are the table's (ARLA-8); rows weigh alike, as the code has it (ARLA-1)."}, sections{"loss": gspo})
		add("dapo", "DAPO: GRPO with dynamic sampling", []string{"Further tries are of new prompts (ARLA-11)."}, sections{"loss": ppo, "resample": dynamic(c.cold)})
		if c.math {
			continue
		}
		add("gigpo", "GiGPO: step advantages among turns in the same state", nil, sections{"advantage": gigpo, "loss": ppo})
		add("empg", "EMPG: advantages weighed by the entropy of turns", []string{"The weights' mean is over rows, and the next turn is found by its number (ARLA-7)."},
			sections{"advantage": "name: empg\nstd: true\nk: 1\nk_prime: 1\nzeta: 0.05" + turnwise, "loss": ppo})
		add("sampo", "SAMPO: GSPO's ratio, GiGPO's advantage and dynamic sampling", []string{
			"Bounds are the released scripts', rows weigh alike (ARLA-1, ARLA-8), the advantage is mean_std_norm (ARLA-15), there is no sequence mask (ARLA-13)."},
			sections{"advantage": gigpo, "loss": "name: gspo\n" + gspoClip + "\naggregation: seq-mean-token-mean" + term, "resample": dynamic(c.sampoCold)})
		all[len(all)-1].steps = c.sampoSteps
	}
	return all
}

// searchPresets are AEPO and what it is compared with, on deep research.
func searchPresets() []preset {
	base := sections{
		"environment": "name: deep_research",
		"engine":      "kind: torch", "policy": "checkpoint: Qwen3-14B",
		"rollout":    "mode: staged\nprompts: 128\noversample: 16\ntemperature: 1\nmax_turns: 7 # six calls, and the answer\nmax_turn_tokens: 4096\nmax_tokens: 20480\nmax_tool_text_bytes: 16384",
		"sandbox":    "cpu_seconds: 10\nwall_seconds: 120\nmemory_mb: 384\noutput_kb: 64\nmin_tier: landlock",
		"reward":     "name: deep_research",
		"advantage":  grpo,
		"loss":       clip("0.2", "0.2", "token-mean") + recompute,
		"optimizer":  "lr: 1.0e-6\nminibatch_rows: 16",
		"evaluation": "problems: 128\nsamples: 1\ntemperature: 0.6\ntop_p: 0.95\ngreedy: false",
	}
	const tree = "mode: tree\ntree:\n  rule: %s\n  roots: 8\n  entropy_weight: 0.2\n  threshold: 0.5"
	branching := func(rule string) string { return strings.Replace(base["rollout"], "mode: staged", rule, 1) }
	long := "Five epochs of about a thousand questions make 40 steps; KL has the coefficient 0, so there is none."
	aepo := branching(fmt.Sprintf(tree, "aepo") + "\n  slope: 0.2\n  monitor: true\n  sensitivity: 0.2")
	flat := "Rollouts are flat: the loss is compared, not the branching."
	kept := func(loss string) sections { return sections{"loss": loss + "\naggregation: token-mean" + recompute} }
	return []preset{
		{"aepo", "AEPO: branching balanced by entropy, a clip that keeps gradients, entropy-aware advantages", "AEPO §3, §4.1", []string{long,
			"The lower bound is 1 − clip_low and all tokens keep their gradient above the upper one (AEPO-1, AEPO-8), without dual clip (AEPO-7).",
			"The factor is linear, from entropies before the update, over the group, and on (AEPO-2, AEPO-3, AEPO-4, AEPO-5).",
			"The slope is the paper's (AEPO-9), counted for each chain when it branches (AEPO-11); monitoring is on (AEPO-14)."}, 40,
			base.with(sections{"rollout": aepo, "advantage": grpo + "\nentropy_aware: {weight: 0.2, scope: group, form: linear}"}, kept("name: aepo_clip\nclip_low: 0.2\nclip_high: 0.2"))},
		{"arpo", "ARPO: branching on rising entropy, with GRPO over all leaves", "ARPO §3; AEPO §4.1", []string{long, "Sixteen trajectories from eight roots (AEPO-16)."}, 40,
			base.with(sections{"rollout": branching(fmt.Sprintf(tree, "arpo"))})},
		{"gppo", "GPPO: clipped tokens keep a bounded gradient", "GPPO; AEPO §4.1", []string{long, flat}, 40, base.with(kept("name: gppo\nclip_low: 0.2\nclip_high: 0.2"))},
		{"ce-gppo", "CE-GPPO: GPPO with a share of the kept gradient for each side", "CE-GPPO; AEPO §4.1", []string{long, flat}, 40,
			base.with(kept("name: ce_gppo\nclip_low: 0.2\nclip_high: 0.2\nbeta1: 0.5\nbeta2: 1"))},
	}
}

// prsPresets are the progressive rewards and VSPO.
func prsPresets() []preset {
	base := func(model string, response int) sections {
		return sections{
			"environment": "name: search_qa",
			"engine":      "kind: torch", "policy": "checkpoint: " + model,
			"rollout":    fmt.Sprintf("mode: staged\nprompts: 128\noversample: 5\ntemperature: 1\nmax_turns: 5\nmax_turn_tokens: %d\nmax_tokens: %d\nmax_tool_text_bytes: 16384", response, 4*response),
			"advantage":  grpo,
			"loss":       clip("0.2", "0.2", "seq-mean-token-mean") + recompute + "\nkl: {coefficient: 0.001, in: loss, estimator: k3}",
			"optimizer":  "lr: 1.0e-7\nminibatches: 1",
			"evaluation": "problems: 500\nsamples: 1\ntemperature: 1\ngreedy: true",
		}
	}
	short, long := base("Qwen2.5-3B-Instruct", 1024), base("Qwen3-14B", 4096)
	notes := []string{"The paper names neither batch nor steps: 128 prompts and 200 steps are chosen here.", "Rows weigh alike, as eq 6 writes (VSPO-8); a process without calls is whole if its answer parses (PRS-2)."}
	of := func(reward string) sections { return sections{"reward": reward} }
	return []preset{
		{"prs-short", "PRS for short answers: process and format first, then BLEU", "PRS eq 13", notes, 200, short.with(of("name: prs_short"))},
		{"prs-long", "PRS for long answers: a judge between process and BLEU", "PRS eq 14", append(slices.Clone(notes), "The judge says Match or Mismatch (PRS-1)."), 200, long.with(of("name: prs_long\njudge: server"))},
		{"prs-general", "PRS in its general form: gated stages behind a logistic", "PRS eqs 15–16", notes, 200, long.with(of("name: prs_general\njudge: server\nprocess_gate: 1\njudge_gate: 1"))},
		{"vspo", "VSPO: groups without variance give their place to informative ones", "VSPO eqs 17–21", append(slices.Clone(notes),
			"A repeated prompt counts N = 1 + its draws and weighs ω once (VSPO-2); R_max is the whole batch's (VSPO-3); advantages use the sample deviation, value scores the population's (VSPO-6)."), 200,
			short.with(of("name: prs_short"), sections{"resample": "vspo:\n  alpha: 2\n  temperature: 0.1\n  min_variance: 1.0e-6"})},
	}
}

// baselinePresets are the general methods, on calc with quickstart's sizes: what differs is the method.
func baselinePresets(calc sections) []preset {
	higher := clip("0.2", "0.28", "token-mean")
	const here = "Everything but the method is quickstart's."
	one := func(name, about, source, advantage, loss string, more ...string) preset {
		return preset{name, about, source, append([]string{here}, more...), 85, calc.with(sections{"advantage": advantage, "loss": loss})}
	}
	tokenKL := "\nkl: {coefficient: 0.001, in: reward, estimator: k1, controller: fixed}"
	return []preset{
		one("drgrpo", "Dr.GRPO: no deviation, no length in the norm", "Dr.GRPO (Liu et al. 2025)", noStd, clip("0.2", "0.2", "seq-mean-token-sum-norm")),
		one("rloo", "RLOO: reward minus the mean of the others", "RLOO (Ahmadian et al. 2024)", "name: rloo\nsingle_group: zero", clip("0.2", "0.2", "seq-mean-token-sum"), "A group of one has the advantage 0 (VERL-5)."),
		one("reinforce-pp", "REINFORCE++: token returns, whitened over the batch, with KL in the reward", "REINFORCE++ (Hu 2025)", "name: reinforce_pp\ngamma: 1\nreturns: carry", clip("0.2", "0.2", "token-mean")+recompute+tokenKL, "Returns pass over observations (VERL-1)."),
		one("reinforce-pp-baseline", "REINFORCE++ with the group's mean as baseline", "REINFORCE++ (Hu 2025)", "name: reinforce_pp_baseline", clip("0.2", "0.2", "token-mean")+recompute+"\nkl: {coefficient: 0.001, in: loss, estimator: k2}"),
		one("ppo", "PPO: a critic, generalised advantages, KL in the reward", "PPO (Schulman et al. 2017; Ziegler et al. 2019)", "name: gae\ngamma: 1\nlambda: 0.95\nreturns: carry",
			clip("0.2", "0.2", "token-mean")+recompute+tokenKL+"\nvalue:\n  coefficient: 1\n  clip: 0.5\n  lr: 0.0005", "Observations are skipped (VERL-6); the value loss has its ½ (VERL-7)."),
		one("clip-cov", "Clip-Cov: no gradient on a few of the most covariant tokens", "Clip-Cov (Cui et al. 2025)", grpo, strings.Replace(higher, "ppo_clip", "clip_cov", 1)+"\ncov_ratio: 0.0002\ncov_low: 1\ncov_high: 5\ncov_scope: minibatch", "Covariances are centred over the mini-batch, not the micro-batch (SPEAR-7)."),
		one("kl-cov", "KL-Cov: a penalty on the most covariant tokens", "KL-Cov (Cui et al. 2025)", grpo, "name: kl_cov\ncov_ratio: 0.002\ncov_coefficient: 1\naggregation: token-mean"),
	}
}

// mixtures are methods that no paper has.
func mixtures(calc sections) []preset {
	roc := "roc:\n  keep: 4\n  counts: paper\n  select: weighted\n  min_positive: 2\n  min_negative: 2"
	vspo := "vspo:\n  alpha: 2\n  temperature: 0.1\n  min_variance: 1.0e-6"
	const mixed = "Composed here; everything but the method is quickstart's."
	return []preset{
		{"mix-sampo-roc-vspo", "SAMPO's ratio and advantage over turns, chosen by VSPO and RoC", "ARLArena (SAMPO), rStar2 (RoC), VSPO", []string{mixed, "VSPO stands in the place of SAMPO's dynamic sampling: both replace groups without variance."}, 85,
			calc.with(sections{"layout": "turns", "resample": vspo + "\n" + roc, "advantage": "name: gigpo\nstd: true\ngamma: 0.95\nomega: 1\nanchors: exact",
				"loss": "name: gspo\nclip_low: 0.003\nclip_high: 0.004\naggregation: seq-mean-token-mean" + recompute + k3})},
		{"mix-cispo-entropy-roc", "CISPO with AEPO's entropy-aware advantages and RoC", "ARLArena (CISPO), AEPO, rStar2 (RoC)", []string{mixed}, 85,
			calc.with(sections{"resample": "reject_equal: true\n" + roc, "advantage": grpo + "\nentropy_aware: {weight: 0.2, scope: group, form: linear}",
				"loss": "name: cispo\nclip_low: 1\nclip_high: 0.28\naggregation: token-mean" + recompute})},
		{"mix-cegppo-replay-prs", "CE-GPPO with SPEAR's replay, progressive rewards and truncated importance sampling", "CE-GPPO, SPEAR, PRS", []string{mixed}, 85,
			calc.with(sections{"reward": "name: prs_short", "resample": "low_variance: {keep: 0.75, std: sample}", "advantage": noStd,
				"loss":   "name: ce_gppo\nclip_low: 0.2\nclip_high: 0.28\nbeta1: 0.5\nbeta2: 1\naggregation: seq-mean-token-sum-norm" + recompute + "\ntis: {cap: 2}",
				"replay": "size: 512\nbaselines: 2560\nrecalibrate: p50\norder: sequential\ncov_ratio: 0", "schedule": "gamma_horizon: 20"})},
	}
}
