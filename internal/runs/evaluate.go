package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// Evaluation describes an evaluation of its own: the policy, where it comes from, and what is changed of its recipe.
type Evaluation struct {
	Of     string // the run or the folder that the policy comes from
	Recipe map[string]any
	// Fresh means that no run has committed the recipe, so that files which its environment names are pinned now.
	Fresh       bool
	Policy      api.PolicyRef
	Checkpoint  bool     // the policy is the model at the recipe's policy.checkpoint
	Rewrites    bool     // its chat template writes earlier turns differently once the results of calls follow
	Hosted      bool     // a server has the model, and the policy is a small one in its place
	Environment string   // in the place of the recipe's, or the label of a part of its mix; "" leaves it
	Set         []string // overrides of the recipe
	Run         string   // "" = the name that belongs to this policy and recipe
}

// shaped are the sections of a recipe that make or use the policy in every environment.
var shaped = []string{"version", "name", "seed", "engine", "policy", "rollout", "evaluation", "optimizer", "judge"}

// noWarmStart is the section of a recipe that has none, in an environment whose recipes need the section.
var noWarmStart = map[string]any{"steps": 0, "optimizer": map[string]any{"lr": 0.001, "warmup_steps": 0}}

// elsewhere returns a recipe for the same policy in another environment: that environment's defaults, its first reward,
// and a method and a warm start that no stage of an evaluation reads, since the training's need not fit.
func elsewhere(recipe map[string]any, environment string) map[string]any {
	d, _ := environments.Named(environment)
	out := map[string]any{
		"environment": map[string]any{"name": d.Name}, "reward": map[string]any{"name": d.Rewards[0]},
		"advantage": map[string]any{"name": "grpo"}, "loss": map[string]any{"name": "ppo_clip"},
	}
	if d.Demonstrated {
		out["warm_start"] = noWarmStart
	}
	for _, name := range shaped {
		if section, ok := recipe[name]; ok {
			out[name] = section
		}
	}
	rollout := map[string]any{}
	maps.Copy(rollout, section(recipe, "rollout"))
	for _, name := range []string{"protocol", "tools", "history", "tool", "max_calls", "max_turn_calls",
		"max_episode_tool_text_bytes"} { // they belong to the environment
		delete(rollout, name)
	}
	if section(recipe, "rollout") != nil && section(recipe, "policy")["checkpoint"] != nil && !d.Interactive {
		rollout["protocol"] = "chat" // a published model has no fixed strings of ours
	}
	if p, err := protocol.Named(d.Protocol); err == nil && p.Spec().Whole {
		out["layout"] = "turns"
	}
	turns := usualTurns(d.Name)
	if d.Interactive {
		turns = max(turns, leastTurns)
	}
	if turns > 0 {
		rollout["max_turns"] = turns
	}
	out["rollout"] = rollout
	return out
}

// section returns a section of a recipe, nil if there is none.
func section(recipe map[string]any, name string) map[string]any {
	s, _ := recipe[name].(map[string]any)
	return s
}

// leastTurns is how many turns an episode has at least in an interactive environment whose recipe is not the policy's:
// a built-in recipe trains on small tasks, and the environment's own ones are larger.
const leastTurns = 15

// usualTurns is how many turns an episode has in the built-in recipe of an environment; 0 if there is none.
func usualTurns(environment string) int {
	for _, name := range recipes.Builtin() {
		r, err := recipes.Resolve(name, "", nil, nil, nil)
		if err == nil && r.Recipe.Environment.Name == environment {
			return r.Recipe.Rollout.MaxTurns
		}
	}
	return 0
}

// playable lists the environments in which a policy can be run.
func playable() (names []string) {
	for _, d := range environments.All {
		if len(d.Rewards) > 0 && !d.Imported {
			names = append(names, d.Name)
		}
	}
	return names
}

