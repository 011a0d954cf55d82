package recipes

import (
	"github.com/ropewalk/ropewalk/internal/judge"
)

// Judge is judge.Settings.
type Judge = judge.Settings

// Idle lists the sections that nothing in the recipe reads, by field. They are refused when a run begins, and not when
// a recipe is resolved, because an evaluation or a replay of a run may change what asks.
func (r *Recipe) Idle() []string {
	if r.Judge == nil || r.Reward.Judged() || r.Evaluation.Judged {
		return nil
	}
	return []string{"judge: nothing asks it: set reward.judge=server, choose a reward that asks a judge, set " +
		"evaluation.judged=true, or leave judge out"}
}

// Unset lists the sections that the recipe needs before it can run, by field. They name the user's own servers, so
// presets leave them out.
func (r *Recipe) Unset() []string {
	var unset []string
	if f, ok := r.Function(); ok && f.Module == "" {
		unset = append(unset, "reward.module: names no function; set it to package:name")
	}
	if r.Judge != nil {
		return unset
	}
	const name = "name a language model: --set 'judge={url: http://HOST:PORT/v1, model: NAME}'"
	if r.Reward.Judged() {
		unset = append(unset, "judge: is required, for the reward "+r.Reward.Name+" asks a judge; "+name)
	}
	if r.Evaluation.Judged {
		unset = append(unset, "judge: is required, for evaluation.judged asks a judge; "+name)
	}
	return unset
}
