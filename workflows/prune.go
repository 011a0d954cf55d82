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
	latest    api.Scope           // of the latest pruning that was started; zero if it failed
	failed    string              // why the latest pruning failed; "" if it succeeded
}

// start starts the pruning for a finished step, unless another pruning still runs.
func (p *pruner) start(ctx workflow.Context, done api.Scope) {
	if done.Step < 1 || p.running != nil && !p.running.IsReady() {
		return
	}
	p.collect(ctx)
	p.latest, p.handed = done, len(p.evaluated)
	p.running = start(ctx, nil, api.PruneCheckpoints, "checkpoints that the recipe does not keep", api.PruneInput{
		Scope: done, Retention: p.retention, Evaluated: p.evaluated,
	})
}

// collect takes the result of the running pruning and waits for it if necessary.
func (p *pruner) collect(ctx workflow.Context) {
	if p.running == nil {
		return
	}
	var out api.Pruned
	err := p.running.Get(ctx, &out)
	p.running = nil
	if err != nil {
		_, p.failed = failure(err)
		workflow.GetLogger(ctx).Warn("prune checkpoints", "run", p.latest.Run, "error", p.failed)
		p.latest = api.Scope{}
		return
	}
	p.failed, p.retention, p.evaluated = "", &out.Retention, p.evaluated[p.handed:]
}

// finish completes the run's pruning for its last step. It waits for a running pruning, and prunes once more if that
// pruning was for an earlier step or failed. Only a cancellation is an error.
func (p *pruner) finish(ctx workflow.Context, last api.Scope) error {
	p.collect(ctx)
	if p.latest.Step < last.Step {
		p.start(ctx, last)
		p.collect(ctx)
	}
	if ctx.Err() != nil {
		return temporal.NewCanceledError()
	}
	return nil
}

// carry adds the pruning state to the input of the next history. A pruning that still runs ends with this history, and
// the next pruning does its work: nothing waits for it.
func (p *pruner) carry(ctx workflow.Context, c *Continued) {
	if p.running != nil && p.running.IsReady() {
		p.collect(ctx)
	}
	c.Retention, c.Evaluated, c.Unpruned = p.retention, p.evaluated, p.failed
}
