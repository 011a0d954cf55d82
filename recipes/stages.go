package recipes

// The stages of a schedule depend only on the step. All code that reads a recipe for a step reads it through At. So a
// step has the same settings when it is run, resumed or replayed.
//
// Source: rStar2-Agent section 4.3. Departures: the step count continues through the stages, so a stage does not
// restart the learning-rate schedule or its warm-up. The run's own rollouts decide which problems all samples solved;
// there is no evaluation at the beginning of a stage.

// At returns the recipe with the settings of the stages that have begun by a step. It returns the recipe itself if no
// stage has begun, and a copy otherwise. Step 0 and run-level stages use the recipe as written.
func (r *Recipe) At(step int) *Recipe {
	out := r
	for _, s := range r.Schedule.Begun(step) {
		if out == r {
			out = new(Recipe)
			*out = *r
		}
		if s.MaxTokens > 0 {
			out.Rollout.MaxTokens = s.MaxTokens
		}
		if s.MaxTurnTokens > 0 {
			out.Rollout.MaxTurnTokens = s.MaxTurnTokens
		}
		if s.LR > 0 {
			out.Optimizer.LR = s.LR
		}
	}
	return out
}

// ReferenceStep returns the step whose policy is the reference policy of the given step. 0 means the run's first
// policy. Both the stages and loss.reference can refresh the reference; the later refresh counts.
func (r *Recipe) ReferenceStep(step int) int {
	last := 0
	if reference := r.Loss.Reference(); reference != nil {
		every := reference.RefreshEvery
		last = (step - 1) / every * every
	}
	for _, s := range r.Schedule.Begun(step) {
		if s.RefreshReference {
			last = max(last, s.FromStep-1)
		}
	}
	return last
}
