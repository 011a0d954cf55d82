package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// pruner runs one pruning at a time alongside the steps. No step waits for pruning: if a pruning still runs when a
// step ends, the next pruning takes care of that step's checkpoint. A failed pruning is only reported, because
// training must not wait for the deletion of files; the next pruning also does the work of the failed one.
type pruner struct {
	retention *api.Retention      // result of the latest successful pruning; nil: read the record
	evaluated []api.EvaluatedStep // evaluations that retention does not include yet
	handed    int                 // how many of evaluated the running pruning was given
	running   workflow.Future     // nil: none
	step      int                 // step of the latest pruning that was started; 0 if it failed
}

// prune starts the pruning for a finished step, unless another pruning still runs.
func (r *trainRun) prune(ctx workflow.Context, step int) {
	p := &r.pruner
	if step < 1 || p.running != nil && !p.running.IsReady() {
		return
	}
	r.collect(ctx)
	p.step, p.handed = step, len(p.evaluated)
	p.running = start(ctx, api.PruneCheckpoints, "checkpoints that the recipe does not keep", api.PruneInput{
		Scope: scoped(r.run, step, r.prepared), Retention: p.retention, Evaluated: p.evaluated,
	})
}

// collect takes the result of the running pruning and waits for it if necessary.
func (r *trainRun) collect(ctx workflow.Context) {
	p := &r.pruner
	if p.running == nil {
		return
	}
	var out api.Pruned
	err := p.running.Get(ctx, &out)
	p.running = nil
	if err != nil {
		_, r.progress.Unpruned = failure(err)
		p.step = 0
		workflow.GetLogger(ctx).Warn("prune checkpoints", "run", r.run, "error", r.progress.Unpruned)
		return
	}
	r.progress.Unpruned, p.retention, p.evaluated = "", &out.Retention, p.evaluated[p.handed:]
}

// pruned completes the run's pruning for its last step. It waits for a running pruning, and prunes once more if that
// pruning was for an earlier step or failed. Only a cancellation is an error.
func (r *trainRun) pruned(ctx workflow.Context, last int) error {
	r.collect(ctx)
	if r.pruner.step < last {
		r.prune(ctx, last)
		r.collect(ctx)
	}
	if ctx.Err() != nil {
		return temporal.NewCanceledError()
	}
	return nil
}

// carryPruning adds the pruning state to the input of the next history. A pruning that still runs ends with this
// history, and the next pruning does its work: nothing waits for it.
func (r *trainRun) carryPruning(ctx workflow.Context, c *Continued) {
	if p := &r.pruner; p.running != nil && p.running.IsReady() {
		r.collect(ctx)
	}
	c.Retention, c.Evaluated, c.Unpruned = r.pruner.retention, r.pruner.evaluated, r.progress.Unpruned
}
