package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
)

// Bounds of the trajectories on the page: a few of the first, the middle and the last step, each cut so that the page
// stays small.
const (
	samplesPerStep       = 8
	samplesPerEvaluation = 4
	mostTokens           = 30_000 // of all samples together
)

// Sample is episodes of one step, or of its evaluation.
type Sample struct {
	Step     int // analysis.NoStep before the first step
	HeldOut  bool
	Episodes []Episode
}

// Heading is the title above the episodes.
func (s Sample) Heading() string {
	switch {
	case s.Step == analysis.NoStep:
		return "Held-out tasks, before the first step"
	case s.HeldOut:
		return fmt.Sprintf("Held-out tasks, after step %d", s.Step)
	}
	return fmt.Sprintf("Step %d", s.Step)
}

// shown says which numbers the samples' tokens have.
type shown struct {
	logProbs  bool
	advantage float64 // the greatest |advantage|, times its weight; 0 where there is none
}

// colour is the quantity that colours the tokens at first.
func (s shown) colour() string {
	switch {
	case s.logProbs:
		return "logprob"
	case s.advantage > 0:
		return "advantage"
	}
	return "none"
}

// look finds which numbers the shown tokens have.
func look(views []analysis.StepView) (out shown) {
	for _, v := range views {
		for _, e := range v.Episodes {
			for _, t := range e.Turns {
				out.logProbs = out.logProbs || len(t.LogProbs) > 0
			}
			for _, a := range e.Advantages {
				out.advantage = math.Max(out.advantage, math.Abs(float64(a)))
			}
		}
	}
	return out
}

// samples chooses the episodes of the page.
func samples(ctx context.Context, record *analysis.Record, run string) (out []Sample, known shown, err error) {
	v, err := record.Visible(ctx, run)
	if errors.Is(err, analysis.ErrNoRun) {
		return nil, known, nil // it is in the catalogue and has committed nothing yet
	}
	if err != nil {
		return nil, known, err
	}
	tokens, err := v.Tokenizer(ctx)
	if err != nil {
		return nil, known, err
	}
	var views []analysis.StepView
	n := 0
	for _, step := range sampledSteps(v.Steps()) {
		view, err := record.Step(ctx, run, step, analysis.Choice{N: samplesPerStep, Group: analysis.AnyGroup})
		if err != nil {
			return nil, known, err
		}
		views = append(views, view)
		n += len(view.Episodes)
	}
	held, err := record.Evaluation(ctx, run, analysis.LastEvaluation,
		analysis.Choice{N: samplesPerEvaluation, Group: analysis.AnyGroup})
	if err != nil && !errors.Is(err, analysis.ErrNoEvaluation) {
		return nil, known, err
	}
	n += len(held.Episodes)
	layout, err := v.Layout(ctx)
	if err != nil {
		return nil, known, err
	}
	known = look(append(views[:len(views):len(views)], analysis.StepView{Episodes: held.Episodes}))
	writer := pieceWriter{tokens: tokens, most: mostTokens / max(n, 1), scale: known.advantage, layout: layout}
	for _, view := range views {
		s := Sample{Step: view.Summary.Step}
		for _, e := range view.Episodes {
			s.Episodes = append(s.Episodes, writer.episode(e))
		}
		out = append(out, s)
	}
	if len(held.Episodes) > 0 {
		s := Sample{Step: held.Step, HeldOut: true}
		for _, e := range held.Episodes {
			if e.Held == nil { // it broke, and is no outcome
				continue
			}
			s.Episodes = append(s.Episodes, writer.episode(e))
		}
		out = append(out, s)
	}
	return out, known, nil
}

// sampledSteps are the first, the middle and the last of the steps, each once.
func sampledSteps(steps []int) []int {
	if len(steps) == 0 {
		return nil
	}
	return slices.Compact([]int{steps[0], steps[len(steps)/2], steps[len(steps)-1]})
}
