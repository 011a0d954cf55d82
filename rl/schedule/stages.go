package schedule

// Multi-stage training (rStar2-Agent section 4.3): stage 1 with responses of 8K tokens up to step
// 300, stage 2 with 12K up to step 385, stage 3 with 12K on the problems that the policy at step
// 385 did not solve in all of 8 samples, its optimizer reset and its reference refreshed, up to
// step 510. Departures: the paper counts steps from 1, this package from 0, so a stage that lasts
// up to the paper's step n is followed by one whose first step is n here; 8K and 12K are 8,192
// and 12,288 tokens, as in the release's settings.

import (
	"fmt"
	"math"
)

// Stage is a run of steps under the same settings. What is 0 is as in the stage before, and as
// the recipe says in the first.
type Stage struct {
	Name             string
	FirstStep        int           // ≥ 0; the stage ends where the next one starts
	MaxResponse      int           // tokens of a response; 0 inherits
	LearningRate     float64       // base rate; 0 inherits
	Filter           ProblemFilter // before the first step; the zero value keeps every problem
	ResetOptimizer   bool          // forget the moments before the first step
	RefreshReference bool          // make the current policy the reference before the first step
}

// ProblemFilter says which of the problems at hand a stage goes on with: each is attempted by the
// policy at the stage's start, and one that every attempt solves or too few do is left out. It is
// the setting alone; the problems are judged by package resample's filter for hard problems.
type ProblemFilter struct {
	Samples    int // attempts at each problem; 0: no filter
	MinCorrect int // attempts that must be correct, at most Samples; 0: hopeless problems stay
}

// Active reports whether there is a filter at all.
func (f ProblemFilter) Active() bool { return f.Samples > 0 }

// Validate reports the first bad field.
func (f ProblemFilter) Validate() error {
	if f.Samples < 0 {
		return fmt.Errorf("samples must not be negative, got %d", f.Samples)
	}
	if f.MinCorrect < 0 || f.MinCorrect > f.Samples {
		return fmt.Errorf("min_correct must lie in 0…%d, got %d", f.Samples, f.MinCorrect)
	}
	return nil
}

// Stages is a schedule of stages in order of their first steps.
type Stages []Stage

// RStar2 returns the paper's three stages, which end at step 510.
func RStar2() Stages {
	return Stages{
		{Name: "concise", FirstStep: 0, MaxResponse: 8192},
		{Name: "longer", FirstStep: 300, MaxResponse: 12288},
		{Name: "hard", FirstStep: 385, MaxResponse: 12288, Filter: ProblemFilter{Samples: 8}, ResetOptimizer: true, RefreshReference: true},
	}
}

// Validate reports the first bad field, by stage.
func (s Stages) Validate() error {
	if len(s) == 0 {
		return fmt.Errorf("stages must hold at least one stage")
	}
	for i, stage := range s {
		if err := stage.validate(); err != nil {
			return fmt.Errorf("stage %d (%s): %w", i, stage.Name, err)
		}
		switch {
		case i == 0 && stage.FirstStep != 0:
			return fmt.Errorf("stage 0 (%s): first_step must be 0, got %d", stage.Name, stage.FirstStep)
		case i > 0 && stage.FirstStep <= s[i-1].FirstStep:
			return fmt.Errorf("stage %d (%s): first_step must be later than %d, got %d",
				i, stage.Name, s[i-1].FirstStep, stage.FirstStep)
		}
	}
	first := s[0]
	if first.Filter.Active() || first.ResetOptimizer || first.RefreshReference {
		return fmt.Errorf("stage 0 (%s): filter, reset_optimizer and refresh_reference belong between two stages", first.Name)
	}
	return nil
}

func (s Stage) validate() error {
	if s.MaxResponse < 0 {
		return fmt.Errorf("max_response must not be negative, got %d", s.MaxResponse)
	}
	if !(s.LearningRate >= 0) || math.IsInf(s.LearningRate, 0) {
		return fmt.Errorf("learning_rate must be finite and not negative, got %g", s.LearningRate)
	}
	if err := s.Filter.Validate(); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	return nil
}

// Position is where in the schedule a step lies.
type Position struct {
	Index int   // of the stage
	Stage Stage // with what it inherits filled in; 0 where no stage sets it
	Step  int   // steps of this stage behind it
	// Enters: the step is the first of a later stage, so its transitions come before it. It is a
	// function of the step alone: a step that is run again after a failure finds it again.
	Enters bool
}

// At returns the position of a step ≥ 0 in a valid schedule; the last stage has no end.
func (s Stages) At(step int) (Position, error) {
	if step < 0 {
		return Position{}, fmt.Errorf("find stage: step must not be negative, got %d", step)
	}
	if err := s.Validate(); err != nil {
		return Position{}, fmt.Errorf("find stage: %w", err)
	}
	at := Position{Stage: s[0]}
	for i, next := range s[1:] {
		if next.FirstStep > step {
			break
		}
		if next.MaxResponse == 0 {
			next.MaxResponse = at.Stage.MaxResponse
		}
		if next.LearningRate == 0 {
			next.LearningRate = at.Stage.LearningRate
		}
		at.Index, at.Stage = i+1, next
	}
	at.Step = step - at.Stage.FirstStep
	at.Enters = at.Index > 0 && at.Step == 0
	return at, nil
}
