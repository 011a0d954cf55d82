package recipes

import (
	"fmt"
	"slices"
	"strings"
)

// Twin returns the overrides that make a recipe small: three steps on calc with the CPU engine, some
// seconds of warm start, thirty problems of evaluation. Sizes and environment alone change; every
// choice of the method stays, but for what calc cannot say (see TwinNotes). The warm start lasts until
// about half the answers are right, so that groups differ and there is a gradient; twins share it.
func Twin(r *Recipe) []string {
	set := []string{
		"name=" + twinName(r.Name),
		"steps=3",
		"environment={name: calc, level_shares: {2: 1}}",
		"engine={kind: cpu}",
		"policy={layers: 2, hidden: 96, heads: 3, kv_heads: 1, head_dim: 32, ffn: 192, rope_base: 200, max_positions: 192}",
		"warm_start={levels: [2], steps: 600, batch: 32, optimizer: {lr: 0.003, warmup_steps: 10, decay: cosine, beta2: 0.98, weight_decay: 0.01}, " +
			"teacher: {bad_code: 0.05, wrong_order: 0, missing_print: 0, no_tool: 0, wrong_copy: 0}}",
		fmt.Sprintf("rollout={mode: staged, history: %d, prompts: 8, oversample: %d, max_turns: 3, max_turn_tokens: 64, max_tokens: 160, max_tool_text_bytes: 128, shard_groups: 4}",
			min(r.Rollout.History, 1), twinSamples(r)),
		fmt.Sprintf("sandbox={cpu_seconds: 1, wall_seconds: 20, session: %t, min_tier: landlock}", r.Sandbox.Session),
		"optimizer={lr: 0.0005, minibatches: 2}",
		"evaluation={problems: 30, samples: 1, greedy: false}",
		"checkpoint={every: 0, keep_last: 1}",
	}
	return slices.Concat(set, twinReward(r), twinResample(r), twinSteps(r))
}

// TwinNotes says where a recipe's twin departs from its method.
func TwinNotes(r *Recipe) []string {
	var notes []string
	if r.Rollout.Mode == "tree" {
		notes = append(notes, fmt.Sprintf("samples %d flat rollouts for each prompt in the place of a tree (rollout.mode)", twinSamples(r)))
	}
	if !scoresCalc(r) {
		notes = append(notes, fmt.Sprintf("scores by %s, for %s looks at another environment (reward.name)", RStar2Outcome, r.Reward.Name))
	}
	if r.Reward.Judge == "server" {
		notes = append(notes, "judges by exact match (reward.judge)")
	}
	return notes
}

func twinName(name string) string { return name[:min(len(name), 58)] + "-twin" }

// twinSamples leaves RoC something to choose from.
func twinSamples(r *Recipe) int {
	if r.Resample.RoC != nil {
		return 8
	}
	return 4
}

func scoresCalc(r *Recipe) bool {
	return slices.Contains(environmentNamed(Calc).rewards, r.Reward.Name)
}

func twinReward(r *Recipe) []string {
	switch {
	case !scoresCalc(r):
		set := []string{"reward={name: " + RStar2Outcome + "}"}
		if r.Schedule != nil && r.Schedule.MuHorizon > 0 { // the tool term went with the reward
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

func twinResample(r *Recipe) []string {
	var set []string
	if r.Resample.RoC != nil {
		set = append(set, "resample.roc.keep=4", "resample.roc.min_positive=2", "resample.roc.min_negative=2")
	}
	if r.Resample.Dynamic != nil {
		set = append(set, fmt.Sprintf("resample.dynamic.cold_start_steps=%d", min(r.Resample.Dynamic.ColdStartSteps, 1)))
	}
	return set
}

// twinSteps brings what reaches over several steps into three.
func twinSteps(r *Recipe) []string {
	var set []string
	if r.Loss.Reference != nil {
		set = append(set, "loss.reference.refresh_every=2")
	}
	if r.Replay != nil {
		set = append(set, "replay.size=4", "replay.baselines=32")
	}
	if r.Schedule == nil {
		return set
	}
	if r.Schedule.GammaHorizon > 0 {
		set = append(set, "schedule.gamma_horizon=2")
	}
	if r.Schedule.MuHorizon > 0 && scoresCalc(r) {
		set = append(set, "schedule.mu_horizon=2")
	}
	if len(r.Schedule.Stages) > 0 {
		set = append(set, "schedule.stages="+twinStages(r))
	}
	return set
}

// twinStages lets a stage begin at each of the first steps; those after the third fall away.
func twinStages(r *Recipe) string {
	next, parts := 1, []string{}
	for _, s := range r.Schedule.Stages {
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
		parts = append(parts, fmt.Sprintf("{from_step: %d, max_tokens: %d, lr: %s, problems: %s, samples: %d, reset_optimizer: %t, refresh_reference: %t}",
			s.FromStep, s.MaxTokens, number(s.LR), s.Problems, s.Samples, s.ResetOptimizer, s.RefreshReference))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Twins names one preset of every method: those whose twins cover all methods.
func Twins() []string {
	var names []string
	for _, m := range Methods() {
		names = append(names, m.Presets[0])
	}
	return names
}

// MethodPresets is a method with the presets that set it to tasks.
type MethodPresets struct {
	Name    string
	Presets []string // built-in names
}

// taskSuffixes end the names of presets of one method on several tasks, or in several stages.
var taskSuffixes = []string{"-alfworld", "-webshop", "-sokoban", "-dapo-math", "-tir-math", "-stage1", "-stage2", "-stage3"}

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

// Comment returns the comment that a built-in recipe begins with, without its marks: where it comes
// from, and what differs there.
func Comment(name string) string {
	text, _ := Source(name)
	var lines []string
	for line := range strings.SplitSeq(string(text), "\n") {
		words, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		lines = append(lines, strings.TrimPrefix(words, " "))
	}
	return strings.Join(lines, "\n")
}
