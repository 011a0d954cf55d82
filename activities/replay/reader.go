package replay

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/store"
)

// Reader does outside Temporal what needs the record alone: no worker, engine or sandbox. It writes nothing.
type Reader struct{ worker *stage.Worker }

// NewReader makes a reader of a store for the program with the digest code.
func NewReader(objects store.Store, code string) (Reader, error) {
	tokens, err := rollout.NewTokenizer()
	if err != nil {
		return Reader{}, err
	}
	return Reader{over(objects, code, tokens)}, nil
}

// checksAtOnce bounds the memory of a check: each step that is checked has its tables in memory.
const checksAtOnce = 8

// CheckRun recomputes the pure stages of all finished steps of a run, as the workflow ReplayStage does with check, and
// returns the results in the order of the steps. It calls report, one call at a time, with the steps that are
// checked.
func (r Reader) CheckRun(ctx context.Context, run string, report func(done, total int)) (api.CheckPlan,
	[]api.Checked, error) {
	plan := api.CheckPlan{Code: r.worker.Code}
	var err error
	if plan.Steps, err = finishedSteps(ctx, r.worker.Records, run); err != nil {
		return plan, nil, failure.Classify(err)
	}
	out := make([]api.Checked, len(plan.Steps))
	var mu sync.Mutex
	done := 0
	err = rescue.Each(ctx, checksAtOnce, len(plan.Steps), func(ctx context.Context, i int) (err error) {
		if out[i], err = checkStep(ctx, r.worker, api.CheckInput{Run: run, Step: plan.Steps[i]},
			&stage.Progress{}); err != nil {
			return failure.Classify(err)
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		report(done, len(plan.Steps))
		return nil
	})
	return plan, out, err
}

// CheckReplay refuses a replay that the workflow ReplayStage would refuse because of what the caller asks for. It
// does not read the rows of the inputs.
func (r Reader) CheckReplay(ctx context.Context, in api.ReplayInput) error {
	made, err := stepStages(ctx, r.worker.Records, in.Run, in.Step)
	if err == nil {
		_, _, err = PrepareReplay{r.worker}.planned(ctx, made, in, &api.ReplayPrepared{})
	}
	return failure.Classify(err)
}
