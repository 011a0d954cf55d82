package recipes

// The stages of a schedule, by the step alone: whoever reads a recipe for a step reads it by At, so that
// a step that is run, resumed or replayed finds the same settings.
//
// Source: rStar2-Agent section 4.3. Departures: steps count on through the stages, so a learning-rate
// schedule does not start again with a stage, and its warm-up is not repeated; what all samples solved is
// told by the run's own rollouts, not by an evaluation at the stage's beginning.

// At returns the recipe as a step has it: itself, or a copy with the settings of the stages that have begun.
// Step 0 and run-level stages have it as it is written.
func (r *Recipe) At(step int) *Recipe {
	out := r
	for _, s := range r.begun(step) {
		if out == r {
			out = new(Recipe)
			*out = *r
		}
		if s.MaxTokens > 0 {
			out.Rollout.MaxTokens = s.MaxTokens
		}
		if s.LR > 0 {
			out.Optimizer.LR = s.LR
		}
	}
	return out
}

// Unsolved is by how many samples, all of them right, a problem is told that a step no longer draws; 0 = it
// draws every problem.
func (r *Recipe) Unsolved(step int) int {
	samples := 0
	for _, s := range r.begun(step) {
		if s.Problems == "unsolved" {
			samples = s.Samples
		}
	}
	return samples
}

// OptimizerReset is the first step of the latest stage so far that resets the optimiser; 0 = none does.
func (r *Recipe) OptimizerReset(step int) int {
	first := 0
	for _, s := range r.begun(step) {
		if s.ResetOptimizer {
			first = s.FromStep
		}
	}
	return first
}

// ReferenceStep is the step whose policy is the reference of a step: 0 stands for the run's first. Of the
// stages that refresh it and loss.reference, the later refreshment counts.
func (r *Recipe) ReferenceStep(step int) int {
	last := 0
	if r.Loss.Reference != nil {
		every := r.Loss.Reference.RefreshEvery
		last = (step - 1) / every * every
	}
	for _, s := range r.begun(step) {
		if s.RefreshReference {
			last = max(last, s.FromStep-1)
		}
	}
	return last
}

// begun are the stages up to that of a step.
func (r *Recipe) begun(step int) []stage {
	if r.Schedule == nil {
		return nil
	}
	n := 0
	for n < len(r.Schedule.Stages) && r.Schedule.Stages[n].FromStep <= step {
		n++
	}
	return r.Schedule.Stages[:n]
}
