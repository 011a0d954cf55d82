package prompts

import (
	"context"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// Drawn are the problems of one round of a step.
type Drawn struct {
	// Tasks holds one task for each group.
	Tasks []env.Task
	// First is the position of the round's first problem in the stream of the whole run.
	First int
	// Skipped is how many solved problems were replaced by later ones of the stream.
	Skipped int
}

// Draw takes a round's problems from the training stream and skips those that are solved; rounds count from 0.
func Draw(ctx context.Context, world env.Environment, recipe *recipes.Recipe, step, round int,
	solved map[string]bool) (Drawn, error) {
	perStep, from := recipe.Rollout.Prompts*tries(recipe), firstProblem(recipe, round)
	out := Drawn{Tasks: make([]env.Task, recipe.Rollout.Prompts), First: (step-1)*perStep + from}
	for i := range out.Tasks {
		task, skipped, err := unsolvedTask(step, perStep, from+i, solved, func(index int) (env.Task, error) {
			return world.Task(ctx, env.Draw{Split: env.Train, Seed: recipe.Seed, Step: step, Index: index,
				PerStep: perStep})
		})
		if err != nil {
			return Drawn{}, err
		}
		out.Tasks[i] = task
		out.Skipped += skipped
	}
	return out, nil
}

// firstProblem is the index of a round's first problem among those of its step.
func firstProblem(recipe *recipes.Recipe, round int) int {
	if d := recipe.Resample.Dynamic(); d != nil && d.Refill == resample.RefillSame {
		return 0
	}
	return round * recipe.Rollout.Prompts
}

// tries is how many rounds a step may sample.
func tries(recipe *recipes.Recipe) int {
	if d := recipe.Resample.Dynamic(); d != nil {
		return d.Tries
	}
	return 1
}

// drawsOfPrompt bounds how many problems are drawn to find one that is not solved yet.
const drawsOfPrompt = 1000

// unsolvedTask returns the first task that is not solved, at index or any number of strides after it. The stride
// covers whole steps, so no prompt of the step, in any round, reaches the indexes of another. It also returns how
// many tasks it skipped.
func unsolvedTask(step, stride, index int, solved map[string]bool,
	draw func(index int) (env.Task, error)) (task env.Task, skipped int, err error) {
	for skipped = range drawsOfPrompt {
		if task, err = draw(index); err != nil || !solved[task.ID] {
			return task, skipped, err
		}
		index += stride
	}
	return task, drawsOfPrompt, refusal.Unusablef("schedule.stages: problems: unsolved leaves too few for step %d: "+
		"all of %d problems drawn for one prompt are solved (%d are in all); amend the stage: problems: same, or more "+
		"samples", step, drawsOfPrompt, len(solved))
}

// heldOutDraws bounds how many held-out tasks are drawn for each task that an evaluation asks for. A small environment
// repeats its tasks, and has no others if that number of draws finds none.
const heldOutDraws = 100

// HeldOut draws the distinct held-out tasks of an evaluation, in the split's order: as many as the recipe asks for, or
// all that there are if these are fewer.
func HeldOut(ctx context.Context, world env.Environment, recipe *recipes.Recipe) ([]env.Task, error) {
	n := recipe.Evaluation.Problems
	tasks, seen := make([]env.Task, 0, n), map[string]bool{}
	for i := 0; len(tasks) < n && i < n*heldOutDraws; i++ {
		task, err := world.Task(ctx, env.Draw{Split: env.HeldOut, Seed: recipe.Seed, Index: i})
		if err != nil {
			return nil, err
		}
		if !seen[task.ID] {
			seen[task.ID] = true
			tasks = append(tasks, task)
		}
	}
	return tasks, nil
}
