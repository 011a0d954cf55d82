package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// compact starts to merge the small shards of finished steps, one step after the other, once their measured times are
// recorded, alongside the next steps. Only the end of a history waits for it. A failure is only logged, because nothing
// but the number of files depends on it, and `ropewalk compact` makes up for it.
func (r *trainRun) compact(ctx workflow.Context, steps ...int) {
	if !r.prepared.Plan.Compact {
		return
	}
	recorded, prepared := slices.Clone(r.recording), r.prepared
	done, set := workflow.NewFuture(ctx)
	r.compacting = append(r.compacting, done)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for _, one := range recorded {
			_ = one.future.Get(ctx, nil) // the end of the run reports it
		}
		for _, step := range steps {
			in := api.CompactInput{Scope: scoped(r.run, step, prepared)}
			err := start(ctx, api.CompactStep, "the step's small files", in).Get(ctx, nil)
			if err != nil {
				_, why := failure(err)
				workflow.GetLogger(ctx).Warn("compact step", "run", r.run, "step", step, "error", why)
			}
		}
		set.Set(nil, nil)
	})
}

// compactAlongside starts compact once the next step runs. What lies before the first step is not compacted.
func (r *trainRun) compactAlongside(ctx workflow.Context, step int) {
	if step == api.InitStep {
		return
	}
	r.alongside(func(ctx workflow.Context) { r.compact(ctx, step) })
}

// compacted waits for the compactions that still run.
func (r *trainRun) compacted(ctx workflow.Context) {
	for _, one := range r.compacting {
		_ = one.Get(ctx, nil) // it was logged
	}
	r.compacting = nil
}
