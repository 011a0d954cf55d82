package trials

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/store"
)

// Judge returns what applies the stop rules of experiments to the runs in a store. code is the digest of the program.
func Judge(objects store.Store, code string) func(context.Context, api.JudgeTrialsInput) (api.JudgedTrials, error) {
	return func(ctx context.Context, in api.JudgeTrialsInput) (api.JudgedTrials, error) {
		f, err := experiment.Parse(in.File, []byte(in.YAML))
		if err != nil {
			return api.JudgedTrials{}, err
		}
		trials, err := f.Expand(in.Recipes, code)
		if err != nil {
			return api.JudgedTrials{}, err
		}
		trials = slices.DeleteFunc(trials, func(t experiment.Trial) bool { return !slices.Contains(in.Runs, t.Run) })
		outcomes := slices.DeleteFunc(slices.Clone(f.Outcomes), func(o experiment.Outcome) bool {
			return o.Name != f.Stop.By && o.Name != f.Stop.Collapse
		})
		observed, err := Reader{Record: analysis.New(objects)}.Observe(ctx, outcomes, trials)
		if err != nil {
			return api.JudgedTrials{}, err
		}
		for i, t := range observed {
			if raw, known := in.Known[t.Run]; known {
				if observed[i], err = f.Rival(t.Trial, raw); err != nil {
					return api.JudgedTrials{}, err
				}
			}
		}
		return api.JudgedTrials{Ended: f.Judge(in.Step, observed)}, nil
	}
}
