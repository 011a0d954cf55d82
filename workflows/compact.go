package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// compactions are the compactions of a run's steps that run alongside.
type compactions []workflow.Future

// start starts to merge the small shards of finished steps, one step after the other, once their measured times are
// recorded, alongside the next steps. Only the end of a history waits for it. A failure is only logged, because nothing
// but the number of files depends on it, and `ropewalk compact` makes up for it.
func (c *compactions) start(ctx workflow.Context, run string, prepared api.Prepared, times recordings, steps ...int) {
	if !prepared.Plan.Compact || len(steps) == 0 {
		return
	}
	recorded := slices.Clone(times)
	done, set := workflow.NewFuture(ctx)
	*c = append(*c, done)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for _, one := range recorded {
			_ = one.future.Get(ctx, nil) // the end of the run reports it
		}
		for _, step := range steps {
			in := api.CompactInput{Scope: scoped(run, step, prepared)}
			err := start(ctx, nil, api.CompactStep, "the step's small files", in).Get(ctx, nil)
			if err != nil {
				_, why := failure(err)
				workflow.GetLogger(ctx).Warn("compact step", "run", run, "step", step, "error", why)
			}
		}
		set.Set(nil, nil)
	})
}

// wait waits for the compactions that still run.
func (c *compactions) wait(ctx workflow.Context) {
	for _, one := range *c {
		_ = one.Get(ctx, nil) // it was logged
	}
	*c = nil
}

// compact compacts a step once the next one runs. What lies before the first step is not compacted.
func (r *trainRun) compact(step int) {
	if step == api.InitStep {
		return
	}
	r.later.add(func(ctx workflow.Context) { r.compactions.start(ctx, r.run, r.prepared, r.recordings, step) })
}
