package recipes

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// smokeFiles hold the small forms of the papers' worlds, each a task that a policy of 150,000 parameters begins to
// solve after some seconds of cloning. A file has the name of its environment. Where the recipe of a world (household,
// shop, searchqa) has other settings, they are larger ones.
//
//go:embed smoke/*.yaml
var smokeFiles embed.FS

// Smoke returns the overrides that turn a recipe into its smoke recipe: three steps on a small task with the CPU
// engine, a warm start of some seconds, and an evaluation of thirty problems. The overrides change only sizes and the
// environment. The world stays that of the recipe, in a small form; a recipe whose environment has none runs calc. The
// choices of the method stay, except those that do not apply (see SmokeNotes). The warm start lasts
// until the policy sometimes succeeds, so that the samples of a group differ and there is a gradient. All smoke recipes
// in a world share one warm start.
func Smoke(r *Recipe) []string { return smokeForm{r, smokeWorld(r)}.overrides() }

// SmokeOnCalc returns the overrides of the smoke recipe in its earlier form: on calc, or in small rooms for a recipe of
// sokoban. The bytes that it trains are compared between commits (tools/check-bytes.sh), so it stays as it is.
func SmokeOnCalc(r *Recipe) []string { return onCalc(r).overrides() }

func onCalc(r *Recipe) smokeForm {
	if r.Environment.Name == sokoban {
		return smokeForm{r, sokoban}
	}
	return smokeForm{r, Calc}
}

// smokeWorld names the environment of a recipe's smoke recipe.
func smokeWorld(r *Recipe) string {
	if _, err := smokeFiles.Open("smoke/" + r.Environment.Name + ".yaml"); err != nil {
		return Calc
	}
	return r.Environment.Name
}

// smokeForm is a recipe with the environment of its smoke recipe.
type smokeForm struct {
	*Recipe
	world string
}

func (r smokeForm) overrides() []string {
	return slices.Concat([]string{"name=" + smokeName(r.Name)}, smokeFile("any"), smokeFile(r.world), r.kept(),
		r.reward(), smokeResample(r.Recipe), r.steps())
}

// smokeFile returns the sections of a file as overrides.
func smokeFile(name string) []string {
	text, err := smokeFiles.ReadFile("smoke/" + name + ".yaml")
	var sections map[string]any
	if err = errors.Join(err, yaml.Unmarshal(text, &sections)); err != nil {
		panic("recipes: " + err.Error()) // the file is part of the binary
	}
	var set []string
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		value, err := json.Marshal(sections[section])
		if err != nil {
			panic("recipes: smoke/" + name + ".yaml: " + err.Error())
		}
		set = append(set, section+"="+string(value))
	}
	return set
}

// kept returns the overrides that keep choices of the recipe in the sections of the world, in a small form.
func (r smokeForm) kept() []string {
	set := []string{
		fmt.Sprintf("rollout.samples_per_prompt=%d", smokeSamples(r.Recipe)),
		fmt.Sprintf("rollout.history=%d", min(r.Rollout.History, 1)),
	}
	if r.world == Calc {
		set = append(set, fmt.Sprintf("rollout.history_tokens=%d", min(r.Rollout.HistoryTokens, 96)))
		if r.Forms() {
			set = append(set, "warm_start.demonstrations={form: true}")
		}
	} else if r.Rollout.Tree != nil {
		set = append(set, "rollout.tree="+smokeTree(r.Recipe))
	}
	if r.Data != nil && !declared(r.world).Listed {
		set = append(set, "data=null")
	}
	if declared(r.world).Sandboxed {
		set = append(set, fmt.Sprintf("sandbox.session=%t", r.Sandbox.Session))
	}
	return set
}

// SmokeNotes says where a recipe's smoke recipe departs from its method.
func SmokeNotes(r *Recipe) []string { return smokeForm{r, smokeWorld(r)}.notes() }

// SmokeOnCalcNotes is SmokeNotes for the form on calc.
func SmokeOnCalcNotes(r *Recipe) []string { return onCalc(r).notes() }

func (r smokeForm) notes() []string {
	var notes []string
	if r.Rollout.Tree != nil && r.world == Calc {
		notes = append(notes,
			fmt.Sprintf("samples %d flat rollouts for each prompt in the place of a tree (rollout.tree)",
				smokeSamples(r.Recipe)))
	}
	if r.otherReward() {
		notes = append(notes, fmt.Sprintf("scores by %s, for %s looks at another environment or prompt format "+
			"(reward.name)", RStar2Outcome, r.Reward.Name))
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

// smokeTree returns the recipe's tree, with half of the samples as roots.
func smokeTree(r *Recipe) string {
	section, _ := r.value("rollout.tree")
	tree := root().find("rollout.tree").tree(reflect.Indirect(section), r.scope())
	tree["roots"] = smokeSamples(r) / 2
	text, err := json.Marshal(tree)
	if err != nil {
		panic("recipes: rollout.tree: " + err.Error()) // the recipe has been resolved, so it has a canonical form
	}
	return string(text)
}

// otherReward reports whether the recipe's reward cannot score the calculations of its smoke recipe.
func (r smokeForm) otherReward() bool { return r.world == Calc && !scoresCalc(r.Reward.Name) }

// scoresCalc reports whether a reward can score the calculations of a smoke recipe.
func scoresCalc(name string) bool {
	d, _ := reward.Declared(name)
	return slices.Contains(declared(Calc).Rewards, name) && !d.FromText
}

func (r smokeForm) reward() []string {
	switch {
	case r.otherReward():
		set := []string{"reward={name: " + RStar2Outcome + "}"}
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
	if r.Loss.Reference() != nil {
		set = append(set, "loss.reference.refresh_every=2")
	}
	if r.Replay != nil {
		set = append(set, "replay.size=4", "replay.baselines=32")
	}
	if r.Schedule.GammaHorizon() > 0 {
		set = append(set, "schedule.gamma_horizon=2")
	}
	if r.Schedule.MuHorizon() > 0 && !r.otherReward() {
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
	"-stage2", "-stage3", "-deep-research"}

// variants begins what a preset has besides its method, or without: spear-on-gigpo, aepo-without-clip.
var variants = []string{"-with", "-on-"}

// Methods groups the presets by method, sorted by name.
func Methods() []MethodPresets {
	var all []MethodPresets
	for _, preset := range Presets() {
		name := strings.TrimPrefix(preset, presetFolder)
		for _, s := range taskSuffixes {
			name = strings.TrimSuffix(name, s)
		}
		for _, v := range variants {
			name, _, _ = strings.Cut(name, v)
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
