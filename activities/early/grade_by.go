package early

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/programs"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
)

// Pairs that go to the sandbox before progress is reported.
const (
	batchPairs    = 512 // of expressions, some hundredths of a second each
	batchPrograms = 64
)

// GradeFunc grades pairs in a sandbox; see symbolic.Run and programs.Run.
type GradeFunc func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error)

// GradeBy returns how the pairs of a recipe are graded, and how many at most before progress is reported. tested means
// that the answers are programs.
func GradeBy(recipe *recipes.Recipe, e sandbox.Executor, tested bool) (run GradeFunc, most int) {
	if tested {
		return func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error) {
			return programs.Run(ctx, e, pairs, resource.CallLimits(recipe.Sandbox))
		}, batchPrograms
	}
	return func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error) {
		return symbolic.Run(ctx, e, pairs)
	}, batchPairs
}
