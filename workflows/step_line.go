package workflows

import (
	"cmp"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// line sums the statistics of the shards and stages into the step's line.
func (s *trainStep) line(shards []shardRollout, selection api.Resampled, update api.Updated) StepLine {
	l := StepLine{
		Step: s.step, Lag: s.in.Lag, KeptGroups: selection.KeptGroups, DroppedGroups: selection.DroppedGroups,
		Entropy: update.Entropy, KL: update.KL, ClipFraction: update.ClipFraction, GradNorm: update.GradNorm,
		Rounds: len(s.rounds), ReferenceKL: update.ReferenceKL, Advantages: update.Advantages, Critic: update.Critic,
		Device: update.Timing.Device, Excluded: selection.Reasons[schema.ReasonExcluded], Seconds: s.times.span(),
		StageSeconds: s.times.byStage(),
	}
	var reward float64
	var successes, errors, calls int
	for _, r := range shards {
		l.Edited = cmp.Or(l.Edited, r.scored.Edited)
		l.Trajectories += r.scored.Trajectories
		l.ToolCalls += r.scored.ToolCalls
		l.Tokens += r.scored.Tokens
		reward += r.scored.RewardSum
		successes += r.scored.Successes
		errors += r.scored.PositiveErrors
		calls += r.scored.PositiveCalls
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
