package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// skipping describes how the run continues without the failed part, or why it cannot.
type skipping struct {
	words   string
	refused string
	enact   func() // records the skip before the stage runs again; nil: the stage does not run again
}

// mandatory refuses to skip a stage that nothing can replace.
func mandatory(why string) func([]StageFailure) skipping {
	return func([]StageFailure) skipping { return skipping{refused: why} }
}

// attempt runs a stage until it succeeds. A stage that still fails after its retries parks the run until a person
// decides. A bad input of the run itself fails at once, because waiting does not fix it.
func (r *trainRun) attempt(ctx workflow.Context, skip func([]StageFailure) skipping,
	work func(workflow.Context) error) error {
	r.limits, r.mended = limits{}, false
	for {
		err := work(ctx)
		if err == nil || temporal.IsCanceledError(err) {
			return err
		}
		all := failures(err, r.progress.Stage)
		if r.progress.Stage == schema.StagePrepare && all[0].Kind == api.FailBadInput {
			return err
		}
		s := skip(all)
		chosen, err := r.park(ctx, Parked{Step: max(r.progress.Step, 0), Kind: all[0].Kind, Failures: all,
			Skip: s.words, NoSkip: s.refused})
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
			r.limits = chosen.limits(r.limits, all)
		}
	}
}

// mend returns the scope of a stage that is no part of a step's rollout, under the recipe that a person has changed for
// its retry.
func (r *trainRun) mend(scope api.Scope) api.Scope {
	if r.mended {
		scope.Config = r.amendments.newest(r.prepared).Manifest
	}
	return scope
}

// park waits for a person's decision. It shows the failure in the UI's details and in a search attribute.
func (r *trainRun) park(ctx workflow.Context, what Parked) (decision, error) {
	r.parking.amend = nil
	if r.prepared.Plan.Steps > 0 {
		r.parking.amend = func(ctx workflow.Context, set []string, by Asker) (string, error) {
			rollout := r.stepping && slices.ContainsFunc(what.Failures, func(f StageFailure) bool {
				return f.Stage != schema.StageEvaluate
			})
			if err := r.amend(ctx, set, rollout, by); err != nil {
				return "", err
			}
			if rollout {
				return "the step's rollout starts again", nil
			}
			if r.mended = true; !r.begun {
				r.enact(0)
			}
			return "the failed stage runs again", nil
		}
	}
	chosen, err := r.parking.hold(ctx, &r.states, what, func() { r.show(ctx) })
	if err == nil {
		r.show(ctx)
	}
	return chosen, err
}

// skipShards lets a step continue without failed shards of its rollout, as long as one shard is left. The rows of
// skipped shards are recorded as excluded.
func (r *trainRun) skipShards(step int, skipped *[]api.ExcludedShard) func([]StageFailure) skipping {
	return func(all []StageFailure) skipping {
		var more []api.ExcludedShard
		plan := r.prepared.Plan
		for _, f := range all {
			switch {
			case f.Stage == stages.Timings:
				return skipping{refused: "the shard has committed its rows, and measured times alone are missing; " +
					"retry once the store answers"}
			case f.Shard < 0:
				return skipping{refused: fmt.Sprintf("%s is one piece for the whole step, nothing can stand in for it",
					f.Stage)}
			case f.Stage == schema.StageLogprobs:
				return skipping{refused: "the step's selection keeps trajectories of the shard, and their update " +
					"needs what logprobs computes"}
			}
			more = append(more, api.ExcludedShard{Shard: f.Shard, Stage: f.Stage,
				Reason: cell(f.Kind + ": " + f.Text)})
		}
		whole, its := "the step", "its"
		if plan.Dynamic != nil {
			whole, its = "the round", "the round's"
		}
		if emptied(slices.Concat(*skipped, more), plan.Shards) {
			return skipping{refused: fmt.Sprintf("no shard of %s would be left", whole)}
		}
		return skipping{
			words: fmt.Sprintf("step %d goes on without %d of %s %d shards; their trajectories are recorded as "+
				"excluded, with the reason", step, len(more), its, plan.Shards),
			enact: func() { *skipped = append(*skipped, more...) },
		}
	}
}

// emptied reports whether a round of sampling would have no shard left. A step without dynamic sampling has one
// round.
func emptied(skipped []api.ExcludedShard, shards int) bool {
	gone := map[int]int{}
	for _, e := range skipped {
		if gone[e.Shard/shards]++; gone[e.Shard/shards] >= shards {
			return true
		}
	}
	return false
}
