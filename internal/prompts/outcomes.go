package prompts

import (
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// Outcomes count how the samples of problems fared, by the problems' ids.
//
// Source: rStar2-Agent section 4.3. Departure: the paper samples every problem 8 times with the policy at the
// beginning of the stage. Here the run's own rollouts, by all policies so far, decide.
type Outcomes map[string]resample.Evaluation

// Count counts the samples of a step. A trajectory without a reward, because its shard was skipped or the engine
// failed on it, is not a sample.
func Count(prompts []schema.PromptRow, rewards []schema.RewardRow) (Outcomes, error) {
	problems := map[string]string{}
	for _, p := range prompts {
		problems[p.GroupID] = p.ProblemID
	}
	of := Outcomes{}
	for _, r := range rewards {
		id, ok := problems[r.GroupID]
		if !ok {
			return nil, refusal.Corruptf("trajectory %s has a reward, and its group has no prompt", r.TrajectoryID)
		}
		one := resample.Evaluation{ProblemID: id, Samples: 1}
		if r.Success {
			one.Correct = 1
		}
		of.Add(Outcomes{id: one})
	}
	return of, nil
}

// Add adds the outcomes of more samples.
func (o Outcomes) Add(more Outcomes) {
	for id, e := range more {
		sum := o[id]
		o[id] = resample.Evaluation{ProblemID: id, Correct: sum.Correct + e.Correct, Samples: sum.Samples + e.Samples}
	}
}

// Solved returns the problems that have at least the given number of samples, all of them successful.
func (o Outcomes) Solved(samples int) (map[string]bool, error) {
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
