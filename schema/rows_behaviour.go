package schema

import "math"

// BehaviourRow holds what the engine that trains gives for the tokens of a kept trajectory under the version that
// sampled them (table behaviour), where inference servers sampled them and the version that is updated is a later one.
// Next to the rollout's own log-probabilities it shows how far the servers are from the trainer, and next to
// old_logprobs of token_outputs how far the updates in between have moved the policy. The list covers the trajectory's
// tokens, one turn after the other, and is 0 outside the loss mask.
type BehaviourRow struct {
	GroupID       string    `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID  string    `parquet:"trajectory_id" doc:"the trajectory; the list covers its tokens, one turn after the other, and is 0 outside the loss mask"`
	LogProbs      []float32 `parquet:"logprobs,list" parquet-element:",split" unit:"nats" doc:"the trainer's log-probabilities under the policy that sampled"`
	PolicyVersion string    `parquet:"policy_version,dict" doc:"checkpoint digest of that policy"`
}

// Table implements Row.
func (BehaviourRow) Table() Table { return Behaviour }

// Validate implements Row.
func (r BehaviourRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.outputs("logprobs", r.LogProbs, -math.MaxFloat32, logProbSlack)
	c.present("policy_version", r.PolicyVersion)
	return c.err
}

func (r BehaviourRow) position() position { return trajectoryPosition(r.GroupID, r.TrajectoryID) }
