package recipes

// Pipeline lets rollouts run ahead of the updates: step s is sampled from the policy after update s − 1 − k, where k
// is MaxStaleness, or from the first policy while there are fewer updates. So while step s updates, the rollouts of
// steps up to s + k run. The version that samples a step follows from the step's number alone, never from what was
// faster: a run that is killed, resumed or repeated makes the same rows.
//
// The lag of a turn is the number of updates between the version that sampled it and the update that learns from it.
// Without InFlight it is min(k, s − 1) for every turn of step s. No group has turns of several versions, and none is
// dropped for its age.
//
// With InFlight, k limits only when a rollout may begin: each turn is sampled by the newest policy that the run has
// published when the turn begins, but by none newer than the one that the step updates. So a turn's lag is at most k, a
// group may have turns of several versions, and what is sampled depends on what was faster. The record says which
// version wrote each turn.
type Pipeline struct {
	MaxStaleness int    `json:"max_staleness" default:"1" min:"0" max:"16" doc:"lag k of the policy that samples, in updates: step s is sampled from the policy after update s − 1 − k; 0 = as without this section"`
	InFlight     bool   `json:"in_flight" default:"false" quiet:"true" doc:"in-flight weight updates: each turn is sampled by the newest policy that the run has published when the turn begins, and max_staleness is the largest lag. What is sampled then depends on what was faster"`
	MixedGroups  string `json:"mixed_groups" default:"keep" enum:"keep|drop" quiet:"true" doc:"groups whose turns are of several versions: keep learns from them; drop drops them before the other rules of resampling, which censors long episodes"`
}

// dropMixed is the value of pipeline.mixed_groups that drops groups.
const dropMixed = "drop"

// Staleness returns the lag of the policy that samples, in updates.
func (r *Recipe) Staleness() int {
	if r.Pipeline == nil {
		return 0
	}
	return r.Pipeline.MaxStaleness
}

// InFlight reports whether a step's later turns are sampled by newer policies than its first ones, as the run publishes
// them.
func (r *Recipe) InFlight() bool { return r.Pipeline != nil && r.Pipeline.InFlight }

// DropsMixed reports whether groups whose turns are of several versions are dropped.
func (r *Recipe) DropsMixed() bool { return r.Pipeline != nil && r.Pipeline.MixedGroups == dropMixed }

// inFlightSamples says why the turns of a step cannot be of several versions, or "".
func inFlightSamples(r *Recipe) string {
	switch {
	case r.Staleness() == 0:
		return "publishes newer policies to rollouts that run while a step updates, and with " +
			"pipeline.max_staleness: 0 none does"
	case r.Rollout.Mode == ModeStaged:
		return "wants rollout.mode: " + ModeInterleaved
	case r.Rollout.Tree != nil:
		return "has no place with rollout.tree: a leaf's branching compares entropies of one version"
	}
	return unless(len(r.Engine.Servers) == 0,
		"has no place with engine.servers: the table behaviour holds one version's log-probabilities for a step")
}

// pipelineTrains says why updates cannot learn from rollouts of earlier versions, or "".
func pipelineTrains(r *Recipe) string {
	for _, s := range r.Schedule.Stages() {
		if s.Problems == "unsolved" {
			return "draws a step's problems before the rewards of the steps before it are known, and schedule.stages " +
				"asks for problems that those have not solved"
		}
	}
	return unless(recomputes(r),
		"samples from earlier versions, and the log-probabilities of the version that is updated are then not the "+
			"sampler's; use loss.old_log_probs: recompute")
}
