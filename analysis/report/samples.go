package report

import (
	"context"
	"errors"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
)

// What is embedded of the trajectories: a few of the first, the middle and the last step, and of
// each at most so many tokens that the page stays small.
const (
	samplesPerStep = 8
	mostTokens     = 30_000 // of all samples together
)

// Sample is one step's episodes.
type Sample struct {
	Step     int
	Episodes []Episode
}

// samples chooses the episodes of the page, and finds the greatest of their |advantages|.
func samples(ctx context.Context, record *analysis.Record, run string) (out []Sample, scale float64, err error) {
	v, err := record.Visible(ctx, run)
	if errors.Is(err, analysis.ErrNoRun) {
		return nil, 0, nil // it is in the catalogue and has committed nothing yet
	}
	if err != nil {
		return nil, 0, err
	}
	tokens, err := v.Tokenizer(ctx)
	if err != nil {
		return nil, 0, err
	}
	var views []analysis.StepView
	n := 0
	for _, step := range sampledSteps(v.Steps()) {
		view, err := record.Step(ctx, run, step, analysis.Choice{N: samplesPerStep, Group: analysis.AnyGroup})
		if err != nil {
			return nil, 0, err
		}
		views = append(views, view)
		n += len(view.Episodes)
	}
	writer := pieceWriter{tokens: tokens, most: mostTokens / max(n, 1), scale: largestAdvantage(views)}
	for _, view := range views {
		s := Sample{Step: view.Summary.Step}
		for _, e := range view.Episodes {
			s.Episodes = append(s.Episodes, writer.episode(e))
		}
		out = append(out, s)
	}
	return out, writer.scale, nil
}

// sampledSteps are the first, the middle and the last of the steps, each once.
func sampledSteps(steps []int) []int {
	if len(steps) == 0 {
		return nil
	}
	return slices.Compact([]int{steps[0], steps[len(steps)/2], steps[len(steps)-1]})
}
