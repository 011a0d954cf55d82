package activities

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// drawsOfPrompt bounds how many problems are looked at for one prompt that is not solved yet.
const drawsOfPrompt = 1000

// solvedProblems are those that all samples of the run's earlier steps have solved, at least so many of
// them; with 0 none are. What was read of those steps joins the manifest's inputs.
//
// Source: rStar2-Agent section 4.3. Departure: the paper samples every problem 8 times with the policy at
// the stage's beginning; here the run's own rollouts, of all policies so far, are what is judged by.
func (a SelectPrompts) solvedProblems(ctx context.Context, w *draft, scope wire.Scope, samples int) (map[string]bool, error) {
	if samples == 0 {
		return nil, nil
	}
	all := outcomes{}
	for step := 1; step < scope.Step; step++ {
		head, ref, found, err := a.Record.Head(ctx, scope.Run, strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		prompts, rewards := head.Stages[wire.StagePrompts], head.Stages[wire.StageReward]
		if !found || len(prompts) == 0 || len(rewards) == 0 {
			return nil, refuse(wire.FailCorrupt, "schedule.stages: step %d of run %s has committed no rewards, by which step %d tells what is solved", step, scope.Run, scope.Step)
		}
		of, err := a.outcomesOf(ctx, ref, prompts, rewards)
		if err != nil {
			return nil, err
		}
		all.add(of)
		w.manifest.Inputs = append(append(w.manifest.Inputs, prompts...), rewards...)
	}
	return all.solved(samples)
}

// outcomes are how problems fared, by their ids.
type outcomes map[string]resample.Evaluation

// outcomesOf counts the samples of a step with this head, once in a worker's life: heads do not change. What
// has no reward, for its shard was skipped or its engine broke, is no sample.
func (d *Deps) outcomesOf(ctx context.Context, head schema.Ref, prompts, rewards []schema.Ref) (outcomes, error) {
	if of, ok := d.outcomes.Load(head); ok {
		return of.(outcomes), nil
	}
	promptRows, err := read[schema.PromptRow](ctx, d, prompts...)
	if err != nil {
		return nil, err
	}
	rewardRows, err := read[schema.RewardRow](ctx, d, rewards...)
	if err != nil {
		return nil, err
	}
	problems := map[string]string{}
	for _, p := range promptRows {
		problems[p.GroupID] = p.ProblemID
	}
	of := outcomes{}
	for _, r := range rewardRows {
		id, ok := problems[r.GroupID]
		if !ok {
			return nil, refuse(wire.FailCorrupt, "%s holds a reward of group %s, and %s no such prompt", rewards[0].Key, r.GroupID, prompts[0].Key)
		}
		one := resample.Evaluation{ProblemID: id, Samples: 1}
		if r.Success {
			one.Correct = 1
		}
		of.add(outcomes{id: one})
	}
	d.outcomes.Store(head, of)
	return of, nil
}

func (o outcomes) add(more outcomes) {
	for id, e := range more {
		sum := o[id]
		o[id] = resample.Evaluation{ProblemID: id, Correct: sum.Correct + e.Correct, Samples: sum.Samples + e.Samples}
	}
}

// solved are the problems that at least so many samples, and all there are, have solved.
func (o outcomes) solved(samples int) (map[string]bool, error) {
	verdicts, err := resample.HardProblems{MinSamples: samples, Evaluations: slices.Collect(maps.Values(o))}.Filter()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, v := range verdicts {
		if v.Reason == resample.SolvedProblem {
			out[v.ProblemID] = true
		}
	}
	return out, nil
}

// unsolvedProblem is the first problem at an index, or whole steps' worth of indexes further on in the
// stream, that is not solved: so no prompt of the step, of whatever round, gets at another's indexes. It also counts what was passed over.
func unsolvedProblem(step, stride, index int, solved map[string]bool, draw func(index int) env.Problem) (p env.Problem, passed int, err error) {
	for passed = range drawsOfPrompt {
		if p = draw(index); !solved[p.ID] {
			return p, passed, nil
		}
		index += stride
	}
	return p, drawsOfPrompt, refuse(wire.FailRefused, "schedule.stages: problems: unsolved leaves too few for step %d: all of %d problems drawn for one prompt are solved "+
		"(%d are in all); amend the stage: problems: same, or more samples", step, drawsOfPrompt, len(solved))
}
