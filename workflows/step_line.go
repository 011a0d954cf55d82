package workflows

import (
	"cmp"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/schema"
)

// line sums the statistics of the shards and stages into the step's line.
func (s *trainStep) line(out step.Out) StepLine {
	selection, update := out.Learnt.Resampled, out.Finished.Updated
	l := StepLine{
		Step: s.in.Step, Lag: s.in.Lag, KeptGroups: selection.KeptGroups, DroppedGroups: selection.DroppedGroups,
		Entropy: update.Entropy, KL: update.KL, ClipFraction: update.ClipFraction, GradNorm: update.GradNorm,
		ReferenceKL: update.ReferenceKL, Advantages: update.Advantages, Critic: update.Critic,
		Device: update.Timing.Device, Excluded: selection.Reasons[schema.ReasonExcluded], Seconds: s.times.span(),
		StageSeconds: s.times.byStage(), Buffer: bufferLine(out.Learnt.Buffered, update),
	}
	if s.plan.Dynamic != nil {
		l.Rounds = len(out.Sampled.Prompts)
	}
	var reward float64
	var successes, errors, calls int
	for _, r := range out.Sampled.Shards {
		l.Edited = cmp.Or(l.Edited, r.Scored.Edited)
		l.Trajectories += r.Scored.Trajectories
		l.ToolCalls += r.Scored.ToolCalls
		l.Tokens += r.Scored.Tokens
		reward += r.Scored.RewardSum
		successes += r.Scored.Successes
		errors += r.Scored.PositiveErrors
		calls += r.Scored.PositiveCalls
	}
	if n := float64(l.Trajectories); n > 0 {
		l.Reward, l.Success = reward/n, float64(successes)/n
	}
	if calls > 0 {
		l.ToolErrorPositive, l.PositiveCalls = float64(errors)/float64(calls), calls
	}
	return l
}

// short returns the first characters of a digest, for summaries.
func short(digest string) string { return digest[:min(12, len(digest))] }
