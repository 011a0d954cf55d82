package workflows

import (
	"fmt"
	"maps"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// skipping says what it means to go on without what failed, or why that cannot be.
type skipping struct {
	words   string
	refused string
	enact   func() // takes the skip into account before the stage runs again; nil: it does not run again
}

// mandatory is the skipping of what nothing can stand in for.
func mandatory(why string) func([]StageFailure) skipping {
	return func([]StageFailure) skipping { return skipping{refused: why} }
}

// attempt runs a stage until it succeeds. What fails after its retries parks the run until a
// person decides; a bad input of the run's own fails at once, for waiting mends nothing there.
func (r *trainRun) attempt(ctx workflow.Context, skip func([]StageFailure) skipping, work func(workflow.Context) error) error {
	timeouts := map[string]float64{}
	for {
		err := work(withTimeouts(ctx, timeouts))
		if err == nil || temporal.IsCanceledError(err) {
			return err
		}
		all := stepFailures(err, r.progress.Stage)
		if r.progress.Stage == wire.StagePrepare && all[0].Kind == wire.FailBadInput {
			return err
		}
		s := skip(all)
		chosen, err := r.park(ctx, Parked{Step: max(r.progress.Step, 0), Kind: all[0].Kind, Failures: all, Skip: s.words, NoSkip: s.refused})
		if err != nil {
			return err
		}
		switch chosen.action {
		case UpdateAbort:
			return aborted(all)
		case UpdateSkip:
			if s.enact == nil {
				return nil
			}
			s.enact()
		case UpdateRetry:
			if chosen.retry.TimeoutSeconds > 0 {
				timeouts = maps.Clone(timeouts)
				for _, f := range all {
					timeouts[f.Activity] = chosen.retry.TimeoutSeconds
				}
			}
		}
	}
}

// park waits for a person, with the failure where people look: details and search attribute.
func (r *trainRun) park(ctx workflow.Context, what Parked) (decision, error) {
	r.parking.amend = nil
	if r.stepping {
		r.parking.amend = func(ctx workflow.Context, set []string) error { return r.amend(ctx, set, true) }
	}
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueSet(what.Kind))
	chosen, err := r.parking.hold(ctx, what, func() { r.show(ctx) })
	if err != nil {
		return chosen, err
	}
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrFailureKind.ValueUnset())
	r.show(ctx)
	return chosen, nil
}

// skipShards is the skipping of a step: shards of its rollout can be done without, as long as
// one is left; their rows are recorded as excluded.
func (r *trainRun) skipShards(step int, skipped *[]wire.ExcludedShard) func([]StageFailure) skipping {
	return func(all []StageFailure) skipping {
		var more []wire.ExcludedShard
		plan := r.prepared.Plan
		for _, f := range all {
			switch {
			case f.Shard < 0:
				return skipping{refused: fmt.Sprintf("%s is one piece for the whole step, nothing can stand in for it", f.Stage)}
			case f.Stage == wire.StageForward:
				return skipping{refused: "the step's selection keeps trajectories of the shard, and their update needs what forward computes"}
			}
			more = append(more, wire.ExcludedShard{Shard: f.Shard, Stage: f.Stage, Reason: cell(f.Kind + ": " + f.Text)})
		}
		whole, its := "the step", "its"
		if plan.Dynamic != nil {
			whole, its = "the round", "the round's"
		}
		if emptied(slices.Concat(*skipped, more), plan.Shards) {
			return skipping{refused: fmt.Sprintf("no shard of %s would be left", whole)}
		}
		return skipping{
			words: fmt.Sprintf("step %d goes on without %d of %s %d shards; their trajectories are recorded as excluded, with the reason", step, len(more), its, plan.Shards),
			enact: func() { *skipped = append(*skipped, more...) },
		}
	}
}

// emptied reports whether a round of sampling would be left without a shard. A step that does not
// sample dynamically is one round.
func emptied(skipped []wire.ExcludedShard, shards int) bool {
	gone := map[int]int{}
	for _, e := range skipped {
		if gone[e.Shard/shards]++; gone[e.Shard/shards] >= shards {
			return true
		}
	}
	return false
}
