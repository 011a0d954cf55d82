package activities

import (
	"context"

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

// grades grades pairs in a sandbox; see symbolic.Run and programs.Run.
type grades func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error)

// gradeBy returns how the pairs of a recipe are graded, and how many at most before progress is reported. tested means
// that the answers are programs.
func gradeBy(recipe *recipes.Recipe, e sandbox.Executor, tested bool) (run grades, most int) {
	if tested {
		return func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error) {
			return programs.Run(ctx, e, pairs, callLimits(recipe.Sandbox))
		}, batchPrograms
	}
	return func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error) {
		return symbolic.Run(ctx, e, pairs)
	}, batchPairs
}
