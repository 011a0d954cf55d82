package resample

import (
	"cmp"
	"fmt"
	"slices"
)

// Evaluation is a problem's result in an earlier evaluation.
type Evaluation struct {
	ProblemID string
	Correct   int
	Samples   int
}

// HardProblems keeps the problems that are still worth training on: it drops a problem that every
// sample of an earlier evaluation solved, and one that fewer than MinCorrect solved.
//
// Source: rStar2-Agent's third stage (drops 8 of 8) and the curation of its data set (keeps those
// with at least 2 of 16). Departures: none. A problem with fewer than MinSamples samples stays.
type HardProblems struct {
	MinSamples  int // to judge a problem by; 1 when 0
	MinCorrect  int // 0 keeps problems that no sample solved
	Evaluations []Evaluation
}

// Validate reports the first bad field.
func (h HardProblems) Validate() error {
	if h.MinSamples < 0 || h.MinCorrect < 0 {
		return fmt.Errorf(
			"hard_problems.min_samples and min_correct must be ≥ 0, got %d and %d", h.MinSamples, h.MinCorrect,
		)
	}
	seen := make(map[string]bool, len(h.Evaluations))
	for _, e := range h.Evaluations {
		if e.Samples < 0 || e.Correct < 0 || e.Correct > e.Samples {
			return fmt.Errorf(
				"hard_problems.evaluations: problem %s has %d of %d samples right", e.ProblemID, e.Correct, e.Samples,
			)
		}
		if seen[e.ProblemID] {
			return fmt.Errorf("hard_problems.evaluations: problem %s occurs twice", e.ProblemID)
		}
		seen[e.ProblemID] = true
	}
	return nil
}

// Judge returns why a problem is dropped, "" when it stays.
func (h HardProblems) Judge(e Evaluation) Reason {
	switch {
	case e.Samples < max(h.MinSamples, 1):
		return ""
	case e.Correct == e.Samples:
		return SolvedProblem
	case e.Correct < h.MinCorrect:
		return HopelessProblem
	}
	return ""
}

// ProblemVerdict says whether a problem stays in the data set.
type ProblemVerdict struct {
	ProblemID string
	Kept      bool
	Reason    Reason // "" when kept
}

// Filter judges every evaluated problem, in order of their ids.
func (h HardProblems) Filter() ([]ProblemVerdict, error) {
	if err := h.Validate(); err != nil {
		return nil, fmt.Errorf("filter problems: %w", err)
	}
	out := make([]ProblemVerdict, len(h.Evaluations))
	for i, e := range h.Evaluations {
		why := h.Judge(e)
		out[i] = ProblemVerdict{ProblemID: e.ProblemID, Kept: why == "", Reason: why}
	}
	slices.SortFunc(out, func(a, b ProblemVerdict) int { return cmp.Compare(a.ProblemID, b.ProblemID) })
	return out, nil
}
