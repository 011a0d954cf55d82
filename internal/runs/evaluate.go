package runs

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/workflows"
)

// Evaluation describes an evaluation of its own: the policy, where it comes from, and what is changed of its recipe.
type Evaluation struct {
	Of          string // the run that made the policy
	Recipe      map[string]any
	Policy      api.PolicyRef
	Environment string   // in the place of the recipe's; "" leaves it
	Set         []string // overrides of the recipe
	Run         string   // "" draws a name
}

// shaped are the sections of a recipe that make or use the policy in every environment.
var shaped = []string{"version", "name", "seed", "engine", "policy", "rollout", "evaluation", "optimizer"}

// elsewhere returns a recipe for the same policy in another environment: that environment's defaults, its first reward,
// and a method and a warm start that no stage of an evaluation reads, since the training's need not fit.
func elsewhere(recipe map[string]any, d env.Declaration) map[string]any {
	out := map[string]any{
		"environment": map[string]any{"name": d.Name}, "reward": map[string]any{"name": d.Rewards[0]},
		"advantage": map[string]any{"name": "grpo"}, "loss": map[string]any{"name": "ppo_clip"},
		"warm_start": map[string]any{"optimizer": map[string]any{"lr": 0.001}},
	}
	for _, name := range shaped {
		if section, ok := recipe[name]; ok {
			out[name] = section
		}
	}
	if rollout, ok := out["rollout"].(map[string]any); ok {
		for _, name := range []string{"protocol", "tools", "history", "tool"} { // they belong to the environment
			delete(rollout, name)
		}
	}
	if p, err := protocol.Named(d.Protocol); err == nil && p.Spec().Whole {
		out["layout"] = "turns"
	}
	return out
}

// resolve makes the recipe of the evaluation. Its steps are the policy's step, so that an evaluation under an unchanged
// recipe samples the same episodes as the training's own evaluation of that step. The policy before the first step is
// measured as step 1, since a recipe has at least one.
func (e Evaluation) resolve() (*recipes.Resolved, error) {
	recipe := e.Recipe
	if e.Environment != "" && e.Environment != environmentOf(recipe) {
		d, ok := environments.Named(e.Environment)
		if !ok || len(d.Rewards) == 0 {
			return nil, badinput.Errorf("--environment: no environment %q in which a policy can be run", e.Environment)
		}
		recipe = elsewhere(recipe, d)
	}
	recipe["steps"] = max(e.Policy.Step, 1)
	text, err := json.Marshal(recipe)
	if err != nil {
		return nil, fmt.Errorf("encode the recipe of run %s: %w", e.Of, err)
	}
	parsed, err := recipes.ParseCommitted("the recipe of run "+e.Of, text, e.Set)
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
	environment, _ := recipe["environment"].(map[string]any)
	name, _ := environment["name"].(string)
	return name
}

// Start describes the workflow of the evaluation.
func (e Evaluation) Start(now time.Time) (Start, *recipes.Resolved, error) {
	resolved, err := e.resolve()
	if err != nil {
		return Start{}, nil, err
	}
	run, fresh := e.Run, e.Run == ""
	if fresh {
		run = NewID("evaluate", now)
	}
	input := workflows.EvaluateInput{Run: run, RecipeYAML: string(resolved.JSON), RecipeFile: "the recipe of run " +
		e.Of, Policy: e.Policy}
	summary := fmt.Sprintf("evaluate %s after step %d", e.Of, e.Policy.Step)
	ask, err := NewStart(run, workflows.EvaluateRunName, summary, resolved, e.Policy.Digest, input, now)
	ask.Fresh = fresh
	return ask, resolved, err
}
