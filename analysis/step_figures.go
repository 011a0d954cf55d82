package analysis

import (
	"fmt"
)

// StepFigure declares one number of a step, which readers name, print and compare by it.
type StepFigure struct {
	Name, Title, Doc string
	format           string
	scale            float64
	Of               func(StepSummary) *float64 // nil where the step has none
}

// Text is a value of the figure for people; a dash without one.
func (f StepFigure) Text(value *float64) string {
	if value == nil {
		return noData
	}
	return fmt.Sprintf(f.format, f.scale**value)
}

// StepFigures are the numbers that a step's summary has.
var StepFigures = []StepFigure{
	{"success", "success", "share of sampled trajectories that solved their problem", "%.1f%%", 100,
		func(s StepSummary) *float64 { return when(s.Trajectories > 0, s.Success) }},
	{"reward", "reward", "mean reward of the sampled trajectories", "%.3f", 1,
		func(s StepSummary) *float64 { return when(s.Trajectories > 0, s.Reward) }},
	{"kept", "kept", "trajectories that resampling kept", "%.0f", 1,
		func(s StepSummary) *float64 { return when(s.KeptGroups+s.DroppedGroups > 0, float64(s.Kept)) }},
	{"entropy", "entropy", "nats per trained token", "%.3f", 1, func(s StepSummary) *float64 { return s.Entropy }},
	{"kl", "KL", "divergence from the sampling policy, nats per trained token", "%.4f", 1,
		func(s StepSummary) *float64 { return when(s.Updates > 0, s.KL) }},
	{"reference_kl", "reference KL", "divergence from the reference policy, as the loss estimates it", "%.4f", 1,
		func(s StepSummary) *float64 { return s.ReferenceKL }},
	{"clip_fraction", "clip", "share of tokens whose ratio was clipped", "%.3f", 1,
		func(s StepSummary) *float64 { return when(s.Updates > 0, s.ClipFraction) }},
	{"grad_norm", "grad", "norm of the gradient before clipping", "%.3f", 1,
		func(s StepSummary) *float64 { return s.GradNorm }},
	{"response_tokens", "tokens", "tokens that the policy wrote, mean per trajectory", "%.1f", 1,
		func(s StepSummary) *float64 { return s.Lengths.Tokens }},
	{"turns", "turns", "mean per trajectory", "%.1f", 1, func(s StepSummary) *float64 { return s.Lengths.Turns }},
	{"tool_calls", "tool calls", "mean per trajectory", "%.1f", 1,
		func(s StepSummary) *float64 { return s.Lengths.Calls }},
}

// Lengths are means over a step's trajectories; nil where they were not read (package compare reads them) or there are
// none.
type Lengths struct{ Tokens, Turns, Calls *float64 }

// StepFigureNamed returns the figure of a name that is in StepFigures.
func StepFigureNamed(name string) StepFigure {
	for _, f := range StepFigures {
		if f.Name == name {
			return f
		}
	}
	panic("there is no figure " + name)
}

// text is one of the step's figures for people.
func (s StepSummary) text(name string) string {
	f := StepFigureNamed(name)
	return f.Text(f.Of(s))
}

// when is a value if there is one.
func when(known bool, value float64) *float64 {
	if !known {
		return nil
	}
	return &value
}
