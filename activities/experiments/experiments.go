// Package experiments holds the activities of experiments: they list the trials of a file, and apply its stop rule.
package experiments

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Stages lists the activities by their names.
func Stages(w *stage.Worker) map[string]stage.Activity {
	return map[string]stage.Activity{
		api.PlanExperiment: stage.Of(PlanExperiment{w}.Execute),
		api.JudgeTrials:    stage.Of(JudgeTrials{w}.Execute),
	}
}

// PlanExperiment lists the trials of an experiment.
type PlanExperiment struct{ *stage.Worker }

// Execute expands the file, and looks up in the record which trials are done.
func (a PlanExperiment) Execute(ctx context.Context, e *stage.Env, in api.PlanExperimentInput,
) (out api.PlannedExperiment, err error) {
	f, err := experiment.Parse(in.File, []byte(in.YAML))
	if err != nil {
		return out, failure.Classify(err)
	}
	trials, err := f.Expand(in.Recipes, a.Code)
	if err != nil {
		return out, failure.Classify(err)
	}
	out = api.PlannedExperiment{Name: f.Name, Parallel: f.Parallel, Holds: f.Holds()}
	for _, t := range trials {
		one := api.Trial{Run: t.Run, Arm: t.Arm, Seed: t.Seed, Recipe: t.Recipe, Set: t.Set,
			Digest: t.Resolved.Digest, Steps: t.Resolved.Recipe.Steps}
		_, one.Done = in.Known[t.Run]
		if !one.Done {
			// The last evaluation is the last thing that a run commits.
			_, _, one.Done, err = a.Record.Lookup(ctx, schema.At(t.Run, one.Steps, schema.StageEvaluate))
			if err != nil {
				return out, failure.Classify(err)
			}
		}
		out.Trials = append(out.Trials, one)
	}
	return out, nil
}

// JudgeTrials applies an experiment's stop rule.
type JudgeTrials struct{ *stage.Worker }

// Execute says which trials end.
func (a JudgeTrials) Execute(ctx context.Context, e *stage.Env, in api.JudgeTrialsInput) (api.JudgedTrials, error) {
	if a.Judge == nil {
		return api.JudgedTrials{}, failure.Permanent(api.FailRefused, errors.New("this worker judges no trials"))
	}
	out, err := a.Judge(ctx, in)
	return out, failure.Classify(err)
}
