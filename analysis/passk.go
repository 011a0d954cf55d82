package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// PassHatK returns pass^1 … pass^K: the probability that k independent trials of a task all succeed,
// averaged over tasks (Yao et al. 2024, τ-bench, section 5: pass^k = E over tasks of C(c,k)/C(n,k), the
// unbiased estimate from c successes in n trials). K is the least number of trials of any task, so
// that every k averages over all tasks; without tasks there are none.
func PassHatK(tasks []Trials) ([]float64, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	least := slices.MinFunc(tasks, func(a, b Trials) int { return cmp.Compare(a.N, b.N) }).N
	out := make([]float64, least)
	for k := range out {
		for _, t := range tasks {
			missed, err := diagnose.PassAtK(t.N, t.N-t.Successes, k+1) // that at least one of k+1 fails
			if err != nil {
				return nil, err
			}
			out[k] += 1 - missed
		}
		out[k] /= float64(len(tasks))
	}
	return out, nil
}

// Trials counts one task's trials and how many of them succeeded.
type Trials struct {
	Task         string // its problem id
	N, Successes int
}

// Trials counts a step's successes by group, in the order of the groups: a group's trajectories are the trials of one
// task.
func (v *Visible) Trials(ctx context.Context, step int) ([]Trials, error) {
	rewards, err := stepRows[schema.RewardRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	prompts, err := stepRows[schema.PromptRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	at := make(map[string]*Trials, len(prompts))
	out := make([]Trials, len(prompts))
	for i, p := range prompts {
		out[i].Task = p.ProblemID
		at[p.GroupID] = &out[i]
	}
	for _, r := range rewards {
		t := at[r.GroupID]
		if t == nil {
			return nil, fmt.Errorf("count trials of step %d of run %s: the reward of %s belongs to no prompt", step,
				v.run, r.TrajectoryID)
		}
		t.N++
		if r.Success {
			t.Successes++
		}
	}
	return out, nil
}
