package recipes

import (
	"fmt"
	"slices"
	"strings"
)

// Smoke returns the overrides that turn a recipe into its smoke recipe: three steps on a small task with the CPU
// engine, a warm start of some seconds, and an evaluation of thirty problems. The overrides change only sizes and the
// environment. The task is calc; a recipe of sokoban keeps its environment, in small generated rooms. The choices of
// the method stay, except those that do not apply to the task (see SmokeNotes). The warm start lasts until about half
// of the answers are correct, so that the samples of a group differ and there is a gradient. All smoke recipes on a
// task share one warm start.
func Smoke(r *Recipe) []string {
	set := slices.Concat([]string{
		"name=" + smokeName(r.Name),
		"steps=3",
		"engine={kind: cpu}",
		"optimizer={lr: 0.0005, minibatches: 2}",
		"evaluation={problems: 30, samples: 1, greedy: false}",
		"checkpoint={every: 0, keep_last: 1}",
	}, smokeTask(r))
	return slices.Concat(set, smokeReward(r), smokeResample(r), smokeSteps(r))
}

// smokeTask returns the overrides of the task, and of the policy and warm start that suit its size.
func smokeTask(r *Recipe) []string {
	if playsRooms(r) {
		return smokeRooms(r)
	}
	return []string{
		"environment={name: calc, level_shares: {2: 1}}",
		"policy={layers: 2, hidden: 96, heads: 3, kv_heads: 1, head_dim: 32, ffn: 192, rope_base: 200, " +
			"max_positions: 192}",
		"warm_start={levels: [2], steps: 600, batch: 32, optimizer: {lr: 0.003, warmup_steps: 10, decay: cosine, " +
			"beta2: 0.98, weight_decay: 0.01}, " +
			"teacher: {bad_code: 0.05, wrong_order: 0, missing_print: 0, no_tool: 0, wrong_copy: 0}}",
		fmt.Sprintf("rollout={mode: interleaved, history: %d, history_tokens: %d, prompts: 8, samples_per_prompt: %d, "+
			"max_turns: 3, max_turn_tokens: 64, max_tokens: 160, max_tool_text_bytes: 128, shard_groups: 4}",
			min(r.Rollout.History, 1), min(r.Rollout.HistoryTokens, 96), smokeSamples(r)),
		fmt.Sprintf("sandbox={cpu_seconds: 1, wall_seconds: 20, session: %t, min_tier: landlock}", r.Sandbox.Session),
	}
}

// smokeRooms returns the overrides of a recipe of sokoban: rooms of at most nine cells of floor with one box. The
// policy of the warm start solves about half of them.
func smokeRooms(r *Recipe) []string {
	return []string{
		"environment={name: sokoban, settings: {size: 5, boxes: 1, min_moves: 2, max_moves: 8}}",
		"policy={layers: 2, hidden: 96, heads: 3, kv_heads: 1, head_dim: 32, ffn: 192, rope_base: 200, " +
			"max_positions: 192}",
		"warm_start={steps: 200, batch: 48, noise: 0.1, optimizer: {lr: 0.003, warmup_steps: 20, decay: cosine, " +
			"beta2: 0.98, weight_decay: 0.01}}",
		fmt.Sprintf("rollout={mode: interleaved, history: %d, prompts: 8, samples_per_prompt: %d, max_turns: 8, "+
			"max_turn_tokens: 16, max_tokens: 160, shard_groups: 4}", min(r.Rollout.History, 1), smokeSamples(r)),
	}
}

// playsRooms reports whether the recipe's environment is sokoban.
func playsRooms(r *Recipe) bool { return r.Environment.Name == sokoban }

// SmokeNotes says where a recipe's smoke recipe departs from its method.
func SmokeNotes(r *Recipe) []string {
	var notes []string
	if r.Rollout.Mode == "tree" {
		notes = append(notes,
			fmt.Sprintf("samples %d flat rollouts for each prompt in the place of a tree (rollout.mode)",
				smokeSamples(r)))
	}
	if !keepsReward(r) {
		notes = append(notes, fmt.Sprintf("scores by %s, for %s looks at another environment (reward.name)",
			RStar2Outcome, r.Reward.Name))
	}
	if r.Reward.Judge == "server" {
		notes = append(notes, "judges by exact match (reward.judge)")
	}
	return notes
}