// resolve makes the recipe of the evaluation. Its steps are the policy's step, so that an evaluation under an unchanged
// recipe samples the same episodes as the training's own evaluation of that step. The policy before the first step is
// measured as step 1, since a recipe has at least one.
func (e Evaluation) resolve() (*recipes.Resolved, error) {
	recipe := e.Recipe
	part, err := partNamed(recipe, e.Environment)
	if err != nil {
		return nil, err
	}
	if part != nil {
		recipe = alone(recipe, part)
	} else if e.Environment != "" && e.Environment != environmentOf(recipe) {
		d, ok := environments.Named(e.Environment)
		if !ok || len(d.Rewards) == 0 {
			return nil, badinput.Errorf("--environment: no environment %q in which a policy can be run; there are %s",
				e.Environment, strings.Join(playable(), ", "))
		}
		recipe = elsewhere(recipe, e.Environment)
	}
	if e.Rewrites {
		recipe["layout"] = "turns" // each turn has a whole prompt of its own
	}
	if e.Hosted {
		explain(recipe)
	}
	fresh := e.Fresh || environmentOf(recipe) != environmentOf(e.Recipe)
	recipe["steps"] = max(e.Policy.Step, 1)
	text, err := json.Marshal(recipe)
	if err != nil {
		return nil, fmt.Errorf("encode the recipe of %s: %w", e.Of, err)
	}
	if fresh {
		resolved, err := recipes.Resolve("the recipe of "+e.Of, string(text), e.Set, nil, nil)
		if err != nil {
			return nil, badinput.Of(err)
		}
		return resolved, nil
	}
	parsed, err := recipes.ParseCommitted("the recipe of "+e.Of, text, e.Set)
	if err != nil {
		return nil, badinput.Of(err)
	}
	resolved, err := recipes.ResolveCommitted(parsed, nil)
	if err != nil {
		return nil, badinput.Of(err)
	}
	return resolved, nil
}

func environmentOf(recipe map[string]any) string {
	name, _ := section(recipe, "environment")["name"].(string)
	return name
}

// Start describes the workflow of the evaluation.
func (e Evaluation) Start(now time.Time) (Start, *recipes.Resolved, error) {
	resolved, err := e.resolve()
	if err != nil {
		return Start{}, nil, err
	}
	run := e.Run
	if run == "" { // a second call of the same command finds the first one's record
		run = "evaluate-" + schema.Digest([]byte(resolved.Digest + " " + e.Policy.Digest))[:nameDigits]
	}
	input := workflows.EvaluateInput{Run: run, RecipeYAML: string(resolved.JSON), RecipeFile: "the recipe of " + e.Of,
		Policy: e.Policy, Checkpoint: e.Checkpoint}
	summary := "evaluate " + e.Of
	if e.Policy.Step > 0 {
		summary += fmt.Sprintf(" after step %d", e.Policy.Step)
	}
	ask, err := NewStart(run, workflows.EvaluateRunName, summary, resolved, e.Policy.Digest, input, now)
	return ask, resolved, err
}

// nameDigits is how many digits of a digest name an evaluation.
const nameDigits = 12

// Measured reports whether the record holds the whole evaluation that a start asks for: a second call of a command then
// has nothing to do.
func Measured(ctx context.Context, objects store.Store, ask Start) (bool, error) {
	record := commit.New(objects)
	m, _, found, err := record.Lookup(ctx, schema.AtInit(ask.Request.Run, schema.StagePrepare))
	if err != nil || !found || m.Config != ask.Request.Digest {
		return false, err
	}
	var policy api.PolicyRef
	if err := json.Unmarshal([]byte(m.Note[schema.NoteEvaluates]), &policy); err != nil ||
		ask.Request.File != "" && policy.Digest != ask.Request.File {
		return false, nil // a run of another kind; starting this one is refused with the reason
	}
	_, _, found, err = record.Lookup(ctx, schema.At(ask.Request.Run, ask.Request.Steps, schema.StageEvaluate))
	return found, err
}
