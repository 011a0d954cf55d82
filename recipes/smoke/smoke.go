// Package smoke makes small recipes that test large ones. The *smoke recipe* of a recipe trains three steps of its
// method within seconds, on the CPU engine, in a small form of its world.
package smoke

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// files hold the small forms of the papers' worlds, each a task that a policy of 150,000 parameters begins to
// solve after some seconds of cloning. A file has the name of its environment. Where the recipe of a world (household,
// shop, searchqa) has other settings, they are larger ones.
//
//go:embed *.yaml
var files embed.FS

// Overrides returns the overrides that turn a recipe into its smoke recipe: three steps on a small task with the CPU
// engine, a warm start of some seconds, and an evaluation of thirty problems. The overrides change only sizes and the
// environment. The world stays that of the recipe, in a small form; a recipe whose environment has none runs calc. The
// choices of the method stay, except those that do not apply (see Notes). The warm start lasts until the policy
// sometimes succeeds, so that the samples of a group differ and there is a gradient. All smoke recipes in a world share
// one warm start.
func Overrides(r *recipes.Recipe) []string { return form{r, worldOf(r)}.overrides() }

// OverridesOnCalc returns the overrides of the smoke recipe in its earlier form: on calc, or in small rooms for a
// recipe of sokoban. The bytes that it trains are compared between commits (tools/check-bytes.sh), so it stays as it
// is.
func OverridesOnCalc(r *recipes.Recipe) []string { return onCalc(r).overrides() }

func onCalc(r *recipes.Recipe) form {
	if r.Environment.Name == "sokoban" {
		return form{r, "sokoban"}
	}
	return form{r, recipes.Calc}
}

// worldOf names the environment of a recipe's smoke recipe.
func worldOf(r *recipes.Recipe) string {
	if _, err := files.Open(r.Environment.Name + ".yaml"); err != nil {
		return recipes.Calc
	}
	return r.Environment.Name
}

// form is a recipe with the environment of its smoke recipe.
type form struct {
	*recipes.Recipe
	world string
}

func (r form) overrides() []string {
	return slices.Concat([]string{"name=" + nameOf(r.Name)}, sections("any"), sections(r.world), r.kept(),
		r.reward(), resample(r.Recipe), r.steps())
}

// sections returns the sections of a file as overrides.
func sections(name string) []string {
	text, err := files.ReadFile(name + ".yaml")
	var file map[string]any
	if err = errors.Join(err, yaml.Unmarshal(text, &file)); err != nil {
		panic("smoke: " + err.Error()) // the file is part of the binary
	}
	var set []string
	for _, section := range slices.Sorted(maps.Keys(file)) {
		value, err := json.Marshal(file[section])
		if err != nil {
			panic("smoke: " + name + ".yaml: " + err.Error())
		}
		set = append(set, section+"="+string(value))
	}
	return set
}

// kept returns the overrides that keep choices of the recipe in the sections of the world, in a small form.
func (r form) kept() []string {
	set := []string{
		fmt.Sprintf("rollout.samples_per_prompt=%d", samplesOf(r.Recipe)),
		fmt.Sprintf("rollout.history=%d", min(r.Rollout.History, 1)),
	}
	if r.world == recipes.Calc {
		set = append(set, fmt.Sprintf("rollout.history_tokens=%d", min(r.Rollout.HistoryTokens, 96)))
		if r.Forms() {
			set = append(set, "warm_start.demonstrations={form: true}")
		}
	} else if r.Rollout.Tree != nil {
		set = append(set, "rollout.tree="+treeOf(r.Recipe))
	}
	world, _ := environments.Named(r.world)
	if r.Data != nil && !world.Listed {
		set = append(set, "data=null")
	}
	if world.Sandboxed {
		set = append(set, fmt.Sprintf("sandbox.session=%t", r.Sandbox.Session))
	}
	return set
}

// Notes says where a recipe's smoke recipe departs from its method.
func Notes(r *recipes.Recipe) []string { return form{r, worldOf(r)}.notes() }

// NotesOnCalc is Notes for the form on calc.
func NotesOnCalc(r *recipes.Recipe) []string { return onCalc(r).notes() }

func (r form) notes() []string {
	var notes []string
	if r.Rollout.Tree != nil && r.world == recipes.Calc {
		notes = append(notes,
			fmt.Sprintf("samples %d flat rollouts for each prompt in the place of a tree (rollout.tree)",
				samplesOf(r.Recipe)))
	}
	if r.otherReward() {
		notes = append(notes, fmt.Sprintf("scores by %s, for %s looks at another environment or prompt format "+
			"(reward.name)", recipes.RStar2Outcome, r.Reward.Name))
	}
	if r.Reward.Judge == method.JudgeServer {
		notes = append(notes, "judges by exact match (reward.judge)")
	}
	return notes
}

// nameOf adds the suffix "-twin". The suffix never changes, because the name is part of recorded recipes and their
// digests.
func nameOf(name string) string { return name[:min(len(name), 58)] + "-twin" }

// samplesOf returns enough samples for RoC to choose from.
func samplesOf(r *recipes.Recipe) int {
	if r.Resample.RoC() != nil {
		return 8
	}
	return 4
}

// treeOf returns the recipe's tree, with half of the samples as roots.
func treeOf(r *recipes.Recipe) string {
	var whole struct {
		Rollout struct {
			Tree map[string]json.RawMessage `json:"tree"`
		} `json:"rollout"`
	}
	text, err := r.Canonical()
	if err = errors.Join(err, json.Unmarshal(text, &whole)); err == nil {
		whole.Rollout.Tree["roots"] = json.RawMessage(strconv.Itoa(samplesOf(r) / 2))
		text, err = json.Marshal(whole.Rollout.Tree)
	}
	if err != nil {
		panic("smoke: rollout.tree: " + err.Error()) // the recipe has been resolved, so it has a canonical form
	}
	return string(text)
}

// otherReward reports whether the recipe's reward cannot score the calculations of its smoke recipe.
func (r form) otherReward() bool { return r.world == recipes.Calc && !scoresCalc(r.Reward.Name) }

// scoresCalc reports whether a reward can score the calculations of a smoke recipe.
func scoresCalc(name string) bool {
	d, _ := reward.Declared(name)
	calc, _ := environments.Named(recipes.Calc)
	return slices.Contains(calc.Rewards, name) && !d.FromText
}

func (r form) reward() []string {
	switch {
	case r.otherReward():
		set := []string{"reward={name: " + recipes.RStar2Outcome + "}"}
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

func resample(r *recipes.Recipe) []string {
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
func (r form) steps() []string {
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
		set = append(set, "schedule.stages="+stagesOf(r.Recipe))
	}
	return set
}

// stagesOf makes one stage begin at each of the first steps. It drops stages after the third step.
func stagesOf(r *recipes.Recipe) string {
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
				s.FromStep, s.MaxTokens, strconv.FormatFloat(s.LR, 'g', -1, 64), s.Problems, s.Samples,
				s.ResetOptimizer, s.RefreshReference))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
