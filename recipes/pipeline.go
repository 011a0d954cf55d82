package recipes

import (
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Pipeline lets rollouts run ahead of the updates: step s is sampled from the policy after update s − 1 − k, where k
// is MaxStaleness, or from the first policy while there are fewer updates. So while step s updates, the rollouts of
// steps up to s + k run. The version that samples a step follows from the step's number alone, never from what was
// faster: a run that is killed, resumed or repeated makes the same rows.
//
// The lag of a turn is the number of updates between the version that sampled it and the update that learns from it.
// Here it is min(k, s − 1) for every turn of step s. No group has turns of several versions, and none is dropped for
// its age.
type Pipeline struct {
	MaxStaleness int `json:"max_staleness" default:"1" min:"0" max:"16" doc:"lag k of the policy that samples, in updates: step s is sampled from the policy after update s − 1 − k; 0 = as without this section"`
}

// Staleness returns the lag of the policy that samples, in updates.
func (r *Recipe) Staleness() int {
	if r.Pipeline == nil {
		return 0
	}
	return r.Pipeline.MaxStaleness
}

// pipelineTrains says why updates cannot learn from rollouts of earlier versions, or "".
func pipelineTrains(r *Recipe) string {
	if r.Staleness() == 0 {
		return ""
	}
	for _, s := range r.Schedule.Stages() {
		if s.Problems == "unsolved" {
			return "draws a step's problems before the rewards of the steps before it are known, and schedule.stages " +
				"asks for problems that those have not solved"
		}
	}
	return unless(r.Loss.OldLogProbs == loss.OldRecomputed,
		"samples from earlier versions, and the log-probabilities of the version that is updated are then not the "+
			"sampler's; use loss.old_log_probs: %s", loss.OldRecomputed)
}
