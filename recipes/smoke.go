package recipes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// Smoke returns the overrides that turn a recipe into its smoke recipe: three steps on a small task with the CPU
// engine, a warm start of some seconds, and an evaluation of thirty problems. The overrides change only sizes and the
// environment. The world stays that of the recipe, in a small form (smokeWorlds); a recipe whose environment has none
// runs calc. The choices of the method stay, except those that do not apply (see SmokeNotes). The warm start lasts
// until the policy sometimes succeeds, so that the samples of a group differ and there is a gradient. All smoke recipes
// in a world share one warm start.
func Smoke(r *Recipe) []string { return smokeForm{r, smokeWorlds[r.Environment.Name]}.overrides() }

// SmokeOnCalc returns the overrides of the smoke recipe in its earlier form: on calc, or in small rooms for a recipe of
// sokoban. The bytes that it trains are compared between commits (tools/check-bytes.sh), so it stays as it is.
func SmokeOnCalc(r *Recipe) []string {
	if r.Environment.Name == sokoban {
		return Smoke(r)
	}
	return smokeForm{r, nil}.overrides()
}

// smokeForm is a recipe with the small form of its world; nil = calc.
type smokeForm struct {
	*Recipe
	world *smokeWorld
}

func (r smokeForm) overrides() []string {
	set := slices.Concat([]string{
		"name=" + smokeName(r.Name),
		"steps=3",
		"engine={kind: cpu}",
		"optimizer={lr: 0.0005, minibatches: 2}",
		"evaluation={problems: 30, samples: 1, greedy: false}",
		"checkpoint={every: 0, keep_last: 1}",
	}, r.task())
	return slices.Concat(set, r.reward(), smokeResample(r.Recipe), r.steps())
}

// task returns the overrides of the task, and of the policy and warm start that suit its size.
func (r smokeForm) task() []string {
	if r.world != nil {
		return r.world.overrides(r.Recipe)
	}
	return []string{
		"environment={name: calc, level_shares: {2: 1}}",
		"policy={layers: 2, hidden: 96, heads: 3, kv_heads: 1, head_dim: 32, ffn: 192, rope_base: 200, " +
			"max_positions: 192}",
		"warm_start={levels: [2], steps: 600, batch: 32, optimizer: {lr: 0.003, warmup_steps: 10, decay: cosine, " +
			"beta2: 0.98, weight_decay: 0.01}, " + r.form() +
			"teacher: {bad_code: 0.05, wrong_order: 0, missing_print: 0, no_tool: 0, wrong_copy: 0}}",
		fmt.Sprintf("rollout={mode: interleaved, history: %d, history_tokens: %d, prompts: 8, samples_per_prompt: %d, "+
			"max_turns: 3, max_turn_tokens: 64, max_tokens: 160, max_tool_text_bytes: 128, shard_groups: 4}",
			min(r.Rollout.History, 1), min(r.Rollout.HistoryTokens, 96), smokeSamples(r.Recipe)),
		fmt.Sprintf("sandbox={cpu_seconds: 1, wall_seconds: 20, session: %t, min_tier: landlock}", r.Sandbox.Session),
	}
}

// form keeps a warm start on the form of calls alone.
func (r smokeForm) form() string {
	if r.Forms() {
		return "demonstrations: {form: true}, "
	}
	return ""
}

// SmokeNotes says where a recipe's smoke recipe departs from its method.
func SmokeNotes(r *Recipe) []string { return smokeForm{r, smokeWorlds[r.Environment.Name]}.notes() }

// SmokeOnCalcNotes is SmokeNotes for the form on calc.
func SmokeOnCalcNotes(r *Recipe) []string {
	if r.Environment.Name == sokoban {
		return SmokeNotes(r)
	}
	return smokeForm{r, nil}.notes()
}

func (r smokeForm) notes() []string {
	var notes []string
	if r.Rollout.Tree != nil && r.world == nil {
		notes = append(notes,
			fmt.Sprintf("samples %d flat rollouts for each prompt in the place of a tree (rollout.tree)",
				smokeSamples(r.Recipe)))
	}
	if instead, why := r.otherReward(); instead != "" {
		notes = append(notes, fmt.Sprintf("scores by %s, for %s %s (reward.name)", instead, r.Reward.Name, why))
	}
	if r.Reward.Judge == method.JudgeServer {
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

// smokeTree returns the recipe's tree, with half of the samples as roots, as a last field of the section rollout.
func smokeTree(r *Recipe) string {
	if r.Rollout.Tree == nil {
		return ""
	}
	text, err := r.Canonical()
	var all struct {
		Rollout struct {
			Tree map[string]any `json:"tree"`
		} `json:"rollout"`
	}
	if err != nil || json.Unmarshal(text, &all) != nil {
		return "" // the recipe has been resolved, so it has a canonical form
	}
	all.Rollout.Tree["roots"] = smokeSamples(r) / 2
	tree, err := json.Marshal(all.Rollout.Tree)
	if err != nil {
		return ""
	}
	return ", tree: " + string(tree)
}

// otherReward returns the reward in the place of one that cannot score the smoke recipe's task, and why it cannot; ""
// if the recipe's own can.
func (r smokeForm) otherReward() (instead, why string) {
	switch {
	case r.world == nil && !scoresCalc(r.Reward.Name):
		return RStar2Outcome, "looks at another environment or prompt format"
	case r.world != nil && SlotState("reward.name", r.Reward.Name) == "planned":
		return r.world.reward, "is not built yet"
	}
	return "", ""
}

// scoresCalc reports whether a reward can score the calculations of a smoke recipe.
func scoresCalc(name string) bool {
	d, _ := reward.Declared(name)
	return slices.Contains(declared(Calc).Rewards, name) && !d.FromText
}

func (r smokeForm) reward() []string {
	instead, _ := r.otherReward()
	switch {
	case instead != "":
		set := []string{"reward={name: " + instead + "}"}
		if r.Schedule.MuHorizon() > 0 { // the tool term was removed with the reward
			set = append(set, "schedule.mu_horizon=0")
		}
		return set
	case r.Reward.Judge == method.JudgeServer:
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

// steps shortens settings that span several steps, so that they take effect within three steps.
func (r smokeForm) steps() []string {
	var set []string
	instead, _ := r.otherReward()
	if r.Loss.Reference() != nil {
		set = append(set, "loss.reference.refresh_every=2")
	}
	if r.Replay != nil {
		set = append(set, "replay.size=4", "replay.baselines=32")
	}
	if r.Schedule.GammaHorizon() > 0 {
		set = append(set, "schedule.gamma_horizon=2")
	}
	if r.Schedule.MuHorizon() > 0 && instead == "" {
		set = append(set, "schedule.mu_horizon=2")
	}
	if len(r.Schedule.Stages()) > 0 {
		set = append(set, "schedule.stages="+smokeStages(r.Recipe))
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
var taskSuffixes = []string{"-alfworld", "-webshop", "-sokoban", "-dapo-math", "-tir-math", "-sft", "-stage1",
	"-stage2", "-stage3"}

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
