package evaluate

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// EvaluateUntaught is Evaluate for the policy before the warm start: a stage of its own, so that no reader takes its
// rows for those of the first policy.
type EvaluateUntaught struct{ *stage.Worker }

// Execute commits one row for each episode, and the episodes' turns, and returns the summary.
func (a EvaluateUntaught) Execute(ctx context.Context, e *stage.Env, in api.EvaluateInput) (api.Evaluated, error) {
	return Evaluate(a).evaluate(ctx, e, in, schema.StageUntaught)
}