// smokeName adds the suffix "-twin". The suffix never changes, because the name is part of recorded recipes and their
// digests.
func smokeName(name string) string { return name[:min(len(name), 58)] + "-twin" }

// smokeSamples returns enough samples for RoC to choose from.
func smokeSamples(r *Recipe) int {
	if r.Resample.RoC() != nil {
		return 8
	}
	return 4
}

// keepsReward reports whether the recipe's reward can score the task of the smoke recipe.
func keepsReward(r *Recipe) bool {
	return playsRooms(r) || slices.Contains(declared(Calc).Rewards, r.Reward.Name)
}

func smokeReward(r *Recipe) []string {
	switch {
	case !keepsReward(r):
		set := []string{"reward={name: " + RStar2Outcome + "}"}
		if r.Schedule.MuHorizon() > 0 { // the tool term was removed with the reward
			set = append(set, "schedule.mu_horizon=0")
		}
		return set
	case r.Reward.Judge == "server":
		return []string{"reward.judge=exact"}
	case r.Reward.Overlong != nil:
		return []string{"reward.overlong.buffer=16"}
	}
	return nil
}

func smokeResample(r *Recipe) []string {
	var set []string
	if r.Resample.RoC() != nil {
		set = append(set, "resample.roc.keep=4", "resample.roc.min_positive=2", "resample.roc.min_negative=2")
	}
	if d := r.Resample.Dynamic(); d != nil {
		set = append(set, fmt.Sprintf("resample.dynamic.cold_start_steps=%d", min(d.ColdStart, 1)))
	}
	return set
}

// smokeSteps shortens settings that span several steps, so that they take effect within three steps.
func smokeSteps(r *Recipe) []string {
	var set []string
	if r.Loss.Reference() != nil {
		set = append(set, "loss.reference.refresh_every=2")
	}
	if r.Replay != nil {
		set = append(set, "replay.size=4", "replay.baselines=32")
	}
	if r.Schedule.GammaHorizon() > 0 {
		set = append(set, "schedule.gamma_horizon=2")
	}
	if r.Schedule.MuHorizon() > 0 && keepsReward(r) {
		set = append(set, "schedule.mu_horizon=2")
	}
	if len(r.Schedule.Stages()) > 0 {
		set = append(set, "schedule.stages="+smokeStages(r))
	}
	return set
}

// smokeStages makes one stage begin at each of the first steps. It drops stages after the third step.
func smokeStages(r *Recipe) string {
	next, parts := 1, []string{}
	for _, s := range r.Schedule.Stages() {
		if s.FromStep > 1 {
			next = max(next, 2)
		}
		if next > 3 {
			break
		}
		s.FromStep, s.Samples = next, 2
		if s.MaxTokens > 0 {
			s.MaxTokens = 192
		}
		next++
		parts = append(parts,
			fmt.Sprintf("{from_step: %d, max_tokens: %d, lr: %s, problems: %s, samples: %d, reset_optimizer: %t, "+
				"refresh_reference: %t}",
				s.FromStep, s.MaxTokens, number(s.LR), s.Problems, s.Samples, s.ResetOptimizer, s.RefreshReference))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// SmokePresets names one preset of every method. Their smoke recipes together cover all methods.
func SmokePresets() []string {
	var names []string
	for _, m := range Methods() {
		names = append(names, m.Presets[0])
	}
	return names
}

// MethodPresets is a method with its presets, one for each task or stage.
type MethodPresets struct {
	Name    string
	Presets []string // built-in names
}

// taskSuffixes lists the name endings of presets that differ only in the task or the stage.
var taskSuffixes = []string{"-alfworld", "-webshop", "-sokoban", "-dapo-math", "-tir-math", "-stage1", "-stage2",
	"-stage3"}

// Methods groups the presets by method, sorted by name.
func Methods() []MethodPresets {
	var all []MethodPresets
	for _, preset := range Presets() {
		name := strings.TrimPrefix(preset, presetFolder)
		for _, s := range taskSuffixes {
			name = strings.TrimSuffix(name, s)
		}
		i := slices.IndexFunc(all, func(m MethodPresets) bool { return m.Name == name })
		if i < 0 {
			all = append(all, MethodPresets{Name: name})
			i = len(all) - 1
		}
		all[i].Presets = append(all[i].Presets, preset)
	}
	slices.SortFunc(all, func(a, b MethodPresets) int { return strings.Compare(a.Name, b.Name) })
	return all
}
