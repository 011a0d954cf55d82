package report

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
)

// Diagnoses of tokens read whole steps: at most tokenSteps of them, the last one first, until mostTokensRead tokens are
// read.
const (
	tokenSteps     = 5
	mostTokensRead = 2_000_000
)

// stepTokens are the tokens of one step.
type stepTokens struct {
	step int
	rows []analysis.TokenRow
}

// readTokens reads the tokens of a few steps, in their order.
func readTokens(ctx context.Context, v *analysis.Visible) (out []stepTokens, err error) {
	read := 0
	for _, step := range spread(v.Steps(), tokenSteps) {
		if read >= mostTokensRead {
			break
		}
		rows, err := v.TokenRows(ctx, step)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			read += len(r.Mask)
		}
		out = append(out, stepTokens{step, rows})
	}
	slices.SortFunc(out, func(a, b stepTokens) int { return a.step - b.step })
	return out, nil
}

// spread chooses at most n steps at equal distances, the last first, then the first, then between.
func spread(steps []int, n int) []int {
	if len(steps) <= n {
		out := slices.Clone(steps)
		slices.Reverse(out)
		return out
	}
	out := []int{steps[len(steps)-1]}
	for i := range n - 1 {
		out = append(out, steps[i*(len(steps)-1)/(n-1)])
	}
	return out
}
