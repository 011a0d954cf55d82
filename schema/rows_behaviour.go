package schema

import "math"

// BehaviourRow is a row of the table behaviour; its fields are those of behaviour.
type BehaviourRow behaviour[float32]

// behaviour holds what the engine that trains gives for the tokens of a kept trajectory under the version that
// sampled them (table behaviour), where inference servers sampled them and the version that is updated is a later one.
// Next to the rollout's own log-probabilities it shows how far the servers are from the trainer, and next to
// old_logprobs of token_outputs how far the updates in between have moved the policy. The list covers the trajectory's
// tokens, one turn after the other. In a file its elements are null outside the loss mask, in a row 0.
type behaviour[N element] struct {
	GroupID       string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID  string  `parquet:"trajectory_id" doc:"the trajectory; the list covers its tokens, one turn after the other, and its elements are null outside the loss mask (0 until minor version 8)"`
	LogProbs      []N     `parquet:"logprobs,list" parquet-element:",split,optional" holes:"loss_mask" unit:"nats" doc:"the trainer's log-probabilities under the policy that sampled"`
	PolicyVersion string  `parquet:"policy_version,dict" doc:"checkpoint digest of that policy"`
	LossMask      []int32 `parquet:"loss_mask,list,optional" parquet-element:",dict" since:"9" doc:"as in token_outputs"`
}

// Validate implements Row.
func (r BehaviourRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.outputs("logprobs", r.LogProbs, -math.MaxFloat32, logProbSlack)
	c.present("policy_version", r.PolicyVersion)
	if r.LossMask != nil {
		c.mask(r.LossMask, 0)
		c.length("logprobs", len(r.LogProbs), len(r.LossMask))
		c.zeroOutside("logprobs", r.LogProbs, r.LossMask)
	}
	return c.err
}

// Position implements Row.
func (r BehaviourRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }
